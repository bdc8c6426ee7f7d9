//! The calls on API keys.

pub mod ring;
pub mod secret;

use jiff::Timestamp;
use serde::Deserialize;

use crate::world::api::access::{OrganizationAction, owned_by};
use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::api::shapes::{CreatedKey, Creator, ListedKey, RevokedKey, Stamp};
use crate::world::computes::config::parse_json;
use crate::world::model::{Key, Reach};
use crate::world::{Context, Profile, World};

const LONGEST_NAME: usize = 64;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeyRequest {
    key_name: Option<String>,
    project_id: Option<String>,
}

impl World {
    pub(super) fn create_organization_key(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let organization = context.ids.organization.clone();
        self.allow(
            context.caller,
            &organization,
            OrganizationAction::ManageKeys,
        )?;
        let user = self.person(context.caller)?.to_owned();
        let request: KeyRequest = parse_json(&context.request.body)?;
        let name = self.key_name(&request)?;
        let reach = match (request.project_id, self.profile) {
            (Some(project), _) => self.scope(organization, project)?,
            (None, Profile::Default | Profile::Public) => Reach::Organization { organization },
            (None, Profile::Minimal) => return Err(Refusal::invalid("project_id is required")),
        };
        self.mint(name, reach, user, context.now)
            .map(|key| created(&key))
    }

    pub(super) fn create_personal_key(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let user = self.person(context.caller)?.to_owned();
        let request: KeyRequest = parse_json(&context.request.body)?;
        let name = self.key_name(&request)?;
        self.mint(
            name,
            Reach::Personal { user: user.clone() },
            user,
            context.now,
        )
        .map(|key| created(&key))
    }

    /// The specification limits no length.
    fn key_name(&self, request: &KeyRequest) -> Result<String, Refusal> {
        let name = request.key_name.clone().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Refusal::invalid("key_name is required"))?;
        if !self.profile.obeys() && name.chars().count() > LONGEST_NAME {
            Err(Refusal::invalid("key_name must have at most 64 characters"))
        } else {
            Ok(name)
        }
    }

    /// The reach of a key for one project, which must belong to the organization.
    pub(super) fn scope(&self, organization: String, project: String) -> Result<Reach, Refusal> {
        if self
            .projects
            .get(&project)
            .is_some_and(|project| owned_by(project, &organization))
        {
            Ok(Reach::Project {
                organization,
                project,
            })
        } else {
            Err(Refusal::Absent { what: "project" })
        }
    }

    /// Creates a key. The specification only restricts who may create keys; the public profile also
    /// requires a name that is new to the account.
    pub(super) fn mint(
        &mut self,
        name: String,
        reach: Reach,
        created_by: String,
        now: Timestamp,
    ) -> Result<Key, Refusal> {
        if !self.profile.obeys() && self.keys.has_name(reach.account(), &name) {
            return Err(Refusal::KeyNameTaken);
        }
        let key = Key {
            id: self.keys.next_id(),
            token: self.head.generator.token(),
            name,
            reach,
            created_by,
            created_at: self.dated(now),
            last_used_at: None,
            last_used_from_addr: String::new(),
            revoked_at: None,
        };
        self.keys.add(key.clone());
        Ok(key)
    }

    pub(super) fn list_personal_keys(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let user = self.person(context.caller)?;
        let own =
            |key: &&Key| matches!(&key.reach, Reach::Personal { user: owner } if owner == user);
        Ok(self.listed(own))
    }

    pub(super) fn list_organization_keys(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let organization = &context.ids.organization;
        self.allow(context.caller, organization, OrganizationAction::ListKeys)?;
        Ok(self.listed(|key| of_organization(key, organization)))
    }

    /// The valid keys as a bare array.
    fn listed(&self, belongs: impl Fn(&&Key) -> bool) -> Reply {
        let live = self.keys.iter().filter(|key| key.revoked_at.is_none());
        let items: Vec<ListedKey<'_>> = live
            .filter(belongs)
            .map(|key| self.listed_key(key))
            .collect();
        Reply::ok(&items)
    }

    fn listed_key<'a>(&'a self, key: &'a Key) -> ListedKey<'a> {
        let name = self
            .head
            .users
            .get(&key.created_by)
            .map_or("", |user| &user.name);
        ListedKey {
            id: key.id,
            name: &key.name,
            created_at: Stamp(key.created_at),
            created_by: Creator {
                id: &key.created_by,
                name,
                image: "",
            },
            last_used_at: key.last_used_at.map(Stamp),
            last_used_from_addr: &key.last_used_from_addr,
            project_id: key.reach.project(),
        }
    }

    pub(super) fn revoke_personal_key(&mut self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let user = self.person(context.caller)?.to_owned();
        self.revoke_own(
            context,
            |key| matches!(&key.reach, Reach::Personal { user: owner } if *owner == user),
        )
    }

    pub(super) fn revoke_organization_key(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let organization = context.ids.organization.clone();
        self.allow(
            context.caller,
            &organization,
            OrganizationAction::ManageKeys,
        )?;
        self.revoke_own(context, |key| of_organization(key, &organization))
    }

    /// Revokes the key in the path. A revoked key and a key of another owner both count as absent.
    fn revoke_own(
        &mut self,
        context: &Context<'_>,
        belongs: impl Fn(&Key) -> bool,
    ) -> Result<Reply, Refusal> {
        const ABSENT: Refusal = Refusal::Absent { what: "api key" };
        let id: i64 = context
            .ids
            .key
            .parse()
            .map_err(|_| Refusal::invalid("the key id must be an integer"))?;
        self.keys
            .get(id)
            .filter(|key| key.revoked_at.is_none() && belongs(key))
            .ok_or(ABSENT)?;
        let key = self.keys.revoke(id, context.now).ok_or(ABSENT)?;
        Ok(Reply::ok(&RevokedKey {
            id: key.id,
            name: &key.name,
            created_at: Stamp(key.created_at),
            created_by: &key.created_by,
            last_used_at: key.last_used_at.map(Stamp),
            last_used_from_addr: &key.last_used_from_addr,
            revoked: true,
            project_id: key.reach.project(),
        }))
    }
}

fn of_organization(key: &Key, organization: &str) -> bool {
    match &key.reach {
        Reach::Organization { organization: own }
        | Reach::Project {
            organization: own, ..
        } => own == organization,
        Reach::Personal { .. } => false,
    }
}

/// The only answer with the secret.
fn created(key: &Key) -> Reply {
    Reply::ok(&CreatedKey::from(key))
}
