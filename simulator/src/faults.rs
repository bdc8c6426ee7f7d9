//! Faults that tests order: which request they meet, and what goes wrong with it.

use regex::Regex;
use serde::{Deserialize, Serialize};

/// An order for a fault, as the console takes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultOrder {
    /// e.g. `POST`; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// A regular expression on the path below the base URL, without the query; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How many requests it meets.
    #[serde(default = "once")]
    pub times: u32,
    /// How many matching requests it lets pass first.
    #[serde(default)]
    pub after: u32,
    /// Absent: `status` when a status is given, otherwise `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<FaultKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// JSON, or text that is sent as it is. Of `odd_entry` and `state`: what the field becomes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
    /// Which entry is odd, by its id; absent: the first of a list. Whose state is another one; absent: that of every compute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Which field of it; absent: the entry itself, or its `current_state`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The Retry-After header: seconds or an HTTP date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<RetryAfter>,
    /// Real milliseconds before anything else happens, but for `late_work`; goes with every kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Another answer instead of the work.
    Status,
    /// Another answer after the work was done.
    StatusAfterWork,
    /// The right answer, late.
    Delay,
    /// The work is done, then the connection is closed without an answer.
    LoseAnswer,
    /// The connection is closed before the work.
    Drop,
    /// The connection is closed at once; the work is done when `delay_ms` has passed.
    LateWork,
    /// The work is done and half of the answer's body is sent, then the connection is closed.
    CutBody,
    /// The right answer, but one entry of its list has another field, lacks one, or is of another form.
    OddEntry,
    /// The right answer, but computes are in another state.
    State,
}

/// See [`FaultOrder::retry_after`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RetryAfter {
    Seconds(u64),
    Date(String),
}

fn once() -> u32 {
    1
}

/// A fault that meets a request.
#[derive(Debug, Clone)]
pub struct Fault {
    pub kind: FaultKind,
    /// For the kinds that answer with a status.
    pub status: u16,
    pub body: Option<serde_json::Value>,
    pub entry: Option<String>,
    pub field: Option<String>,
    pub retry_after: Option<RetryAfter>,
    pub delay_ms: u64,
}

/// An order as it is listed.
#[derive(Debug, Serialize)]
pub struct ListedFault<'a> {
    pub id: u64,
    pub remaining: u32,
    #[serde(flatten)]
    pub order: &'a FaultOrder,
}

#[derive(Debug)]
struct Standing {
    id: u64,
    order: FaultOrder,
    path: Option<Regex>,
    fault: Fault,
    pass: u32,
    remaining: u32,
}

/// The orders that stand, oldest first.
#[derive(Debug, Default)]
pub struct FaultBoard {
    standing: Vec<Standing>,
    last_id: u64,
}

impl FaultBoard {
    /// Takes an order and returns its id; an error says in words why it makes no sense.
    pub fn order(&mut self, order: FaultOrder) -> Result<u64, String> {
        let path = order.path.as_deref().map(Regex::new).transpose().map_err(|error| format!("path: {error}"))?;
        let fault = resolve(&order)?;
        self.last_id += 1;
        let (pass, remaining) = (order.after, order.times);
        self.standing.push(Standing { id: self.last_id, order, path, fault, pass, remaining });
        Ok(self.last_id)
    }

    /// The fault that this request meets, if any: the oldest that matches and has nothing left to let pass.
    pub fn meet(&mut self, method: &str, path: &str) -> Option<Fault> {
        for standing in self.standing.iter_mut().filter(|standing| standing.remaining > 0) {
            if !standing.matches(method, path) {
                continue;
            }
            if standing.pass > 0 {
                standing.pass -= 1;
                continue;
            }
            standing.remaining -= 1;
            return Some(standing.fault.clone());
        }
        None
    }

    /// All orders, used up ones too.
    pub fn list(&self) -> Vec<ListedFault<'_>> {
        let listed = |standing: &'_ Standing| (standing.id, standing.remaining);
        self.standing
            .iter()
            .map(|standing| {
                let (id, remaining) = listed(standing);
                ListedFault { id, remaining, order: &standing.order }
            })
            .collect()
    }

    /// Takes back all orders.
    pub fn clear(&mut self) {
        self.standing.clear();
    }
}

