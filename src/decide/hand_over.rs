//! Hand-over: what one resource has on the platform becomes another's, and at no time two write.
//!
//! Both name each other. The one that hands over records that it is released, in both places of its record, and writes nothing from
//! then on. Only that record lets the other one take over. It names that very object by its UID, and is taken back only once there is
//! none with that UID any more. A resource of another cluster is shown the same as a text, which people carry there.

mod view;

use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::view::{HandOverView, Heir, Source, Standing, Successor, release, view};
use super::identity::{Record, object_key};
use super::names::ClusterId;
use super::seal::{InvalidAnnotation, ObjectKey};
use super::{Meta, Reason, Report};
use crate::api::{HandOverTo, ObjectMeta, TakeOverFrom};

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
    fn of(object_key: ObjectKey) -> Self {
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
    pub(super) fn is_released_to(&self, object_key: ObjectKey) -> bool {
        self.released.as_ref().is_some_and(|released| released.to.is_of(object_key))
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
}

/// From which resource one has taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predecessor {
    pub place: Place,
    pub uid: String,
    /// Of that resource's release: it counts once.
    pub released: Timestamp,
}

/// A kind whose resources can hand over to each other.
pub trait HandsOver: Sized {
    const KIND: &'static str;
    type Identity: Clone + Default + Serialize + DeserializeOwned;

    fn metadata(&self) -> &ObjectMeta;
    fn hand_over_to(&self) -> Option<&HandOverTo>;
    fn take_over_from(&self) -> Option<&TakeOverFrom>;
    /// # Errors
    /// Where the record is not what dbplane wrote.
    fn recorded(&self) -> Result<Record<Self::Identity>, InvalidAnnotation>;
    fn hand_over(identity: &Self::Identity) -> &HandOverRecord;
    fn hand_over_mut(identity: &mut Self::Identity) -> &mut HandOverRecord;
    /// Whether there is something on the platform, or may be.
    fn has_something(identity: &Self::Identity) -> bool;
    /// Whether both have the same on the platform.
    fn is_same(one: &Self::Identity, other: &Self::Identity) -> bool;
    /// Why it cannot take over from this resource.
    fn unfit(&self, from: &Self) -> Option<&'static str>;

    /// Where the resource is that it hands over to, or takes over from, as far as that is in this cluster.
    fn partners(&self) -> Vec<Place> {
        let me = object_key(self.metadata());
        let to = self.hand_over_to().filter(|to| to.cluster.is_none()).map(|to| to_place(to, None, me));
        to.into_iter().chain(self.take_over_from().map(|from| from_place(from, me))).collect()
    }
}

fn within(namespace: Option<&String>, me: ObjectKey) -> String {
    namespace.map_or_else(|| me.namespace.to_owned(), Clone::clone)
}

/// `here` may be named too.
fn to_place(to: &HandOverTo, here: Option<&ClusterId>, me: ObjectKey) -> Place {
    let cluster = to.cluster.clone().filter(|cluster| here.is_none_or(|here| here.as_str() != cluster));
    Place { cluster, namespace: within(to.namespace.as_ref(), me), name: to.name.clone() }
}

fn from_place(from: &TakeOverFrom, me: ObjectKey) -> Place {
    Place { cluster: None, namespace: within(from.namespace.as_ref(), me), name: from.name.clone() }
}

/// A resource that may hand over.
pub(super) struct Giver<'a> {
    /// As messages and commands name it: Compute, compute.
    pub kind: (&'static str, &'static str),
    /// What it has, where it has something that can be handed over.
    pub what: Option<String>,
    pub meta: &'a Meta,
    /// Whether spec.handOverTo is set, and names this place.
    pub declared: Option<&'a HandOverTo>,
    pub released: Option<&'a Released>,
    pub successor: &'a Successor,
    pub now: Timestamp,
}

/// How often to look for what nobody is told of: that the namespace of a resource that waits is being deleted.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// What is done about a resource that hands over.
pub(super) enum Given {
    /// It is released: that is recorded, in both places.
    Release(Released),
    /// The resource that it was released to is gone, as is made sure of first.
    TakeBack(Place),
    Rest(Report),
    /// It has nothing any more, as the text says.
    Over(String),
}

