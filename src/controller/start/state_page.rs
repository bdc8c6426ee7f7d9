//! `/debug/state`: what the process knows, for debugging. It contains no secret.

use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::super::environment::{Environment, Kind, KindVisitor, Kinds};
use super::super::labels;
use super::super::live::Live;
use super::super::live::trail::Traced;
use super::super::object::uid;
use super::super::registry::AllKinds;
use super::super::state::{Reservation, ResourceState};
use super::reconcile::Shared;
use crate::decide::compute::Reserved;
use crate::decide::memory::Failure;
use crate::decide::{Action, Health, Report, Sync};
use crate::platform::{BudgetFigures, Latest, ListName, Listing};
use crate::telemetry::debug::Wanted;

pub fn state(shared: &Shared, wanted: &Wanted) -> Value {
    let env = &shared.env;
    let mut resources = Resources {
        env,
        wanted,
        found: Vec::new(),
        unreadable: Vec::new(),
    };
    AllKinds::each(&mut resources);
    let slots = shared.slots.figures().into_iter();
    let slots =
        slots.map(|(of, (taken, waiting))| json!({"of": of, "taken": taken, "waiting": waiting}));
    let computes = env
        .observers
        .all()
        .into_iter()
        .map(|(place, latest)| list(place, &latest));
    let keys = env
        .key_observers
        .all()
        .into_iter()
        .map(|(place, latest)| list(place, &latest));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "identity": env.settings.identity,
        "cluster": env.pass_settings.cluster.to_string(),
        "at": env.now(),
        "mayChange": env.leadership.holds(),
        "firstListsRead": env.synced.is_cancelled(),
        "accounts": accounts(env),
        "lists": computes.chain(keys).collect::<Vec<_>>(),
        "slots": slots.collect::<Vec<_>>(),
        "unreadable": resources.unreadable,
        "resources": resources.found,
    })
}

fn accounts(env: &Live) -> Vec<Value> {
    let connections = env.state.connections().into_iter();
    let account = connections.map(|(name, connection)| {
        json!({
            "account": name.to_string(),
            "connection": connection.number,
            "pollIntervalSeconds": connection.poll_interval.as_secs_f64(),
            "computeNames": format!("{:?}", connection.names),
            "checkedAt": connection.check.as_ref().map(|check| check.at),
            "budget": budget(&connection.platform.budget().figures()),
        })
    });
    account.collect()
}

fn budget(figures: &BudgetFigures) -> Value {
    let waits = figures.waits.iter().map(
        |of| json!({"priority": of.priority.name(), "waiting": of.waiting, "waitedSeconds": of.waited.as_secs_f64()}),
    );
    json!({
        "requestsPerMinute": figures.requests_per_minute,
        "left": figures.left,
        "pauseSeconds": figures.pause.as_secs_f64(),
        "waits": waits.collect::<Vec<_>>(),
    })
}

fn list<L: Listing>((account, of): ListName, latest: &Latest<L>) -> Value {
    let reading = latest.snapshot.as_ref().map(
        |reading| json!({"begun": reading.at, "ended": reading.ended, "items": reading.items.len(), "unreadable": reading.unreadable.len(), "tick": reading.began.number()}),
    );
    let fault = latest.fault.as_ref().map(ToString::to_string);
    json!({"account": account, "of": {L::OF: of}, "reading": reading, "fault": fault})
}

struct Resources<'a> {
    env: &'a Live,
    wanted: &'a Wanted,
    found: Vec<Value>,
    unreadable: Vec<Value>,
}

impl KindVisitor for Resources<'_> {
    fn visit<K: Kind>(&mut self) {
        let kind = K::Object::kind(&());
        if !self.wanted.is_kind(&kind) {
            return;
        }
        for object in self.env.objects::<K>() {
            if self
                .wanted
                .is(object.namespace().as_deref(), &object.name_any())
            {
                self.found.push(self.of::<K>(object.as_ref()));
            }
        }
        for meta in self.env.unreadable::<K::Object>() {
            self.unreadable
                .push(json!({"kind": kind, "namespace": meta.namespace, "name": meta.name}));
        }
    }
}

