//! A read-only check of a platform with the operator's own client: what works, what the platform
//! offers, and how its answers differ from `docs/platform.md`. The findings identify no object and
//! contain no token.

mod key;
mod shape;
mod sizes;

use crate::domain::{
    Compute, Fault, Listed, NameSupport, OrganizationId, Project, ProjectId, Role, Support,
};
use crate::platform::{Platform, ReadAnswer};

pub use key::KeyKind;
use key::KeyReads;

/// The results of the check.
#[derive(Debug, Default)]
pub struct Findings {
    /// The reads and their outcomes.
    pub reads: Vec<Read>,
    pub key: KeyKind,
    /// The calls that the key may make.
    pub may: Vec<String>,
    /// The features that the platform offers.
    pub offers: Vec<String>,
    /// Differences between the answers and the assumptions.
    pub differences: Vec<String>,
    /// Rate limits according to the answers.
    pub limits: Vec<String>,
}

/// A read and its outcome.
#[derive(Debug)]
pub struct Read {
    pub what: &'static str,
    /// True if the operator requires it.
    pub needed: bool,
    pub outcome: Result<String, Fault>,
}

impl Findings {
    /// True if the operator can work with this platform and key, as far as reads show.
    pub fn is_usable(&self) -> bool {
        self.reads
            .iter()
            .all(|read| !read.needed || read.outcome.is_ok())
    }

    fn required<T>(&mut self, what: &'static str, read: &Result<Listed<T>, Fault>, of: &str) {
        self.reads.push(Read {
            what,
            needed: true,
            outcome: outcome(read, of),
        });
    }

    fn optional<T>(&mut self, what: &'static str, read: &Result<Listed<T>, Fault>, of: &str) {
        self.reads.push(Read {
            what,
            needed: false,
            outcome: outcome(read, of),
        });
    }

    /// Compares the bodies of the answers with the assumptions.
    pub fn compare(&mut self, answers: &[ReadAnswer]) {
        let bodies: Vec<serde_json::Value> = answers
            .iter()
            .filter(|answer| answer.status.is_success())
            .filter_map(|answer| serde_json::from_slice(&answer.body).ok())
            .collect();
        self.differences.extend(shape::differences(&bodies));
        self.limits = limits(answers);
    }
}

/// The number of entries of a list, for users.
fn outcome<T>(read: &Result<Listed<T>, Fault>, of: &str) -> Result<String, Fault> {
    match read {
        Ok(listed) if listed.unreadable().is_empty() => Ok(format!("{} {of}", listed.count())),
        Ok(listed) => Ok(format!(
            "{} {of}, of which {} cannot be read",
            listed.count(),
            listed.unreadable().len()
        )),
        Err(fault) => Err(fault.clone()),
    }
}

/// The organization and the projects to check.
#[derive(Clone, Debug, Default)]
pub struct CheckScope {
    pub organization: Option<OrganizationId>,
    /// If empty, the first ones of the list.
    pub projects: Vec<ProjectId>,
}

/// Number of projects to check if none is named.
const PROJECTS: usize = 5;

/// Reads everything that the operator reads. The requests of `without_organization` name no
/// organization; it is `None` if there is none to name.
pub async fn check(
    platform: &dyn Platform,
    without_organization: Option<&dyn Platform>,
    scope: &CheckScope,
) -> Findings {
    let mut findings = Findings::default();
    let named = platform.list_projects().await;
    if scope.projects.is_empty() {
        findings.required("projects", &named, "projects");
    } else {
        findings.optional("projects", &named, "projects");
    }
    let unnamed = match without_organization {
        Some(platform) if named.is_ok() => Some(platform.list_projects().await),
        _ => None,
    };
    let projects = projects_to_check(scope, &named);
    let mut computes = Vec::new();
    for project in &projects {
        let read = platform.list_computes(project).await;
        findings.required("computes of a project", &read, "computes");
        computes.extend(read.into_iter().flat_map(|listed| listed.into_parts().0));
    }
    let reads_computes = !projects.is_empty() && findings.is_usable();
    findings.offers = offers(&computes);
    findings.differences = sizes::differences(&computes);
    if let Some(compute) = computes.first() {
        let read = platform
            .list_operations(&compute.project_id, &compute.id)
            .await;
        findings.optional("operations of a compute", &read, "operations");
        findings
            .offers
            .push(format!("operations of computes: {}", offered(&read)));
    }
    let keys = match &scope.organization {
        Some(organization) => Some(platform.list_keys(organization).await),
        None => None,
    };
    if let Some(read) = &keys {
        findings.optional("keys of the organization", read, "keys");
        let keys = format!(
            "list of the organization's keys: {}; revoking one was not tried",
            offered(read)
        );
        findings.offers.push(keys);
    }
    let key_reads = KeyReads {
        named: &named,
        unnamed: unnamed.as_ref(),
        keys: keys.as_ref(),
        reads_computes,
    };
    findings.key = key_reads.kind();
    findings.may = key_reads.may(findings.key);
    findings
}

fn projects_to_check(
    scope: &CheckScope,
    listed: &Result<Listed<Project>, Fault>,
) -> Vec<ProjectId> {
    if !scope.projects.is_empty() {
        return scope.projects.clone();
    }
    let listed = listed.iter().flat_map(Listed::shown);
    listed
        .map(|project| project.id.clone())
        .take(PROJECTS)
        .collect()
}

fn offered<T>(read: &Result<Listed<T>, Fault>) -> &'static str {
    match read {
        Ok(_) => "offered",
        Err(Fault::Unsupported { .. }) => "not offered",
        Err(Fault::Forbidden { .. }) => "not for this key",
        Err(_) => "not known",
    }
}

/// How often the platform asked to wait, and the rate limits in its answers, only as numbers.
fn limits(answers: &[ReadAnswer]) -> Vec<String> {
    let asked = answers
        .iter()
        .filter(|answer| answer.status.as_u16() == 429)
        .count();
    let mut lines = vec![format!(
        "asked to wait (429): {asked} of {} times",
        answers.len()
    )];
    let Some(last) = answers.last() else {
        return lines;
    };
    for (name, value) in &last.headers {
        if !name.as_str().contains("ratelimit") {
            continue;
        }
        if let Ok(value) = value.to_str()
            && is_limit(value)
        {
            lines.push(format!("{name}: {value}"));
        }
    }
    lines
}

/// True for numbers as rate limits have them, so that no other text is repeated.
fn is_limit(text: &str) -> bool {
    text.len() <= 40
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b" ,;=.w".contains(&byte))
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
    let pooled = computes
        .iter()
        .filter(|compute| compute.pooled_host.is_some())
        .count();
    let replicas = computes
        .iter()
        .filter(|compute| compute.role == Role::Replica)
        .count();
    vec![
        format!("names of computes: {names}"),
        format!(
            "scale to zero: {}",
            if support.scale_to_zero {
                "shown"
            } else {
                "not shown"
            }
        ),
        format!(
            "pooled hosts: shown for {pooled} of {} computes",
            computes.len()
        ),
        format!("read replicas: {replicas} of {} computes", computes.len()),
    ]
}
