//! What metrics, log lines and traces call what was tried, and why it failed: names from closed sets.

use kube::Error;

use crate::decide::Action;
use crate::decide::memory::Problem;

/// What is done besides: a resource gets a compute or key that exists.
pub const LINK: &str = "link";
/// A key that people have revoked is taken off the record.
pub const FORGET_KEY: &str = "forget_key";
/// A Secret that holds a key becomes a resource's own.
pub const ADOPT_SECRET: &str = "adopt_secret";
/// The Secret of an account gets the finalizer of dbplane, or loses it.
pub const PROTECT_SECRET: &str = "protect_secret";
pub const UNPROTECT_SECRET: &str = "unprotect_secret";
/// A Compute does not belong to its set any more.
pub const RELEASE: &str = "release";
/// This process leads from now on, or no longer does.
pub const LEAD: &str = "lead";
pub const LOSE_LEAD: &str = "lose_lead";
pub const RELEASE_LEAD: &str = "release_lead";

pub fn action(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Change => "change",
        Action::Restart => "restart",
        Action::Delete => "delete",
        Action::Ask => "ask",
        Action::AskOperations => "ask_operations",
        Action::CreateKey => "create_key",
        Action::Revoke => "revoke",
        Action::ListKeys => "list_keys",
        Action::TryKey => "try_key",
        Action::WriteSecret => "write_secret",
        Action::Adopt => "adopt",
        Action::CopyRecord => "copy_record",
    }
}

/// Why it failed, for people.
pub fn text(problem: &Problem) -> String {
    match problem {
        Problem::Platform(fault) => fault.to_string(),
        Problem::Secret(message)
        | Problem::Object(message)
        | Problem::NewKey(message)
        | Problem::NotRecorded(message) => message.clone(),
    }
}

pub fn problem(problem: &Problem) -> &'static str {
    match problem {
        Problem::Platform(fault) => fault.kind(),
        Problem::Secret(_) => "secret",
        Problem::Object(_) => "object",
        Problem::NewKey(_) => "new_key",
        Problem::NotRecorded(_) => "not_recorded",
    }
}

/// Why the API server could not be asked, or refused, in the words that there are for the platform.
pub fn api_server(error: &Error) -> &'static str {
    match error {
        Error::Api(status) => match status.code {
            401 => "unauthorized",
            403 => "forbidden",
            404 => "not_found",
            409 => "conflict",
            429 => "throttled",
            400..=499 => "rejected",
            _ => "server",
        },
        Error::SerdeError(_) | Error::FromUtf8(_) => "undecodable",
        _ => "transport",
    }
}
