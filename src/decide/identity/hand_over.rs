//! What is recorded of a hand-over.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::seal::ObjectKey;

/// Where a resource is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Another cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    pub namespace: String,
    pub name: String,
}

impl Place {
    pub(in crate::decide) fn of(object_key: ObjectKey) -> Self {
        Self { cluster: None, namespace: object_key.namespace.to_owned(), name: object_key.name.to_owned() }
    }

    /// Whether it is that of a resource of this cluster.
    pub fn is_of(&self, object_key: ObjectKey) -> bool {
        self.cluster.is_none()
            && (self.namespace.as_str(), self.name.as_str()) == (object_key.namespace, object_key.name)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)?;
        self.cluster.as_ref().map_or(Ok(()), |cluster| write!(f, " of cluster {cluster}"))
    }
}

/// What a resource has handed over or taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverRecord {
    /// It writes nothing on the platform any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<Released>,
    /// What it has is from this resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<Predecessor>,
}

impl HandOverRecord {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it is released to the resource of this name.
    pub(in crate::decide) fn is_released_to(&self, object_key: ObjectKey) -> bool {
        self.released.as_ref().is_some_and(|released| released.to.is_of(object_key))
    }

    /// Whether what is recorded is this one's, for a resource of that name. What was taken over is the other one's.
    pub(in crate::decide) fn is_claimed_from(&self, object_key: ObjectKey) -> bool {
        self.released.as_ref().is_none_or(|released| !released.taken && !released.to.is_of(object_key))
    }
}

/// To which resource one is released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    pub to: Place,
    /// That very object; absent where it is in another cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    pub at: Timestamp,
    /// It was seen that the other one has taken over: nothing is taken back from then on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken: bool,
}

/// From which resource one has taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predecessor {
    pub place: Place,
    pub uid: String,
    /// Of that resource's release: it counts once.
    pub released: Timestamp,
}
