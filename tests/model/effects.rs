//! What effects do to the platform and to the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use dbplane::decide::names;
use dbplane::domain::{ComputeState, Support};
use dbplane::platform::{self, Fault, KeyEntry, Role, Settings};
use k8s_openapi::ByteString;
use kube::core::ObjectMeta;
use serde_json::Value;

use super::bound::Bound;
use super::mutation::Mutation;
use super::state::{Compute, Key, Print, Secret, State, hash, version};
use super::tape::{Answer, Effect};

/// Whether it goes to the platform and changes something there.
pub fn changes_platform(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::CreateCompute { .. } | Effect::DeleteCompute(_) | Effect::CreateKey(_) | Effect::RevokeKey(_)
    )
}

/// Whether it goes to the platform.
pub fn calls_platform(effect: &Effect) -> bool {
    changes_platform(effect) || matches!(effect, Effect::ListKeys | Effect::ProbeKey(_))
}

/// Whether it changes anything anywhere.
pub fn writes(effect: &Effect) -> bool {
    !matches!(effect, Effect::ReadSecret | Effect::ListKeys | Effect::ProbeKey(_))
}

/// Carries an effect out.
pub fn apply(bound: &Bound, state: &mut State, effect: &Effect) -> Answer {
    match effect {
        Effect::Patch(index, patch) => {
            let read = || Arc::new(serde_json::from_str(patch).unwrap());
            self::patch(bound, state, *index, &bound.memos.read.get(hash(patch), read))
        }
        Effect::ReadSecret => Answer::Secret(state.secret.as_ref().map(|secret| Box::new(shown(secret)))),
        Effect::CreateSecret if state.secret.is_some() => Answer::Cluster(409),
        Effect::CreateSecret => {
            state.secret = Some(Print::of(Secret::default()));
            Answer::Done
        }
        Effect::WriteSecret(parts) => {
            let mut secret = state.secret.as_ref().map(Print::clone_inner).unwrap_or_default();
            secret.annotations.extend(parts[0].clone());
            secret.labels.extend(parts[1].clone());
            secret.data.extend(parts[2].clone());
            let answer = Answer::Secret(Some(Box::new(shown(&secret))));
            state.secret = Some(Print::of(secret));
            answer
        }
        Effect::CreateCompute { name } => {
            state.platform.made += 1;
            let name = name.clone().filter(|_| bound.marks());
            state.platform.computes.insert(state.platform.made, Compute { name, foreign: false, setting: true });
            Answer::Made(state.platform.made)
        }
        Effect::DeleteCompute(id) => {
            if state.platform.computes.remove(id).is_some_and(|compute| compute.foreign) {
                state.violation = Some("a foreign compute was deleted");
            }
            Answer::Done
        }
        Effect::CreateKey(name) => {
            state.platform.made += 1;
            state.platform.keys.insert(state.platform.made, Key { name: name.clone(), foreign: false });
            Answer::Made(state.platform.made)
        }
        Effect::RevokeKey(_) | Effect::ListKeys if !bound.revokes() => Answer::Fault(unsupported()),
        Effect::RevokeKey(id) => {
            if state.platform.keys.remove(id).is_some_and(|key| key.foreign) {
                state.violation = Some("a foreign key was revoked");
            }
            Answer::Done
        }
        Effect::ListKeys => Answer::Keys(state.platform.keys.iter().map(|(id, key)| entry(*id, key)).collect()),
        Effect::ProbeKey(secret) => match state.platform.keys.keys().any(|id| secret_of(*id) == *secret) {
            true => Answer::Done,
            false => Answer::Fault(Fault::Unauthorized { message: String::new() }),
        },
    }
}

fn entry(id: u8, key: &Key) -> KeyEntry {
    KeyEntry { id: id.into(), name: key.name.clone(), project_id: Some("p-1".into()), created_at: None }
}

fn unsupported() -> Fault {
    Fault::Unsupported { status: 405, message: String::new() }
}

