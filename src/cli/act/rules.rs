//! The rules of each command: the request that it writes, when it rejects a resource, and how it
//! recognizes the outcome.

mod keys;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::keys::{cannot_rotate, meant, no_revocation, no_rotation, repeatable};

use crate::api::Condition;
use crate::cli::called::program;
use crate::cli::resource::ObservedResource;
use crate::decide::{Attention, Reason, names};
use crate::domain::ComputeId;

/// A request to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceRequest {
    Restart,
    Rotate,
    /// With the compute to import, or without one for the primary of the branch.
    Adopt(Option<ComputeId>),
    Pause,
    Resume,
    Reconcile,
    ConfirmDeletion,
    Revoked(Vec<String>),
    NotCreated(Vec<ComputeId>),
}

/// The state of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    Done(String),
    Failed(String),
    /// In progress, or waiting for this.
    Waits(String),
}

use ResourceRequest as A;

impl ResourceRequest {
    pub fn verb(&self) -> &'static str {
        match self {
            A::Restart => "restart",
            A::Rotate => "rotate",
            A::Adopt(_) => "adopt",
            A::Pause => "pause",
            A::Resume => "resume",
            A::Reconcile => "reconcile",
            A::ConfirmDeletion => "confirm-deletion",
            A::Revoked(_) => "revoked",
            A::NotCreated(_) => "not-created",
        }
    }

    /// The kinds that support the request.
    pub fn kinds(&self) -> &'static [&'static str] {
        match self {
            A::Restart | A::Adopt(_) | A::NotCreated(_) => &["Compute"],
            A::Rotate | A::Revoked(_) => &["ProjectKey"],
            A::ConfirmDeletion => &["Compute", "ProjectKey"],
            A::Pause | A::Resume => &["Compute", "ProjectKey", "ReadReplicaSet"],
            A::Reconcile => &[
                "Compute",
                "ProjectKey",
                "ReadReplicaSet",
                "Account",
                "ClusterAccount",
            ],
        }
    }

    /// The reasons that the request resolves.
    pub fn answers(&self) -> &'static [Reason] {
        match self {
            A::Restart => &[Reason::OperationFailed, Reason::RestartUnconfirmed],
            A::Rotate => &[],
            A::Adopt(_) => &[Reason::PrimaryExists],
            A::Pause => &[],
            A::Resume => &[Reason::Paused],
            A::Reconcile => &[
                Reason::Refused,
                Reason::SettingNotApplied,
                Reason::Unauthorized,
                Reason::Forbidden,
                Reason::PlatformUnreachable,
                Reason::NewKeyRefused,
            ],
            A::ConfirmDeletion => &[Reason::DeletionPaused],
            A::Revoked(_) => &[Reason::RevocationUnsupported, Reason::KeyOfAnotherCluster],
            A::NotCreated(_) => &[Reason::AmbiguousCreate, Reason::StrayCompute],
        }
    }

    /// The place of the request: an annotation, or a field of the spec.
    pub fn written_to(&self) -> (&'static str, &'static str) {
        let annotation = |name| ("metadata.annotations", name);
        match self {
            A::Restart => annotation(names::RESTART),
            A::Rotate => annotation(names::ROTATE),
            A::Pause | A::Resume => annotation(names::PAUSED),
            A::Reconcile => annotation(names::RECONCILE),
            A::ConfirmDeletion => annotation(names::CONFIRM_DELETION),
            A::Revoked(_) => annotation(names::REVOKED_KEYS),
            A::NotCreated(_) => annotation(names::NOT_CREATED),
            A::Adopt(None) => ("spec", "existing"),
            A::Adopt(Some(_)) => ("spec", "computeID"),
        }
    }

    /// The reason why the request cannot work. Nothing is changed then.
    pub fn refusal(&self, resource: &ObservedResource) -> Option<String> {
        if let Some(of_kind) = self.refused_kind(&resource.kind) {
            return Some(of_kind);
        }
        match self {
            A::Restart | A::Rotate | A::Adopt(_) => not_writable(resource).or_else(|| match self {
                A::Restart => no_restart(resource),
                A::Rotate => no_rotation(resource),
                A::Adopt(id) => no_adoption(resource, id.as_ref()),
                _ => None,
            }),
            A::ConfirmDeletion if !resource.is_deleting() => {
                Some("it is not being deleted".to_owned())
            }
            A::ConfirmDeletion if resource.with_reason(self.answers()).is_none() => {
                Some("its deletion is not paused, so nothing waits for a confirmation".to_owned())
            }
            A::Revoked(keys) => no_revocation(resource, keys),
            A::NotCreated(computes) => nothing_to_rule_out(resource, computes),
            A::ConfirmDeletion | A::Pause | A::Resume | A::Reconcile => None,
        }
    }

    /// The reason why a kind does not support the request.
    pub fn refused_kind(&self, kind: &str) -> Option<String> {
        let kinds = self.kinds();
        (!kinds.contains(&kind)).then(|| {
            format!(
                "{} is for {}, not for {kind}",
                self.verb(),
                kinds.join(" and ")
            )
        })
    }

    /// The merge patch that writes the request.
    pub fn patch(&self, resource: &ObservedResource, now: Timestamp) -> Value {
        let value = match self {
            A::Restart | A::Rotate | A::Reconcile | A::ConfirmDeletion => json!(now.to_string()),
            A::Pause => json!("true"),
            A::Resume => Value::Null,
            A::Revoked(keys) => json!(repeatable(
                keys.join(","),
                resource.annotation(names::REVOKED_KEYS)
            )),
            A::NotCreated(computes) => {
                let known = resource.annotation(names::NOT_CREATED).unwrap_or_default();
                let known = known.split(',').map(str::trim).filter(|id| !id.is_empty());
                let all: BTreeSet<&str> = known
                    .chain(computes.iter().map(ComputeId::as_str))
                    .collect();
                json!(all.into_iter().collect::<Vec<_>>().join(","))
            }
            A::Adopt(None) => json!("Adopt"),
            A::Adopt(Some(id)) => json!(id),
        };
        let mut patch = match self.written_to() {
            ("spec", field) => json!({"spec": {field: value}}),
            (_, annotation) => json!({"metadata": {"annotations": {annotation: value}}}),
        };
        // The UID prevents a patch of another resource that has the name by now.
        patch["metadata"]["uid"] = json!(resource.meta.uid);
        patch
    }

    /// The outcome of a request. `before` is the resource before it, and `requested` the resource right
    /// after it. `now` is `None` if the resource is gone.
    pub fn outcome(
        &self,
        before: &ObservedResource,
        requested: &ObservedResource,
        now: Option<&ObservedResource>,
    ) -> RequestOutcome {
        let Some(now) = now.filter(|now| now.meta.uid == before.meta.uid) else {
            return match self {
                A::ConfirmDeletion | A::Revoked(_) => RequestOutcome::Done("deleted".to_owned()),
                _ => RequestOutcome::Failed("it is gone".to_owned()),
            };
        };
        if let Some(done) = self.done(before, requested, now) {
            return RequestOutcome::Done(done);
        }
        match self.failed(before, now) {
            Some(why) => RequestOutcome::Failed(why),
            None => RequestOutcome::Waits(self.awaited(now)),
        }
    }

    /// The reason why it is not carried out yet. The state that it resolves is none.
    fn awaited(&self, now: &ObservedResource) -> String {
        let need = now.need();
        let is_resolved = need
            .condition
            .and_then(|condition| Reason::of(&condition.reason))
            .is_some_and(|reason| self.answers().contains(&reason));
        if is_resolved || need.what == Attention::Nothing {
            return "dbplane has not taken it up yet".to_owned();
        }
        description(now)
    }

    fn done(
        &self,
        before: &ObservedResource,
        requested: &ObservedResource,
        now: &ObservedResource,
    ) -> Option<String> {
        let value = requested.annotation(self.written_to().1);
        match self {
            A::Restart => restarted(now, value?),
            A::Rotate => (now.text("/lastHandledRotate") == value).then(|| {
                format!(
                    "rotated: the key is {}",
                    now.text("/keyName").unwrap_or("another one")
                )
            }),
            A::Adopt(_) => {
                let id = now.text("/computeID")?;
                let is_ready = now
                    .condition("Ready")
                    .is_some_and(|ready| ready.status == "True");
                (is_ready && now.is_observed()).then(|| format!("adopted {id}"))
            }
            A::Pause => now
                .with_reason(&[Reason::Paused])
                .map(|_| "paused".to_owned()),
            A::Resume => now
                .with_reason(&[Reason::Paused])
                .is_none()
                .then(|| format!("resumed: {}", description(now))),
            A::Reconcile => (now.text("/lastHandledReconcileAt") == value)
                .then(|| format!("looked at anew: {}", description(now))),
            A::ConfirmDeletion => None,
            A::Revoked(keys) => {
                let acknowledged = now.status["acknowledgedKeys"].as_array()?;
                let meant = meant(before, keys);
                let all = meant
                    .iter()
                    .all(|name| acknowledged.iter().any(|key| key == name));
                all.then(|| format!("considered revoked: {}", meant.join(", ")))
            }
            A::NotCreated(_) => {
                let reasons = self.answers();
                let question = now.with_reason(reasons).map(|it| &it.message);
                let question_before = before.with_reason(reasons).map(|it| &it.message);
                (question != question_before).then(|| format!("ruled out: {}", description(now)))
            }
        }
    }

    fn failed(&self, before: &ObservedResource, now: &ObservedResource) -> Option<String> {
        let without_success: &[Reason] = match self {
            A::Rotate => &[Reason::NewKeyRefused, Reason::RotationWaiting],
            A::Restart => &[Reason::RestartUnconfirmed],
            _ => &[],
        };
        let (stalled, stalled_before) = (stalled(now), stalled(before));
        if let Some(stalled) = stalled
            && stalled_before.as_ref() != Some(&stalled)
            && !stalled.starts_with(&format!("{}: ", Reason::DeletionPaused))
        {
            return Some(stalled);
        }
        let refused = with_reason(now, without_success)?;
        if with_reason(before, without_success).as_ref() == Some(&refused) {
            return None;
        }
        Some(match self {
            A::Rotate => cannot_rotate(now, &refused),
            _ => refused,
        })
    }
}

