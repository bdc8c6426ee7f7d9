//! Edits of a resource's spec: its named compute, its deletion policy, and its account.

use dbplane::api::PlatformAccess;
use serde_json::{Value, json};

use super::bound::{Bound, Subject};
use super::in_memory::cluster::Stored;
use super::state::State;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// `spec.computeID` is set to this compute.
    Names(u8),
    /// The policy changes from Delete or Revoke to Orphan, or back.
    Policy,
    /// The reference changes to another of the standing accounts.
    Account(usize),
}

/// The number of a compute that does not exist.
const NONE: u8 = 200;

/// An account that is usable from the beginning and forever.
#[derive(Debug)]
pub struct StandingAccount {
    pub name: &'static str,
    /// The number of its connection in every process.
    pub connection: u64,
    /// Its API key.
    pub key: u8,
    pub url: &'static str,
    pub organization: &'static str,
}

/// The API key that only the other platform accepts.
pub const ELSEWHERE: u8 = 0;

/// The default account, one with another spelling of the same platform, and one on another
/// platform. The latter has a project with the same id.
pub const STANDING_ACCOUNTS: [StandingAccount; 3] = [
    StandingAccount {
        name: "prod",
        connection: 1,
        key: 1,
        url: "https://platform.example/v2",
        organization: "org",
    },
    StandingAccount {
        name: "spelled-otherwise",
        connection: 101,
        key: 1,
        url: "https://platform.example:443/v2",
        organization: "org",
    },
    StandingAccount {
        name: "elsewhere",
        connection: 102,
        key: ELSEWHERE,
        url: "https://elsewhere.example/v2",
        organization: "org-2",
    },
];

impl StandingAccount {
    pub fn spec(&self) -> Value {
        json!({
            "baseURL": self.url,
            "organizationID": self.organization,
            "apiKeySecretRef": {"name": "platform-api-key", "key": "api-key"},
        })
    }

    pub fn access(&self) -> PlatformAccess {
        serde_json::from_value(json!({"baseURL": self.url, "organizationID": self.organization}))
            .unwrap()
    }

    /// The account that a resource refers to.
    pub fn of(stored: &Stored) -> &'static Self {
        let name = stored.value["spec"]["accountRef"]["name"].as_str();
        STANDING_ACCOUNTS
            .iter()
            .find(|account| Some(account.name) == name)
            .unwrap()
    }
}

/// The edits that are possible on resource `i` now.
pub fn edits(bound: &Bound, state: &State, i: usize) -> Vec<Edit> {
    let mut edits = Vec::new();
    if state.left.named > 0 && matches!(bound.subject, Subject::Computes { .. }) {
        edits.extend(
            state
                .platform
                .computes
                .keys()
                .chain([&NONE])
                .map(|id| Edit::Names(*id)),
        );
    }
    if state.left.policies > 0 {
        edits.push(Edit::Policy);
    }
    if state.left.moves > 0 && state.cluster.objects.contains_key(&bound.resource(i)) {
        edits.extend((0..STANDING_ACCOUNTS.len()).map(Edit::Account));
    }
    edits
}

/// The state after an edit; `None` if it is impossible or changes nothing.
pub fn edited(bound: &Bound, state: &State, i: usize, edit: Edit) -> Option<State> {
    let resource = bound.resource(i);
    let stored = state.cluster.objects.get(&resource)?;
    let mut next = state.clone();
    let change = match edit {
        Edit::Names(id) => {
            next.left.named = state.left.named.checked_sub(1)?;
            if !stored.value["spec"]["computeID"].is_null() {
                return None;
            }
            next.past.named.insert(id);
            json!({"computeID": format!("ep-{id}")})
        }
        Edit::Policy => {
            next.left.policies = state.left.policies.checked_sub(1)?;
            // An edit during the deletion may be too late or not, so either result is accepted.
            next.past.kept.retain(|(of, _)| *of != i);
            let removes = if bound.is_of_key() {
                "Revoke"
            } else {
                "Delete"
            };
            json!({"deletion": if is_orphaned(stored) { removes } else { "Orphan" }})
        }
        Edit::Account(number) => {
            next.left.moves = state.left.moves.checked_sub(1)?;
            let account = &STANDING_ACCOUNTS[number];
            if StandingAccount::of(stored).name == account.name {
                return None;
            }
            json!({"accountRef": {"name": account.name}})
        }
    };
    next.cluster_mut().edit(&resource, &json!({"spec": change}));
    Some(next)
}

/// True if the resource's compute or key has to survive its deletion.
pub fn is_orphaned(stored: &Stored) -> bool {
    stored.value["spec"]["deletion"] == "Orphan"
}