/// What is done about a resource that hands over; `None` where it is treated as any other.
pub(super) fn give(giver: &Giver) -> Option<Given> {
    match giver.released {
        Some(released) => Some(giver.released(released)),
        None => giver.unreleased(),
    }
}

impl Giver<'_> {
    fn released(&self, released: &Released) -> Given {
        let (kind, what, to) = (self.kind.0, self.what.as_deref().unwrap_or("What it had"), &released.to);
        let over = || format!("{what} is managed by {kind} {to}.");
        let done =
            |more: &str| Report::handed_over(format!("{} This resource changes nothing any more: {more}", over()));
        match self.successor {
            Successor::Elsewhere(_) if self.meta.deleting => Given::Over(over()),
            Successor::Elsewhere(_) => Given::Rest(done(
                "copy status.release to spec.takeOverFrom.release there, and delete this one once that one is ready.",
            )),
            Successor::There(heir) if heir.standing == Standing::HasTakenOver => match self.meta.deleting {
                true if heir.awaits_secret => {
                    Given::Rest(self.waits(&format!("{kind} {to} is taking over the Secret.")))
                }
                true => Given::Over(over()),
                false => Given::Rest(done("delete it.")),
            },
            Successor::There(heir) if released.uid.as_ref() == Some(&heir.uid) => {
                Given::Rest(self.waits(&format!("{kind} {to} is about to take over {what}.")))
            }
            // It was deleted, and there is another one.
            Successor::There(heir) if heir.standing == Standing::Asks => Given::Release(self.release_to(heir)),
            Successor::There(Heir { standing: Standing::Does(what), .. }) => Given::Rest(self.stuck(to, what)),
            Successor::Never(_) => Given::TakeBack(to.clone()),
            Successor::Absent(_) if !self.declares(to) => Given::TakeBack(to.clone()),
            Successor::There(_) | Successor::Absent(_) | Successor::Unnamed => {
                Given::Rest(self.stuck(to, "does not exist any more"))
            }
        }
    }

    fn unreleased(&self) -> Option<Given> {
        self.what.as_ref()?;
        match self.successor {
            Successor::Unnamed | Successor::Never(_) => None,
            Successor::Elsewhere(to) => Some(Given::Release(Released { to: to.clone(), uid: None, at: self.now })),
            Successor::There(heir) => match heir.standing {
                // It has taken over where an older backup has brought the record from before.
                Standing::Asks | Standing::HasTakenOver => Some(Given::Release(self.release_to(heir))),
                Standing::Does(what) if self.meta.deleting => Some(Given::Rest(self.stuck(&heir.place, what))),
                Standing::Does(_) => None,
            },
            Successor::Absent(to) if self.meta.deleting => Some(Given::Rest(self.stuck(to, "does not exist"))),
            Successor::Absent(_) => None,
        }
    }

    fn release_to(&self, heir: &Heir) -> Released {
        Released { to: heir.place.clone(), uid: Some(heir.uid.clone()), at: self.now }
    }

    fn declares(&self, place: &Place) -> bool {
        let me = self.meta.object_key();
        self.declared.is_some_and(|to| to_place(to, None, me) == *place)
    }

    fn waits(&self, message: &str) -> Report {
        Report::progressing(Reason::HandingOver, message)
    }

    fn stuck(&self, to: &Place, problem: &str) -> Report {
        let ((kind, command), what) = (self.kind, self.what.as_deref().unwrap_or("what it had"));
        let Meta { namespace, name, deleting, .. } = self.meta;
        let instead = if *deleting { "delete it with this resource" } else { "keep it here" };
        Report::stalled(
            Reason::HandingOver,
            format!(
                "{what} is to be handed over to {kind} {to}, which {problem}. Create that one with spec.takeOverFrom: {{namespace: {namespace}, \
                 name: {name}}}. To {instead}: kubectl -n {namespace} patch {command} {name} --type merge -p \
                 '{{\"spec\":{{\"handOverTo\":null}}}}'."
            ),
        )
    }
}
