//! The bounds of an exploration: how many resources, how many faults of which kind, and how much
//! time.

use std::fmt;
use std::time::Duration;

use dbplane::api::AccountKind;
use dbplane::controller::environment::PassSettings;
use dbplane::decide::Limits;
use dbplane::platform::Platforms;
use serde_json::{Value, json};

use super::in_memory::Resource;
use super::memo::Memos;
use super::mutation::Mutation;

/// Length of one tick of the model's clock, and of the longest request. A recorded call can be sent
/// within one tick, and ends within another one.
pub const TICK: Duration = Duration::from_secs(30);

/// The namespace of the second Compute, if it differs from that of the first one.
pub const OTHER: &str = "other";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// This many Computes on one branch. With `marks`, the platform keeps names.
    Computes { count: usize, marks: bool },
    /// One ProjectKey. With `revoke`, the platform lists and revokes keys.
    Key { revoke: bool },
}

/// The part of the statuses that is stored. Statuses multiply the states, so they are left out
/// where nothing depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statuses {
    /// Only the record.
    Record,
    /// Everything, because the brake uses conditions as its memory.
    Whole,
}

/// Limits of one model. Every number is the most times that something may happen.
pub struct Bound {
    pub subject: Subject,
    /// Calls of the platform or the API server whose answer is lost, carried out or not.
    pub lost: u8,
    /// Creates that the platform carries out twice and answers once.
    pub repeated: u8,
    /// Calls of either that are refused or fail without effect.
    pub refused: u8,
    /// Processes that die, at any point.
    pub crashes: u8,
    /// Processes that lead at the same time.
    pub leaders: u8,
    /// Ticks of the clock before the faults end.
    pub ticks: u8,
    /// Writes to the cluster that are carried out at once and answered later.
    pub slow: u8,
    /// Resources that users delete.
    pub deletions: u8,
    /// Computes or keys that others create at any time.
    pub foreign: u8,
    /// Lists that show the platform as it was one tick before.
    pub lagging: u8,
    /// Lists that are answered as if complete, but lack a compute that a resource is bound to.
    pub partial: u8,
    /// Computes that are deleted in the console.
    pub vanishing: u8,
    /// True if a request without an answer may be carried out at any later time, not only within a
    /// tick.
    pub late: bool,
    /// True if all declared changes are made before the first fault.
    pub established: bool,
    /// Creates that reach the platform before the faults end.
    pub creates: u8,
    /// More states than this are a failure: an incomplete check proves nothing.
    pub most: usize,
    /// The kind of account, if the model includes passes over it and changes by users.
    pub account: Option<AccountKind>,
    /// Exchanges of its API key for another one.
    pub exchanges: u8,
    /// True if users delete it.
    pub account_deletion: bool,
    /// How often a ClusterAccount stops admitting the namespace, or admits it again.
    pub admissions: u8,
    /// Replacements of a resource by its manifest, which has neither annotations nor finalizers.
    pub replacements: u8,
    /// How often an older record is applied, exported at any time before.
    pub older: u8,
    /// How often the record of a resource is applied to another one.
    pub copies: u8,
    /// How often users set `spec.computeID`, to any existing compute or to none. The API server
    /// rejects changes of it.
    pub named: u8,
    /// How often users change the policy for what a resource has at its deletion.
    pub policies: u8,
    /// Changes of `spec.accountRef`: to another spelling of the platform, to another platform, or
    /// back.
    pub moves: u8,
    /// Writes of a key's Secret that a policy refuses or changes.
    pub meddled: u8,
    /// Computes that others create with the same settings as ours.
    pub alike: u8,
    /// True if the Computes declare the primary of the branch. The second one is in its own
    /// namespace, whose account appears late.
    pub primaries: bool,
    /// How often a tenant of another namespace forges a record for its own Compute.
    pub forgeries: u8,
    /// Leaders that lose the API server. They end within a tick, before another process leads.
    pub cut_offs: u8,
    /// Deletions per minute that need no confirmation.
    pub deletes_per_minute: u32,
    pub mutation: Option<Mutation>,
    pub memos: Memos,
}