impl Resources<'_> {
    fn of<K: Kind>(&self, object: &K::Object) -> Value {
        let uid = uid(object);
        let remembered = self.env.state.resource(&uid);
        let now = self.env.now();
        json!({
            "kind": K::Object::kind(&()),
            "namespace": object.namespace(),
            "name": object.name_any(),
            "uid": uid,
            "resourceVersion": object.resource_version(),
            "generation": object.meta().generation,
            "deleting": object.meta().deletion_timestamp.is_some(),
            "last": self.env.trail.get(&uid).as_ref().map(last),
            "remembered": memory(&remembered),
            "write_contention": self.env.state.reported_contention(&uid, now).map(|(message, until)| json!({"message": message, "until": until})),
        })
    }
}

/// The last pass, and when the next one is due.
fn last(traced: &Traced) -> Value {
    let step = traced
        .step
        .as_ref()
        .map(|step| json!({"at": step.at, "step": step.text}));
    let ended = traced.ended.as_ref();
    json!({
        "passes": traced.passes,
        "at": traced.at,
        "error": traced.error,
        "step": step,
        "report": ended.and_then(|(pass, _)| pass.report.as_ref()).map(report),
        "next": ended.map(|(pass, at)| json!({"on": pass.next.to_string(), "atTheLatest": at})),
    })
}

fn report(report: &Report) -> Value {
    json!({
        "health": health(&report.health),
        "sync": sync(&report.sync),
        "waiting": report.waiting.as_ref().map(|waiting| json!({"changes": waiting.changes, "until": waiting.until})),
        "notices": report.notices.iter().map(|(reason, message)| said("Notice", reason.as_str(), message)).collect::<Vec<_>>(),
    })
}

fn said(is: &str, reason: &str, message: &str) -> Value {
    json!({"is": is, "reason": reason, "message": message})
}

fn health(health: &Health) -> Value {
    match health {
        Health::Ready(reason, message) => said("Ready", reason.as_str(), message),
        Health::Progressing(reason, message) => said("Progressing", reason.as_str(), message),
        Health::Stalled(reason, message) => said("Stalled", reason.as_str(), message),
        Health::Unknown(reason, message) => said("Unknown", reason.as_str(), message),
        Health::Paused(message) => json!({"is": "Paused", "message": message}),
    }
}

fn sync(sync: &Sync) -> Value {
    match sync {
        Sync::InSync => json!({"is": "InSync"}),
        Sync::OutOfSync(reason, message) => said("OutOfSync", reason.as_str(), message),
        Sync::Refused(reason, message) => said("Refused", reason.as_str(), message),
        Sync::Unknown(reason, message) => said("Unknown", reason.as_str(), message),
        Sync::NotApplicable => json!({"is": "NotApplicable"}),
    }
}

/// The memory of a resource. Of an unsaved key it shows only that there is one.
fn memory(resource: &ResourceState) -> Value {
    json!({
        "connection": resource.connection,
        "ownVersion": resource.version,
        "readingAfterTick": resource.wrote_at().map(|tick| tick.number()),
        "awaiting": resource.awaiting,
        "inStep": resource.in_step,
        "errorsInARow": resource.errors,
        "waitsFor": resource.waits.as_ref().map(|(_, reason)| reason.as_str()),
        "reserved": resource.reserved.as_ref().map(reserved),
        "hasKeyToSave": resource.key.unsaved.is_some(),
        "missingSince": resource.memory.missing_since,
        "failures": resource.memory.failures().map(failure).collect::<Vec<_>>(),
    })
}

fn reserved(Reservation { place, running, .. }: &Reservation) -> Value {
    let (what, which) = match &place.what {
        Reserved::Create { branch, .. } => ("branch", branch),
        Reserved::Compute(id) => ("compute", id),
    };
    json!({"project": place.project, what: which, "running": running})
}

fn failure((action, failure): (Action, &Failure)) -> Value {
    json!({
        "action": labels::action(action),
        "at": failure.at,
        "inARow": failure.count,
        "generation": failure.generation,
        "means": health(&failure.health()),
    })
}
