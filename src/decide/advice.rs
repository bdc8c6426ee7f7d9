//! Turns a failed call to the platform into advice: what happened, which field of the spec asked
//! for it, and what to do. The platform's own words follow, with the request ID at the end.

use super::memory::{Backoff, of_fault};
use super::{Health, drift};
use crate::domain::{
    BranchId, ComputeChange, ComputeId, Fault, OrganizationId, ProjectId, Role, Settings,
};
use crate::text::line;

/// The platform's words and its request ID have to fit behind a list of fields.
const LONGEST_LIST: usize = 1000;

/// A call to the platform, with what the spec declares for it.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    ListProjects {
        subject: &'a AccountSubject,
        /// The platform has accepted the credentials before, so the base URL is right.
        worked: bool,
    },
    ListComputes {
        project: &'a ProjectId,
    },
    /// The project is known to exist: its computes were listed before.
    CreateCompute {
        project: &'a ProjectId,
        branch: &'a BranchId,
        role: Role,
        settings: &'a Settings,
    },
    ChangeCompute {
        id: &'a ComputeId,
        project: &'a ProjectId,
        change: &'a ComputeChange,
        /// The fields that differ, with both values.
        because: &'a str,
    },
    CreateKey {
        project: &'a ProjectId,
        organization: &'a OrganizationId,
    },
    ListKeys {
        organization: &'a OrganizationId,
    },
}

/// The declared parts of an account, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSubject {
    /// The host and port of the base URL.
    pub address: String,
    pub organization: Option<OrganizationId>,
    /// The entry of the Secret with the API key.
    pub entry: String,
    /// A mistake in the form of the API key, as a sentence about that entry.
    pub key_mistake: Option<&'static str>,
}

/// The health after a call failed, with advice before the platform's words.
pub fn health(call: &Call, fault: &Fault) -> Health {
    let health = of_fault(fault);
    match advice(call, fault) {
        Some(advice) => health.saying_first(&advice),
        None => health,
    }
}

/// The same for a call that backs off after `fault`.
pub fn backoff(backoff: Backoff, fault: Option<&Fault>, call: Option<&Call>) -> Backoff {
    match (fault, call) {
        (Some(fault), Some(call)) => Backoff {
            health: health(call, fault),
            ..backoff
        },
        _ => backoff,
    }
}

/// `None` if no field of the spec can be the cause.
fn advice(call: &Call, fault: &Fault) -> Option<String> {
    match *call {
        Call::ListProjects { subject, worked } => list_projects(subject, worked, fault),
        Call::ListComputes { project } => is_out_of_reach(fault).then(|| {
            format!(
                "Project {project} cannot be read with the account's API key: correct spec.projectID, or use an account whose API key reaches it."
            )
        }),
        Call::CreateCompute {
            project,
            branch,
            role,
            settings,
        } => create_compute(project, branch, role, settings, fault),
        Call::ChangeCompute {
            id,
            project,
            change,
            because,
        } => change_compute(id, project, change, because, fault),
        Call::CreateKey {
            project,
            organization,
        } => create_key(project, organization, fault),
        Call::ListKeys { organization } => is_out_of_reach(fault).then(|| {
            format!(
                "The keys of organization {organization} cannot be read: correct spec.organizationID of the account, or give it the personal \
                 API key of an administrator."
            )
        }),
    }
}

fn list_projects(subject: &AccountSubject, worked: bool, fault: &Fault) -> Option<String> {
    let AccountSubject {
        address,
        organization,
        entry,
        key_mistake,
    } = subject;
    match (fault, organization) {
        (Fault::Unauthorized { .. }, _) => {
            key_mistake.map(|mistake| format!("Correct {entry}. {mistake}"))
        }
        (Fault::Transport { .. } | Fault::Unknown { .. } | Fault::Server { .. }, _) if !worked => {
            Some(format!(
                "No platform has answered at {address} yet: is spec.baseURL right?"
            ))
        }
        (Fault::Transport { .. } | Fault::Unknown { .. }, _) => {
            Some(format!("The platform at {address} does not answer."))
        }
        (Fault::Gateway { .. } | Fault::Undecodable { .. } | Fault::Unsupported { .. }, _)
            if !worked =>
        {
            Some(other_site(address))
        }
        (Fault::NotFound { .. }, None) => Some(other_site(address)),
        (Fault::NotFound { .. }, Some(_)) if fault.has_no_words() => Some(other_site(address)),
        (Fault::Rejected { .. }, None) => {
            Some("The platform asks for an organization: set spec.organizationID.".to_owned())
        }
        (
            Fault::NotFound { .. } | Fault::Rejected { .. } | Fault::Conflict { .. },
            Some(organization),
        ) => Some(format!(
            "Organization {organization} cannot be seen with this API key: correct spec.organizationID, or put the API key of a member into {entry}."
        )),
        _ => None,
    }
}

