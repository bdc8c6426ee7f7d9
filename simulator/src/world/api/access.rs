//! Authentication and authorization of requests.

use jiff::{SignedDuration, Timestamp};

use crate::world::World;
use crate::world::api::errors::Refusal;
use crate::world::api::message::Request;
use crate::world::keys::secret::Token;
use crate::world::model::{Key, Owner, Project, Reach, Role};
use crate::world::setup::settings::OrgIdPlace;

/// The last use of a key is recorded to the minute, so that requests do not each write the state
/// file.
const USE_RESOLUTION_SECONDS: i64 = 60;

/// The key behind a request.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::world) struct Caller {
    pub key_id: i64,
    pub reach: Reach,
}

/// The caller's relation to an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::world) enum Standing {
    /// A personal key of an administrator.
    Admin,
    /// A personal key of a member.
    Member,
    /// A key without access to the organization.
    Stranger,
    /// A key of the organization itself.
    OrganizationKey,
    /// A key of one of its projects.
    ProjectKey,
}

/// Actions on an organization itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::world) enum OrganizationAction {
    /// Create or revoke keys of the organization or of one of its projects.
    ManageKeys,
    ListKeys,
    /// Read the organization and its members.
    Read,
}

impl World {
    pub(in crate::world) fn authenticate(&mut self, request: &Request) -> Result<Caller, Refusal> {
        let token = request
            .authorization
            .as_ref()
            .and_then(bearer)
            .ok_or(Refusal::CredentialsMissing)?;
        let key = self.keys.find(&token).ok_or(Refusal::CredentialsInvalid)?;
        if key.revoked_at.is_some() {
            return Err(Refusal::CredentialsRevoked);
        }
        let caller = Caller {
            key_id: key.id,
            reach: key.reach.clone(),
        };
        if self.use_is_news(key, request) {
            self.keys.used(caller.key_id, self.now, &request.from_addr);
        }
        Ok(caller)
    }

    /// The id of the key in an Authorization header, revoked or not.
    pub fn key_behind(&self, header: &Token) -> Option<i64> {
        self.keys.find(&bearer(header)?).map(|key| key.id)
    }

    /// The age of the key in an Authorization header.
    pub fn key_age(&self, header: &Token, now: Timestamp) -> Option<SignedDuration> {
        self.key_behind(header)
            .and_then(|id| self.keys.get(id))
            .map(|key| now.duration_since(key.created_at))
    }

    fn use_is_news(&self, key: &Key, request: &Request) -> bool {
        let recent = |at: Timestamp| self.now.as_second() - at.as_second() < USE_RESOLUTION_SECONDS;
        !key.last_used_at.is_some_and(recent) || key.last_used_from_addr != request.from_addr
    }

    /// The project, if the caller may access it. `org_id` is the organization that the request
    /// names.
    pub(in crate::world) fn reach_project(
        &self,
        caller: &Caller,
        id: &str,
        org_id: Option<&str>,
    ) -> Result<&Project, Refusal> {
        self.reach(caller, id, self.projects.get(id), org_id)
    }

    /// Like `reach_project`, for a project that may be absent.
    pub(in crate::world) fn reach<'a>(
        &self,
        caller: &Caller,
        id: &str,
        project: Option<&'a Project>,
        org_id: Option<&str>,
    ) -> Result<&'a Project, Refusal> {
        const ABSENT: Refusal = Refusal::Absent { what: "project" };
        match (&caller.reach, project) {
            (Reach::Project { project: own, .. }, _) if own != id => Err(Refusal::OutsideScope {
                project: own.clone(),
            }),
            (_, None) => Err(ABSENT),
            (Reach::Project { organization, .. }, Some(project)) => {
                if owned_by(project, organization) {
                    Ok(project)
                } else {
                    Err(Refusal::ProjectLeft)
                }
            }
            (Reach::Organization { organization }, Some(project)) => {
                if owned_by(project, organization) {
                    Ok(project)
                } else {
                    Err(ABSENT)
                }
            }
            (Reach::Personal { user }, Some(project)) => {
                if self.account_reaches(user, project, org_id) {
                    Ok(project)
                } else {
                    Err(ABSENT)
                }
            }
        }
    }

    fn account_reaches(&self, user: &str, project: &Project, org_id: Option<&str>) -> bool {
        match &project.owner {
            Owner::User(owner) => owner == user,
            Owner::Organization(organization) => {
                let named = match self.head.settings.org_id_with_personal_keys(self.profile) {
                    OrgIdPlace::Lists => true,
                    OrgIdPlace::Everywhere => org_id == Some(organization.as_str()),
                };
                named && self.role(organization, user).is_some()
            }
        }
    }

    pub(in crate::world) fn role(&self, organization: &str, user: &str) -> Option<Role> {
        self.head
            .organizations
            .get(organization)?
            .members
            .get(user)
            .copied()
    }

    pub(in crate::world) fn standing(&self, caller: &Caller, organization: &str) -> Standing {
        match &caller.reach {
            Reach::Personal { user } => match self.role(organization, user) {
                Some(Role::Admin) => Standing::Admin,
                Some(Role::Member) => Standing::Member,
                None => Standing::Stranger,
            },
            // A project-scoped key may do nothing with any organization, so this refusal has
            // precedence.
            Reach::Project { .. } => Standing::ProjectKey,
            Reach::Organization { organization: own } if own == organization => {
                Standing::OrganizationKey
            }
            Reach::Organization { .. } => Standing::Stranger,
        }
    }

    /// Refuses an action that the caller may not perform on the organization.
    pub(in crate::world) fn allow(
        &self,
        caller: &Caller,
        organization: &str,
        action: OrganizationAction,
    ) -> Result<(), Refusal> {
        use OrganizationAction::{ListKeys, ManageKeys, Read};
        match (self.standing(caller, organization), action) {
            (Standing::Admin, ManageKeys | ListKeys | Read) => Ok(()),
            (Standing::Member, Read) => Ok(()),
            (Standing::Member, ManageKeys | ListKeys) => Err(Refusal::AdminsOnly),
            (Standing::OrganizationKey, ListKeys | Read) => Ok(()),
            (Standing::OrganizationKey, ManageKeys) => Err(Refusal::NotForOrganizationKeys),
            (Standing::ProjectKey, _) => Err(outside(caller)),
            (Standing::Stranger, _) => Err(Refusal::Absent {
                what: "organization",
            }),
        }
    }

    /// The user of a personal key; other keys are refused.
    pub(in crate::world) fn person<'a>(&self, caller: &'a Caller) -> Result<&'a str, Refusal> {
        match &caller.reach {
            Reach::Personal { user } => Ok(user),
            Reach::Organization { .. } => Err(Refusal::NotForOrganizationKeys),
            Reach::Project { .. } => Err(outside(caller)),
        }
    }
}

/// The refusal for a project-scoped key outside its project.
pub(in crate::world) fn outside(caller: &Caller) -> Refusal {
    Refusal::OutsideScope {
        project: caller.reach.project().unwrap_or_default().to_owned(),
    }
}

pub(in crate::world) fn owned_by(project: &Project, organization: &str) -> bool {
    matches!(&project.owner, Owner::Organization(owner) if owner == organization)
}

fn bearer(header: &Token) -> Option<Token> {
    let (scheme, secret) = header.reveal().split_once(' ')?;
    let secret = secret.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty()).then(|| Token::new(secret))
}
