//! Reads the computes and keys in a Terraform or OpenTofu state with resources of the public
//! providers of this platform family. It also lists the resources that stay in the state.
//!
//! A state contains secrets in plain text. Only the attributes that are named here are read, and
//! none that the state marks as sensitive.

mod attributes;
mod state;

use self::attributes::Attributes;
use super::{FoundCompute, FoundKey};
use crate::domain::{PoolingMode, PostgresSettings, Role, Settings, SuspendAfter};
use crate::text::quoted;

pub use state::StateError;

/// The prefix of the providers' resource types.
const PREFIX: &str = "neon_";

/// The resources of this platform in a state.
#[derive(Clone, Debug, Default)]
pub struct StateContents {
    pub computes: Vec<FoundCompute>,
    pub keys: Vec<FoundKey>,
    /// Addresses of the resources that dbplane takes over. The user has to remove them from the
    /// state.
    pub taken_over: Vec<String>,
    /// Addresses of the resources that stay with Terraform.
    pub staying: Vec<String>,
    /// Resources that could not be understood, with the reasons.
    pub unclear: Vec<String>,
}

/// Reads a state.
///
/// # Errors
/// If it is not a state of version 4.
pub fn read(text: &str) -> Result<StateContents, StateError> {
    let mut contents = StateContents::default();
    let mut within = Vec::new();
    for instance in state::instances(text)? {
        let Some(kind) = instance.kind.strip_prefix(PREFIX) else {
            continue;
        };
        match kind {
            "endpoint" => contents.compute(&instance.address, &instance.attributes),
            _ if kind.ends_with("api_key") => contents.key(instance.address, &instance.attributes),
            _ => {
                within.extend(compute_within(
                    kind,
                    &instance.address,
                    &instance.attributes,
                ));
                contents.staying.push(instance.address);
            }
        }
    }
    // A compute may also be a resource of its own, besides the project that names it.
    for found in within {
        if !contents
            .computes
            .iter()
            .any(|known| (&known.project, &known.id) == (&found.project, &found.id))
        {
            contents.computes.push(found);
        }
    }
    contents.keys.sort();
    for list in [
        &mut contents.taken_over,
        &mut contents.staying,
        &mut contents.unclear,
    ] {
        list.sort();
    }
    Ok(contents)
}

impl StateContents {
    fn compute(&mut self, address: &str, attributes: &Attributes) {
        let identity = (
            attributes.text("id"),
            attributes.text("project_id"),
            attributes.text("branch_id"),
        );
        let (Some(id), Some(project), Some(branch)) = identity else {
            self.unclear.push(format!(
                "{address}: the state does not say its id, project and branch"
            ));
            return;
        };
        let notes = vec![
            format!("From {address}. Before management: Full, take it out of Terraform:"),
            format!("  terraform state rm {}", quoted(address)),
        ];
        let role = match attributes.text("type").as_deref() {
            None | Some("read_write") => Role::Primary,
            Some(_) => Role::Replica,
        };
        let (name, settings) = (attributes.text("name"), settings(attributes));
        self.computes.push(FoundCompute {
            id: id.into(),
            project: project.into(),
            branch: branch.into(),
            role,
            name,
            created_at: None,
            settings,
            notes,
        });
        self.taken_over.push(address.to_owned());
    }

    fn key(&mut self, address: String, attributes: &Attributes) {
        let identity = (
            attributes.text("project_id"),
            attributes.text("name"),
            attributes.text("id"),
        );
        match identity {
            (Some(project), Some(name), Some(id)) => self.keys.push(FoundKey {
                project: project.into(),
                name,
                id,
                address: Some(address),
            }),
            // The key of a user or of the whole organization.
            _ => self.staying.push(address),
        }
    }
}

/// The compute that a project or a branch has created, and that is not a resource of its own.
fn compute_within(kind: &str, address: &str, attributes: &Attributes) -> Option<FoundCompute> {
    let (project, branch) = match kind {
        "project" => (attributes.text("id"), attributes.block("branch")),
        "branch" => (attributes.text("project_id"), attributes.clone()),
        _ => return None,
    };
    let endpoint = branch.block("endpoint");
    let settings = settings(&endpoint);
    let advice = if settings == Settings::default() {
        "The state does not say what it is like: apply this, and see what status shows."
    } else {
        "Before management: Full, have Terraform ignore its size and suspension (lifecycle: ignore_changes)."
    };
    Some(FoundCompute {
        id: endpoint
            .text("id")
            .or_else(|| attributes.text("default_endpoint_id"))?
            .into(),
        project: project?.into(),
        branch: attributes
            .text("default_branch_id")
            .or_else(|| branch.text("id"))?
            .into(),
        role: Role::Primary,
        name: None,
        created_at: None,
        settings,
        notes: vec![
            format!(
                "The compute of {address}, which stays with Terraform, and deletes it with itself."
            ),
            advice.to_owned(),
        ],
    })
}

/// The providers use two sets of names for the same attributes.
fn settings(attributes: &Attributes) -> Settings {
    let nested = attributes.block("settings").texts("pg_settings");
    let postgres = attributes
        .texts("pg_settings")
        .into_iter()
        .chain(nested)
        .collect();
    Settings {
        min: attributes
            .size("autoscaling_limit_min_cu")
            .or_else(|| attributes.size("min_cu")),
        max: attributes
            .size("autoscaling_limit_max_cu")
            .or_else(|| attributes.size("max_cu")),
        suspend_after: attributes
            .whole("suspend_timeout_seconds")
            .or_else(|| attributes.whole("suspend_timeout"))
            .map(SuspendAfter::of_seconds),
        pooler_enabled: attributes.switch("pooler_enabled"),
        pooler_mode: attributes.text("pooler_mode").map(PoolingMode::from),
        postgres: PostgresSettings(postgres),
        passwordless_access: attributes.switch("passwordless_access"),
        disabled: attributes.switch("disabled"),
    }
}

#[cfg(test)]
mod tests;
