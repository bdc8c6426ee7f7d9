//! ProjectKeys. Their authors can also write the copy of the record and the list of revoked keys,
//! up to the limit of metadata.

use dbplane::api::{ProjectKey, ProjectKeyStatus};
use dbplane::decide::identity::{
    KeyIdentity, KeyRecords, LostBecause, LostKey, ProjectKeyIdentity, RetiredKey, object_key,
    written,
};
use dbplane::decide::key::{
    KeyAccount, KeyFacts, KeyListing, KeyObserved, KeySecretView, KeyStep, Probe, SecretContents,
    decide, status,
};
use dbplane::decide::memory::ActionProblem;
use dbplane::decide::names::{ClusterId, unique};
use dbplane::decide::record_of;
use dbplane::decide::{AccountView, Action, Limits, Memory, Meta};
use dbplane::domain::{Fault, KeyEntry, KeyId};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::worst::{Place, project_key};
use super::{NOW, before, excess, is_worst};

/// About the maximum in a record of 32 KiB, the limit for metadata: with short foreign names, and
/// with generated ones.
const OTHERS: usize = 500;
const OWN: usize = 250;
const REPLACED: usize = 200;
const LARGEST: usize = 32 * 1024;
const PLATFORM: &str = "https://platform.example/api/v2";

fn manifest(entries: usize) -> Value {
    project_key(&Place::default(), entries)
}

fn cluster() -> ClusterId {
    "c1u57e".parse().unwrap()
}

struct Given {
    object: ProjectKey,
    observed: KeyObserved,
}

impl Given {
    /// Key 0 is in use, and the record contains these keys as well. The platform lists all of them.
    fn new(records: impl FnOnce(&ProjectKey) -> KeyRecords) -> Self {
        let mut object: ProjectKey = serde_json::from_value(manifest(32)).unwrap();
        object.metadata.uid = Some("6a1f9a5e-6f0f-4c0b-9d3a-000000000001".to_owned());
        let current = KeyIdentity {
            id: KeyId(0),
            name: own(0, &object),
            at: before(9),
            created_at: None,
            created_by: None,
        };
        let records = KeyRecords {
            current: Some(current.clone()),
            organization: Some("org-1".into()),
            platform: Some(PLATFORM.to_owned()),
            ..records(&object)
        };
        let identity = ProjectKeyIdentity {
            records,
            intent: None,
        };
        let annotation = written(&identity, &object.metadata);
        assert!(
            annotation.len() < LARGEST,
            "nobody can write so many keys: {}",
            annotation.len()
        );
        let identity = identity.restored();
        let record = Some(written(&identity, &object.metadata));
        object.status = Some(ProjectKeyStatus {
            record,
            ..ProjectKeyStatus::default()
        });
        Self {
            observed: observed(&object, identity, current),
            object,
        }
    }

    fn lost(count: usize, name: impl Fn(usize, &ProjectKey) -> String) -> Self {
        let lost = |(id, name)| LostKey {
            id: Some(id),
            name,
            since: before(9000),
            because: LostBecause::Unanswered,
            unlisted: None,
        };
        Self::new(|object| {
            let names = (1..=count).map(|number| (id(number), name(number, object)));
            KeyRecords {
                lost: names.map(lost).collect(),
                ..KeyRecords::default()
            }
        })
    }

    /// Until `retire_at`, the operator waits until the keys are no longer used.
    fn replaced(count: usize, retire_at: Timestamp) -> Self {
        let retired = |(id, name)| RetiredKey {
            id,
            name,
            since: before(9),
            retire_at,
            rotated: retire_at > NOW,
            worked: false,
            last_use: None,
        };
        Self::new(|object| {
            let names = (1..=count).map(|number| (id(number), own(number, object)));
            KeyRecords {
                previous: names.map(retired).collect(),
                ..KeyRecords::default()
            }
        })
    }

    fn but(mut self, change: impl FnOnce(&mut KeyObserved)) -> Self {
        change(&mut self.observed);
        self
    }

    fn step(&self) -> Option<KeyStep> {
        decide(&self.object.spec, &self.observed, NOW).step
    }

    /// Without a step, each change triggers another pass.
    fn resting(self) -> Self {
        assert_eq!(self.step(), None);
        self
    }

    fn pass(&self) {
        record_of(&self.object).unwrap();
        let report = decide(&self.object.spec, &self.observed, NOW)
            .report
            .unwrap();
        let old = self.object.status.as_ref().unwrap();
        status(&report, &self.observed, old, &self.object.spec, NOW);
    }
}

fn id(number: usize) -> KeyId {
    KeyId(number.try_into().unwrap())
}

/// A name that this resource may have generated.
fn own(number: usize, object: &ProjectKey) -> String {
    unique(
        "a",
        &cluster(),
        object_key(&object.metadata),
        u32::try_from(number).unwrap(),
    )
}

/// A foreign name.
fn of_others(number: usize, _: &ProjectKey) -> String {
    format!("o-{number}")
}

