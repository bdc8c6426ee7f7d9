//! The consequences of effects for the platform and the cluster.

use std::collections::BTreeMap;

use dbplane::decide::names;
use dbplane::decide::seal::{ObjectKey, open, seal};
use dbplane::domain::{
    self, ComputeState, Fault, KeyEntry, KeyId, NameSupport, Role, Settings, Support,
};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::bound::Bound;
use super::edits::ELSEWHERE;
use super::in_memory::cluster::NAMESPACE;
use super::in_memory::{Print, Request, Resource};
use super::mutation::Mutation;
use super::past::record_past;
use super::replay::{Answer, Call, Effect};
use super::state::{Compute, Key, State};

/// True if the effect changes the platform.
pub fn changes_platform(effect: &Effect) -> bool {
    let Effect::Platform(_, call) = effect else {
        return false;
    };
    matches!(
        call,
        Call::CreateCompute(..) | Call::DeleteCompute(_) | Call::CreateKey(_) | Call::RevokeKey(_)
    )
}

pub fn calls_platform(effect: &Effect) -> bool {
    matches!(effect, Effect::Platform(..))
}

/// True if the effect changes the platform or the cluster.
pub fn writes(effect: &Effect) -> bool {
    match effect {
        Effect::Cluster(request) => request.writes(),
        Effect::Platform(..) => changes_platform(effect),
    }
}

/// Carries out an effect.
pub fn apply(bound: &Bound, state: &mut State, effect: &Effect) -> Answer {
    match effect {
        Effect::Cluster(request) => {
            let request = mutated(bound, state, request);
            let before = bound.depends_on_past().then(|| state.clone());
            let answer = state.cluster_mut().handle(&request);
            if let Some(before) = before {
                record_past(bound, &before, state, &request);
            }
            Answer::Cluster(answer)
        }
        Effect::Platform(key, _) if ![state.platform.accepted, ELSEWHERE].contains(key) => {
            Answer::Fault(Fault::Unauthorized {
                message: String::new(),
            })
        }
        Effect::Platform(key, call) => carry_out(bound, state, *key == ELSEWHERE, call),
    }
}

/// A policy's interference with the write of a key's Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meddling {
    Refuses,
    /// Another value is stored.
    Alters,
    /// The annotations are removed.
    Strips,
}

/// Writes a key's Secret under the influence of a policy; `None` for any other effect.
pub fn meddled(bound: &Bound, state: &mut State, effect: &Effect, how: Meddling) -> Option<Answer> {
    let Effect::Cluster(Request::ApplySecret {
        name,
        uid,
        version,
        secret,
        dry_run: false,
    }) = effect
    else {
        return None;
    };
    let mut secret = secret.clone_inner();
    match how {
        Meddling::Refuses => return Some(Answer::Cluster(Err(422))),
        Meddling::Alters => drop(
            secret
                .data
                .as_mut()?
                .insert("api-key".into(), ByteString(b"altered".to_vec())),
        ),
        Meddling::Strips => secret.metadata.annotations = None,
    }
    let (name, uid, version) = (name.clone(), uid.clone(), version.clone());
    let request = Request::ApplySecret {
        name,
        uid,
        version,
        secret: Print::of(secret),
        dry_run: false,
    };
    Some(apply(bound, state, &Effect::Cluster(request)))
}

/// Carries out a create twice and returns the second answer; `None` for any other effect.
pub fn repeated(bound: &Bound, state: &mut State, effect: &Effect) -> Option<Answer> {
    let Effect::Platform(_, Call::CreateCompute(..)) = effect else {
        return None;
    };
    let Answer::Made(first) = apply(bound, state, effect) else {
        return None;
    };
    state.platform.computes.get_mut(&first)?.twin = true;
    Some(apply(bound, state, effect))
}

/// The platform's answer from before its last tick, for a compute that is newer; `None` for any
/// other effect.
pub fn answered_as_before(state: &State, effect: &Effect) -> Option<Answer> {
    let Effect::Platform(_, Call::HasCompute(id)) = effect else {
        return None;
    };
    let known_before = state.platform.before.as_ref()?.computes.contains_key(id);
    (state.platform.computes.contains_key(id) && !known_before).then(no_such_compute)
}

