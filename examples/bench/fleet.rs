//! The simulated world and the declared Computes: a hundred per project, ten per branch.

use std::fmt::Write;

use dbplane::api::Compute;
use dbplane_simulator::world::Profile;
use serde_json::json;

use super::bed::Setting;

pub const NAMESPACE: &str = "shop";
/// The project of Computes that are created one by one; the fleet does not use it.
pub const APART: &str = "apart";
const IN_A_PROJECT: usize = 100;
const ON_A_BRANCH: usize = 10;
pub const ORGANIZATION: &str = "org-cool-darkness-1";
pub const KEY: &str = "measuring-key-not-a-secret";
/// The poll interval.
pub const POLL_SECONDS: u64 = 30;
/// Upper bound for Computes that are created one by one.
const MOST_SINGLES: usize = 200;
/// Requests per minute that a platform with limits allows.
pub const LIMIT: u32 = 700;

pub fn world(
    Setting {
        size,
        limited,
        strangers,
        ..
    }: Setting,
) -> String {
    let declared = |number| {
        format!(
            ", {{type: organization, owner: {ORGANIZATION}, name: {}}}",
            stranger(number)
        )
    };
    let strangers: String = (0..strangers).map(declared).collect();
    let mut text = format!(
        "settings: {{rate_limit: {{enabled: {limited}, per_minute: {LIMIT}}}, serialise_operations: false}}
users: [{{id: user-ada}}]
organizations:
  - {{id: {ORGANIZATION}, plan: scale, members: [{{user: user-ada, role: admin}}]}}
keys: [{{type: personal, owner: user-ada, name: laptop, token: {KEY}}}{strangers}]
projects:
"
    );
    let branches = |count: usize| {
        (0..count)
            .map(|number| format!("{{id: br-{number}}}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let projects =
        (0..projects(size)).map(|number| (format!("project-{number}"), IN_A_PROJECT / ON_A_BRANCH));
    for (id, count) in projects.chain([(APART.to_owned(), MOST_SINGLES)]) {
        let _ = writeln!(
            text,
            "  - {{id: {id}, owner: {ORGANIZATION}, branches: [{}]}}",
            branches(count)
        );
    }
    text
}

/// The name of a key that was not created by this run.
pub fn stranger(number: usize) -> String {
    format!("o-{number}")
}

pub const fn projects(size: usize) -> usize {
    size.div_ceil(IN_A_PROJECT)
}

pub fn account(base_url: &str, Setting { limited, .. }: Setting) -> String {
    // With a limit, nearly all requests should be creates. So requests are spread evenly over the
    // minute, and polls are as rare as in an account with many projects.
    let (per_minute, burst, poll) = if limited {
        (LIMIT, 5, 10 * POLL_SECONDS)
    } else {
        (100_000, 1000, POLL_SECONDS)
    };
    format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: platform-api-key, namespace: {NAMESPACE}}}
stringData: {{api-key: {KEY}}}
---
apiVersion: dbplane.dev/v1alpha1
kind: Account
metadata: {{name: prod, namespace: {NAMESPACE}}}
spec:
  baseURL: {base_url}
  organizationID: {ORGANIZATION}
  apiKeySecretRef: {{name: platform-api-key}}
  rateLimit: {{requestsPerMinute: {per_minute}, burst: {burst}}}
  pollInterval: {poll}s
"
    )
}

/// A Compute of the fleet. Not every profile lets a Compute stay active forever, which would keep
/// its state constant.
pub fn compute(number: usize, Setting { profile, .. }: Setting) -> Compute {
    let branch = number % IN_A_PROJECT / ON_A_BRANCH;
    let type_ = if number.is_multiple_of(ON_A_BRANCH) {
        "ReadWrite"
    } else {
        "ReadOnly"
    };
    let mut compute = manifest(
        &format!("compute-{number}"),
        &format!("project-{}", number / IN_A_PROJECT),
        branch,
        type_,
    );
    if profile == Profile::Minimal {
        compute.spec.scale_to_zero = None;
    }
    compute
}

/// A Compute that is created alone.
pub fn single(number: usize) -> Compute {
    manifest(&format!("single-{number}"), APART, number, "ReadWrite")
}

fn manifest(name: &str, project: &str, branch: usize, type_: &str) -> Compute {
    let spec = json!({
        "accountRef": {"name": "prod"},
        "projectID": project,
        "branchID": format!("br-{branch}"),
        "type": type_,
        "size": {"autoscaling": {"min": 0.25, "max": 2}},
        "scaleToZero": {"never": true},
    });
    let mut compute = Compute::new(
        name,
        serde_json::from_value(spec).unwrap_or_else(|error| unreachable!("{error}")),
    );
    compute.metadata.namespace = Some(NAMESPACE.to_owned());
    compute
}
