//! The faults of calls to the platform. The set is closed, so that decisions never depend on texts.

use std::time::Duration;

use super::id::KeyId;
use thiserror::Error;

/// The message for an answer without text.
pub const NO_REASON: &str = "no reason given";

/// The reason why a call to the platform failed.
///
/// Texts are the platform's own, if there are any, with a limited length. They never contain a
/// token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// 401: the credential is missing, wrong or revoked.
    #[error("the platform does not accept the API key (401): {message}")]
    Unauthorized { message: String },
    /// The platform has just answered another call with 401, and the key is checked before anything
    /// else is sent. Nothing was sent.
    #[error(
        "the platform refused the API key (401), and is asked again before anything else is sent: {message}"
    )]
    KeyInDoubt { message: String },
    /// 403, or a 404 whose message says "not allowed": the credential may not do this.
    #[error("the API key is not allowed to do this ({status}): {message}")]
    Forbidden { status: u16, message: String },
    /// 404: the object was not found. This alone does not prove that it is gone.
    #[error("not found on the platform (404): {message}")]
    NotFound { message: String },
    /// 405 or 501, or a 404 that says that the route does not exist: the platform does not offer
    /// the call.
    #[error("this platform does not offer the call ({status}): {message}")]
    Unsupported { status: u16, message: String },
    /// 409.
    #[error("conflict on the platform (409): {message}")]
    Conflict { message: String },
    /// 423: other operations are running. Nothing was done, and the call can be retried soon.
    #[error("the project is busy with other operations (423): {message}")]
    Busy {
        message: String,
        retry_after: Option<Duration>,
    },
    /// 429, or 503 to a read: nothing was done. A 503 to a change is a `Server` fault, because some
    /// servers send it after they have begun.
    #[error("the platform limits the rate of calls ({status})")]
    Throttled {
        status: u16,
        retry_after: Option<Duration>,
    },
    /// Any other 4xx: the platform rejects the request.
    #[error("the platform refuses ({status}): {message}")]
    Rejected { status: u16, message: String },
    /// A 4xx without the platform's form, or a redirect, which is never followed. It may come from
    /// a gateway, so it proves nothing about a project, a key or a compute. A change may or may not
    /// have been made.
    #[error("something in front of the platform answered ({status}): {message}")]
    Gateway {
        status: u16,
        form: Form,
        message: String,
    },
    /// Any other 5xx, or 408: a change may or may not have been made.
    #[error("the platform failed ({status}): {message}")]
    Server { status: u16, message: String },
    /// The request did not reach the platform because no connection could be made.
    #[error("the platform cannot be reached: {message}")]
    Transport { message: String },
    /// The request was sent, and no complete answer arrived: a change may or may not have been
    /// made.
    #[error("no answer from the platform: {message}")]
    Unknown { message: String },
    /// A success with an unexpected body; `path` names the field. A change was made.
    #[error("the platform's answer cannot be read at {path}: {message}")]
    Undecodable { path: String, message: String },
    /// A success that exceeds the size limit, so nothing of it is used. A change was made.
    #[error("the platform's answer is too large: {message}")]
    TooLarge { message: String },
    /// A key was created, and the answer describes a key with this ID that differs from the
    /// request. Its owner is unknown, so dbplane drops the secret and does not revoke the key by
    /// this ID.
    #[error(
        "the platform answered the creation of a key with key {id}, {message}; its secret is not used"
    )]
    OtherKey { id: KeyId, message: String },
}

/// The form of an answer without the platform's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An HTML page, a redirect, or an answer that broke off.
    Foreign,
    /// Plain text, in which some platforms write their own errors too.
    Text,
}

impl Fault {
    /// True if a requested change may have been made although the call failed.
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

    /// True for a 404 of any form. It proves nothing by itself. Together with a list that lacks the
    /// object, it proves that there is nothing left to delete.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::NotFound { .. } | Self::Gateway { status: 404, .. }
        )
    }

    /// True if the platform rejected this request deliberately, and would reject it again.
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

    /// True if no requests are sent with the key, because the platform refused it or has to confirm
    /// it.
    pub fn is_about_the_key(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::KeyInDoubt { .. })
    }

    /// True for a 404 without any text, which a web server without such an address sends too.
    pub fn has_no_words(&self) -> bool {
        matches!(self, Self::NotFound { message } if message.starts_with(NO_REASON))
    }

    /// How long the platform asks for a pause.
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