/// The request as a process with a mutation would send it.
fn mutated(bound: &Bound, state: &State, request: &Request) -> Request {
    let mut request = request.clone();
    let (Request::Patch {
        resource, patch, ..
    }
    | Request::ApplyStatus {
        resource, patch, ..
    }) = &mut request
    else {
        return request;
    };
    let mut value: Value = match bound.mutation {
        Some(Mutation::SkipVersion | Mutation::SkipIntent) => serde_json::from_str(patch).unwrap(),
        _ => return request,
    };
    if bound.is(Mutation::SkipVersion)
        && let Some(stored) = state.cluster.objects.get(resource)
    {
        value["metadata"]["resourceVersion"] = json!(stored.version().to_string());
    }
    if bound.is(Mutation::SkipIntent)
        && let Some(text) = value["status"]["record"].as_str()
    {
        let object_key = ObjectKey {
            namespace: NAMESPACE,
            name: &resource.1,
        };
        let mut record: Value = open(names::RECORD, text, object_key).unwrap();
        record.as_object_mut().unwrap().remove("intent");
        value["status"]["record"] = json!(seal(names::RECORD, &record, object_key));
    }
    *patch = value.to_string();
    request
}

/// Carries out a call on the platform, or on the other one.
fn carry_out(bound: &Bound, state: &mut State, elsewhere: bool, call: &Call) -> Answer {
    match call {
        Call::CreateCompute(resource, name) => {
            create_compute(bound, state, elsewhere, resource, name.as_ref())
        }
        Call::DeleteCompute(id) => delete_compute(state, elsewhere, *id),
        Call::HasCompute(id) if !has_compute(state, elsewhere, *id) => no_such_compute(),
        Call::CreateKey(name) => create_key(bound, state, elsewhere, name),
        Call::RevokeKey(_) | Call::ListKeys if !bound.revokes() && bound.is_of_key() => {
            Answer::Fault(unsupported())
        }
        Call::RevokeKey(id) => revoke_key(state, elsewhere, *id),
        Call::ListKeys => {
            let keys = state.platform.keys.iter();
            let listed = keys.filter(|(_, key)| key.elsewhere == elsewhere);
            Answer::Keys(listed.map(|(id, key)| entry(*id, key)).collect())
        }
        Call::ProbeKey(secret) => probe_key(state, secret),
        Call::ListProjects | Call::ListComputes | Call::HasCompute(_) => Answer::Done,
    }
}

fn create_compute(
    bound: &Bound,
    state: &mut State,
    elsewhere: bool,
    resource: &Resource,
    name: Option<&String>,
) -> Answer {
    let platform = &mut state.platform;
    // A branch has at most one primary.
    if bound.primaries && !platform.computes.is_empty() {
        return Answer::Fault(Fault::Conflict {
            message: String::new(),
        });
    }
    platform.made += 1;
    let created = Compute {
        name: if bound.marks() { name.cloned() } else { None },
        made_for: Some(resource.clone()),
        setting: true,
        late: false,
        twin: false,
        elsewhere,
    };
    platform.computes.insert(platform.made, created);
    Answer::Made(platform.made)
}

fn has_compute(state: &State, elsewhere: bool, id: u8) -> bool {
    let compute = state.platform.computes.get(&id);
    compute.is_some_and(|compute| compute.elsewhere == elsewhere)
}

fn delete_compute(state: &mut State, elsewhere: bool, id: u8) -> Answer {
    if !has_compute(state, elsewhere, id) {
        return no_such_compute();
    }
    let removed = state.platform.computes.remove(&id);
    if removed.is_some_and(|removed| removed.made_for.is_none()) && !state.past.named.contains(&id)
    {
        state.violation = Some("a foreign compute was deleted");
    }
    removed_by_us(state, id)
}

