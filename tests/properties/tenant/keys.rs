//! Forged records and Secrets of ProjectKeys.

use std::collections::BTreeMap;

use dbplane::cluster::digest;
use dbplane::decide::names::{self, RECORD, unique};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{TENANT, is_tenants};
use crate::history::key;
use crate::in_memory::Resource;
use crate::in_memory::cluster::place;
use crate::in_memory::forged::{object_key, sealed};
use crate::process::CLUSTER;
use crate::rotating::rotation;
use crate::run::Run;
use crate::simulation::{BASE_URL, PROJECT, Simulation};

/// A record that the tenant seals itself, and that claims the keys of others.
#[derive(Clone, Copy, Debug)]
pub struct ForgedKey {
    place: Place,
    called: Called,
    /// True if the record names the platform. Records of earlier versions do not.
    has_platform: bool,
    /// Recreates the object under the same name, so that its former status is gone.
    recreated: bool,
}

/// The part of the record that claims the keys.
#[derive(Clone, Copy, Debug)]
enum Place {
    Current,
    /// The keys were replaced, and are due for revocation.
    Previous,
    /// The secrets of the keys are lost, for one of the known reasons.
    Lost(&'static str),
    /// The creation of the keys has begun.
    Intent,
}

/// Number and name under which the tenant claims a key.
#[derive(Clone, Copy, Debug)]
enum Called {
    /// Both are those of the other resource's key.
    AsTheirs,
    /// The name is derived from the tenant's resource.
    WithOwnName,
    /// The number belongs to no key.
    WithOtherNumber,
}

/// A Secret that claims to hold such a key.
#[derive(Clone, Copy, Debug)]
pub struct ForgedSecret {
    called: Called,
    owner: SecretOwner,
}

/// The resource that the Secret's owner references name.
#[derive(Clone, Copy, Debug)]
enum SecretOwner {
    Nobody,
    Own,
    Theirs,
}

pub(super) fn forged_key() -> impl Strategy<Value = ForgedKey> {
    let place = prop_oneof![
        3 => Just(Place::Current),
        3 => Just(Place::Previous),
        3 => prop::sample::select(&["Unanswered", "Retired", "OtherKey"][..]).prop_map(Place::Lost),
        2 => Just(Place::Intent),
    ];
    (place, called(), prop::bool::weighted(0.8), any::<bool>()).prop_map(
        |(place, called, has_platform, recreated)| ForgedKey {
            place,
            called,
            has_platform,
            recreated,
        },
    )
}

pub(super) fn forged_secret() -> impl Strategy<Value = ForgedSecret> {
    let owner = prop_oneof![
        Just(SecretOwner::Nobody),
        Just(SecretOwner::Own),
        Just(SecretOwner::Theirs)
    ];
    (called(), owner).prop_map(|(called, owner)| ForgedSecret { called, owner })
}

fn called() -> impl Strategy<Value = Called> {
    prop_oneof![2 => Just(Called::AsTheirs), 1 => Just(Called::WithOwnName), 1 => Just(Called::WithOtherNumber)]
}

/// The first one has the same name as the resource whose keys the tenant wants.
pub(super) fn own(number: u8) -> Resource {
    let name = if number == 0 {
        "ci".to_owned()
    } else {
        format!("thief-{number}")
    };
    ("ProjectKey", format!("{TENANT}/{name}"))
}

impl Run<'_> {
    pub(super) fn forge_key(
        &mut self,
        own: &Resource,
        ForgedKey {
            place,
            called,
            has_platform,
            recreated,
        }: ForgedKey,
    ) {
        let mut simulation = self.simulation.lock();
        if recreated {
            simulation.cluster.forget(own);
        }
        simulation.create_own_key(own);
        let at = simulation.now.to_string();
        let keys = simulation.named_keys(own, called);
        let last = keys.last().cloned().unwrap();
        let all = |more: Value| -> Vec<Value> {
            let with = |(id, name): &(i64, String)| {
                let mut key = json!({"id": id, "name": name});
                dbplane::cluster::merge(&mut key, &more);
                key
            };
            keys.iter().map(with).collect()
        };
        let mut record = match place {
            Place::Current => {
                json!({"records": {"current": {"id": last.0, "name": last.1, "at": at}}})
            }
            Place::Previous => {
                json!({"records": {"previous": all(json!({"since": at, "retire_at": at}))}})
            }
            Place::Lost(because) => {
                json!({"records": {"lost": all(json!({"since": at, "because": because}))}})
            }
            Place::Intent => json!({"intent": {"name": last.1, "at": at, "organization": "org"}}),
        };
        if has_platform {
            let whose = if matches!(place, Place::Intent) {
                "intent"
            } else {
                "records"
            };
            record[whose]["platform"] = json!(BASE_URL);
        }
        let uid = simulation.cluster.objects[own].uid().to_owned();
        let text = sealed(own, &uid, record);
        simulation
            .cluster
            .edit(own, &json!({"metadata": {"annotations": {RECORD: text}}}));
    }

