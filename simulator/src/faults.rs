//! Faults that tests order: which requests a fault hits, and how it changes them.

use jiff::SignedDuration;
use regex::Regex;
use serde::{Deserialize, Serialize};

/// Upper bound for clock offsets and key ages: a year, in seconds.
const LARGEST_SECONDS: i64 = 366 * 24 * 60 * 60;
const LOGIN_PAGE: &str =
    "<!doctype html><title>Log in</title><form method=\"post\">Please log in.</form>";

/// A fault order as the console accepts it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultOrder {
    /// E.g. `POST`; absent: any method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// A regular expression for the path below the base URL, without the query; absent: any path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Number of requests that the fault hits.
    #[serde(default = "once")]
    pub times: u32,
    /// Number of matching requests to skip first.
    #[serde(default)]
    pub after: u32,
    /// Afterwards it hits every n-th matching request: 2 hits the first, the third and so on.
    #[serde(default = "once")]
    pub every: u32,
    /// Absent: `status` if a status is given, otherwise `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<FaultKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// JSON, or text that is sent as is. For `odd_entry` and `state`: the new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
    /// Id of the entry (absent: the first) or, for `state`, of the compute (absent: all).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The field to change; absent: the entry itself, or its `current_state`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The Retry-After header: seconds or an HTTP date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<RetryAfter>,
    /// Real milliseconds of delay, for every kind; it comes first, except for `late_work`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// For `redirect`: the Location header; absent: the URL of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// `clock_off`: how far the clock is ahead (below 0: behind). `young_key`: the age limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
}

/// How the fault changes a request or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Answers with the given status; the work is not done.
    Status,
    /// Does the work, then answers with the given status.
    StatusAfterWork,
    /// Does the work, then redirects (302 unless a status is given).
    Redirect,
    /// Answers with a login page and 200; the work is not done.
    LoginPage,
    /// Does the work, then answers with a login page and 200.
    LoginPageAfterWork,
    /// Answers with the error page of a gateway (502 unless given); the work is not done.
    GatewayPage,
    /// Does the work twice, as a retrying proxy would, and returns the second answer.
    Repeat,
    /// The work is done on a server whose clock is `seconds` ahead. The computes and keys keep its
    /// times, and the Date header shows it.
    ClockOff,
    /// The correct answer, but its times have no time zone.
    TimesWithoutZone,
    /// The correct answer, but Postgres settings are normalized: `65536kB` for `64MB`.
    NormalizedSettings,
    /// Answers 401 to keys that are younger than `seconds`. It hits no other requests.
    YoungKey,
    /// The correct answer, delayed.
    Delay,
    /// Does the work, then closes the connection without an answer.
    LoseAnswer,
    /// Closes the connection before the work.
    Drop,
    /// Closes the connection at once and does the work `delay_ms` later.
    LateWork,
    /// Does the work, sends half of the body, then closes the connection.
    CutBody,
    /// The correct answer, but a field of one list entry is changed, lacking, or malformed.
    OddEntry,
    /// The correct answer, but computes show another state.
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

/// The resolved fault for one request.
#[derive(Debug, Clone)]
pub struct Fault {
    pub kind: FaultKind,
    /// For kinds that answer with a status.
    pub status: u16,
    pub body: Option<serde_json::Value>,
    pub entry: Option<String>,
    pub field: Option<String>,
    pub retry_after: Option<RetryAfter>,
    pub delay_ms: u64,
    pub location: Option<String>,
    pub seconds: i64,
}

/// The facts of a request that decide which fault hits it.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// Time since the key was created; `None` if the platform does not know the key.
    pub key_age: Option<SignedDuration>,
}

/// An order in a listing.
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

/// All orders, oldest first.
#[derive(Debug, Default)]
pub struct FaultBoard {
    standing: Vec<Standing>,
    last_id: u64,
}

impl FaultBoard {
    /// Adds an order and returns its id; the error says why the order is invalid.
    pub fn order(&mut self, order: FaultOrder) -> Result<u64, String> {
        let path = order
            .path
            .as_deref()
            .map(Regex::new)
            .transpose()
            .map_err(|error| format!("path: {error}"))?;
        let fault = resolve(&order)?;
        self.last_id += 1;
        let (pass, remaining) = (order.after, order.times);
        self.standing.push(Standing {
            id: self.last_id,
            order,
            path,
            fault,
            pass,
            remaining,
        });
        Ok(self.last_id)
    }