impl Bound {
    pub fn of(subject: Subject) -> Self {
        Self {
            subject,
            lost: 0,
            repeated: 0,
            refused: 0,
            crashes: 0,
            leaders: 1,
            ticks: 2,
            slow: 0,
            deletions: 0,
            foreign: 0,
            lagging: 0,
            partial: 0,
            vanishing: 0,
            late: false,
            established: false,
            creates: u8::MAX,
            most: 400_000,
            account: None,
            exchanges: 0,
            account_deletion: false,
            admissions: 0,
            replacements: 0,
            older: 0,
            copies: 0,
            named: 0,
            policies: 0,
            moves: 0,
            meddled: 0,
            alike: 0,
            primaries: false,
            forgeries: 0,
            cut_offs: 0,
            deletes_per_minute: 30,
            mutation: None,
            memos: Memos::default(),
        }
    }

    /// Number of resources without the account.
    pub fn count(&self) -> usize {
        match self.subject {
            Subject::Computes { count, .. } => count,
            Subject::Key { .. } => 1,
        }
    }

    /// The indexes of the resources without the account.
    pub fn subjects(&self) -> std::ops::Range<usize> {
        0..self.count()
    }

    /// The indexes of all resources with passes. The account's is the last.
    pub fn all(&self) -> std::ops::Range<usize> {
        0..self.count() + usize::from(self.account.is_some())
    }

    pub fn resource(&self, i: usize) -> Resource {
        match self.subject {
            _ if i == self.count() => self.account_resource(),
            Subject::Computes { .. } if self.has_other_namespace() && i == 1 => {
                ("Compute", format!("{OTHER}/r{i}"))
            }
            Subject::Computes { .. } => ("Compute", format!("r{i}")),
            Subject::Key { .. } => ("ProjectKey", format!("r{i}")),
        }
    }

    pub fn account_resource(&self) -> Resource {
        let kind = match self.account {
            Some(AccountKind::ClusterAccount) => "ClusterAccount",
            Some(AccountKind::Account) | None => "Account",
        };
        (kind, "prod".into())
    }

    /// True if the brake can stop anything.
    pub fn is_braked(&self) -> bool {
        self.deletes_per_minute < u32::from(self.deletions)
    }

    /// True if the second Compute is in another namespace with its own account.
    pub fn has_other_namespace(&self) -> bool {
        self.primaries || self.forgeries > 0
    }

    /// True if users rewrite records.
    pub fn is_rewritten(&self) -> bool {
        self.replacements > 0 || self.older > 0 || self.copies > 0
    }

    /// True if promises depend on more than the current state.
    pub fn depends_on_past(&self) -> bool {
        self.named > 0 || self.policies > 0 || self.alike > 0 || self.repeated > 0
    }

    pub fn statuses(&self) -> Statuses {
        if self.is_braked() {
            Statuses::Whole
        } else {
            Statuses::Record
        }
    }

    pub fn settings(&self) -> PassSettings {
        let request_timeout = if self.is(Mutation::NeverTooLate) {
            Duration::ZERO
        } else {
            TICK
        };
        PassSettings {
            limits: Limits {
                settle: 2 * TICK,
                key_check: Duration::from_secs(86_400),
                deletes_per_minute: self.deletes_per_minute,
                ..Limits::default()
            },
            request_timeout,
            cluster: "5e71ed".parse().unwrap(),
            namespaces: Vec::new(),
            cluster_accounts: true,
            platforms: Platforms::default(),
        }
    }

    pub fn marks(&self) -> bool {
        matches!(self.subject, Subject::Computes { marks: true, .. })
    }

    pub fn is_of_key(&self) -> bool {
        matches!(self.subject, Subject::Key { .. })
    }

    pub fn revokes(&self) -> bool {
        matches!(self.subject, Subject::Key { revoke: true })
    }

    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }
}

/// A number of a bound, and its name in the singular and in the plural.
type Counted = (fn(&Bound) -> u8, &'static str, &'static str);

