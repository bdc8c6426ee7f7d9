//! Renders the results of passes as a plan.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::{Compute, Condition, Known};
use crate::controller::object::AccountName;
use crate::decide::{Report, Wake};
use crate::domain::{self, ComputeId, ProjectId};

use super::cluster::PlanCluster;
use super::environment::Planner;
use super::id::Id;
use super::platform::BeforeAndAfter;
use super::rounds::PassesEnd;
use super::steps::{
    Cost, Counts, ManifestChange, Plan, Planned, PlannedCondition, PlannedStep, PlannedWait, Units,
};

/// The compute that a resource is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    account: AccountName,
    project: ProjectId,
    compute: ComputeId,
}

/// The binding of every Compute.
pub fn bindings(cluster: &PlanCluster) -> BTreeMap<Id, Bound> {
    cluster
        .stored()
        .all::<Known<Compute>>()
        .iter()
        .filter_map(|compute| bound(compute))
        .collect()
}

fn bound(compute: &Known<Compute>) -> Option<(Id, Bound)> {
    let identity = compute.identity().ok()?;
    let binding = identity.binding?;
    let account = AccountName::of(&compute.spec.account_ref, compute);
    Some((
        Id::of(compute),
        Bound {
            account,
            project: binding.project,
            compute: binding.id,
        },
    ))
}

pub fn plan(
    planner: &Planner,
    ids: &BTreeSet<Id>,
    ended: &BTreeMap<Id, PassesEnd>,
    before: &BTreeMap<Id, Bound>,
    declared: &BTreeMap<Id, ManifestChange>,
) -> Plan {
    let after = bindings(&planner.cluster.0);
    let resources: Vec<Planned> = ids
        .iter()
        .map(|id| {
            let linked = linked(planner, before.get(id), after.get(id));
            let steps = linked.into_iter().chain(planner.trail.of(id)).collect();
            planned(planner, id, ended.get(id), declared.get(id), steps)
        })
        .collect();
    let concerned = ids
        .iter()
        .flat_map(|id| before.get(id).into_iter().chain(after.get(id)));
    Plan {
        at: planner.now,
        counts: Counts::of(&resources),
        resources,
        cost: cost(planner, concerned),
        not_read: planner.trail.all_not_read(),
    }
}

/// The step that binds a resource to an existing compute, if there is one.
fn linked(planner: &Planner, before: Option<&Bound>, after: Option<&Bound>) -> Option<PlannedStep> {
    let after =
        after.filter(|after| before.is_none_or(|before| before.compute != after.compute))?;
    let existed = change_of(planner, after)?.before.is_some();
    existed.then(|| PlannedStep::LinkCompute {
        compute: after.compute.clone(),
    })
}

fn change_of(planner: &Planner, bound: &Bound) -> Option<BeforeAndAfter> {
    planner
        .platform(&bound.account)
        .map(|platform| platform.change_of(&bound.project, &bound.compute))
}

fn planned(
    planner: &Planner,
    id: &Id,
    ended: Option<&PassesEnd>,
    manifest: Option<&ManifestChange>,
    steps: Vec<PlannedStep>,
) -> Planned {
    let gone = planner.cluster.0.find(id).is_none();
    let mut planned = Planned {
        id: id.clone(),
        manifest: manifest.copied(),
        steps,
        gone,
        ready: None,
        synced: None,
        waits: None,
        next: None,
        unknown: None,
    };
    if gone {
        return planned;
    }
    match ended {
        Some(PassesEnd::Rests(Some(report), wake)) => {
            let conditions = report.conditions(&[], 0, planner.now);
            planned.ready = condition(&conditions, "Ready");
            planned.synced = condition(&conditions, "Synced");
            planned.next = at(*wake);
            planned.waits = waits(report, *wake);
        }
        Some(PassesEnd::Rests(None, _)) => planned.unknown = Some(silent(planner, id)),
        Some(PassesEnd::Failed(error)) => planned.unknown = Some(error.clone()),
        Some(PassesEnd::Busy) => {
            planned.unknown =
                Some("The plan comes to no end: the same is decided again and again.".to_owned());
        }
        None => {
            planned.unknown = Some("It cannot be read as a resource of this version.".to_owned())
        }
    }
    planned
}

fn silent(planner: &Planner, id: &Id) -> String {
    let object = planner.cluster.0.find(id);
    let account = object
        .as_ref()
        .and_then(|object| object.value["spec"]["accountRef"]["name"].as_str());
    let account = account.unwrap_or("its account");
    format!("The platform of account {account} was not read, so nothing is decided.")
}

fn condition(conditions: &[Condition], type_: &str) -> Option<PlannedCondition> {
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == type_)?;
    Some(PlannedCondition {
        status: found.status.clone(),
        reason: found.reason.clone(),
        message: found.message.clone(),
    })
}

fn at(wake: Wake) -> Option<jiff::Timestamp> {
    match wake {
        Wake::At(time) => Some(time),
        Wake::OnChange => None,
    }
}

/// The wait of a resource that does not match its spec.
fn waits(report: &Report, wake: Wake) -> Option<PlannedWait> {
    use crate::decide::{Health, Sync};
    let (reason, message) = match (&report.health, &report.sync) {
        (
            Health::Ready(..),
            Sync::OutOfSync(reason, message)
            | Sync::Refused(reason, message)
            | Sync::Unknown(reason, message),
        ) => (*reason, message.as_str()),
        (Health::Ready(..), Sync::InSync | Sync::NotApplicable) => return None,
        _ => report.headline(),
    };
    let until = report
        .waiting
        .as_ref()
        .map_or_else(|| at(wake), |waiting| waiting.until);
    Some(PlannedWait {
        reason: reason.to_string(),
        message: message.to_owned(),
        until,
    })
}

/// Compute units of the planned resources' computes, before and after. `None` if a size is unknown.
fn cost<'a>(planner: &Planner, bound: impl Iterator<Item = &'a Bound>) -> Option<Cost> {
    let mut cost = Cost::default();
    let mut seen = BTreeSet::new();
    for bound in bound.filter(|bound| seen.insert(bound.compute.clone())) {
        let BeforeAndAfter { before, after } = change_of(planner, bound)?;
        cost.before = plus(cost.before, before.as_ref())?;
        cost.after = plus(cost.after, after.as_ref())?;
    }
    Some(cost)
}

fn plus(sum: Units, compute: Option<&domain::Compute>) -> Option<Units> {
    let Some(compute) = compute else {
        return Some(sum);
    };
    let (min, max) = compute.settings.min.zip(compute.settings.max)?;
    Some(Units {
        min: sum.min + min.value(),
        max: sum.max + max.value(),
    })
}
