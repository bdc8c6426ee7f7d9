//! The names of actions and of failure causes in metrics, log lines and traces. All are from closed
//! sets.

use kube::Error;

use crate::decide::Action;
use crate::decide::memory::ActionProblem;

/// Actions that `Action` does not have. This one binds a resource to an existing compute.
pub const LINK: &str = "link";
/// Removes a key from the record after a user has revoked it.
pub const FORGET_KEY: &str = "forget_key";
/// Makes a Secret that holds a key a resource's own.
pub const ADOPT_SECRET: &str = "adopt_secret";
/// Adds dbplane's finalizer to the Secret of an account, or removes it.
pub const PROTECT_SECRET: &str = "protect_secret";
pub const UNPROTECT_SECRET: &str = "unprotect_secret";
/// Releases a Compute from its set.
pub const RELEASE: &str = "release";
/// This process becomes leader, or stops leading.
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

/// The cause of a failure, as text for users.
pub fn text(problem: &ActionProblem) -> String {
    match problem {
        ActionProblem::Platform(fault) => fault.to_string(),
        ActionProblem::Secret(message)
        | ActionProblem::Object(message)
        | ActionProblem::NewKey(message)
        | ActionProblem::NotRecorded(message) => message.clone(),
    }
}

pub fn problem(problem: &ActionProblem) -> &'static str {
    match problem {
        ActionProblem::Platform(fault) => fault.kind(),
        ActionProblem::Secret(_) => "secret",
        ActionProblem::Object(_) => "object",
        ActionProblem::NewKey(_) => "new_key",
        ActionProblem::NotRecorded(_) => "not_recorded",
    }
}

/// The cause of a failure of the API server, with the same names as for failures of the platform.
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
