//! The request log: what was asked of the API, without secrets.

use std::collections::VecDeque;

use serde::Serialize;

/// How many requests are remembered.
const KEPT: usize = 20_000;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// 1 for the first request; never reused.
    pub n: u64,
    /// Simulated time of arrival.
    pub at: String,
    pub method: String,
    /// Below the base URL, with anything that could be a secret hidden.
    pub path: String,
    /// The query parameters that the API knows, in the order given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Null while the request is worked on, and for ever when no answer was given.
    pub status: Option<u16>,
    /// The `x-request-id` of the answer.
    #[serde(skip)]
    pub request_id: Option<String>,
    /// Whether nobody works on it any more: it was answered, or its client has gone, or a fault has ended it.
    #[serde(skip)]
    pub over: bool,
    /// The key that it was made with, if there is such a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<i64>,
    /// Whether the path was below the base URL.
    pub api: bool,
}

/// The latest requests.
#[derive(Debug, Default)]
pub struct RequestLog {
    entries: VecDeque<Entry>,
    last: u64,
}

impl RequestLog {
    /// Notes a request as it arrives; the entry's number is filled in and returned.
    pub fn arrived(&mut self, mut entry: Entry) -> u64 {
        self.last += 1;
        entry.n = self.last;
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.last
    }

    /// Notes the status that a request was answered with, and the answer's identifier.
    pub fn answered(&mut self, n: u64, status: u16, request_id: Option<&str>) {
        if let Ok(index) = self.entries.binary_search_by_key(&n, |entry| entry.n) {
            let entry = &mut self.entries[index];
            (entry.status, entry.request_id) = (Some(status), request_id.map(str::to_owned));
        }
    }

    /// Notes that nobody works on a request any more.
    pub fn over(&mut self, n: u64) {
        if let Ok(index) = self.entries.binary_search_by_key(&n, |entry| entry.n) {
            self.entries[index].over = true;
        }
    }

    /// The requests with a greater number than `since`.
    pub fn since(&self, since: u64) -> Vec<Entry> {
        let first = self.entries.partition_point(|entry| entry.n <= since);
        self.entries.range(first..).cloned().collect()
    }

    /// The latest of the requests that are wanted, the newest first.
    pub fn latest(&self, wanted: impl Fn(&Entry) -> bool, most: usize) -> Vec<Entry> {
        self.entries.iter().rev().filter(|entry| wanted(entry)).take(most).cloned().collect()
    }

    /// Forgets all requests; numbering goes on.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

/// The known parameters of a query: others could hold anything.
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
    let known =
        |pair: &&str| pair.split_once('=').is_some_and(|(name, value)| KNOWN.contains(&name) && value.len() <= 60);
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
    fn the_log_is_bounded_and_its_numbers_go_on() {
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
    fn only_known_parameters_are_noted() {
        assert_eq!(known_query("limit=5&token=secret&org_id=o&x"), "limit=5&org_id=o");
        let connection = "database_name=app&role_name=app_owner&pooled=true";
        assert_eq!(known_query(connection), connection);
    }
}
