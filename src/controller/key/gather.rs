//! Collects the facts for a ProjectKey: its record, its account, its Secret, and the latest list of
//! keys.

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use super::super::access::{self, Access};
use super::super::environment::{Environment, Kind, KindVisitor, Kinds, PassSettings};
use super::super::index::Key;
use super::super::object::{Rank, rank, uid};
use super::super::state::ResourceState;
use super::in_use;
use super::listing::{self, Listed};
use crate::api::ProjectKey;
use crate::cluster::{Owner, SecretState, secrets};
use crate::decide::identity::{self, ProjectKeyIdentity, Record};
use crate::decide::key::KeyAccount;
use crate::decide::released::is_released;
use crate::decide::seal::InvalidAnnotation;

/// The input of `assemble`.
#[derive(Debug)]
pub struct Facts<P> {
    pub record: Result<Record<ProjectKeyIdentity>, InvalidAnnotation>,
    pub access: Access<P>,
    /// The base URL of the account's platform; empty while it is not known.
    pub base_url: String,
    pub listed: Listed,
    pub secret: SecretState,
    /// The accounts that read their credentials from the Secret.
    pub accounts: Vec<KeyAccount>,
    /// The other resources of the namespace that write the same Secret.
    pub rivals: Vec<Rival>,
    pub remembered: ResourceState,
    pub settings: PassSettings,
    /// A random number, for a unique name.
    pub random: u32,
    pub now: Timestamp,
}

/// A resource that writes the same Secret.
#[derive(Debug)]
pub struct Rival {
    pub kind: String,
    pub name: String,
    pub rank: Rank,
}

pub(super) async fn gather<E: Environment>(
    env: &E,
    object: &ProjectKey,
    now: Timestamp,
) -> Result<Facts<E::Client>, kube::Error> {
    let record = identity::of_key(object);
    let secret = match Owner::of(object) {
        Some(owner) => secrets::state(env.cluster(), &owner, &object.spec.secret.name).await?,
        None => SecretState::Absent,
    };
    let known = record.clone().unwrap_or_default().known();
    let access = access::of(env, object);
    Ok(Facts {
        record,
        listed: listing::look(env, object, &known, &access),
        access,
        base_url: access::base_url(env, object),
        rivals: rivals(env, object),
        accounts: in_use::accounts(env, &secret),
        secret,
        remembered: env.state().resource(&uid(object)),
        settings: env.settings().clone(),
        random: env.random(),
        now,
    })
}

fn rivals<E: Environment>(env: &E, object: &ProjectKey) -> Vec<Rival> {
    let mut search = Search {
        env,
        object,
        found: Vec::new(),
    };
    E::Kinds::each(&mut search);
    search.found
}

struct Search<'a, E> {
    env: &'a E,
    object: &'a ProjectKey,
    found: Vec<Rival>,
}

impl<E: Environment> KindVisitor for Search<'_, E> {
    fn visit<K: Kind>(&mut self) {
        let object = self.object;
        let namespace = object.namespace().unwrap_or_default();
        let writes_the_same = |other: &K::Object| {
            K::written_secret(other) == Some(object.spec.secret.name.as_str())
                && other.meta().namespace.as_ref() == Some(&namespace)
                && uid(other) != uid(object)
                && !is_released(other.meta())
        };
        let rival = |other: &K::Object| Rival {
            kind: K::Object::kind(&()).into_owned(),
            name: other.name_any(),
            rank: rank(other),
        };
        let others = self
            .env
            .objects_by::<K>(&Key::secret(&namespace, &object.spec.secret.name));
        self.found.extend(
            others
                .iter()
                .filter(|other| writes_the_same(other))
                .map(|other| rival(other)),
        );
    }
}