fn stalled(resource: &ObservedResource) -> Option<String> {
    resource.condition("Stalled").map(describe)
}

fn with_reason(resource: &ObservedResource, reasons: &[Reason]) -> Option<String> {
    resource.with_reason(reasons).map(describe)
}

fn describe(condition: &Condition) -> String {
    format!("{}: {}", condition.reason, condition.message)
}

/// The text of the condition that describes a resource best.
fn description(resource: &ObservedResource) -> String {
    match resource.need().condition {
        Some(condition) => describe(condition),
        None => "Pending: dbplane has not looked at it yet.".to_owned(),
    }
}

/// The reason why dbplane currently writes nothing for a resource.
fn not_writable(resource: &ObservedResource) -> Option<String> {
    if resource.is_deleting() {
        return Some("it is being deleted".to_owned());
    }
    if resource.annotation(names::PAUSED) == Some("true") {
        return Some(format!(
            "it is paused: {} resume -n {} {resource}",
            program(),
            namespace(resource)
        ));
    }
    (resource.spec["management"] == "Observe")
        .then(|| "it only observes (management: Observe)".to_owned())
}

fn namespace(resource: &ObservedResource) -> &str {
    resource.meta.namespace.as_deref().unwrap_or_default()
}

fn no_restart(resource: &ObservedResource) -> Option<String> {
    resource
        .text("/computeID")
        .is_none()
        .then(|| format!("it has no compute yet ({})", description(resource)))
}