const COUNTED: [Counted; 24] = [
    (|it| it.lost, "lost answer", "lost answers"),
    (|it| it.repeated, "repeated create", "repeated creates"),
    (|it| it.refused, "refusal", "refusals"),
    (|it| it.slow, "slow answer", "slow answers"),
    (|it| it.crashes, "crash", "crashes"),
    (|it| it.deletions, "deletion", "deletions"),
    (|it| it.foreign, "foreign create", "foreign creates"),
    (|it| it.lagging, "lagging list", "lagging lists"),
    (|it| it.partial, "partial list", "partial lists"),
    (
        |it| it.vanishing,
        "compute deleted by somebody",
        "computes deleted by somebody",
    ),
    (|it| it.leaders - 1, "second leader", "more leaders"),
    (|it| it.exchanges, "exchanged API key", "exchanged API keys"),
    (
        |it| it.admissions,
        "change of who is admitted",
        "changes of who is admitted",
    ),
    (
        |it| it.replacements,
        "replacement by a manifest",
        "replacements by manifests",
    ),
    (
        |it| it.older,
        "older record applied",
        "older records applied",
    ),
    (|it| it.copies, "copied record", "copied records"),
    (|it| it.named, "named compute", "named computes"),
    (
        |it| it.policies,
        "change of the deletion policy",
        "changes of the deletion policy",
    ),
    (
        |it| it.moves,
        "change of the account",
        "changes of the account",
    ),
    (
        |it| it.meddled,
        "refused or altered Secret",
        "refused or altered Secrets",
    ),
    (
        |it| it.alike,
        "foreign create just like ours",
        "foreign creates just like ours",
    ),
    (
        |it| it.forgeries,
        "record forged by a tenant",
        "records forged by a tenant",
    ),
    (
        |it| it.cut_offs,
        "leader without API server",
        "leaders without API server",
    ),
    (|it| it.ticks, "tick", "ticks"),
];

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Computes { count, marks } => {
                let names = if *marks { "names kept" } else { "no names" };
                match count {
                    1 => write!(f, "a Compute, {names}"),
                    _ => write!(f, "{count} Computes of a branch, {names}"),
                }
            }
            Self::Key { revoke: true } => f.write_str("a ProjectKey"),
            Self::Key { revoke: false } => f.write_str("a ProjectKey, no calls to list and revoke"),
        }
    }
}

impl Bound {
    /// The names of its numbers, without those that are 0.
    fn counts(&self) -> impl Iterator<Item = String> {
        COUNTED
            .iter()
            .filter_map(|(number, one, several)| match number(self) {
                0 => None,
                1 => Some(format!("1 {one}")),
                number => Some(format!("{number} {several}")),
            })
    }

    /// The names of everything besides the subject and the numbers.
    fn circumstances(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if let Some(kind) = self.account {
            parts.push(format!("with its {kind:?}"));
        }
        if self.account_deletion {
            parts.push("the account is deleted".to_owned());
        }
        if self.is_braked() {
            parts.push(format!("{} deletion a minute", self.deletes_per_minute));
        }
        if self.primaries {
            parts.push("primaries, one account late".to_owned());
        }
        if self.late {
            parts.push("creates of any lateness".to_owned());
        }
        if self.established {
            parts.push("established".to_owned());
        }
        if self.creates < u8::MAX {
            parts.push(format!("creates: {}", self.creates));
        }
        parts
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = vec![self.subject.to_string()];
        parts.extend(self.counts());
        parts.extend(self.circumstances());
        if let Some(mutation) = self.mutation {
            parts.insert(0, format!("{mutation:?}"));
        }
        f.write_str(&parts.join(", "))
    }
}

/// Declares one setting, so that foreign computes can be distinguished from it.
pub fn compute_spec(bound: &Bound) -> Value {
    json!({
        "accountRef": account_ref(bound),
        "projectID": "p-1",
        "branchID": "br-1",
        "type": if bound.primaries { "ReadWrite" } else { "ReadOnly" },
        "passwordlessAccess": true,
    })
}

pub fn key_spec(bound: &Bound) -> Value {
    json!({
        "accountRef": account_ref(bound),
        "projectID": "p-1",
        "keyName": "ci",
        "secret": {"name": "ci", "key": "api-key"},
    })
}

fn account_ref(bound: &Bound) -> Value {
    let (kind, name) = bound.account_resource();
    json!({"kind": kind, "name": name})
}

pub fn account_spec(bound: &Bound) -> Value {
    let mut spec = json!({
        "baseURL": "https://platform.example/v2",
        "organizationID": "org",
        "apiKeySecretRef": {"name": "platform-api-key", "key": "api-key"},
    });
    if bound.account == Some(AccountKind::ClusterAccount) {
        spec["apiKeySecretRef"]["namespace"] = json!("shop");
        spec["namespaces"] = json!({"names": ["shop"]});
    }
    spec
}
