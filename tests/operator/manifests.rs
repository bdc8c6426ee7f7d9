//! Manifests for tests, with optional additions.

use super::PROJECT;

pub fn account(name: &str, base_url: &str, more: &str) -> String {
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Account
metadata: {{name: {name}}}
spec:
  baseURL: {base_url}
  organizationID: org-cool-darkness-1
  apiKeySecretRef: {{name: platform-api-key}}
  pollInterval: 5s
{more}"
    )
}

pub fn compute(name: &str, branch: &str, more: &str) -> String {
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: {name}}}
spec:
  accountRef: {{name: prod}}
  projectID: {PROJECT}
  branchID: {branch}
  type: ReadWrite
{more}"
    )
}

/// A ProjectKey of the sample project whose Secret is `{name}-key`.
pub fn key(name: &str, more: &str) -> String {
    key_into(name, &format!("{{name: {name}-key}}"), more)
}

/// The same with this value of `secret`.
pub fn key_into(name: &str, secret: &str, more: &str) -> String {
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ProjectKey
metadata: {{name: {name}}}
spec:
  accountRef: {{name: prod}}
  projectID: {PROJECT}
  keyName: {name}
  secret: {secret}
{more}"
    )
}