    /// The fault that hits this request: the oldest matching order with nothing left to skip.
    pub fn meet(&mut self, arrival: Arrival<'_>) -> Option<Fault> {
        for standing in self
            .standing
            .iter_mut()
            .filter(|standing| standing.remaining > 0)
        {
            if !standing.matches(arrival) {
                continue;
            }
            if standing.pass > 0 {
                standing.pass -= 1;
                continue;
            }
            standing.remaining -= 1;
            standing.pass = standing.order.every - 1;
            return Some(standing.fault.clone());
        }
        None
    }

    /// All orders, including used ones.
    pub fn list(&self) -> Vec<ListedFault<'_>> {
        let listed = |standing: &'_ Standing| (standing.id, standing.remaining);
        self.standing
            .iter()
            .map(|standing| {
                let (id, remaining) = listed(standing);
                ListedFault {
                    id,
                    remaining,
                    order: &standing.order,
                }
            })
            .collect()
    }

    /// Removes all orders.
    pub fn clear(&mut self) {
        self.standing.clear();
    }
}

impl Standing {
    fn matches(&self, arrival: Arrival<'_>) -> bool {
        let Arrival {
            method,
            path,
            key_age,
        } = arrival;
        let method_fits = self
            .order
            .method
            .as_ref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(method));
        let is_young = |age: SignedDuration| age < SignedDuration::from_secs(self.fault.seconds);
        let key_fits = self.fault.kind != FaultKind::YoungKey || key_age.is_some_and(is_young);
        method_fits && key_fits && self.path.as_ref().is_none_or(|regex| regex.is_match(path))
    }
}

fn resolve(order: &FaultOrder) -> Result<Fault, String> {
    use FaultKind::{
        GatewayPage, LateWork, LoginPage, LoginPageAfterWork, OddEntry, Redirect, State, Status,
        StatusAfterWork,
    };
    let kind = match (order.kind, order.status, order.delay_ms) {
        (Some(kind), _, _) => kind,
        (None, Some(_), _) => Status,
        (None, None, Some(_)) => FaultKind::Delay,
        (None, None, None) => return Err("a fault needs a kind, a status or a delay_ms".to_owned()),
    };
    let status = match (kind, order.status) {
        (Status | StatusAfterWork, None) => {
            return Err("this kind of fault needs a status".to_owned());
        }
        (Status | StatusAfterWork, Some(status)) if !(200..=599).contains(&status) => {
            return Err("status must be from 200 to 599".to_owned());
        }
        (LateWork, None) if order.delay_ms.is_none() => {
            return Err("late_work needs a delay_ms".to_owned());
        }
        (Redirect, Some(status)) if !matches!(status, 301 | 302 | 303 | 307 | 308) => {
            return Err("the status of a redirect must be 301, 302, 303, 307 or 308".to_owned());
        }
        (GatewayPage, Some(status)) if !(400..=599).contains(&status) => {
            return Err("the status of a gateway's page must be from 400 to 599".to_owned());
        }
        (_, Some(_)) if !kind.has_status() => {
            return Err("this kind of fault has no status".to_owned());
        }
        (Redirect, None) => 302,
        (GatewayPage, None) => 502,
        (LoginPage | LoginPageAfterWork, _) => 200,
        (_, status) => status.unwrap_or_default(),
    };
    check_parameters(kind, order)?;
    if !matches!(kind, OddEntry | State) && (order.entry.is_some() || order.field.is_some()) {
        return Err("only odd_entry and state have an entry and a field".to_owned());
    }
    Ok(Fault {
        kind,
        status,
        body: order.body.clone().or_else(|| page(kind, status)),
        entry: order.entry.clone(),
        field: order.field.clone(),
        retry_after: order.retry_after.clone(),
        delay_ms: order.delay_ms.unwrap_or_default(),
        location: order.location.clone(),
        seconds: order.seconds.unwrap_or_default(),
    })
}

