//! What effects do to the platform and to the cluster.

use std::collections::BTreeMap;

use dbplane::decide::names;
use dbplane::decide::seal::{ObjectKey, open, seal};
use dbplane::domain::{self, ComputeState, Fault, KeyEntry, NameSupport, Role, Settings, Support};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::bound::Bound;
use super::in_memory::Request;
use super::in_memory::cluster::NAMESPACE;
use super::mutation::Mutation;
use super::replay::{Answer, Call, Effect};
use super::state::{Compute, Key, State};

/// Whether it goes to the platform and changes something there.
pub fn changes_platform(effect: &Effect) -> bool {
    let Effect::Platform(_, call) = effect else { return false };
    matches!(call, Call::CreateCompute(..) | Call::DeleteCompute(_) | Call::CreateKey(_) | Call::RevokeKey(_))
}

/// Whether it goes to the platform.
pub fn calls_platform(effect: &Effect) -> bool {
    matches!(effect, Effect::Platform(..))
}

/// Whether it changes anything anywhere.
pub fn writes(effect: &Effect) -> bool {
    match effect {
        Effect::Cluster(request) => request.writes(),
        Effect::Platform(..) => changes_platform(effect),
    }
}

/// Carries an effect out.
pub fn apply(bound: &Bound, state: &mut State, effect: &Effect) -> Answer {
    match effect {
        Effect::Cluster(request) => {
            let request = mutated(bound, state, request);
            Answer::Cluster(state.cluster_mut().handle(&request))
        }
        Effect::Platform(key, _) if *key != state.platform.accepted => {
            Answer::Fault(Fault::Unauthorized { message: String::new() })
        }
        Effect::Platform(_, call) => carry_out(bound, state, call),
    }
}

/// The request, as a process with a broken rule would make it.
fn mutated(bound: &Bound, state: &State, request: &Request) -> Request {
    let mut request = request.clone();
    let (Request::PatchMetadata { resource, patch, .. } | Request::ApplyStatus { resource, patch, .. }) = &mut request
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
        && let Some(text) = value["metadata"]["annotations"][names::RECORD].as_str()
    {
        let object_key = ObjectKey { namespace: NAMESPACE, name: &resource.1 };
        let mut record: Value = open(names::RECORD, text, object_key).unwrap();
        record.as_object_mut().unwrap().remove("intent");
        value["metadata"]["annotations"][names::RECORD] = json!(seal(names::RECORD, &record, object_key));
    }
    *patch = value.to_string();
    request
}

fn carry_out(bound: &Bound, state: &mut State, call: &Call) -> Answer {
    match call {
        Call::CreateCompute(resource, name) => {
            state.platform.made += 1;
            let name = name.clone().filter(|_| bound.marks());
            state.platform.computes.insert(
                state.platform.made,
                Compute { name, made_for: Some(resource.clone()), setting: true, late: false },
            );
            Answer::Made(state.platform.made)
        }
        Call::DeleteCompute(id) => {
            let Some(removed) = state.platform.computes.remove(id) else { return no_such_compute() };
            if removed.made_for.is_none() {
                state.violation = Some("a foreign compute was deleted");
            }
            Answer::Done
        }
        Call::HasCompute(id) if !state.platform.computes.contains_key(id) => no_such_compute(),
        Call::CreateKey(name) => {
            state.platform.made += 1;
            state.platform.keys.insert(state.platform.made, Key { name: name.clone(), foreign: false });
            Answer::Made(state.platform.made)
        }
        Call::RevokeKey(_) | Call::ListKeys if !bound.revokes() && bound.is_of_key() => Answer::Fault(unsupported()),
        Call::RevokeKey(id) => {
            if state.platform.keys.remove(id).is_some_and(|key| key.foreign) {
                state.violation = Some("a foreign key was revoked");
            }
            Answer::Done
        }
        Call::ListKeys => Answer::Keys(state.platform.keys.iter().map(|(id, key)| entry(*id, key)).collect()),
        Call::ProbeKey(secret) => match state.platform.keys.keys().any(|id| secret_of(*id) == *secret) {
            true => Answer::Done,
            false => Answer::Fault(Fault::Unauthorized { message: String::new() }),
        },
        Call::ListProjects | Call::ListComputes | Call::HasCompute(_) => Answer::Done,
    }
}

fn entry(id: u8, key: &Key) -> KeyEntry {
    KeyEntry { id: id.into(), name: key.name.clone(), project_id: Some("p-1".into()), created_at: None }
}

fn no_such_compute() -> Answer {
    Answer::Fault(Fault::NotFound { message: String::new() })
}

fn unsupported() -> Fault {
    Fault::Unsupported { status: 405, message: String::new() }
}

/// The answer that says that nothing was done.
pub fn refusal(effect: &Effect) -> Answer {
    match effect {
        Effect::Platform(_, Call::CreateCompute(..) | Call::CreateKey(_)) => {
            Answer::Fault(Fault::Busy { message: String::new(), retry_after: None })
        }
        effect if calls_platform(effect) => Answer::Fault(Fault::Throttled { status: 429, retry_after: None }),
        _ => Answer::Cluster(Err(500)),
    }
}

/// No answer came.
pub fn silence(effect: &Effect) -> Answer {
    if calls_platform(effect) {
        Answer::Fault(Fault::Unknown { message: "no answer".into() })
    } else {
        Answer::Cluster(Err(504))
    }
}

/// The Secret with one of the account's API keys.
pub fn credential(key: u8) -> Secret {
    let data = BTreeMap::from([("api-key".to_owned(), ByteString(key.to_string().into_bytes()))]);
    Secret { data: Some(data), ..Secret::default() }
}

/// The secret of a key.
pub fn secret_of(id: u8) -> String {
    format!("secret-of-{id}")
}

/// A compute as the platform shows it.
pub fn compute(id: u8, name: Option<String>, setting: bool, project: &str) -> domain::Compute {
    let names = if name.is_some() { NameSupport::Kept } else { NameSupport::Unseen };
    domain::Compute {
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
        support: Support { names, ..Support::default() },
    }
}

/// A compute of another branch, which shows that the platform keeps names.
pub fn named_elsewhere() -> domain::Compute {
    domain::Compute { branch_id: "br-2".into(), ..compute(0, Some("of-another-branch".into()), false, "p-1") }
}
