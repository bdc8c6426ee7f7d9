//! A read-only check of a platform with the operator's own client: what works, what the platform
//! offers, and how its answers differ from `docs/platform.md`. The findings identify no object and
//! contain no token.

mod key;
mod shape;
mod sizes;

use crate::domain::{Compute, Fault, Listed, NameSupport, Role, Support};
use crate::platform::{Answered, Platform};

pub use key::KeyKind;
use key::Seen;

/// The results of the check.
#[derive(Debug, Default)]
pub struct Findings {
    /// The reads and their outcomes.
    pub reads: Vec<Read>,
    pub key: KeyKind,
    /// What the key may do.
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

    fn read<T>(
        &mut self,
        (what, needed): (&'static str, bool),
        outcome: &Result<Listed<T>, Fault>,
        of: &str,
    ) {
        let told = |listed: &Listed<T>| match listed.unreadable().len() {
            0 => format!("{} {of}", listed.count()),
            odd => format!("{} {of}, of which {odd} cannot be read", listed.count()),
        };
        self.reads.push(Read {
            what,
            needed,
            outcome: outcome.as_ref().map(told).map_err(Fault::clone),
        });
    }

    /// Compares the bodies of the answers with the assumptions.
    pub fn compare(&mut self, answers: &[Answered]) {
        let bodies: Vec<serde_json::Value> = answers
            .iter()
            .filter(|answer| answer.status.is_success())
            .filter_map(|answer| serde_json::from_slice(&answer.body).ok())
            .collect();
        self.differences.extend(shape::differences(&bodies));
        self.limits = limits(answers);
    }
}

/// The organization and the projects to check.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub organization: Option<String>,
    /// If empty, the first ones of the list.
    pub projects: Vec<String>,
}

/// Number of projects to check if none is named.
const PROJECTS: usize = 5;

/// Reads everything that the operator reads. The requests of `without_organization` name no
/// organization; it is `None` if there is none to name.
pub async fn look(
    platform: &dyn Platform,
    without_organization: Option<&dyn Platform>,
    scope: &Scope,
) -> Findings {
    let mut findings = Findings::default();
    let named = platform.list_projects().await;
    findings.read(("projects", scope.projects.is_empty()), &named, "projects");
    let unnamed = match without_organization {
        Some(platform) if named.is_ok() => Some(platform.list_projects().await),
        _ => None,
    };
    let projects = match scope.projects.as_slice() {
        [] => named
            .iter()
            .flat_map(Listed::shown)
            .map(|project| project.id.clone())
            .take(PROJECTS)
            .collect(),
        named => named.to_vec(),
    };
    let mut computes = Vec::new();
    for project in &projects {
        let read = platform.list_computes(project).await;
        findings.read(("computes of a project", true), &read, "computes");
        computes.extend(read.into_iter().flat_map(|listed| listed.into_parts().0));
    }
    let reads_computes = !projects.is_empty() && findings.is_usable();
    findings.offers = offers(&computes);
    findings.differences = sizes::differences(&computes);
    if let Some(compute) = computes.first() {
        let read = platform
            .list_operations(&compute.project_id, &compute.id)
            .await;
        findings.read(("operations of a compute", false), &read, "operations");
        findings
            .offers
            .push(format!("operations of computes: {}", offered(&read)));
    }
    let keys = match &scope.organization {
        Some(organization) => Some(platform.list_keys(organization).await),
        None => None,
    };
    if let Some(read) = &keys {
        findings.read(("keys of the organization", false), read, "keys");
        let keys = format!(
            "list of the organization's keys: {}; revoking one was not tried",
            offered(read)
        );
        findings.offers.push(keys);
    }
    let seen = Seen {
        named: &named,
        unnamed: unnamed.as_ref(),
        keys: keys.as_ref(),
        reads_computes,
    };
    findings.key = seen.kind();
    findings.may = seen.may(findings.key);
    findings
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
fn limits(answers: &[Answered]) -> Vec<String> {
    let asked = answers
        .iter()
        .filter(|answer| answer.status.as_u16() == 429)
        .count();
    let mut lines = vec![format!(
        "asked to wait (429): {asked} of {} times",
        answers.len()
    )];
    let last = answers
        .last()
        .into_iter()
        .flat_map(|answer| &answer.headers);
    let told = last.filter(|(name, _)| name.as_str().contains("ratelimit"));
    let told = told.filter_map(|(name, value)| Some((name, value.to_str().ok()?)));
    let is_number = |text: &str| {
        text.len() <= 40
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || b" ,;=.w".contains(&b))
    };
    lines.extend(
        told.filter(|(_, value)| is_number(value))
            .map(|(name, value)| format!("{name}: {value}")),
    );
    lines
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