/// The answer that says that nothing was done.
pub fn refusal(effect: &Effect) -> Answer {
    match effect {
        Effect::CreateCompute { .. } | Effect::CreateKey(_) => {
            Answer::Fault(Fault::Busy { message: String::new(), retry_after: None })
        }
        effect if calls_platform(effect) => Answer::Fault(Fault::Throttled { status: 429, retry_after: None }),
        _ => Answer::Cluster(500),
    }
}

/// No answer came.
pub fn silence(effect: &Effect) -> Answer {
    if calls_platform(effect) {
        Answer::Fault(Fault::Unknown { message: "no answer".into() })
    } else {
        Answer::Cluster(504)
    }
}

fn patch(bound: &Bound, state: &mut State, index: usize, patch: &Value) -> Answer {
    let Some(before) = state.objects[index].clone() else { return Answer::Cluster(404) };
    if patch["metadata"]["resourceVersion"].as_str() != before.resource_version.as_deref()
        && !bound.is(Mutation::SkipVersion)
    {
        return Answer::Cluster(409);
    }
    let meta = bound.memos.patched.get(hash(&(&before, patch)), || patched(bound, &before, &patch["metadata"]));
    put(state, index, meta.clone());
    Answer::Meta(meta)
}

fn patched(bound: &Bound, before: &Print<ObjectMeta>, patch: &Value) -> Print<ObjectMeta> {
    let mut meta = before.clone_inner();
    let annotations = meta.annotations.get_or_insert_default();
    let skipped =
        |name: &str| bound.is(Mutation::SkipIntent) && [names::CREATE_INTENT, names::KEY_INTENT].contains(&name);
    for (name, text) in patch["annotations"].as_object().unwrap() {
        match text.as_str() {
            Some(_) if skipped(name) => {}
            Some(text) => drop(annotations.insert(name.clone(), text.to_owned())),
            None => drop(annotations.remove(name)),
        }
    }
    if let Some(finalizers) = patch["finalizers"].as_array() {
        meta.finalizers = Some(finalizers.iter().map(|text| text.as_str().unwrap().to_owned()).collect());
    }
    if meta != **before {
        meta.resource_version = Some((version(&meta) + 1).to_string());
    }
    Print::of(meta)
}

/// Stores an object; one that is deleted and no longer held goes, and its Secret with it.
pub fn put(state: &mut State, index: usize, meta: Print<ObjectMeta>) {
    let held = meta.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    if meta.deletion_timestamp.is_some() && !held {
        state.objects[index] = None;
        state.secret = None;
    } else {
        state.objects[index] = Some(meta);
    }
}

/// The Secret as Kubernetes shows it.
pub fn shown(secret: &Secret) -> k8s_openapi::api::core::v1::Secret {
    let data: BTreeMap<String, ByteString> =
        secret.data.iter().map(|(entry, text)| (entry.clone(), ByteString(text.clone().into_bytes()))).collect();
    k8s_openapi::api::core::v1::Secret {
        metadata: ObjectMeta {
            uid: Some("secret-uid".into()),
            annotations: Some(secret.annotations.clone()),
            labels: Some(secret.labels.clone()),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..Default::default()
    }
}

/// The secret of a key.
pub fn secret_of(id: u8) -> String {
    format!("secret-of-{id}")
}

/// A compute as the platform shows it.
pub fn compute(id: u8, name: Option<String>, setting: bool, project: &str) -> platform::Compute {
    platform::Compute {
        id: format!("ep-{id}"),
        project_id: project.to_owned(),
        branch_id: "br-1".into(),
        region: None,
        role: Role::Replica,
        host: None,
        name,
        current_state: ComputeState::Active,
        pending_state: None,
        settings: Settings { passwordless_access: Some(setting), ..Settings::default() },
        last_active: None,
        created_at: None,
        updated_at: None,
        started_at: None,
        support: Support::default(),
    }
}