fn create_key(bound: &Bound, state: &mut State, elsewhere: bool, name: &str) -> Answer {
    state.platform.made += 1;
    state.past.keys += u8::from(bound.meddled > 0);
    let key = Key {
        name: name.to_owned(),
        foreign: false,
        elsewhere,
    };
    state.platform.keys.insert(state.platform.made, key);
    Answer::Made(state.platform.made)
}

fn revoke_key(state: &mut State, elsewhere: bool, id: u8) -> Answer {
    let keys = &mut state.platform.keys;
    if keys.get(&id).is_some_and(|key| key.elsewhere == elsewhere)
        && keys.remove(&id).is_some_and(|key| key.foreign)
    {
        state.violation = Some("a foreign key was revoked");
    }
    removed_by_us(state, id)
}

fn probe_key(state: &State, secret: &str) -> Answer {
    let mut live = state.platform.keys.keys();
    if live.any(|id| secret_of(*id) == secret) {
        Answer::Done
    } else {
        Answer::Fault(Fault::Unauthorized {
            message: String::new(),
        })
    }
}

fn removed_by_us(state: &mut State, id: u8) -> Answer {
    if state.past.kept.iter().any(|(_, kept)| *kept == id) {
        state.violation = Some("what was to be kept was deleted");
    }
    Answer::Done
}

fn entry(id: u8, key: &Key) -> KeyEntry {
    KeyEntry {
        id: KeyId(id.into()),
        name: key.name.clone(),
        project_id: Some("p-1".into()),
        created_at: None,
        last_used_at: None,
        last_used_from: None,
    }
}

fn no_such_compute() -> Answer {
    Answer::Fault(Fault::NotFound {
        message: String::new(),
    })
}

fn unsupported() -> Fault {
    Fault::Unsupported {
        status: 405,
        message: String::new(),
    }
}

/// An answer that reports that nothing was done.
pub fn refusal(effect: &Effect) -> Answer {
    match effect {
        Effect::Platform(_, Call::CreateCompute(..) | Call::CreateKey(_)) => {
            Answer::Fault(Fault::Busy {
                message: String::new(),
                retry_after: None,
            })
        }
        effect if calls_platform(effect) => Answer::Fault(Fault::Throttled {
            status: 429,
            retry_after: None,
        }),
        _ => Answer::Cluster(Err(500)),
    }
}

/// The outcome if no answer arrives.
pub fn silence(effect: &Effect) -> Answer {
    if calls_platform(effect) {
        Answer::Fault(Fault::Unknown {
            message: "no answer".into(),
        })
    } else {
        Answer::Cluster(Err(504))
    }
}

/// The Secret with one of the account's API keys.
pub fn credential(key: u8) -> Secret {
    let data = BTreeMap::from([(
        "api-key".to_owned(),
        ByteString(key.to_string().into_bytes()),
    )]);
    Secret {
        data: Some(data),
        ..Secret::default()
    }
}

/// The secret of a key.
pub fn secret_of(id: u8) -> String {
    format!("secret-of-{id}")
}

/// A compute as the platform shows it.
pub fn compute(id: u8, name: Option<String>, setting: bool, project: &str) -> domain::Compute {
    let names = if name.is_some() {
        NameSupport::Kept
    } else {
        NameSupport::Unseen
    };
    domain::Compute {
        id: format!("ep-{id}").into(),
        project_id: project.into(),
        branch_id: "br-1".into(),
        region: None,
        role: Role::Replica,
        host: None,
        pooled_host: None,
        name,
        current_state: ComputeState::Active,
        pending_state: None,
        settings: Settings {
            passwordless_access: Some(setting),
            ..Settings::default()
        },
        last_active: None,
        created_at: None,
        updated_at: None,
        started_at: None,
        support: Support {
            names,
            ..Support::default()
        },
    }
}

/// A compute of another branch that shows that the platform keeps names.
pub fn named_elsewhere() -> domain::Compute {
    domain::Compute {
        branch_id: "br-2".into(),
        ..compute(0, Some("of-another-branch".into()), false, "p-1")
    }
}
