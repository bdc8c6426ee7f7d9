//! The rights in the installed roles, and the API server's audit log of their use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::rights::kubectl;
use crate::support::ControlPlane;

const OPERATOR: &str = "system:serviceaccount:dbplane-system:dbplane";
/// Only the operator's requests, and only after their answer.
pub const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [
    {"level": "Metadata", "users": ["system:serviceaccount:dbplane-system:dbplane"]},
    {"level": "None"}
  ]
}"#;

/// A verb on a resource: `list secrets`, `patch dbplane.dev/computes/status`.
pub type Right = String;

/// A right to all objects, or to the object with this name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Given {
    pub right: Right,
    pub name: Option<String>,
}

/// The operator's rights in the installed roles.
pub async fn given(cluster: &ControlPlane) -> BTreeSet<Given> {
    // Roles for users extend ClusterRoles of the cluster and are excluded.
    let of_the_operator =
        "-l=app.kubernetes.io/part-of=dbplane,!rbac.authorization.k8s.io/aggregate-to-admin";
    let roles = kubectl(
        cluster,
        &[
            "get",
            "clusterroles,roles",
            "-A",
            of_the_operator,
            "-o=json",
        ],
    )
    .await;
    let roles: Value = serde_json::from_str(&roles).unwrap();
    let mut given = BTreeSet::new();
    for role in roles["items"].as_array().unwrap() {
        let rules: Vec<Rule> = serde_json::from_value(role["rules"].clone()).unwrap();
        for Rule {
            api_groups,
            resources,
            resource_names,
            verbs,
        } in &rules
        {
            let names = || match resource_names.as_slice() {
                [] => vec![None],
                names => names.iter().cloned().map(Some).collect(),
            };
            for (group, resource) in api_groups
                .iter()
                .flat_map(|group| resources.iter().map(move |resource| (group, resource)))
            {
                let rights = verbs.iter().map(|verb| right(verb, group, resource));
                given.extend(rights.flat_map(|right| {
                    names().into_iter().map(move |name| Given {
                        right: right.clone(),
                        name,
                    })
                }));
            }
        }
    }
    given
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
    verbs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    verb: String,
    user: User,
    pub object_ref: Option<ObjectRef>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    pub name: String,
}

impl Request {
    /// Only denied by authorization: a 403 can also mean that the namespace is in deletion.
    pub fn is_refused(&self) -> bool {
        self.annotations
            .get("authorization.k8s.io/decision")
            .is_some_and(|decision| decision == "forbid")
    }

    pub fn right(&self) -> Right {
        let Some(object) = &self.object_ref else {
            return self.verb.clone();
        };
        let subresource = if object.subresource.is_empty() {
            String::new()
        } else {
            format!("/{}", object.subresource)
        };
        right(
            &self.verb,
            &object.api_group,
            &format!("{}{subresource}", object.resource),
        )
    }
}

fn right(verb: &str, group: &str, resource: &str) -> Right {
    let group = if group.is_empty() {
        String::new()
    } else {
        format!("{group}/")
    };
    format!("{verb} {group}{resource}")
}

pub fn requests(log: &Path) -> Vec<Request> {
    let log = fs::read_to_string(log).unwrap();
    let requests: Vec<Request> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        !requests.is_empty()
            && requests
                .iter()
                .all(|request| request.user.username == OPERATOR)
    );
    requests
}
