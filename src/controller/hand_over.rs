//! Hand-over between two resources of a kind: how each sees the other one, and who may write.

use kube::core::{ObjectMeta, Status};
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};

use super::environment::{Environment, Kind, StepError};
use super::labels;
use super::object::Managed;
use super::pass::calls::{ActionLine, copy_record, patch_metadata};
use crate::cluster::{Cluster, Former, MetadataPatch, Owner};
use crate::decide::Action;
use crate::decide::hand_over::{self, HandOverView, HandsOver, Successor};
use crate::decide::identity::{Place, Predecessor, Released};

/// The other side, as `object` sees it; `owns_secret` where it still owns the Secret that it wrote.
pub async fn view<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    owns_secret: bool,
) -> Result<HandOverView<<K::Object as HandsOver>::Identity>, kube::Error>
where
    K::Object: HandsOver,
{
    let find = |place: &Place| env.object(&ObjectRef::<K::Object>::new(&place.name).within(&place.namespace));
    let same_secret = |other: &K::Object| {
        let [mine, theirs] =
            [object, other].map(|object| K::written_secret(object).map(|name| (object.namespace(), name)));
        mine.is_some() && mine == theirs
    };
    let mut view = hand_over::view(object, &env.settings().cluster, find, (same_secret, owns_secret));
    if let Successor::Absent(place) = &view.successor
        && let Some(why) = hidden::<K, E>(env, place)
    {
        view.successor = Successor::Hidden(place.clone(), why);
    }
    if let Successor::Absent(place) = &view.successor
        && object.meta().deletion_timestamp.is_some()
        && Some(&place.namespace) == object.namespace().as_ref()
        && env.cluster().is_namespace_terminating(&place.namespace).await?
    {
        view.successor = Successor::Never(place.clone());
    }
    Ok(view)
}

/// Why a resource at that place would not be seen.
fn hidden<K: Kind, E: Environment>(env: &E, place: &Place) -> Option<&'static str> {
    let namespaces = &env.settings().namespaces;
    if !namespaces.is_empty() && !namespaces.contains(&place.namespace) {
        return Some("is in a namespace that this operator does not watch (--watch-namespaces)");
    }
    let is_there = |meta: &ObjectMeta| {
        (meta.namespace.as_ref(), meta.name.as_ref()) == (Some(&place.namespace), Some(&place.name))
    };
    let unreadable = env.unreadable::<K::Object>();
    unreadable.iter().any(|meta| is_there(meta)).then_some("cannot be read; its status says why")
}

/// The owner of the Secrets of an object: those of the one that it has taken over from become its own.
pub fn owner<K: Managed + HandsOver>(object: &K) -> Option<Owner> {
    let known = object.recorded().unwrap_or_default().identity;
    let predecessor = K::hand_over(&known).predecessor.as_ref().map(|Predecessor { place, uid, .. }| Former {
        uid: uid.clone(),
        name: (place.cluster.is_none() && Some(&place.namespace) == object.namespace().as_ref())
            .then(|| place.name.clone()),
    });
    Owner::of(object).map(|owner| owner.succeeding(predecessor))
}

/// From then on `object` writes nothing on the platform. In both places, so that no older copy counts again.
pub async fn release<K: Managed + HandsOver, E: Environment>(
    env: &E,
    object: &K,
    released: &Released,
    action: Action,
) -> Result<(), StepError> {
    let object = record(env, object, Some(released)).await?;
    copy_record(env, &object, action).await?;
    ActionLine::of(labels::RELEASE).log(&format!("Stands back for {} {}.", K::KIND, released.to));
    Ok(())
}

/// Removes that record, if there is no resource at that place: what this process knows may be out of date.
pub async fn take_back<K: Managed + HandsOver, E: Environment>(
    env: &E,
    object: &K,
    place: &Place,
) -> Result<(), StepError> {
    if env.cluster().exists::<K>(&place.namespace, &place.name).await? {
        let message = format!("{} {place} exists", K::KIND);
        return Err(StepError::Cluster(kube::Error::Api(Box::new(Status { code: 409, message, ..Status::default() }))));
    }
    record(env, object, None).await?;
    ActionLine::of(labels::TAKE_BACK).log(&format!("Took back what it had released to {} {place}.", K::KIND));
    Ok(())
}

async fn record<K: Managed + HandsOver, E: Environment>(
    env: &E,
    object: &K,
    released: Option<&Released>,
) -> Result<K, StepError> {
    let known = object.recorded().unwrap_or_default();
    let mut identity = known.identity.clone();
    K::hand_over_mut(&mut identity).released = released.cloned();
    let text = known.next(&identity, object.meta());
    patch_metadata(env, object, &MetadataPatch::new().record(text).finalizer(true)).await
}