fn no_adoption(resource: &ObservedResource, id: Option<&ComputeId>) -> Option<String> {
    match (id, resource.text("/computeID")) {
        (_, Some(has)) => Some(format!("it has compute {has} already")),
        (None, None) if resource.with_reason(&[Reason::PrimaryExists]).is_none() => Some(format!(
            "it has found no compute to adopt ({}); to import one, name it with --compute-id",
            description(resource)
        )),
        (Some(_), None) | (None, None) => None,
    }
}

fn nothing_to_rule_out(resource: &ObservedResource, computes: &[ComputeId]) -> Option<String> {
    let reasons = [Reason::AmbiguousCreate, Reason::StrayCompute];
    let Some(condition) = resource.with_reason(&reasons) else {
        return Some(
            "no create of it is unclear, and no compute has appeared that may be its own"
                .to_owned(),
        );
    };
    let unknown = computes
        .iter()
        .find(|id| !condition.message.contains(id.as_str()));
    unknown.map(|id| {
        format!(
            "{id} is not in question. {}: {}",
            condition.reason, condition.message
        )
    })
}

fn restarted(now: &ObservedResource, token: &str) -> Option<String> {
    let requested = now
        .text("/restart/token")?
        .split_whitespace()
        .any(|word| word == token);
    if !requested {
        return None;
    }
    let at = now.text("/restart/completedAt")?;
    let idle = now.text("/state") == Some("idle");
    Some(if idle {
        "it is idle: the next connection starts it afresh".to_owned()
    } else {
        format!("restarted at {at}")
    })
}

/// The commands that help in the current state of a resource.
pub fn helpful_commands(resource: &ObservedResource) -> Vec<String> {
    let answers = [
        A::ConfirmDeletion,
        A::Resume,
        A::Adopt(None),
        A::Revoked(Vec::new()),
        A::NotCreated(Vec::new()),
        A::Restart,
        A::Reconcile,
    ];
    let namespace = match &resource.meta.namespace {
        Some(name) => format!(" -n {name}"),
        None => String::new(),
    };
    let mut commands = Vec::new();
    for request in answers {
        if !helps(&request, resource) {
            continue;
        }
        let arguments = match request {
            A::Revoked(_) => " --key NAME,…",
            A::NotCreated(_) => " --compute-id ID,…",
            _ => "",
        };
        commands.push(format!(
            "{} {}{namespace} {resource}{arguments}",
            program(),
            request.verb()
        ));
    }
    commands
}

/// True if a request would be accepted now, and resolves a condition of the resource.
fn helps(request: &ResourceRequest, resource: &ObservedResource) -> bool {
    let needs_no_write = matches!(request, A::ConfirmDeletion | A::Resume | A::Revoked(_));
    (needs_no_write || not_writable(resource).is_none())
        && request.refused_kind(&resource.kind).is_none()
        && resource.with_reason(request.answers()).is_some()
}

#[cfg(test)]
mod tests;
