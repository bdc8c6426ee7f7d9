//! Hand-over: what one resource has on the platform becomes another's, and at no time two write.
//!
//! Both name each other. The one that hands over records that it is released, in both places of its record, and writes nothing from
//! then on. Only that record lets the other one take over. It names that very object by its UID, and is taken back only once there is
//! none with that UID any more. A resource of another cluster is shown the same as a text, which people carry there.

mod give;
mod view;

use std::cmp::Reverse;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) use self::give::{Given, Giver, LOOK_AGAIN, give, needs_record, unnoticed};
pub use self::view::{HandOverView, Heir, Source, Standing, Successor, release, view};
use super::identity::{HandOverRecord, Place, Record, object_key};
use super::names::ClusterId;
use super::seal::{InvalidAnnotation, ObjectKey};
use crate::api::{HandOverTo, ObjectMeta, TakeOverFrom};

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

    /// The resources of this cluster that it hands over to, or takes over from, or has.
    fn partners(&self, here: &ClusterId) -> Vec<Place> {
        let me = object_key(self.metadata());
        let known = self.recorded().unwrap_or_default().identity;
        let HandOverRecord { released, predecessor } = Self::hand_over(&known);
        let declared = self.hand_over_to().map(|to| to_place(to, here, me)).into_iter();
        let declared = declared.chain(self.take_over_from().map(|from| from_place(from, me)));
        let recorded = released.iter().map(|released| &released.to).chain(predecessor.iter().map(|from| &from.place));
        declared.chain(recorded.cloned()).filter(|place| place.cluster.is_none()).collect()
    }

    /// Whether it begins nothing of its own before another one has handed over to it.
    fn awaits_hand_over(&self, known: &Self::Identity) -> bool {
        let never_had = !Self::has_something(known) && Self::hand_over(known).predecessor.is_none();
        self.take_over_from().is_some() && never_had
    }

    /// Whether it writes nothing: it waits for a hand-over, or another one has taken over from it.
    fn stands_back(&self) -> bool {
        let known = self.recorded().unwrap_or_default().identity;
        let taken = Self::hand_over(&known).released.as_ref().is_some_and(|released| released.taken);
        taken || self.awaits_hand_over(&known)
    }
}

/// Of several resources that have the same, it belongs to the first: to the one that has taken it over last, or the oldest. By name
/// where two were created in the same second.
pub(super) type Precedence<'a> = (Reverse<Option<Timestamp>>, Option<Timestamp>, ObjectKey<'a>);

pub(super) fn precedence<'a>(meta: &'a ObjectMeta, known: &HandOverRecord) -> Precedence<'a> {
    let taken_over = known.predecessor.as_ref().map(|predecessor| predecessor.released);
    (Reverse(taken_over), meta.creation_timestamp.as_ref().map(|time| time.0), object_key(meta))
}

fn within(namespace: Option<&String>, me: ObjectKey) -> String {
    namespace.map_or_else(|| me.namespace.to_owned(), Clone::clone)
}

/// `here` may be named too.
fn to_place(to: &HandOverTo, here: &ClusterId, me: ObjectKey) -> Place {
    let cluster = to.cluster.clone().filter(|cluster| here.as_str() != cluster);
    Place { cluster, namespace: within(to.namespace.as_ref(), me), name: to.name.clone() }
}

fn from_place(from: &TakeOverFrom, me: ObjectKey) -> Place {
    Place { cluster: None, namespace: within(from.namespace.as_ref(), me), name: from.name.clone() }
}
