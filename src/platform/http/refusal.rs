//! Turns an answer that is not a success into a fault. A 4xx counts as the platform's refusal only
//! in the platform's form.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::{Map, Value};

use super::text::{described, has_form, looks_like_html, tidy, tidy_identifier};
use crate::domain::{Fault, Form, NO_REASON};

/// The longest wait that one Retry-After can impose.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
const NOT_ALLOWED: &str = "not allowed";
const NO_ROUTE: &str = "this route does not exist";

/// An answer that is not a success.
#[derive(Debug)]
pub(super) struct RefusedAnswer {
    pub status: u16,
    /// True if the request asked for a change.
    pub change: bool,
    pub retry_after: Option<Duration>,
    /// The target of a redirect.
    pub location: Option<String>,
    /// `x-request-id` of the answer.
    pub request_id: Option<String>,
    /// True if the `content-type` header says HTML.
    pub html: bool,
    /// At most the first 64 KiB.
    pub body: Vec<u8>,
    /// True if the whole body was read.
    pub complete: bool,
}

impl RefusedAnswer {
    /// The fault. Its message never contains `secret`.
    pub fn into_fault(self, secret: &str) -> Fault {
        let form = self.foreign_form();
        let error = ErrorBody::from_body(&self.body);
        let route_missing = error.contains(NO_ROUTE);
        let not_allowed = error
            .message
            .trim_start()
            .to_ascii_lowercase()
            .starts_with(NOT_ALLOWED);
        let message = error.into_message(self.request_id.as_deref(), secret);
        let (status, retry_after) = (self.status, self.retry_after);
        match (status, form) {
            (300..=399, _) => {
                let message = redirected(self.location.as_deref(), secret);
                Fault::Gateway {
                    status,
                    form: Form::Foreign,
                    message,
                }
            }
            // These count in any form, because the platform's own proxies may send them.
            (401, _) => Fault::Unauthorized { message },
            (429, _) => Fault::Throttled {
                status,
                retry_after,
            },
            // The server or a proxy timed out, which is not a refusal.
            (408, _) => Fault::Server { status, message },
            (400..=499, Some(form)) => Fault::Gateway {
                status,
                form,
                message,
            },
            (403, None) => Fault::Forbidden { status, message },
            (404, None) if not_allowed => Fault::Forbidden { status, message },
            (404, None) if route_missing => Fault::Unsupported { status, message },
            (404, None) => Fault::NotFound { message },
            (405 | 501, None) => Fault::Unsupported { status, message },
            (409, None) => Fault::Conflict { message },
            (423, None) => Fault::Busy {
                message,
                retry_after,
            },
            (400..=499, None) => Fault::Rejected { status, message },
            // The outcome of a change stays unknown: some servers answer 503 after they have begun.
            (503, _) if !self.change => Fault::Throttled {
                status,
                retry_after,
            },
            _ => Fault::Server { status, message },
        }
    }

    /// The form of the body, if it is not the platform's.
    fn foreign_form(&self) -> Option<Form> {
        if self.html || !self.complete {
            return Some(Form::Foreign);
        }
        if has_form(&self.body) {
            return None;
        }
        Some(if looks_like_html(&self.body) {
            Form::Foreign
        } else {
            Form::Text
        })
    }
}

fn redirected(location: Option<&str>, secret: &str) -> String {
    let target = location.map_or_else(String::new, |location| {
        format!(" to {}", tidy(location, secret))
    });
    format!(
        "a redirect{target}, which is not followed because the API key would go with it; check the base URL"
    )
}

/// The content of an error body, in the form of this platform or of similar servers.
#[derive(Debug, Default, PartialEq, Eq)]
struct ErrorBody {
    message: String,
    code: Option<String>,
    request_id: Option<String>,
}

impl ErrorBody {
    fn from_body(body: &[u8]) -> Self {
        let read = match serde_json::from_slice(body) {
            Ok(Value::Object(members)) => Self::from_members(&members),
            _ => Self::default(),
        };
        if !read.message.is_empty() {
            return read;
        }
        Self {
            message: described(body).to_owned(),
            ..read
        }
    }

    /// Reads `{message}`, `{error}` and `{error: {message, code}}`.
    fn from_members(members: &Map<String, Value>) -> Self {
        Self {
            message: member(members, "message")
                .or_else(|| text(members, "error"))
                .unwrap_or_default(),
            code: member(members, "code"),
            request_id: member(members, "request_id"),
        }
    }

    fn contains(&self, words: &str) -> bool {
        self.message.to_ascii_lowercase().contains(words)
    }

    /// The message, followed by the code and the request ID if they are known.
    fn into_message(self, request_id: Option<&str>, secret: &str) -> String {
        let mut message = tidy(&self.message, secret);
        if message.is_empty() {
            NO_REASON.clone_into(&mut message);
        }
        // The body may be anything, so text that looks like a token may be one.
        let code = self.code.map(|code| tidy(&code, secret));
        let request = self.request_id.map(|request| tidy(&request, secret));
        let request = request.as_deref().or(request_id);
        let mut marks = Vec::new();
        for (name, value) in [("code", code.as_deref()), ("request", request)] {
            let value = tidy_identifier(value.unwrap_or_default(), secret);
            if !value.is_empty() {
                marks.push(format!("{name} {value}"));
            }
        }
        if !marks.is_empty() {
            message.push_str(&format!(" ({})", marks.join(", ")));
        }
        message
    }
}

/// The text of a member, here or in the member `error`.
fn member(members: &Map<String, Value>, name: &str) -> Option<String> {
    text(members, name).or_else(|| text(members.get("error")?.as_object()?, name))
}

fn text(members: &Map<String, Value>, name: &str) -> Option<String> {
    match members.get(name)?.as_str()? {
        "" => None,
        text => Some(text.to_owned()),
    }
}

/// The wait that Retry-After asks for: seconds, or a date relative to `now`. At most an hour.
pub(super) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    let wait = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        value.parse().map_or(LONGEST_WAIT, Duration::from_secs)
    } else {
        let until = http_date(value)?;
        Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO)
    };
    Some(wait.min(LONGEST_WAIT))
}

/// A date in the format of HTTP headers.
pub(super) fn http_date(value: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new()
        .relaxed_weekday(true)
        .parse_timestamp(value.trim())
        .ok()
}

#[cfg(test)]
mod tests;
