//! Observes a ProjectKey: its record, its account, its Secret, and the latest list of keys.

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use super::listing::{ListedKeys, RelevantKeys};
use super::{ProjectKeys, in_use, listing, secret};
use crate::api::{Known, ProjectKey};
use crate::cluster::{Owner, SecretState, owned_by, secrets};
use crate::controller::access;
use crate::controller::environment::{
    Effects, Environment, Kind, KindVisitor, Kinds, Observation, account_of, observed,
};
use crate::controller::index::Key;
use crate::controller::object::{AccountName, Managed, Rank, meta_observed, rank, uid};
use crate::controller::state::UnsavedKey;
use crate::decide::account::are_many;
use crate::decide::identity::{KeyRecords, ProjectKeyIdentity};
use crate::decide::key::{self, KeyFacts, KeyListing, KeySecretView, Probe};
use crate::decide::names;
use crate::decide::released::is_released;

/// A resource that writes the same Secret.
#[derive(Debug)]
struct Rival {
    kind: String,
    name: String,
    rank: Rank,
}

pub(super) async fn observe<E: Environment>(
    env: &E,
    object: &Known<ProjectKey>,
    now: Timestamp,
) -> Result<Observation<KeyFacts, E::Client>, kube::Error> {
    let settings = env.settings();
    let identity = object.identity();
    let owner = Owner::of(object);
    let state = secrets::state(env.cluster(), &owner, &object.spec.secret.name).await?;
    let recorded = identity.clone().unwrap_or_default();
    let access = access::of(env, object);
    let listed = listing::look(env, object, &recorded, &access);
    let remembered = env.state().resource(uid(object));
    let RelevantKeys {
        listing,
        listed: shown,
        known,
        not_offered_until,
    } = listed.relevant(&remembered.key, remembered.wrote_at(), now);
    let base_url = access::base_url(env, object);
    let (secret, secret_deleting) = secret_view(object, &state, &recorded.records, &base_url);
    let meta = meta_observed(object);
    let facts = KeyFacts {
        created: created(object).unwrap_or(now),
        is_wish: object.record().is_ok_and(|record| record.wish.is_some()),
        identity: identity.map(|it| it.with_platforms(|url| settings.platforms.of(url))),
        platform: access.connection.map(|it| settings.platform(&it)),
        project_gone: access.project_gone,
        accounts: in_use::accounts(env, &state),
        rival: rival(object, &rivals(env, object), &secret),
        secret,
        secret_deleting,
        revoked: object.annotations().get(names::REVOKED_KEYS).cloned(),
        rotate: object.request(names::ROTATE),
        probe: probe(remembered.key.probe, &recorded, &known),
        listing,
        listed: shown,
        known,
        not_offered_until,
        unsaved_probe: unsaved_probe(remembered.key.unsaved.as_deref()),
        unsaved: remembered.key.unsaved.map(|unsaved| unsaved.key.clone()),
    };
    let mut observed = observed(env, object, meta, access.view, facts);
    let begun = recorded.intent.map(|intent| intent.at);
    observed.memory.note_unresolved(begun, now);
    let mut requeue_accounts: Vec<AccountName> = access.wake.into_iter().collect();
    if has_news_for_account(env, object, &listed) || key::may_miss_its_project(&observed) {
        requeue_accounts.extend(account_of::<ProjectKeys>(object));
    }
    let effects = Effects {
        memory: Some(observed.memory.clone()),
        requeue_accounts,
        ..Effects::default()
    };
    Ok(Observation { observed, effects })
}

fn created(object: &Known<ProjectKey>) -> Option<Timestamp> {
    let created = object.meta().creation_timestamp.as_ref()?;
    Some(created.0)
}

/// True if the account reports another number of keys than the list shows.
fn has_news_for_account<E: Environment>(
    env: &E,
    object: &Known<ProjectKey>,
    listed: &ListedKeys,
) -> bool {
    let name = AccountName::of(&object.spec.account_ref, object);
    let reported = env.state().account(&name).map(|entry| entry.many_keys);
    let many = listed.count().map(are_many);
    many.is_some() && reported.is_some() && many != reported
}

fn rivals<E: Environment>(env: &E, object: &Known<ProjectKey>) -> Vec<Rival> {
    let mut search = RivalSearch {
        env,
        object,
        found: Vec::new(),
    };
    E::Kinds::each(&mut search);
    search.found
}

struct RivalSearch<'a, E> {
    env: &'a E,
    object: &'a Known<ProjectKey>,
    found: Vec<Rival>,
}

impl<E: Environment> KindVisitor for RivalSearch<'_, E> {
    fn visit<K: Kind>(&mut self) {
        let object = self.object;
        let namespace = object.namespace();
        let writes_the_same = |other: &K::Object| {
            K::relations(other).written_secret == Some(object.spec.secret.name.as_str())
                && other.meta().namespace.as_deref() == Some(namespace)
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
            .objects_by::<K>(&Key::secret(namespace, &object.spec.secret.name));
        self.found.extend(
            others
                .iter()
                .filter(|other| writes_the_same(other))
                .map(|other| rival(other)),
        );
    }
}

/// The Secret as it was read, and whether it is being deleted.
fn secret_view(
    object: &Known<ProjectKey>,
    state: &SecretState,
    records: &KeyRecords,
    base_url: &str,
) -> (KeySecretView, bool) {
    match state {
        SecretState::Absent => (KeySecretView::Absent, false),
        SecretState::Foreign(who) => (KeySecretView::Foreign(who.clone()), false),
        SecretState::Restored(found) => (secret::restored(object, found, base_url), false),
        SecretState::Ours(found) => {
            let deleting = found.metadata.deletion_timestamp.is_some();
            (
                KeySecretView::Ours(
                    secret::secret_contents(&object.spec, found, records, base_url).0,
                ),
                deleting,
            )
        }
    }
}

/// The platform's last answer about the key in use. A list from before the key's creation says
/// nothing about it.
fn probe(last: Option<Probe>, identity: &ProjectKeyIdentity, known: &KeyListing) -> Probe {
    let probe = last.unwrap_or(Probe::NotAsked(None));
    let (Some(current), KeyListing::Read { at, .. }) = (&identity.records.current, known) else {
        return probe;
    };
    match known.has(current) {
        Some(has_it) if *at > current.at => probe.listed(*at, has_it),
        _ => probe,
    }
}

/// The platform's last answer about a key that only memory holds.
fn unsaved_probe(unsaved: Option<&UnsavedKey>) -> Probe {
    unsaved
        .and_then(|unsaved| unsaved.trial)
        .unwrap_or(Probe::NotAsked(None))
}

/// A resource that names the same Secret and is older, or owns that Secret.
fn rival(object: &Known<ProjectKey>, rivals: &[Rival], secret: &KeySecretView) -> Option<String> {
    let has_it =
        |rival: &Rival| *secret == KeySecretView::Foreign(owned_by(&rival.kind, &rival.name));
    let first = rivals
        .iter()
        .find(|rival| rival.rank < rank(object) || has_it(rival));
    first.map(|rival| format!("{} {}", rival.kind, rival.name))
}
