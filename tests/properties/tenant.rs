//! A hostile tenant: it may write dbplane's kinds in its own namespace at any time, with any
//! annotations. Its resources use the same ClusterAccount. It must not change anything of others.

mod keys;

use dbplane::api::{Compute, Known};

use dbplane::decide::names::{self, RECORD};
use jiff::SignedDuration;
use kube::ResourceExt;
use proptest::prelude::*;
use serde_json::json;

pub use self::keys::{ForgedKey, ForgedSecret};
use super::history::{Event, compute, key};
use super::in_memory::Resource;
use super::in_memory::forged::{Forged, Victim, sealed};
use super::run::Run;
use super::simulation::{BASE_URL, PROJECT};

pub const TENANT: &str = "evil";

/// An action of the tenant.
#[derive(Clone, Debug)]
pub enum Trick {
    /// Writes a record into the annotation of one of its Computes, which is created if necessary.
    Forge {
        into: u8,
        what: Forged,
        victim: usize,
    },
    /// The same for one of its ProjectKeys, with a record of others' keys.
    ForgeKey {
        into: u8,
        what: ForgedKey,
    },
    /// Replaces the Secret of one of its ProjectKeys.
    ForgeSecret {
        of: u8,
        what: ForgedSecret,
    },
    /// Sets a user annotation on one of its resources.
    Annotate(Kind, u8, Wish),
    Delete(Kind, u8),
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Compute,
    ProjectKey,
}

/// An annotation meant for users.
#[derive(Clone, Copy, Debug)]
pub enum Wish {
    /// Confirms the deletion, with a time this many hours ahead.
    Confirmed(i8),
    /// Claims that all keys were revoked by hand, including those of others.
    Revoked,
    /// Denies that a create made the computes of others.
    NotCreated,
    Restart(u8),
    Rotate(u8),
    Reconcile(u8),
}

/// Events while the tenant forges records of Computes.
pub fn event() -> BoxedStrategy<Event> {
    let forged = prop_oneof![
        3 => Just(Forged::Binding),
        2 => Just(Forged::Intent),
        2 => Just(Forged::Unanswered),
        2 => Just(Forged::Mark),
        1 => Just(Forged::Nonsense),
    ];
    let forge = (0..3_u8, forged, which()).prop_map(|(into, what, victim)| Trick::Forge {
        into,
        what,
        victim,
    });
    prop_oneof![
        5 => forge.prop_map(Event::Tenant),
        2 => on_own(Kind::Compute).prop_map(Event::Tenant),
        4 => of_others(),
    ]
    .boxed()
}

/// Events while the tenant forges records and Secrets of ProjectKeys.
pub fn key_event() -> BoxedStrategy<Event> {
    let forge_key =
        (0..2_u8, keys::forged_key()).prop_map(|(into, what)| Trick::ForgeKey { into, what });
    let forge_secret =
        (0..2_u8, keys::forged_secret()).prop_map(|(of, what)| Trick::ForgeSecret { of, what });
    prop_oneof![
        4 => forge_key.prop_map(Event::Tenant),
        3 => forge_secret.prop_map(Event::Tenant),
        3 => on_own(Kind::ProjectKey).prop_map(Event::Tenant),
        1 => of_others(),
        2 => super::history::event_of_keys(),
    ]
    .boxed()
}

fn which() -> impl Strategy<Value = usize> {
    0..2_usize
}

fn of_others() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Kill),
        Just(Event::CredentialExchanged),
        Just(Event::Confirmed),
        (which(), 0..3_u8).prop_map(|(which, size)| Event::Resize(which, size)),
        (which(), 0..3_u8).prop_map(|(which, token)| Event::Restart(which, token)),
        which().prop_map(Event::ComputeRemoved),
        which().prop_map(Event::Replaced),
        which().prop_map(Event::Stripped),
    ]
}

fn on_own(kind: Kind) -> impl Strategy<Value = Trick> {
    let wish = prop_oneof![
        prop::sample::select(&[-1_i8, 0, 24][..]).prop_map(Wish::Confirmed),
        Just(Wish::Revoked),
        Just(Wish::NotCreated),
        (0..3_u8).prop_map(Wish::Restart),
        (0..3_u8).prop_map(Wish::Rotate),
        (0..3_u8).prop_map(Wish::Reconcile),
    ];
    prop_oneof![
        1 => (0..2_u8, wish).prop_map(move |(own, wish)| Trick::Annotate(kind, own, wish)),
        1 => (0..2_u8).prop_map(move |own| Trick::Delete(kind, own)),
    ]
}

/// True if a resource belongs to the tenant.
pub fn is_tenants(resource: &Resource) -> bool {
    resource.1.starts_with(&format!("{TENANT}/"))
}

