//! Table tests of decisions about a ProjectKey.

mod belonging;
mod create;
mod delete;
mod elsewhere;
mod in_use;
mod links;
mod listing;
mod manual_revocation;
mod replacing;
mod requests;
mod restored;
mod trial;
mod twins;
mod unlisted;
mod unreadable;
mod unused;
mod upkeep;

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::api::{Duration as Length, RevokePrevious, Rotation};
use crate::decide::identity::{KeyIntent, KeyRecords, LostBecause, LostKey, RetiredKey};
use crate::decide::memory::ActionProblem;
use crate::decide::{AccountView, Health, Limits, Memory, Meta, Sync, Wake};
use crate::domain::{Fault, KeyId};

const UID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const HERE: &str = "https://platform.example/api/v2";
const NAME: &str = "ci-c1u57e-vpzc5qrz22arf-00000007";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The key with this number.
fn key(id: i64) -> KeyIdentity {
    KeyIdentity {
        id: KeyId(id),
        name: format!("ci-c1u57e-vpzc5qrz22arf-{id:08x}"),
        at: at(0),
        created_at: None,
        created_by: None,
    }
}

fn retired(id: i64, retire_at: i64) -> RetiredKey {
    let name = key(id).name;
    RetiredKey {
        id: KeyId(id),
        name,
        since: at(0),
        retire_at: at(retire_at),
        rotated: false,
        worked: false,
        last_use: None,
    }
}

fn lost(name: &str) -> LostKey {
    LostKey {
        id: None,
        name: name.to_owned(),
        since: at(0),
        because: LostBecause::Unanswered,
        unlisted: None,
    }
}

fn intent(name: &str, second: i64) -> KeyIntent {
    KeyIntent {
        name: name.to_owned(),
        at: at(second),
        ..KeyIntent::default()
    }
}

fn entry(id: i64, name: &str) -> KeyEntry {
    KeyEntry {
        id: KeyId(id),
        name: name.to_owned(),
        project_id: None,
        created_at: None,
        last_used_at: None,
        last_used_from: None,
    }
}

fn listed(second: i64, keys: &[(i64, &str)]) -> KeyListing {
    KeyListing::Read {
        at: at(second),
        keys: keys.iter().map(|(id, name)| entry(*id, name)).collect(),
    }
}

/// The records, with the account's organization.
fn ours(records: KeyRecords) -> KeyRecords {
    KeyRecords {
        organization: Some("org-1".into()),
        ..records
    }
}

fn revokes_key(step: &KeyStep, number: i64) -> bool {
    matches!(step, KeyStep::Revoke { id, .. } if id.0 == number)
}

fn records(current: i64) -> KeyRecords {
    KeyRecords {
        current: Some(key(current)),
        ..KeyRecords::default()
    }
}

/// The records, marked as known only from an annotation or a Secret.
fn from_secret(records: KeyRecords) -> KeyRecords {
    let restored = records.names().map(str::to_owned).collect();
    KeyRecords {
        restored,
        ..records
    }
}

/// A rotation that revokes the previous key at the end of the overlap.
fn rotation(every: &str, overlap: &str) -> Rotation {
    Rotation {
        every: Length(every.to_owned()),
        overlap: Length(overlap.to_owned()),
        revoke_previous: RevokePrevious::AfterOverlap,
        unused_for: None,
        deadline: None,
    }
}

/// A spec and an observation, which each test changes.
#[derive(Clone)]
struct GivenKey {
    spec: ProjectKeySpec,
    observed: KeyObserved,
}

impl GivenKey {
    /// A resource with its finalizer and a usable account.
    fn new() -> Self {
        let spec = serde_json::json!({
            "accountRef": {"name": "prod"},
            "projectID": "aged-wind-123456",
            "keyName": "ci",
            "secret": {"name": "ci-key", "key": "api-key"},
        });
        let observed = KeyObserved {
            meta: Meta {
                namespace: "shop".to_owned(),
                name: "ci".to_owned(),
                generation: 1,
                has_finalizer: true,
                ..Meta::default()
            },
            uid: UID.into(),
            account: AccountView::Usable {
                organization: Some("org-1".into()),
            },
            memory: Memory::default(),
            limits: Limits::default(),
            cluster: "c1u57e".parse().unwrap(),
            random: 7,
            facts: KeyFacts {
                identity: Ok(ProjectKeyIdentity::default()),
                is_wish: false,
                platform: Some(HERE.to_owned()),
                project_gone: false,
                accounts: Vec::new(),
                secret: KeySecretView::Absent,
                rival: None,
                secret_deleting: false,
                revoked: None,
                rotate: None,
                created: at(0),
                listing: KeyListing::NotRead,
                listed: KeyListing::NotRead,
                known: KeyListing::NotRead,
                not_offered_until: None,
                probe: Probe::NotAsked(None),
                unsaved: None,
                unsaved_probe: Probe::NotAsked(None),
            },
        };
        Self {
            spec: serde_json::from_value(spec).unwrap(),
            observed,
        }
    }