impl Standing {
    fn matches(&self, method: &str, path: &str) -> bool {
        let method_fits = self.order.method.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method));
        method_fits && self.path.as_ref().is_none_or(|regex| regex.is_match(path))
    }
}

fn resolve(order: &FaultOrder) -> Result<Fault, String> {
    use FaultKind::{CutBody, Delay, Drop, LateWork, LoseAnswer, OddEntry, State, Status, StatusAfterWork};
    let kind = match (order.kind, order.status, order.delay_ms) {
        (Some(kind), _, _) => kind,
        (None, Some(_), _) => Status,
        (None, None, Some(_)) => Delay,
        (None, None, None) => return Err("a fault needs a kind, a status or a delay_ms".to_owned()),
    };
    let status = match (kind, order.status) {
        (Status | StatusAfterWork, None) => return Err("this kind of fault needs a status".to_owned()),
        (Status | StatusAfterWork, Some(status)) if !(200..=599).contains(&status) => {
            return Err("status must be from 200 to 599".to_owned());
        }
        (LateWork, None) if order.delay_ms.is_none() => return Err("late_work needs a delay_ms".to_owned()),
        (Delay | LoseAnswer | Drop | LateWork | CutBody | OddEntry | State, Some(_)) => {
            return Err("this kind of fault has no status".to_owned());
        }
        (_, status) => status.unwrap_or_default(),
    };
    if !matches!(kind, OddEntry | State) && (order.entry.is_some() || order.field.is_some()) {
        return Err("only odd_entry and state have an entry and a field".to_owned());
    }
    Ok(Fault {
        kind,
        status,
        body: order.body.clone(),
        entry: order.entry.clone(),
        field: order.field.clone(),
        retry_after: order.retry_after.clone(),
        delay_ms: order.delay_ms.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(json: serde_json::Value) -> FaultOrder {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_fault_meets_as_many_as_it_says_after_letting_some_pass() {
        let mut board = FaultBoard::default();
        board
            .order(order(
                serde_json::json!({"method": "POST", "path": "/endpoints$", "status": 500, "times": 2, "after": 1}),
            ))
            .unwrap();
        let mut meet = |method, path| board.meet(method, path).map(|fault| fault.status);
        assert_eq!(meet("GET", "/projects/p/endpoints"), None);
        assert_eq!(meet("POST", "/projects/p/endpoints/e/restart"), None);
        assert_eq!(meet("POST", "/projects/p/endpoints"), None);
        assert_eq!(meet("POST", "/projects/p/endpoints"), Some(500));
        assert_eq!(meet("post", "/projects/p/endpoints"), Some(500));
        assert_eq!(meet("POST", "/projects/p/endpoints"), None);
    }

    #[test]
    fn orders_that_make_no_sense() {
        for json in [
            serde_json::json!({}),
            serde_json::json!({"kind": "status"}),
            serde_json::json!({"kind": "drop", "status": 500}),
            serde_json::json!({"kind": "late_work"}),
            serde_json::json!({"status": 42}),
            serde_json::json!({"kind": "odd_entry", "status": 500}),
            serde_json::json!({"kind": "drop", "field": "id"}),
            serde_json::json!({"status": 500, "path": "("}),
        ] {
            assert!(FaultBoard::default().order(order(json.clone())).is_err(), "{json}");
        }
    }

    #[test]
    fn the_kind_follows_from_what_is_given() {
        let kind = |json| resolve(&order(json)).unwrap().kind;
        assert_eq!(kind(serde_json::json!({"status": 503})), FaultKind::Status);
        assert_eq!(kind(serde_json::json!({"delay_ms": 5})), FaultKind::Delay);
        assert_eq!(kind(serde_json::json!({"kind": "lose_answer", "delay_ms": 5})), FaultKind::LoseAnswer);
    }
}
