//! A hostile tenant: somebody who may write dbplane's kinds in a namespace of their own, with whatever annotations, at any moment, and
//! whose resources use the same ClusterAccount. Nothing of anybody else may change by that.

use dbplane::api::Compute;
use dbplane::decide::identity::of_compute;
use dbplane::decide::names::RECORD;
use dbplane::decide::seal::{ObjectKey, seal};
use kube::ResourceExt;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::history::{Event, compute};
use super::in_memory::Resource;
use super::run::Run;
use super::simulation::{BASE_URL, PROJECT};

/// The namespace of the tenant.
pub const TENANT: &str = "evil";

/// What the tenant does.
#[derive(Clone, Debug)]
pub enum Trick {
    /// Writes a record into the annotation of a Compute of its own, which is created where it is not there.
    Forge {
        into: u8,
        what: Forged,
        victim: usize,
    },
    Delete(u8),
}

/// A record that the tenant seals itself.
#[derive(Clone, Copy, Debug)]
pub enum Forged {
    /// It has the compute of somebody else.
    Binding,
    /// A create of it is open that excludes nothing that is on the branch.
    Intent,
    /// The same for one that was never answered.
    Unanswered,
    /// The open create has the name of somebody else's compute as its mark.
    Mark,
    Nonsense,
}

/// What happens while the tenant is at work.
pub fn event() -> BoxedStrategy<Event> {
    let which = || 0..2_usize;
    let forged = prop_oneof![
        3 => Just(Forged::Binding),
        2 => Just(Forged::Intent),
        2 => Just(Forged::Unanswered),
        2 => Just(Forged::Mark),
        1 => Just(Forged::Nonsense),
    ];
    let trick = prop_oneof![
        4 => (0..3_u8, forged, which()).prop_map(|(into, what, victim)| Trick::Forge { into, what, victim }),
        1 => (0..3_u8).prop_map(Trick::Delete),
    ];
    prop_oneof![
        6 => trick.prop_map(Event::Tenant),
        1 => Just(Event::Kill),
        1 => Just(Event::CredentialExchanged),
        1 => (which(), 0..3_u8).prop_map(|(which, size)| Event::Resize(which, size)),
        1 => (which(), 0..3_u8).prop_map(|(which, token)| Event::Restart(which, token)),
        1 => which().prop_map(Event::ComputeRemoved),
        1 => which().prop_map(Event::Replaced),
        1 => which().prop_map(Event::Stripped),
    ]
    .boxed()
}

/// Whether a resource is the tenant's.
pub fn is_tenants(resource: &Resource) -> bool {
    resource.1.starts_with(&format!("{TENANT}/"))
}

impl Run<'_> {
    pub fn play(&mut self, trick: &Trick) {
        match trick {
            Trick::Forge { into, what, victim } => self.forge(&own(*into), *what, &compute(*victim)),
            Trick::Delete(which) => {
                let mut simulation = self.simulation.lock();
                let now = simulation.now;
                simulation.cluster.delete(&own(*which), now);
            }
        }
    }

    fn forge(&mut self, own: &Resource, what: Forged, victim: &Resource) {
        let Some(mut spec) = self.history.spec(victim) else { return };
        spec.as_object_mut().unwrap().remove("connection");
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        if !simulation.cluster.objects.contains_key(own) {
            simulation.cluster.create(own, &spec, &json!({}), now);
        }
        let branch = spec["branchID"].clone();
        let made_for = simulation.made_for(victim);
        let theirs = made_for
            .first()
            .and_then(|id| simulation.world.console_computes(None).into_iter().find(|compute| compute.id == *id));
        let has = simulation.cluster.get::<Compute>(&victim.1);
        let has = has.and_then(|victim| of_compute(&victim).ok()?.identity.binding).map(|binding| binding.id);
        let at = now.to_string();
        let create = |mark: Option<String>| json!({"at": at, "branch": branch, "platform": BASE_URL, "baseline": [], "mark": mark, "asked": {}});
        let record = match what {
            Forged::Binding => {
                let id = has.unwrap_or_else(|| "ep-nobody".to_owned());
                json!({"binding": {"id": id, "project": PROJECT, "platform": BASE_URL, "origin": "Created", "at": at}})
            }
            Forged::Intent => json!({"intent": create(None)}),
            Forged::Unanswered => json!({"unanswered": [create(None)]}),
            Forged::Mark => json!({"intent": create(theirs.and_then(|compute| compute.name))}),
            Forged::Nonsense => json!({"binding": 7}),
        };
        let uid = simulation.cluster.objects[own].uid().to_owned();
        let text = sealed(own, &uid, record);
        simulation.cluster.edit(own, &json!({"metadata": {"annotations": {RECORD: text}}}));
    }

    /// Whether the tenant, whose resources may declare what all others may, was bound on the branch of a resource that never was.
    pub fn is_preceded(&self, object: &Compute) -> bool {
        let binding = |object: &Compute| of_compute(object).ok()?.identity.binding;
        let computes = self.simulation.lock().cluster.all::<Compute>();
        let tenants = computes.iter().filter(|other| other.namespace().as_deref() == Some(TENANT));
        let has_it = |other: &Compute| binding(other).and_then(|it| it.branch).as_ref() == Some(&object.spec.branch_id);
        binding(object).is_none() && tenants.into_iter().any(|other| has_it(other))
    }

    /// No resource of the tenant has what was made for somebody else.
    pub fn is_robbed(&self) -> Option<String> {
        let simulation = self.simulation.lock();
        simulation
            .cluster
            .all::<Compute>()
            .iter()
            .filter(|object| object.namespace().as_deref() == Some(TENANT))
            .find_map(|object| {
                let id = of_compute(object).ok()?.identity.binding?.id;
                let made_for = simulation.ledger.computes.get(&id).filter(|made_for| !is_tenants(made_for))?;
                Some(format!("{} of {TENANT} has {id}, which was made for {}", object.name_any(), made_for.1))
            })
    }
}

/// With the number that versions of before would have believed, and the UID of the resource.
fn sealed(own: &Resource, uid: &str, mut record: Value) -> String {
    record["serial"] = json!(u64::MAX);
    record["uid"] = json!(uid);
    let name = own.1.split_once('/').map(|(_, name)| name).unwrap();
    seal(RECORD, &record, ObjectKey { namespace: TENANT, name })
}

fn own(number: u8) -> Resource {
    ("Compute", format!("{TENANT}/thief-{number}"))
}
