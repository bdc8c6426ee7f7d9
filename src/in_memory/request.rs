//! Requests to the cluster in memory, and its answers.

use k8s_openapi::api::core::v1::Secret;

use super::print::Print;
use super::stored::Stored;

/// An object, by kind and full name.
pub type Resource = (&'static str, String);

/// The name of an object or Secret, with its namespace.
pub fn full_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

/// A request to the API server.
#[derive(Clone, Debug, Hash)]
pub enum Request {
    /// A merge patch, as text. It conflicts if it names another version than the current one.
    Patch {
        resource: Resource,
        uid: String,
        patch: String,
    },
    /// Server-side apply of the status, as text. It conflicts if it names another version than the
    /// current one. Omitted fields are removed.
    ApplyStatus {
        resource: Resource,
        uid: String,
        patch: String,
        /// True if its record equals that of the object.
        same_record: bool,
    },
    /// A new object, as text.
    Create {
        resource: Resource,
        object: String,
    },
    /// Deletes this version only.
    Delete {
        resource: Resource,
        uid: String,
        version: String,
    },
    Event {
        resource: Resource,
        reason: String,
        text: String,
    },
    ReadObject(Resource),
    ReadSecret(String),
    CreateSecret(String, Print<Secret>),
    ApplySecret {
        name: String,
        uid: Option<String>,
        version: Option<String>,
        secret: Print<Secret>,
        dry_run: bool,
    },
    /// A merge patch, as text.
    PatchSecret {
        name: String,
        patch: String,
    },
    IsNamespaceTerminating(String),
}

/// The object, Secret or namespace that a request is about.
#[derive(Debug)]
pub enum RequestTarget<'a> {
    Object(&'a Resource),
    Secret(&'a str),
    Namespace(&'a str),
}

impl Request {
    pub fn target(&self) -> RequestTarget<'_> {
        match self {
            Self::Patch { resource, .. }
            | Self::ApplyStatus { resource, .. }
            | Self::Create { resource, .. }
            | Self::Delete { resource, .. }
            | Self::Event { resource, .. }
            | Self::ReadObject(resource) => RequestTarget::Object(resource),
            Self::ReadSecret(name)
            | Self::CreateSecret(name, _)
            | Self::ApplySecret { name, .. }
            | Self::PatchSecret { name, .. } => RequestTarget::Secret(name),
            Self::IsNamespaceTerminating(name) => RequestTarget::Namespace(name),
        }
    }

    /// True if it changes anything.
    pub fn writes(&self) -> bool {
        match self {
            Self::ReadObject(_)
            | Self::ReadSecret(_)
            | Self::IsNamespaceTerminating(_)
            | Self::Event { .. } => false,
            Self::ApplySecret { dry_run, .. } => !dry_run,
            _ => true,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Response {
    Object(Print<Stored>),
    Secret(Option<Print<Secret>>),
    Terminating(bool),
    Done,
}