    /// Key 1 is in use and in its Secret.
    fn in_use() -> Self {
        Self::new().records(records(1)).with_key(1)
    }

    /// The same, in deletion.
    fn deleting() -> Self {
        let mut given = Self::in_use();
        given.observed.meta.deleting = true;
        given
    }

    /// On the account's platform, unless the records name another one.
    fn records(mut self, records: KeyRecords) -> Self {
        let platform = records.platform.clone().or_else(|| Some(HERE.to_owned()));
        let records = KeyRecords {
            platform,
            ..records
        };
        self.observed.facts.identity =
            self.observed
                .facts
                .identity
                .map(|identity| ProjectKeyIdentity {
                    records,
                    ..identity
                });
        self
    }

    fn intent(mut self, intent: KeyIntent) -> Self {
        let platform = intent.platform.clone().or_else(|| Some(HERE.to_owned()));
        let intent = Some(KeyIntent { platform, ..intent });
        self.observed.facts.identity = self
            .observed
            .facts
            .identity
            .map(|identity| ProjectKeyIdentity { intent, ..identity });
        self
    }

    fn secret(mut self, secret: KeySecretView) -> Self {
        self.observed.secret = secret;
        self
    }

    fn with_key(self, id: i64) -> Self {
        self.secret(KeySecretView::Ours(SecretContents::Key {
            key: key(id),
            as_declared: true,
        }))
    }

    fn listing(mut self, listing: KeyListing) -> Self {
        self.observed.known = listing.clone();
        self.observed.listed = listing.clone();
        self.observed.listing = listing;
        self
    }

    fn probe(mut self, probe: Probe) -> Self {
        self.observed.probe = probe;
        self
    }

    fn failed(mut self, action: Action, fault: Fault, second: i64) -> Self {
        if let Some(intent) = self
            .observed
            .identity
            .as_ref()
            .ok()
            .and_then(|identity| identity.intent.as_ref())
        {
            self.observed.memory.recorded(action, intent.at);
        }
        self.observed
            .memory
            .failed(action, ActionProblem::Platform(fault), 1, at(second));
        self
    }

    fn secret_failed(mut self, second: i64) -> Self {
        let problem = ActionProblem::Secret("Secret ci-key could not be written: no".to_owned());
        self.observed
            .memory
            .failed(Action::WriteSecret, problem, 1, at(second));
        self
    }

    fn but(mut self, change: impl FnOnce(&mut ProjectKeySpec, &mut KeyObserved)) -> Self {
        change(&mut self.spec, &mut self.observed);
        self
    }

    fn decide(&self, second: i64) -> KeyDecision {
        let mut choice = decide(&self.spec, &self.observed, at(second));
        choice.step = choice.step.map(without_platform);
        // In every decision: a wait must not end in the past, which would be a loop.
        if let Wake::At(time) = choice.wake {
            assert!(time > at(second), "{choice:?}");
        }
        choice
    }

    fn step(&self, second: i64) -> KeyStep {
        let choice = self.decide(second);
        choice
            .step
            .unwrap_or_else(|| panic!("no step, but {:?}", choice.report))
    }

    /// The report of a decision without a step.
    fn reported(&self, second: i64) -> (Health, Sync, Wake) {
        let choice = self.decide(second);
        assert_eq!(choice.step, None);
        let report = choice.report.unwrap();
        (report.health, report.sync, choice.wake)
    }

    #[track_caller]
    fn stalls(&self, second: i64, reason: Reason, words: &[&str]) {
        let (health, _, _) = self.reported(second);
        let Health::Stalled(found, message) = health else {
            panic!("not stalled: {health:?}")
        };
        assert_eq!(found, reason, "{message}");
        for word in words {
            assert!(message.contains(word), "{word:?} is missing: {message}");
        }
    }
}

/// Removes [`HERE`] from a step, because the tables omit the platform.
fn without_platform(mut step: KeyStep) -> KeyStep {
    let here = |platform: &mut Option<String>| {
        *platform = platform.take().filter(|platform| platform != HERE)
    };
    match &mut step {
        KeyStep::CreateKey { intent, .. } => here(&mut intent.platform),
        KeyStep::GiveUpRefused { records, .. }
        | KeyStep::GiveUpUnsaved { records }
        | KeyStep::Record { records, .. }
        | KeyStep::Acknowledge { records, .. }
        | KeyStep::Revoke { records, .. } => here(&mut records.platform),
        _ => {}
    }
    step
}

fn refused() -> Fault {
    Fault::Forbidden {
        status: 403,
        message: "administrators only".to_owned(),
    }
}

fn unanswered() -> Fault {
    Fault::Unknown {
        message: "the connection was closed".to_owned(),
    }
}

fn record(choice: KeyStep) -> (KeyRecords, Option<String>) {
    match choice {
        KeyStep::Record { records, event } => (records, event),
        other => panic!("not a record: {other:?}"),
    }
}

fn created(step: KeyStep) -> (KeyIntent, Option<String>) {
    match step {
        KeyStep::CreateKey {
            intent, because, ..
        } => (intent, because),
        other => panic!("not the creation of a key: {other:?}"),
    }
}