/// Rejects parameters that do not apply to this kind.
fn check_parameters(kind: FaultKind, order: &FaultOrder) -> Result<(), String> {
    let refuse = |problem: &str| Err(problem.to_owned());
    let least = if kind == FaultKind::ClockOff {
        -LARGEST_SECONDS
    } else {
        1
    };
    match order.seconds {
        None if kind.has_seconds() => return refuse("this kind of fault needs seconds"),
        Some(_) if !kind.has_seconds() => return refuse("this kind of fault has no seconds"),
        Some(seconds) if seconds == 0 || !(least..=LARGEST_SECONDS).contains(&seconds) => {
            return Err(format!(
                "seconds must be from {least} to {LARGEST_SECONDS}, and not 0"
            ));
        }
        _ => {}
    }
    if order.every == 0 {
        return refuse("every must be 1 or more");
    }
    if order.location.is_some() && kind != FaultKind::Redirect {
        return refuse("only a redirect has a location");
    }
    let is_address = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
    if order
        .location
        .as_deref()
        .is_some_and(|location| !is_address(location))
    {
        return refuse("location must be an address: ASCII, without blanks");
    }
    if kind.is_page() && order.body.as_ref().is_some_and(|body| !is_html(body)) {
        return refuse("the body of a page must be text that begins with <");
    }
    Ok(())
}

fn is_html(body: &serde_json::Value) -> bool {
    body.as_str()
        .is_some_and(|text| text.trim_start().starts_with('<'))
}

/// The default body of login and gateway pages.
fn page(kind: FaultKind, status: u16) -> Option<serde_json::Value> {
    match kind {
        FaultKind::GatewayPage => {
            let html = format!(
                "<!doctype html><title>{status}</title><h1>{status}</h1><hr><center>gateway</center>"
            );
            Some(serde_json::Value::String(html))
        }
        _ => kind.is_page().then(|| LOGIN_PAGE.into()),
    }
}

impl FaultKind {
    /// True if an order may set the status of the answer.
    pub fn has_status(self) -> bool {
        matches!(
            self,
            Self::Status | Self::StatusAfterWork | Self::Redirect | Self::GatewayPage
        )
    }

    /// True if the kind uses `seconds`.
    pub fn has_seconds(self) -> bool {
        matches!(self, Self::ClockOff | Self::YoungKey)
    }

    /// True if the answer is an HTML page.
    fn is_page(self) -> bool {
        matches!(
            self,
            Self::LoginPage | Self::LoginPageAfterWork | Self::GatewayPage
        )
    }
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
        let mut meet = |method, path| {
            board
                .meet(Arrival {
                    method,
                    path,
                    key_age: None,
                })
                .map(|fault| fault.status)
        };
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
            serde_json::json!({"status": 500, "every": 0}),
            serde_json::json!({"status": 500, "seconds": 5}),
            serde_json::json!({"status": 500, "location": "/login"}),
            serde_json::json!({"kind": "repeat", "status": 500}),
            serde_json::json!({"kind": "redirect", "status": 304}),
            serde_json::json!({"kind": "redirect", "location": ""}),
            serde_json::json!({"kind": "redirect", "location": "/log in"}),
            serde_json::json!({"kind": "login_page", "status": 200}),
            serde_json::json!({"kind": "login_page", "body": {"message": "log in"}}),
            serde_json::json!({"kind": "gateway_page", "status": 302}),
            serde_json::json!({"kind": "gateway_page", "body": "no page"}),
            serde_json::json!({"kind": "clock_off"}),
            serde_json::json!({"kind": "clock_off", "seconds": 0}),
            serde_json::json!({"kind": "clock_off", "seconds": -40_000_000}),
            serde_json::json!({"kind": "clock_off", "seconds": i64::MIN}),
            serde_json::json!({"kind": "young_key"}),
            serde_json::json!({"kind": "young_key", "seconds": -1}),
            serde_json::json!({"kind": "times_without_zone", "seconds": 5}),
        ] {
            assert!(
                FaultBoard::default().order(order(json.clone())).is_err(),
                "{json}"
            );
        }
    }

    #[test]
    fn the_kind_follows_from_what_is_given() {
        let kind = |json| resolve(&order(json)).unwrap().kind;
        assert_eq!(kind(serde_json::json!({"status": 503})), FaultKind::Status);
        assert_eq!(kind(serde_json::json!({"delay_ms": 5})), FaultKind::Delay);
        assert_eq!(
            kind(serde_json::json!({"kind": "lose_answer", "delay_ms": 5})),
            FaultKind::LoseAnswer
        );
    }
}
