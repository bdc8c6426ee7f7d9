//! The status of a set.

use jiff::Timestamp;

use super::SetObserved;
use super::member::{self, Replica};
use crate::api::{ReadReplicaSetSpec, ReadReplicaSetStatus, ServiceBinding};
use crate::decide::Report;

pub fn status(
    report: &Report,
    spec: &ReadReplicaSetSpec,
    observed: &SetObserved,
    old: &ReadReplicaSetStatus,
    now: Timestamp,
) -> ReadReplicaSetStatus {
    let replicas = member::replicas(spec, &observed.computes);
    let count = |wanted: fn(&Replica) -> bool| {
        u32::try_from(replicas.iter().filter(|replica| wanted(replica)).count()).unwrap_or(u32::MAX)
    };
    let (connection_secret, unused_secrets) = if observed.meta.deleting {
        (&old.connection_secret, &old.unused_secrets)
    } else {
        (&observed.connection_secret, &observed.unused_secrets)
    };
    ReadReplicaSetStatus {
        replicas: count(|_| true)
            .saturating_add(u32::try_from(observed.unreadable).unwrap_or(u32::MAX)),
        ready_replicas: count(Replica::is_ready),
        updated_replicas: count(Replica::is_settled),
        hosts: count(|replica| replica.address().is_some()),
        selector: Some(selector(spec)),
        binding: connection_secret
            .clone()
            .map(|name| ServiceBinding { name }),
        connection_secret: connection_secret.clone(),
        unused_secrets: unused_secrets.clone(),
        conditions: report.conditions(&old.conditions, observed.meta.generation, now),
        last_handled_reconcile_at: observed
            .meta
            .handled_reconcile(true, old.last_handled_reconcile_at.as_ref()),
        observed_generation: report
            .observed_generation(old.observed_generation, observed.meta.generation),
    }
}

/// The selector in the form that autoscalers read.
pub fn selector(spec: &ReadReplicaSetSpec) -> String {
    let labels = spec
        .selector
        .match_labels
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    labels.collect::<Vec<_>>().join(",")
}
