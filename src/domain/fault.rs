//! Why a call to the platform did not succeed: a closed set, so that decisions never look at texts.

use std::time::Duration;

use thiserror::Error;

/// Why a call to the platform did not succeed.
///
/// The texts are the platform's own where it gave any, with a limited length; none ever contains a token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// 401: the credential is missing, wrong or revoked.
    #[error("the platform does not accept the API key (401): {message}")]
    Unauthorized { message: String },
    /// The platform answered 401 to another call a moment ago, and the key is asked about again first. Nothing was sent.
    #[error("the platform refused the API key (401), and is asked again before anything else is sent: {message}")]
    KeyInDoubt { message: String },
    /// 403, or a 404 whose message says "not allowed": the credential may not do this.
    #[error("the API key is not allowed to do this ({status}): {message}")]
    Forbidden { status: u16, message: String },
    /// 404: the object is not there. Never by itself a proof that it is gone: see `Remote`.
    #[error("not found on the platform (404): {message}")]
    NotFound { message: String },
    /// 405 or 501, or a 404 that says that the route does not exist: this platform does not offer the call.
    #[error("this platform does not offer the call ({status}): {message}")]
    Unsupported { status: u16, message: String },
    /// 409.
    #[error("conflict on the platform (409): {message}")]
    Conflict { message: String },
    /// 423: operations are running; nothing was done, and the call may be made again soon.
    #[error("the project is busy with other operations (423): {message}")]
    Busy { message: String, retry_after: Option<Duration> },
    /// 429, or 503 to a read: nothing was done. 503 to a change is a `Server` fault, since not every server gives that
    /// answer before it begins.
    #[error("the platform limits the rate of calls ({status})")]
    Throttled { status: u16, retry_after: Option<Duration> },
    /// Any other 4xx: the platform refuses what was asked for.
    #[error("the platform refuses ({status}): {message}")]
    Rejected { status: u16, message: String },
    /// A 4xx without the platform's form, or a redirect, which is never followed: something in front of the platform may have
    /// answered. It shows nothing about a project, a key or a compute. A change may or may not have been made.
    #[error("something in front of the platform answered ({status}): {message}")]
    Gateway { status: u16, form: Form, message: String },
    /// Any other 5xx, or 408: a change may or may not have been made.
    #[error("the platform failed ({status}): {message}")]
    Server { status: u16, message: String },
    /// The request did not reach the platform: no connection could be made.
    #[error("the platform cannot be reached: {message}")]
    Transport { message: String },
    /// The request was sent and no whole answer came back: a change may or may not have been made.
    #[error("no answer from the platform: {message}")]
    Unknown { message: String },
    /// A success whose body is not what it should be; `path` names the field. A change was made.
    #[error("the platform's answer cannot be read at {path}: {message}")]
    Undecodable { path: String, message: String },
    /// A success that is larger than what is read of it, so nothing of it is used. A change was made.
    #[error("the platform's answer is too large: {message}")]
    TooLarge { message: String },
    /// A key was created, and the answer shows one with this identifier that is not what was asked for. Whose it is
    /// is not known, so its secret is dropped, and it is not revoked by that identifier.
    #[error("the platform answered the creation of a key with key {id}, {message}; its secret is not used")]
    OtherKey { id: i64, message: String },
}

/// The form of an answer that is not the platform's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An HTML page, a redirect, or an answer that broke off.
    Foreign,
    /// Plain text, in which some platforms write their own errors too.
    Text,
}

impl Fault {
    /// Whether a change that was asked for may have been made although the call failed.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::Gateway { .. }
            | Self::Server { .. }
            | Self::Unknown { .. }
            | Self::Undecodable { .. }
            | Self::TooLarge { .. }
            | Self::OtherKey { .. } => true,
            Self::Unauthorized { .. }
            | Self::KeyInDoubt { .. }
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Unsupported { .. }
            | Self::Conflict { .. }
            | Self::Busy { .. }
            | Self::Throttled { .. }
            | Self::Rejected { .. }
            | Self::Transport { .. } => false,
        }
    }

    /// A 404 of any form. It proves nothing by itself; beside a list that lacks the object it proves that there is nothing left to
    /// delete.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::Gateway { status: 404, .. })
    }

    /// Whether the platform refused this request deliberately, and would refuse it again.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Forbidden { .. }
                | Self::NotFound { .. }
                | Self::Unsupported { .. }
                | Self::Conflict { .. }
                | Self::Rejected { .. }
        )
    }

    /// Whether nothing is sent with the key: the platform refused it, or is asked about it again.
    pub fn is_about_the_key(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::KeyInDoubt { .. })
    }

    /// How long the platform asks not to be called.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } | Self::Throttled { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// A name from a closed set, for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unauthorized { .. } => "unauthorized",
            Self::KeyInDoubt { .. } => "key_in_doubt",
            Self::Forbidden { .. } => "forbidden",
            Self::NotFound { .. } => "not_found",
            Self::Unsupported { .. } => "unsupported",
            Self::Conflict { .. } => "conflict",
            Self::Busy { .. } => "busy",
            Self::Throttled { .. } => "throttled",
            Self::Rejected { .. } => "rejected",
            Self::Gateway { .. } => "gateway",
            Self::Server { .. } => "server",
            Self::Transport { .. } => "transport",
            Self::Unknown { .. } => "unknown_outcome",
            Self::Undecodable { .. } => "undecodable",
            Self::TooLarge { .. } => "too_large",
            Self::OtherKey { .. } => "other_key",
        }
    }
}
