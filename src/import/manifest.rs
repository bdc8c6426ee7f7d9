//! Renders the manifest of a compute, or of a ProjectKey that replaces a key.

use serde::Serialize;
use serde_json::Value;

use super::{Choices, FoundCompute, FoundKey, text};
use crate::api::{AccountKind, ComputeType, Deletion, GROUP, Management};
use crate::decide::declare::{Fields, beyond_defaults, fields};
use crate::decide::names::Mark;
use crate::domain::{BranchId, ComputeId, PoolingMode, ProjectId, Role};
use crate::text::quoted;
use crate::validate::{Checker, ManifestProblem};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenManifest<'a, S> {
    api_version: String,
    kind: &'static str,
    metadata: Metadata<'a>,
    spec: S,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ComputeFields<'a> {
    account_ref: Reference<'a>,
    #[serde(rename = "projectID")]
    project_id: &'a ProjectId,
    #[serde(rename = "branchID")]
    branch_id: &'a BranchId,
    #[serde(rename = "computeID")]
    compute_id: &'a ComputeId,
    #[serde(rename = "type")]
    type_: ComputeType,
    management: Management,
    deletion: Deletion,
    #[serde(flatten)]
    settings: &'a Fields,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyFields<'a> {
    account_ref: Reference<'a>,
    #[serde(rename = "projectID")]
    project_id: &'a ProjectId,
    key_name: &'a str,
    secret: SecretFields,
}

#[derive(Serialize)]
struct SecretFields {
    name: String,
    key: &'static str,
}

#[derive(Serialize)]
struct Reference<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<AccountKind>,
}

impl<'a> Reference<'a> {
    fn of(choices: &'a Choices) -> Self {
        let kind = Some(choices.account.kind).filter(|kind| *kind != AccountKind::default());
        Self {
            name: &choices.account.name,
            kind,
        }
    }
}

/// The manifest as text, with notes for its reader above it. Settings that a resource cannot
/// declare are left out, and listed there.
///
/// # Errors
/// The reasons why nothing can be declared.
pub fn of_compute(
    found: &FoundCompute,
    name: &str,
    choices: &Choices,
    checker: &Checker,
) -> Result<String, String> {
    let settings = if choices.all_fields {
        found.settings.clone()
    } else {
        beyond_defaults(&found.settings)
    };
    let mut declared = fields(&settings);
    let mut left_out = Vec::new();
    if let Some(PoolingMode::Other(word)) = settings.pooler_mode
        && declared.pooler.is_some()
    {
        left_out.push(format!(
            "Not declared: spec.pooler.mode, which has no word for {word}."
        ));
    }
    loop {
        let manifest = WrittenManifest {
            api_version: format!("{GROUP}/v1alpha1"),
            kind: "Compute",
            metadata: Metadata {
                name,
                namespace: choices.namespace.as_deref(),
            },
            spec: ComputeFields {
                account_ref: Reference::of(choices),
                project_id: &found.project,
                branch_id: &found.branch,
                compute_id: &found.id,
                type_: match found.role {
                    Role::Primary => ComputeType::ReadWrite,
                    Role::Replica => ComputeType::ReadOnly,
                },
                management: choices.management,
                deletion: choices.deletion,
                settings: &declared,
            },
        };
        let Err(problems) = check(&manifest, checker) else {
            let comments = above(found, name).into_iter().chain(left_out);
            return Ok(text::comment(comments) + &yaml(&manifest)?);
        };
        // Check again without the settings that cannot be declared.
        let before = declared.clone();
        for problem in &problems {
            if leave_out(&mut declared, &problem.path) {
                left_out.push(format!("Not declared: {problem}."));
            }
        }
        if declared == before {
            return Err(joined(&problems));
        }
    }
}

/// The manifest of the ProjectKey that replaces a key.
///
/// # Errors
/// The reasons why it cannot be declared.
pub fn of_key(
    key: &FoundKey,
    name: &str,
    address: &str,
    choices: &Choices,
    checker: &Checker,
) -> Result<String, String> {
    let manifest = WrittenManifest {
        api_version: format!("{GROUP}/v1alpha1"),
        kind: "ProjectKey",
        metadata: Metadata {
            name,
            namespace: choices.namespace.as_deref(),
        },
        spec: KeyFields {
            account_ref: Reference::of(choices),
            project_id: &key.project,
            key_name: name,
            secret: SecretFields {
                name: format!("{name}-platform-key"),
                key: "api-key",
            },
        },
    };
    check(&manifest, checker).map_err(|problems| joined(&problems))?;
    let comments = [
        format!(
            "Replaces {address}: applying this creates another key on the platform, and writes it to the Secret below."
        ),
        "Then have what uses the old key read that Secret, and destroy the old key with Terraform:"
            .to_owned(),
        format!("  terraform destroy -target={}", quoted(address)),
    ];
    Ok(text::comment(comments) + &yaml(&manifest)?)
}

fn joined(problems: &[ManifestProblem]) -> String {
    problems
        .iter()
        .map(ManifestProblem::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

fn above(found: &FoundCompute, name: &str) -> Vec<String> {
    let shown = found.name.as_deref().filter(|shown| *shown != name);
    let shown = shown.map(|shown| format!("The platform calls it {shown}."));
    let mark = found.name.as_deref().and_then(Mark::of).map(|mark| {
        format!(
            "dbplane created it, for a cluster with the identity {}. If a resource there still has it, first delete that resource with spec.deletion: Orphan.",
            mark.cluster
        )
    });
    shown
        .into_iter()
        .chain(mark)
        .chain(found.notes.iter().cloned())
        .collect()
}

fn check<S: Serialize>(
    manifest: &WrittenManifest<S>,
    checker: &Checker,
) -> Result<(), Vec<ManifestProblem>> {
    let value = serde_json::to_value(manifest).unwrap_or(Value::Null);
    checker.check(&value, None)
}

/// Removes the field at this path. Returns true if it was set.
fn leave_out(declared: &mut Fields, path: &str) -> bool {
    let before = declared.clone();
    match path.split(['.', '[']).nth(1) {
        Some("size") => declared.size = None,
        Some("scaleToZero") => declared.scale_to_zero = None,
        Some("pooler") => declared.pooler = None,
        Some("postgresSettings") => declared.postgres_settings.clear(),
        _ => {}
    }
    *declared != before
}

fn yaml(manifest: &impl Serialize) -> Result<String, String> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    serde_saphyr::to_string_with_options(manifest, options).map_err(|error| error.to_string())
}