fn other_site(address: &str) -> String {
    format!(
        "The answer of {address} does not look like the platform's API: is spec.baseURL right? It ends with the version, such as /api/v2."
    )
}

fn create_compute(
    project: &ProjectId,
    branch: &BranchId,
    role: Role,
    settings: &Settings,
    fault: &Fault,
) -> Option<String> {
    match fault {
        Fault::NotFound { .. } => Some(format!(
            "Branch {branch} is not in project {project}: correct spec.branchID."
        )),
        Fault::Forbidden { .. } => Some(no_right(&format!(
            "create a compute on branch {branch} of project {project}"
        ))),
        Fault::Conflict { .. } if role == Role::Primary => Some(format!(
            "Branch {branch} seems to have a primary compute already: correct spec.branchID, or set spec.existing to Adopt to adopt that compute."
        )),
        Fault::Conflict { .. } | Fault::Rejected { .. } => {
            let declared: Vec<_> = drift::shown(settings)
                .into_iter()
                .map(|(field, value)| format!("spec.{field} {value}"))
                .collect();
            let (with, correct) = match line(&declared.join(", "), LONGEST_LIST) {
                none if none.is_empty() => (String::new(), String::new()),
                declared => (
                    format!(" with {declared}"),
                    "Correct the field that the answer names. ".to_owned(),
                ),
            };
            Some(format!(
                "The platform creates no compute on branch {branch} of project {project}{with}. {correct}If the answer names a limit, delete \
                 what nobody needs, or ask the platform for a higher limit."
            ))
        }
        _ => None,
    }
}

fn change_compute(
    id: &ComputeId,
    project: &ProjectId,
    change: &ComputeChange,
    because: &str,
    fault: &Fault,
) -> Option<String> {
    match (fault, &change.branch_id) {
        (Fault::NotFound { .. }, Some(branch)) => Some(format!(
            "Branch {branch} is not in project {project}: correct spec.branchID."
        )),
        (Fault::Forbidden { .. }, _) => Some(no_right(&format!("change compute {id}"))),
        (Fault::Conflict { .. } | Fault::Rejected { .. }, _) => Some(format!(
            "The platform does not change compute {id} ({}): correct the field of the spec that the answer names, or remove it.",
            line(because, LONGEST_LIST)
        )),
        _ => None,
    }
}

fn create_key(project: &ProjectId, organization: &OrganizationId, fault: &Fault) -> Option<String> {
    match fault {
        Fault::NotFound { .. } => Some(format!(
            "Project {project} is not in organization {organization}: correct spec.projectID, or spec.organizationID of the account."
        )),
        Fault::Forbidden { .. } => Some(format!(
            "The account's API key may not create keys in organization {organization}: give the account the personal API key of an administrator."
        )),
        Fault::Rejected { .. } => Some(format!(
            "The platform creates no key for project {project} in organization {organization}. If the answer names a limit, delete what nobody \
             needs, or ask the platform for a higher limit."
        )),
        _ => None,
    }
}

fn no_right(to_do: &str) -> String {
    format!("The account's API key may not {to_do}: use an account whose API key may.")
}

/// The platform does not show the object to these credentials, or has no such object.
fn is_out_of_reach(fault: &Fault) -> bool {
    matches!(fault, Fault::NotFound { .. } | Fault::Forbidden { .. })
}

#[cfg(test)]
mod tests;
