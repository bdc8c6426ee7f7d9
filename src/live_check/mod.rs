//! A read-only look at a platform with the operator's own client: what works, what the platform offers, and how its answers
//! differ from what `docs/platform.md` says. Nothing in the findings identifies an object, and none holds a token.

mod shape;
mod sizes;

use crate::domain::{Compute, Fault, NameSupport, Role, Support};
use crate::platform::{Answered, Platform};

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// What was read, and what came of it.
    pub reads: Vec<Read>,
    /// What the platform was seen to offer.
    pub offers: Vec<String>,
    /// How the answers differ from what is assumed.
    pub differences: Vec<String>,
}

/// One thing that was read.
#[derive(Debug)]
pub struct Read {
    pub what: &'static str,
    /// Whether the operator cannot do without it.
    pub needed: bool,
    pub outcome: Result<String, Fault>,
}

impl Findings {
    /// Whether the operator can work with this platform and key, as far as reading shows.
    pub fn is_usable(&self) -> bool {
        self.reads.iter().all(|read| !read.needed || read.outcome.is_ok())
    }

    fn read<T>(&mut self, (what, needed): (&'static str, bool), outcome: Result<Vec<T>, Fault>, of: &str) -> Vec<T> {
        let (outcome, items) = match outcome {
            Ok(items) => (Ok(format!("{} {of}", items.len())), items),
            Err(fault) => (Err(fault), Vec::new()),
        };
        self.reads.push(Read { what, needed, outcome });
        items
    }

    /// Compares the bodies of the answers with what is assumed.
    pub fn compare(&mut self, answers: &[Answered]) {
        let bodies: Vec<serde_json::Value> = answers
            .iter()
            .filter(|answer| answer.status.is_success())
            .filter_map(|answer| serde_json::from_slice(&answer.body).ok())
            .collect();
        self.differences.extend(shape::differences(&bodies));
    }
}

/// Which project is looked at, and in which organization.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub organization: Option<String>,
    /// The first ones of the list when empty.
    pub projects: Vec<String>,
}

/// How many projects are looked at where none is named.
const PROJECTS: usize = 5;

/// Reads everything that the operator reads.
pub async fn look(platform: &dyn Platform, scope: &Scope) -> Findings {
    let mut findings = Findings::default();
    let listed = findings.read(("projects", scope.projects.is_empty()), platform.list_projects().await, "projects");
    let projects = match scope.projects.as_slice() {
        [] => listed.into_iter().map(|project| project.id).take(PROJECTS).collect(),
        named => named.to_vec(),
    };
    let mut computes = Vec::new();
    for project in &projects {
        let read = platform.list_computes(project).await;
        computes.extend(findings.read(("computes of a project", true), read, "computes"));
    }
    findings.offers = offers(&computes);
    findings.differences = sizes::differences(&computes);
    if let Some(compute) = computes.first() {
        let read = platform.list_operations(&compute.project_id, &compute.id).await;
        findings.read(("operations of a compute", false), read, "operations");
    }
    if let Some(organization) = &scope.organization {
        findings.read(("keys of the organization", false), platform.list_keys(organization).await, "keys");
    }
    findings
}

fn offers(computes: &[Compute]) -> Vec<String> {
    if computes.is_empty() {
        return vec!["no compute was seen, so nothing is known of what computes show".to_owned()];
    }
    let support = Support::among(computes);
    let names = match support.names {
        NameSupport::Kept => "kept: a create is recognized by its name",
        NameSupport::Offered => "probably kept; no compute with a name was seen",
        NameSupport::Unseen => "not seen: creates on a branch are made one after the other",
    };
    let pooled = computes.iter().filter(|compute| compute.pooled_host.is_some()).count();
    let replicas = computes.iter().filter(|compute| compute.role == Role::Replica).count();
    vec![
        format!("names of computes: {names}"),
        format!("scale to zero: {}", if support.scale_to_zero { "shown" } else { "not shown" }),
        format!("pooled hosts: shown for {pooled} of {} computes", computes.len()),
        format!("read replicas: {replicas} of {} computes", computes.len()),
    ]
}