impl Run<'_> {
    pub fn play(&mut self, trick: &Trick) {
        match trick {
            Trick::Forge { into, what, victim } => {
                self.forge(&own(Kind::Compute, *into), *what, &compute(*victim))
            }
            Trick::ForgeKey { into, what } => self.forge_key(&own(Kind::ProjectKey, *into), *what),
            Trick::ForgeSecret { of, what } => {
                self.forge_secret(&own(Kind::ProjectKey, *of), *what)
            }
            Trick::Annotate(kind, number, wish) => self.wish(&own(*kind, *number), *wish),
            Trick::Delete(kind, number) => {
                let mut simulation = self.simulation.lock();
                let now = simulation.now;
                simulation.cluster.delete(&own(*kind, *number), now);
            }
        }
    }

    fn wish(&mut self, own: &Resource, wish: Wish) {
        let mut simulation = self.simulation.lock();
        let (name, text) = match wish {
            Wish::Confirmed(hours) => {
                let time = simulation.now + SignedDuration::from_hours(hours.into());
                (names::CONFIRM_DELETION, time.to_string())
            }
            Wish::Revoked => {
                let theirs = simulation
                    .keys_of(&key())
                    .into_iter()
                    .map(|(id, name)| format!("{id},{name}"));
                (
                    names::REVOKED_KEYS,
                    theirs
                        .chain(["all".to_owned()])
                        .collect::<Vec<_>>()
                        .join(","),
                )
            }
            Wish::NotCreated => {
                let theirs: Vec<String> = (0..2)
                    .flat_map(|number| simulation.made_for(&compute(number)))
                    .collect();
                (names::NOT_CREATED, theirs.join(","))
            }
            Wish::Restart(value) => (names::RESTART, value.to_string()),
            Wish::Rotate(value) => (names::ROTATE, value.to_string()),
            Wish::Reconcile(value) => (names::RECONCILE, value.to_string()),
        };
        simulation
            .cluster
            .edit(own, &json!({"metadata": {"annotations": {name: text}}}));
    }

    fn forge(&mut self, own: &Resource, what: Forged, victim: &Resource) {
        let Some(mut spec) = self.history.spec(victim) else {
            return;
        };
        spec.as_object_mut().unwrap().remove("connection");
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        if !simulation.cluster.objects.contains_key(own) {
            simulation.cluster.create(own, &spec, &json!({}), now);
        }
        let branch = spec["branchID"].clone();
        let made_for = simulation.made_for(victim);
        let theirs = made_for.first().and_then(|id| {
            simulation
                .world
                .console_computes(None)
                .into_iter()
                .find(|compute| compute.id == *id)
        });
        let has = simulation.cluster.get::<Known<Compute>>(&victim.1);
        let has = has
            .and_then(|victim| victim.identity().ok()?.binding)
            .map(|binding| binding.id.to_string());
        let victim = Victim {
            platform: BASE_URL,
            project: PROJECT,
            branch: branch.as_str().unwrap(),
            compute: has,
            mark: theirs.and_then(|compute| compute.name),
        };
        let record = what.record(&victim, now);
        let uid = simulation.cluster.objects[own].uid().to_owned();
        let text = sealed(own, &uid, record);
        simulation
            .cluster
            .edit(own, &json!({"metadata": {"annotations": {RECORD: text}}}));
    }

    /// True if the tenant was bound on the branch of a resource that was never bound. The tenant
    /// may declare the same as others.
    pub fn is_preceded(&self, object: &Known<Compute>) -> bool {
        let binding = |object: &Known<Compute>| object.identity().ok()?.binding;
        let computes = self.simulation.lock().cluster.all::<Known<Compute>>();
        let tenants = computes.iter().filter(|other| other.namespace() == TENANT);
        let has_it = |other: &Known<Compute>| {
            binding(other).and_then(|it| it.branch).as_ref() == Some(&object.spec.branch_id)
        };
        binding(object).is_none() && tenants.into_iter().any(|other| has_it(other))
    }

    /// Finds a tenant's resource bound to a compute of others, or a tenant's Secret with one of
    /// their keys.
    pub fn is_robbed(&self) -> Option<String> {
        let simulation = self.simulation.lock();
        let bound = simulation
            .cluster
            .all::<Known<Compute>>()
            .iter()
            .filter(|object| object.namespace() == TENANT)
            .find_map(|object| {
                let id = object.identity().ok()?.binding?.id;
                let made_for = simulation
                    .ledger
                    .computes
                    .get(id.as_str())
                    .filter(|made_for| !is_tenants(made_for))?;
                Some(format!(
                    "{} of {TENANT} has {id}, which was made for {}",
                    object.name_any(),
                    made_for.1
                ))
            });
        bound.or_else(|| keys::stolen(&simulation))
    }
}

fn own(kind: Kind, number: u8) -> Resource {
    match kind {
        Kind::Compute => ("Compute", format!("{TENANT}/thief-{number}")),
        Kind::ProjectKey => keys::own(number),
    }
}
