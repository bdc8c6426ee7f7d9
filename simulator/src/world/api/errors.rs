//! All refusals of requests, with their status and message in each profile.

use serde::Serialize;

use crate::world::Profile;
use crate::world::computes::sizes::SizeFault;

#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// No credentials, or not in the form `Bearer KEY`.
    CredentialsMissing,
    CredentialsInvalid,
    CredentialsRevoked,
    RouteUnknown,
    MethodNotAllowed,
    /// The request itself is malformed.
    Invalid(String),
    OrgIdRequired,
    Absent {
        what: &'static str,
    },
    /// A project-scoped key was used outside its project.
    OutsideScope {
        project: String,
    },
    /// The project of the project-scoped key has left the organization.
    ProjectLeft,
    NotForOrganizationKeys,
    AdminsOnly,
    /// The call is destructive for the project, and the key has only a member's rights.
    MembersMayNot,
    PrimaryExists,
    KeyNameTaken,
    SizeRefused(SizeFault),
    SuspendNotAllowed,
    LimitReached {
        code: &'static str,
        message: String,
    },
    NotActive,
    Disabled,
    /// Other operations are in progress.
    Busy,
    InTransition,
    BranchProtected,
    /// The project has a protected branch.
    ProjectProtected,
    /// The branch cannot be changed in this way, because of its role in the project.
    BranchKept {
        what: &'static str,
        reason: &'static str,
    },
    TooManyRequests {
        retry_after: u64,
    },
}

/// The error body of the public API.
#[derive(Debug, Serialize)]
struct PublicBody<'a> {
    request_id: &'a str,
    code: &'a str,
    message: String,
}

/// The error body of the minimal profile; the specification shows none.
#[derive(Debug, Serialize)]
struct MinimalBody {
    message: String,
}

impl Refusal {
    /// A malformed request.
    pub fn invalid(message: impl Into<String>) -> Self {
        Refusal::Invalid(message.into())
    }

    /// The HTTP status. The specification names only 401. Missing permissions become 404 as in the
    /// public API, except in the minimal profile. Undocumented cases use 400 for malformed
    /// requests, 422 for plans and limits, and 409 for wrong states.
    pub fn status(&self, profile: Profile) -> u16 {
        match self {
            Refusal::CredentialsMissing
            | Refusal::CredentialsInvalid
            | Refusal::CredentialsRevoked => 401,
            Refusal::RouteUnknown | Refusal::Absent { .. } => 404,
            Refusal::MethodNotAllowed => 405,
            Refusal::Invalid(_) | Refusal::OrgIdRequired => 400,
            Refusal::OutsideScope { .. }
            | Refusal::ProjectLeft
            | Refusal::NotForOrganizationKeys
            | Refusal::MembersMayNot => match profile {
                Profile::Minimal => 403,
                Profile::Default | Profile::Public => 404,
            },
            Refusal::AdminsOnly => 403,
            Refusal::PrimaryExists
            | Refusal::KeyNameTaken
            | Refusal::NotActive
            | Refusal::Disabled => 409,
            Refusal::SizeRefused(SizeFault::AbovePlan { .. }) => match profile {
                Profile::Minimal => 400,
                Profile::Default | Profile::Public => 422,
            },
            Refusal::SizeRefused(_) => 400,
            Refusal::SuspendNotAllowed
            | Refusal::LimitReached { .. }
            | Refusal::BranchProtected
            | Refusal::ProjectProtected
            | Refusal::BranchKept { .. } => 422,
            Refusal::Busy | Refusal::InTransition => 423,
            Refusal::TooManyRequests { .. } => 429,
        }
    }

    /// The public API's `code`; most answers have none.
    fn code(&self) -> &'static str {
        match self {
            Refusal::PrimaryExists => "ENDPOINTS_LIMIT_EXCEEDED",
            Refusal::LimitReached { code, .. } => code,
            _ => "",
        }
    }

    pub fn message(&self) -> String {
        match self {
            Refusal::CredentialsMissing => "authorization header is missing or not a bearer token".into(),
            Refusal::CredentialsInvalid => "the API key is not valid".into(),
            Refusal::CredentialsRevoked => "the API key was revoked".into(),
            Refusal::RouteUnknown => "this route does not exist".into(),
            Refusal::MethodNotAllowed => "method not allowed".into(),
            Refusal::Invalid(message) | Refusal::LimitReached { message, .. } => message.clone(),
            Refusal::OrgIdRequired => "org_id is required, name the organization whose projects are meant".into(),
            Refusal::Absent { what } => format!("{what} not found"),
            Refusal::OutsideScope { project } => {
                format!(
                    "not allowed to perform actions outside the project this key is scoped to; subject_project_id:\"{project}\""
                )
            }
            Refusal::ProjectLeft => "not allowed: the project is no longer in the organization of this key".into(),
            Refusal::NotForOrganizationKeys => "not allowed for organization API keys".into(),
            Refusal::AdminsOnly => "only administrators of the organization may do this".into(),
            Refusal::MembersMayNot => {
                "not allowed to perform destructive project actions with a project-scoped key".into()
            }
            Refusal::PrimaryExists => "read_write endpoint already exists".into(),
            Refusal::KeyNameTaken => "choose another unique name for api key".into(),
            Refusal::SizeRefused(fault) => size_message(*fault),
            Refusal::SuspendNotAllowed => "suspend interval changing is not allowed for your account".into(),
            Refusal::NotActive => "endpoint is not active, start it instead".into(),
            Refusal::Disabled => "endpoint is disabled".into(),
            Refusal::Busy => {
                "project already has running conflicting operations, scheduling of new ones is prohibited".into()
            }
            Refusal::InTransition => "endpoint is in some transitive state, could not suspend".into(),
            Refusal::ProjectProtected => "a project with a protected branch cannot be deleted".into(),
            Refusal::BranchKept { what, reason } => format!("{reason} cannot be {what}"),
            Refusal::BranchProtected => "endpoints of a protected branch cannot be deleted".into(),
            Refusal::TooManyRequests { .. } => "too many requests".into(),
        }
    }

    /// Whole seconds to wait, if the refusal has them.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Refusal::TooManyRequests { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    pub(in crate::world) fn body(&self, profile: Profile, request_id: &str) -> Vec<u8> {
        let written = match profile {
            Profile::Default | Profile::Public => serde_json::to_vec(&PublicBody {
                request_id,
                code: self.code(),
                message: self.message(),
            }),
            Profile::Minimal => serde_json::to_vec(&MinimalBody {
                message: self.message(),
            }),
        };
        // All fields are strings, so serialization cannot fail.
        written.unwrap_or_default()
    }
}

fn size_message(fault: SizeFault) -> String {
    match fault {
        SizeFault::TooSmall { cu } => format!("autoscaling limit {cu} is smaller than 0.25"),
        SizeFault::MinAboveMax { min, max } => {
            format!("autoscaling limit min is larger than max; min:\"{min}\", max:\"{max}\"")
        }
        SizeFault::NoSuchSize { cu } => format!("compute size {cu} is not available"),
        SizeFault::AutoscaledTooLarge { max } => {
            format!("autoscaling limit max {max} is larger than 16; larger sizes are fixed")
        }
        SizeFault::SpanTooWide { range } => format!("autoscaling range {range} is wider than 8 CU"),
        SizeFault::AbovePlan { plan, range } => {
            format!(
                "compute size {range} is not available on the {} plan",
                plan.name()
            )
        }
    }
}