    pub(super) fn forge_secret(
        &mut self,
        own: &Resource,
        ForgedSecret { called, owner }: ForgedSecret,
    ) {
        let mut simulation = self.simulation.lock();
        simulation.create_own_key(own);
        let at = simulation.now.to_string();
        let (id, name) = simulation.named_keys(own, called).pop().unwrap();
        let text = |of: &str| format!("token-of-the-tenant-{of}");
        let previous = json!({"entry": "previous", "id": id, "name": name, "digest": digest(&text("before").into())});
        let annotations = [
            (names::SECRET_KEY_ID, id.to_string()),
            (
                names::SECRET_KEY,
                json!({"id": id, "name": name, "at": at}).to_string(),
            ),
            (names::SECRET_DIGEST, digest(&text("now").into())),
            (names::SECRET_PREVIOUS, previous.to_string()),
            (names::SECRET_OF, format!("ProjectKey {}", place(&own.1).1)),
        ];
        let reference = |simulation: &Simulation, owner: &Resource| {
            let uid = simulation.cluster.objects.get(owner)?.uid().to_owned();
            let (api_version, kind) = ("dbplane.dev/v1alpha1".to_owned(), owner.0.to_owned());
            let name = place(&owner.1).1.to_owned();
            Some(OwnerReference {
                api_version,
                kind,
                name,
                uid,
                controller: Some(true),
                ..OwnerReference::default()
            })
        };
        let owner = match owner {
            SecretOwner::Nobody => None,
            SecretOwner::Own => reference(&simulation, own),
            SecretOwner::Theirs => reference(&simulation, &key()),
        };
        let data = [("api-key", text("now")), ("previous", text("before"))];
        let data = data.map(|(entry, text)| (entry.to_owned(), ByteString(text.into_bytes())));
        let mut secret = Secret {
            data: Some(BTreeMap::from(data)),
            ..Secret::default()
        };
        secret.labels_mut().insert(
            names::MANAGED_BY.0.to_owned(),
            names::MANAGED_BY.1.to_owned(),
        );
        secret
            .annotations_mut()
            .extend(annotations.map(|(name, text)| (name.to_owned(), text)));
        secret.metadata.owner_references = owner.map(|owner| vec![owner]);
        simulation.cluster.secrets.remove(&own.1);
        simulation.cluster.put_secret(&own.1, secret);
    }
}

impl Simulation {
    fn create_own_key(&mut self, own: &Resource) {
        if self.cluster.objects.contains_key(own) {
            return;
        }
        let spec = json!({
            "accountRef": {"name": "prod", "kind": "ClusterAccount"},
            "projectID": PROJECT,
            "keyName": "ci",
            "rotation": rotation(1),
            "secret": {"name": place(&own.1).1, "key": "api-key", "previousKey": "previous"},
        });
        let now = self.now;
        self.cluster.create(own, &spec, &json!({}), now);
    }

    /// The keys of the other resource, with the numbers and names that the tenant claims.
    fn named_keys(&self, own: &Resource, called: Called) -> Vec<(i64, String)> {
        let mut theirs = self.keys_of(&key());
        if theirs.is_empty() {
            theirs.push((1, "ci".to_owned()));
        }
        let cluster = CLUSTER.parse().unwrap();
        let rename = |(number, (id, name)): (u32, (i64, String))| match called {
            Called::AsTheirs => (id, name),
            Called::WithOwnName => (id, unique("ci", &cluster, object_key(own), number)),
            Called::WithOtherNumber => (id + 1000, name),
        };
        (0..).zip(theirs).map(rename).collect()
    }
}

/// Finds a Secret in another namespace than the resource that its key was created for.
pub(super) fn stolen(simulation: &Simulation) -> Option<String> {
    simulation
        .cluster
        .secrets
        .iter()
        .find_map(|(name, secret)| {
            let in_namespace = |resource: &Resource| place(&resource.1).0 == place(name).0;
            let data = secret.data.iter().flat_map(|data| data.values());
            let tokens = data.filter_map(|bytes| {
                simulation
                    .ledger
                    .tokens
                    .get(std::str::from_utf8(&bytes.0).ok()?)
            });
            let made_for = tokens
                .into_iter()
                .find(|made_for| !in_namespace(made_for))?;
            let whose = if is_tenants(made_for) {
                "the tenant"
            } else {
                "others"
            };
            Some(format!(
                "Secret {name} holds a key of {whose}, which was made for {}",
                made_for.1
            ))
        })
}
