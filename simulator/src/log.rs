//! The log of API requests, without secrets.

use std::collections::VecDeque;

use serde::Serialize;

/// Number of requests that are kept.
pub const KEPT: usize = 20_000;

/// A logged request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// 1 for the first request; never reused.
    pub n: u64,
    /// Simulated time of arrival.
    pub at: String,
    pub method: String,
    /// The path below the base URL; anything that could be a secret is hidden.
    pub path: String,
    /// The query parameters that the API knows, in the given order.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Null while the request is in progress, and forever if it was never answered.
    pub status: Option<u16>,
    /// The `x-request-id` of the answer.
    #[serde(skip)]
    pub request_id: Option<String>,
    /// True once the request is no longer in progress: answered, abandoned by its client, or ended
    /// by a fault.
    #[serde(skip)]
    pub over: bool,
    /// Id of the key that the request used, if that key exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<i64>,
    /// True if the path was below the base URL.
    pub api: bool,
}

/// The latest requests.
#[derive(Debug, Default)]
pub struct RequestLog {
    entries: VecDeque<Entry>,
    last: u64,
}

impl RequestLog {
    /// Logs an arriving request and returns the number that it assigns to the entry.
    pub fn arrived(&mut self, mut entry: Entry) -> u64 {
        self.last += 1;
        entry.n = self.last;
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.last
    }

    /// Records the status and the request id of the answer.
    pub fn answered(&mut self, n: u64, status: u16, request_id: Option<&str>) {
        if let Ok(index) = self.entries.binary_search_by_key(&n, |entry| entry.n) {
            let entry = &mut self.entries[index];
            (entry.status, entry.request_id) = (Some(status), request_id.map(str::to_owned));
        }
    }

    /// Marks a request as no longer in progress.
    pub fn over(&mut self, n: u64) {
        if let Ok(index) = self.entries.binary_search_by_key(&n, |entry| entry.n) {
            self.entries[index].over = true;
        }
    }

    /// The requests with a number greater than `since`.
    pub fn since(&self, since: u64) -> Vec<Entry> {
        let first = self.entries.partition_point(|entry| entry.n <= since);
        self.entries.range(first..).cloned().collect()
    }

    /// The latest requests that pass the filter, newest first.
    pub fn latest(&self, wanted: impl Fn(&Entry) -> bool, most: usize) -> Vec<Entry> {
        self.entries
            .iter()
            .rev()
            .filter(|entry| wanted(entry))
            .take(most)
            .cloned()
            .collect()
    }

    /// Removes all requests; numbers are not reused.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

/// Keeps only the known query parameters: others could hold secrets.
pub fn known_query(query: &str) -> String {
    const KNOWN: [&str; 14] = [
        "cursor",
        "limit",
        "search",
        "org_id",
        "sort_by",
        "sort_order",
        "timeout",
        "recoverable",
        "branch_id",
        "endpoint_id",
        "pooled",
        "database_name",
        "role_name",
        "include_deleted",
    ];
    let known = |pair: &&str| {
        pair.split_once('=')
            .is_some_and(|(name, value)| KNOWN.contains(&name) && value.len() <= 60)
    };
    query.split('&').filter(known).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            n: 0,
            at: String::new(),
            method: "GET".into(),
            path: "/projects".into(),
            query: String::new(),
            status: None,
            request_id: None,
            over: false,
            key_id: None,
            api: true,
        }
    }

    #[test]
    fn the_log_is_bounded_and_its_numbers_continue() {
        let mut log = RequestLog::default();
        for _ in 0..KEPT + 5 {
            log.arrived(entry());
        }
        log.answered(KEPT as u64, 200, None);
        log.answered(1, 200, None);
        let all = log.since(0);
        assert_eq!((all.len(), all[0].n), (KEPT, 6));
        assert_eq!(log.since(KEPT as u64 - 1)[0].status, Some(200));
        log.clear();
        assert_eq!(log.arrived(entry()), KEPT as u64 + 6);
    }

    #[test]
    fn only_known_parameters_are_logged() {
        assert_eq!(
            known_query("limit=5&token=secret&org_id=o&x"),
            "limit=5&org_id=o"
        );
        let connection = "database_name=app&role_name=app_owner&pooled=true";
        assert_eq!(known_query(connection), connection);
    }
}