fn entry(id: KeyId, name: &str) -> KeyEntry {
    KeyEntry {
        id,
        name: name.to_owned(),
        project_id: None,
        created_at: None,
        last_used_at: None,
        last_used_from: None,
    }
}

fn observed(
    object: &ProjectKey,
    identity: ProjectKeyIdentity,
    current: KeyIdentity,
) -> KeyObserved {
    let KeyRecords { previous, lost, .. } = &identity.records;
    let previous = previous.iter().map(|key| entry(key.id, &key.name));
    let lost = lost
        .iter()
        .filter_map(|key| Some(entry(key.id?, &key.name)));
    let keys = [entry(current.id, &current.name)]
        .into_iter()
        .chain(previous)
        .chain(lost)
        .collect();
    let listing = KeyListing::Read { at: NOW, keys };
    let name = object.metadata.name.clone().unwrap();
    KeyObserved {
        meta: Meta {
            namespace: "evil".to_owned(),
            name,
            generation: 1,
            has_finalizer: true,
            ..Meta::default()
        },
        uid: object.metadata.uid.as_deref().unwrap().into(),
        account: AccountView::Usable {
            organization: Some("org-1".into()),
        },
        memory: Memory::default(),
        limits: Limits::default(),
        cluster: cluster(),
        random: 7,
        facts: KeyFacts {
            created: before(9000),
            identity: Ok(identity),
            is_wish: false,
            platform: Some(PLATFORM.to_owned()),
            project_gone: false,
            secret: KeySecretView::Ours(SecretContents::Key {
                key: current,
                as_declared: true,
            }),
            accounts: Vec::new(),
            rival: None,
            secret_deleting: false,
            revoked: None,
            rotate: None,
            listing: listing.clone(),
            listed: listing.clone(),
            known: listing,
            not_offered_until: None,
            probe: Probe::Accepted(NOW),
            unsaved: None,
            unsaved_probe: Probe::NotAsked(None),
        },
    }
}

/// The platform refuses to revoke them.
fn refusing(observed: &mut KeyObserved) {
    let fault = Fault::Forbidden {
        status: 403,
        message: "administrators only".to_owned(),
    };
    observed
        .memory
        .failed(Action::Revoke, ActionProblem::Platform(fault), 1, before(1));
}

/// No key is in use any more.
fn deleting(observed: &mut KeyObserved) {
    observed.meta.deleting = true;
    observed.identity.as_mut().unwrap().records.current = None;
    let KeyListing::Read { keys, .. } = &mut observed.listing else {
        panic!("no list")
    };
    keys.shown_mut().retain(|key| key.id != KeyId(0));
}

/// This many accounts get their credentials from the Secret, but do not use the new key yet.
fn behind(accounts: usize) -> impl Fn(&mut KeyObserved) {
    let label = |number| format!("Account evil/{number:0>253}");
    let account = move |number| KeyAccount {
        label: label(number),
        users: Vec::new(),
        follows: false,
    };
    move |observed| observed.accounts = (0..accounts).map(account).collect()
}

/// All lost keys are acknowledged by the maximal number of words, each of which means all.
fn acknowledged(count: usize) -> Given {
    let all = ["all"; 256].join(",");
    let given = Given::lost(count, of_others).but(|observed| observed.revoked = Some(all));
    let Some(KeyStep::Acknowledge { records, .. }) = given.step() else {
        panic!("not acknowledged")
    };
    assert_eq!(
        (records.acknowledged.unwrap().keys.len(), records.lost.len()),
        (count, 0)
    );
    given
}

pub fn rows() -> Vec<Option<String>> {
    is_worst(&manifest(32), &manifest(33), "spec.secret.template");
    let unoffered = |observed: &mut KeyObserved| observed.listing = KeyListing::NotOffered;
    let others = |count| Given::lost(count, of_others);
    let owned = |count| Given::lost(count, own);
    let replaced = |count| Given::replaced(count, NOW + SignedDuration::from_hours(1));
    let needed = |count: usize| Given::replaced(count, before(1)).but(behind(10 * count));
    vec![
        excess(
            "lost keys of others",
            OTHERS,
            |count| others(count).resting(),
            Given::pass,
        ),
        excess(
            "lost keys of others at the end",
            OTHERS,
            |count| others(count).but(deleting).resting(),
            Given::pass,
        ),
        excess(
            "lost keys that are not revoked",
            OWN,
            |count| owned(count).but(refusing).resting(),
            Given::pass,
        ),
        excess(
            "lost keys that nobody can revoke",
            OWN,
            |count| owned(count).but(unoffered).resting(),
            Given::pass,
        ),
        excess(
            "keys that somebody has revoked",
            OTHERS,
            acknowledged,
            Given::pass,
        ),
        excess(
            "replaced keys",
            REPLACED,
            |count| replaced(count).resting(),
            Given::pass,
        ),
        excess(
            "replaced keys that accounts work with",
            REPLACED,
            |count| needed(count).resting(),
            Given::pass,
        ),
    ]
}
