//! What each side of a hand-over sees of the other.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::Meta;
use super::super::identity::{Place, Predecessor, Released, object_key};
use super::super::names::ClusterId;
use super::super::seal::{self, InvalidAnnotation, ObjectKey};
use super::{HandsOver, from_place, to_place};
use crate::api::TakeOverFrom;

/// The other side of a hand-over, as far as it is seen.
#[derive(Clone, Debug, PartialEq)]
pub struct HandOverView<T> {
    pub successor: Successor,
    pub source: Source<T>,
    /// The resource that it has taken over from, while that one has not recorded it: if this one went, it might take everything back.
    pub unnoticed_by: Option<Place>,
}

impl<T> Default for HandOverView<T> {
    fn default() -> Self {
        Self { successor: Successor::Unnamed, source: Source::Unnamed, unnoticed_by: None }
    }
}

impl<T> HandOverView<T> {
    /// Whether another resource is to take over, or has.
    pub fn is_expected(&self) -> bool {
        !matches!(self.successor, Successor::Unnamed | Successor::Never(_))
    }
}

/// The resource that is to take over, or has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Successor {
    Unnamed,
    /// It is in another cluster, where nobody sees it.
    Elsewhere(Place),
    Absent(Place),
    /// There may be one that this process does not see, for the reason in the text.
    Hidden(Place, &'static str),
    /// There is none, and none can be created: the namespace of both is being deleted.
    Never(Place),
    There(Heir),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heir {
    pub place: Place,
    pub uid: String,
    pub standing: Standing,
    /// It writes the same Secret and does not own it yet.
    pub awaits_secret: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It asks to take over.
    Asks,
    /// Its record says that it has, in one place alone.
    IsTakingOver,
    HasTakenOver,
    /// It does not ask, or cannot, as the text says.
    Does(&'static str),
}

/// What a resource takes over.
#[derive(Clone, Debug, PartialEq)]
pub enum Source<T> {
    Unnamed,
    /// Not yet, as the text says.
    Pending(String),
    /// What people have written does not allow it.
    Invalid(String),
    Released {
        identity: Box<T>,
        predecessor: Predecessor,
        /// Both write the same Secret.
        shares_secret: bool,
    },
}

/// What a resource of another cluster is shown.
#[derive(Serialize, Deserialize)]
struct Release<T> {
    from: Predecessor,
    /// The cluster that it is for.
    to: String,
    identity: T,
}

/// What the seal of a release says that it is.
const RELEASE: &str = "dbplane.dev/release";

/// Both sides, as `object` sees them. `find` finds the others; `same_secret` tells whether one writes the same Secret, and `owns_secret`
/// whether `object` still owns it.
pub fn view<K: HandsOver>(
    object: &K,
    cluster: &ClusterId,
    find: impl Fn(&Place) -> Option<Arc<K>>,
    (same_secret, owns_secret): (impl Fn(&K) -> bool, bool),
) -> HandOverView<K::Identity> {
    let known = &object.recorded().unwrap_or_default().identity;
    let unnoticed_by = unnoticed_by((object, known), &find);
    let source = match (source((object, known), cluster, &find, &same_secret), &unnoticed_by) {
        (Source::Released { .. }, Some(place)) => Source::Pending(unnoticed_text::<K>(place)),
        (source, _) => source,
    };
    HandOverView {
        successor: successor((object, known), cluster, &find, |other| owns_secret && same_secret(other)),
        source,
        unnoticed_by,
    }
}

/// What is waited for while `place` has not recorded that a resource has taken over from it.
pub(super) fn unnoticed_text<K: HandsOver>(place: &Place) -> String {
    format!("{} {place} has not recorded yet that this one has taken over from it.", K::KIND)
}

fn unnoticed_by<K: HandsOver>(
    (object, known): (&K, &K::Identity),
    find: impl Fn(&Place) -> Option<Arc<K>>,
) -> Option<Place> {
    let Predecessor { place, released: at, .. } = K::hand_over(known).predecessor.as_ref()?;
    let theirs = find(place).filter(|_| place.cluster.is_none())?.recorded().unwrap_or_default().identity;
    let released = K::hand_over(&theirs).released.as_ref()?;
    let by_this_release = released.at == *at && released.to.is_of(object_key(object.metadata()));
    (by_this_release && !released.taken).then(|| place.clone())
}

fn successor<K: HandsOver>(
    (object, known): (&K, &K::Identity),
    cluster: &ClusterId,
    find: impl Fn(&Place) -> Option<Arc<K>>,
    awaits_secret: impl Fn(&K) -> bool,
) -> Successor {
    let me = object_key(object.metadata());
    let released = K::hand_over(known).released.as_ref().map(|released| released.to.clone());
    let declared = || object.hand_over_to().map(|to| to_place(to, cluster, me));
    let Some(place) = released.or_else(declared) else { return Successor::Unnamed };
    if place.cluster.is_some() {
        return Successor::Elsewhere(place);
    }
    let Some(found) = find(&place) else { return Successor::Absent(place) };
    let other = found.as_ref();
    Successor::There(Heir {
        place,
        uid: other.metadata().uid.clone().unwrap_or_default(),
        standing: standing((object, known), other, cluster),
        awaits_secret: awaits_secret(other)
            && K::hand_over(&other.recorded().unwrap_or_default().identity).released.is_none(),
    })
}

fn standing<K: HandsOver>((object, known): (&K, &K::Identity), other: &K, cluster: &ClusterId) -> Standing {
    let record = other.recorded().unwrap_or_default();
    let (theirs, is_in_both) = (record.identity, record.is_in_both);
    let predecessor = K::hand_over(&theirs).predecessor.as_ref();
    let asks = other.take_over_from().is_some_and(|from| {
        from.release.is_none() && from_place(from, object_key(other.metadata())).is_of(object_key(object.metadata()))
    });
    // It has taken over by this very release; or it has the same, as older backups may show. After a rebuild of the cluster UIDs are others.
    let released = K::hand_over(known).released.as_ref().map(|released| released.at);
    let me = object_key(object.metadata());
    let hands_back = K::hand_over(&theirs).is_released_to(me);
    let is_me = |predecessor: &Predecessor| {
        let uid = Some(&predecessor.uid) == object.metadata().uid.as_ref();
        let is_same = || K::is_same(known, &theirs) && !hands_back;
        (uid || predecessor.place.is_of(me)) && (released == Some(predecessor.released) || is_same())
    };
    if predecessor.is_some_and(is_me) {
        // What is in one place alone may be lost, and with this resource the release that it came of.
        return if is_in_both { Standing::HasTakenOver } else { Standing::IsTakingOver };
    }
    match other.unfit(object) {
        _ if !asks => Standing::Does("does not name this one in its spec.takeOverFrom"),
        _ if other.metadata().deletion_timestamp.is_some() => Standing::Does("is being deleted"),
        _ if hands_over_to(other, object, cluster) => Standing::Does("hands over to this one as well"),
        _ if K::has_something(&theirs) => Standing::Does("has one of its own"),
        Some(unfit) => Standing::Does(unfit),
        None => Standing::Asks,
    }
}

/// Whether a resource names another one of this cluster.
fn hands_over_to<K: HandsOver>(object: &K, other: &K, cluster: &ClusterId) -> bool {
    let place = |to| to_place(to, cluster, object_key(object.metadata()));
    object.hand_over_to().is_some_and(|to| place(to).is_of(object_key(other.metadata())))
}

fn source<K: HandsOver>(
    (object, known): (&K, &K::Identity),
    cluster: &ClusterId,
    find: impl Fn(&Place) -> Option<Arc<K>>,
    same_secret: impl Fn(&K) -> bool,
) -> Source<K::Identity> {
    let Some(from) = object.take_over_from() else { return Source::Unnamed };
    match released_by((object, known), from, cluster, find, same_secret) {
        Source::Released { predecessor, .. } if is_used::<K>(known, &predecessor) => Source::Unnamed,
        // It has taken over from that one before, which is not waited for again.
        Source::Pending(_) if has_taken_over_from((object, known), from) => Source::Unnamed,
        source => source,
    }
}

/// Whether it has taken over by this very release before.
fn is_used<K: HandsOver>(known: &K::Identity, release: &Predecessor) -> bool {
    let used = K::hand_over(known).predecessor.as_ref();
    used.is_some_and(|used| (&used.uid, used.released) == (&release.uid, release.released))
}

fn has_taken_over_from<K: HandsOver>((object, known): (&K, &K::Identity), from: &TakeOverFrom) -> bool {
    let place = from_place(from, object_key(object.metadata()));
    K::hand_over(known).predecessor.as_ref().is_some_and(|predecessor| predecessor.place == place)
}

fn released_by<K: HandsOver>(
    (object, known): (&K, &K::Identity),
    from: &TakeOverFrom,
    cluster: &ClusterId,
    find: impl Fn(&Place) -> Option<Arc<K>>,
    same_secret: impl Fn(&K) -> bool,
) -> Source<K::Identity> {
    let me = object_key(object.metadata());
    let place = from_place(from, me);
    if let Some(text) = &from.release {
        return shown(text, &place, cluster, me);
    }
    let what = format!("{} {place}", K::KIND);
    let Some(found) = find(&place) else {
        return Source::Pending(format!(
            "{what}, which spec.takeOverFrom names, is not there. If it is in another cluster, set spec.handOverTo there to \
             {{cluster: {cluster}, namespace: {}, name: {}}}, and spec.takeOverFrom.release here to its status.release.",
            me.namespace, me.name
        ));
    };
    let other = found.as_ref();
    let record = other.recorded().unwrap_or_default();
    let released = K::hand_over(&record.identity).released.clone();
    let to_me = |released: &Released| released.to.is_of(me) && released.uid == object.metadata().uid;
    if let Some(released) = released.filter(to_me) {
        let uid = other.metadata().uid.clone().unwrap_or_default();
        let predecessor = Predecessor { place, uid, released: released.at };
        if released.taken && !is_used::<K>(known, &predecessor) {
            return Source::Pending(format!(
                "{what} has handed over to this one before, and has nothing any more. Remove spec.takeOverFrom."
            ));
        }
        return match record.is_in_both {
            true => {
                Source::Released { identity: Box::new(record.identity), predecessor, shares_secret: same_secret(other) }
            }
            false => Source::Pending(format!("{what} is handing over.")),
        };
    }
    let theirs = K::hand_over(&record.identity).released.as_ref();
    Source::Pending(match (theirs, hands_over_to(other, object, cluster), object.unfit(other)) {
        (Some(Released { to, .. }), ..) if !to.is_of(me) => format!("{what} has handed over to {} {to}.", K::KIND),
        (Some(Released { taken: true, .. }), ..) => {
            format!("{what} has handed over to an earlier resource of this name and namespace.")
        }
        (_, false, _) => format!(
            "{what} does not hand over to this one. Set its spec.handOverTo to {{namespace: {}, name: {}}}.",
            me.namespace, me.name
        ),
        (_, true, Some(unfit)) => format!("{what} hands over to this one, which {unfit}."),
        (None, true, None) if !K::has_something(&record.identity) => format!("{what} has nothing to hand over yet."),
        (_, true, None) => format!("{what} is about to hand over."),
    })
}

/// What the release of a resource in another cluster shows.
fn shown<T: DeserializeOwned>(text: &str, from: &Place, cluster: &ClusterId, me: ObjectKey) -> Source<T> {
    let copy = "Copy status.release of the resource that hands over as it is.";
    let Release { from: predecessor, to, identity } = match seal::open::<Release<T>>(RELEASE, text.trim(), me) {
        Ok(release) => release,
        Err(InvalidAnnotation::CopiedFrom(other)) => {
            return Source::Invalid(format!("spec.takeOverFrom.release is for {other}, and not for this resource."));
        }
        Err(_) => {
            return Source::Invalid(format!("spec.takeOverFrom.release is not what dbplane has written. {copy}"));
        }
    };
    if to != cluster.as_str() {
        return Source::Invalid(format!("spec.takeOverFrom.release is for cluster {to}, and this one is {cluster}."));
    }
    let theirs = (&predecessor.place.namespace, &predecessor.place.name);
    if theirs != (&from.namespace, &from.name) {
        return Source::Invalid(format!(
            "spec.takeOverFrom.release is of {}, and spec.takeOverFrom names {from}.",
            predecessor.place
        ));
    }
    Source::Released { identity: Box::new(identity), predecessor, shares_secret: false }
}

/// What a resource that hands over shows for the other cluster; `None` where it is released to none. `identity` is its record
/// without the release.
pub fn release<T: Serialize>(
    released: Option<&Released>,
    meta: &Meta,
    uid: &str,
    here: &ClusterId,
    identity: T,
) -> Option<String> {
    let Released { to, at, .. } = released?;
    let cluster = to.cluster.clone()?;
    let place = Place { cluster: Some(here.to_string()), ..Place::of(meta.object_key()) };
    let from = Predecessor { place, uid: uid.to_owned(), released: *at };
    let key = ObjectKey { namespace: &to.namespace, name: &to.name };
    Some(seal::seal(RELEASE, &Release { from, to: cluster, identity }, key))
}
