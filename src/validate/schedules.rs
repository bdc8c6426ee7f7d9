//! Finds schedules that the API server accepts but the operator cannot follow.

use serde::Deserialize;
use serde_json::Value;

use super::{Check, ManifestProblem};
use crate::api::{ComputeSpec, ReadReplicaSetSpec};
use crate::decide::compute::{Unfollowed, unfollowed};
use crate::decide::cron::Flaw;

/// The problems of the schedules in a spec that matches its definition.
pub(super) fn problems(kind: &str, spec: &Value) -> Vec<ManifestProblem> {
    let found = match kind {
        "Compute" => ComputeSpec::deserialize(spec)
            .ok()
            .map(|spec| unfollowed(&spec, "spec")),
        "ReadReplicaSet" => ReadReplicaSetSpec::deserialize(spec)
            .ok()
            .map(|spec| unfollowed(spec.template.spec.compute(), "spec.template.spec")),
        _ => None,
    };
    found.into_iter().flatten().map(problem).collect()
}

fn problem(found: Unfollowed) -> ManifestProblem {
    let nearest;
    let (what, help) = match found.flaw {
        Flaw::Zone(near) => {
            nearest = near.map(|name| format!("did you mean {name}?"));
            let help = nearest
                .as_deref()
                .unwrap_or("write a name of the IANA time zone database, such as Europe/Berlin");
            ("there is no such time zone", help)
        }
        Flaw::Unreadable(_) => (
            "it cannot be read",
            "write a cron expression as CronJob has it, such as 0 3 * * SUN",
        ),
        Flaw::NoDay => (
            "it never comes: no month that it names has such a day",
            "name a day that one of its months has",
        ),
        Flaw::LeftOut => (
            "it never comes: clocks of its time zone are put forward just then, every year",
            "name a time before or after the change of the clocks",
        ),
    };
    ManifestProblem {
        path: found.path,
        message: format!("Invalid value: {what}"),
        help: Some(help.to_owned()),
        check: Check::Schedule,
    }
}
