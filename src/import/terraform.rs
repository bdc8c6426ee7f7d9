//! A state of Terraform (or OpenTofu) with resources of the public providers of this family of platforms: which computes and keys it
//! has, and what stays in it.
//!
//! A state holds secrets readably. Of each resource only the attributes that are named here are looked at; nothing that the state marks
//! as sensitive is.

mod attributes;
mod state;

use self::attributes::Attributes;
use super::{Found, Key, quoted};
use crate::domain::{PoolerMode, PostgresSettings, Role, Settings, SuspendAfter};

pub use state::StateError;

/// What the providers' types begin with.
const PREFIX: &str = "neon_";

/// What a state holds that concerns this platform.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub computes: Vec<Found>,
    pub keys: Vec<Key>,
    /// Addresses of the resources that dbplane takes over: they are to be removed from the state.
    pub taken_over: Vec<String>,
    /// Addresses of the resources that stay with Terraform.
    pub staying: Vec<String>,
    /// What could not be understood, and why.
    pub unclear: Vec<String>,
}

/// Reads a state.
///
/// # Errors
/// Where it is no state of version 4.
pub fn read(text: &str) -> Result<Contents, StateError> {
    let mut contents = Contents::default();
    let mut within = Vec::new();
    for instance in state::instances(text)? {
        let Some(kind) = instance.kind.strip_prefix(PREFIX) else { continue };
        match kind {
            "endpoint" => contents.compute(&instance.address, &instance.attributes),
            _ if kind.ends_with("api_key") => contents.key(instance.address, &instance.attributes),
            _ => {
                within.extend(compute_within(kind, &instance.address, &instance.attributes));
                contents.staying.push(instance.address);
            }
        }
    }
    // A compute may be a resource of its own beside the project that names it.
    for found in within {
        if !contents.computes.iter().any(|known| (&known.project, &known.id) == (&found.project, &found.id)) {
            contents.computes.push(found);
        }
    }
    contents.keys.sort();
    for list in [&mut contents.taken_over, &mut contents.staying, &mut contents.unclear] {
        list.sort();
    }
    Ok(contents)
}

impl Contents {
    fn compute(&mut self, address: &str, attributes: &Attributes) {
        let identity = (attributes.text("id"), attributes.text("project_id"), attributes.text("branch_id"));
        let (Some(id), Some(project), Some(branch)) = identity else {
            self.unclear.push(format!("{address}: the state does not say its id, project and branch"));
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
        self.computes.push(Found { id, project, branch, role, name, created_at: None, settings, notes });
        self.taken_over.push(address.to_owned());
    }

    fn key(&mut self, address: String, attributes: &Attributes) {
        let identity = (attributes.text("project_id"), attributes.text("name"), attributes.text("id"));
        match identity {
            (Some(project), Some(name), Some(id)) => self.keys.push(Key { project, name, id, address: Some(address) }),
            // A key of a person or of the whole organization.
            _ => self.staying.push(address),
        }
    }
}

/// The compute that a project or a branch has made with it, and that is no resource of its own.
fn compute_within(kind: &str, address: &str, attributes: &Attributes) -> Option<Found> {
    let (project, branch) = match kind {
        "project" => (attributes.text("id"), attributes.block("branch")),
        "branch" => (attributes.text("project_id"), attributes.clone()),
        _ => return None,
    };
    let endpoint = branch.block("endpoint");
    let settings = settings(&endpoint);
    let told = match settings == Settings::default() {
        true => "The state does not say what it is like: apply this, and see what status shows.",
        false => "Before management: Full, have Terraform ignore its size and suspension (lifecycle: ignore_changes).",
    };
    Some(Found {
        id: endpoint.text("id").or_else(|| attributes.text("default_endpoint_id"))?,
        project: project?,
        branch: attributes.text("default_branch_id").or_else(|| branch.text("id"))?,
        role: Role::Primary,
        name: None,
        created_at: None,
        settings,
        notes: vec![
            format!("The compute of {address}, which stays with Terraform, and deletes it with itself."),
            told.to_owned(),
        ],
    })
}

/// The providers have two sets of names for the same attributes.
fn settings(attributes: &Attributes) -> Settings {
    let nested = attributes.block("settings").texts("pg_settings");
    let postgres = attributes.texts("pg_settings").into_iter().chain(nested).collect();
    Settings {
        min: attributes.size("autoscaling_limit_min_cu").or_else(|| attributes.size("min_cu")),
        max: attributes.size("autoscaling_limit_max_cu").or_else(|| attributes.size("max_cu")),
        suspend_after: attributes
            .whole("suspend_timeout_seconds")
            .or_else(|| attributes.whole("suspend_timeout"))
            .map(SuspendAfter::of_seconds),
        pooler_enabled: attributes.switch("pooler_enabled"),
        pooler_mode: attributes.text("pooler_mode").map(PoolerMode::from),
        postgres: PostgresSettings(postgres),
        passwordless_access: attributes.switch("passwordless_access"),
        disabled: attributes.switch("disabled"),
    }
}

#[cfg(test)]
#[path = "terraform_tests.rs"]
mod tests;
