//! Records forged by a hostile tenant. A seal needs no secret, so the tenant can make a valid one.

use dbplane::decide::names::RECORD;
use dbplane::decide::seal::{ObjectKey, seal};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::cluster::{Resource, place};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forged {
    /// Claims a binding to another's compute.
    Binding,
    /// Claims an open create whose baseline excludes nothing on the branch.
    Intent,
    /// Claims the same for a create without an answer.
    Unanswered,
    /// Claims an open create with the name of another's compute as its mark.
    Mark,
    Nonsense,
}

/// The resource whose compute is claimed.
#[derive(Debug)]
pub struct Victim<'a> {
    pub platform: &'a str,
    pub project: &'a str,
    pub branch: &'a str,
    /// The compute that it is bound to.
    pub compute: Option<String>,
    /// The name of the compute made for it.
    pub mark: Option<String>,
}

impl Forged {
    pub fn record(self, victim: &Victim, at: Timestamp) -> Value {
        let Victim {
            platform,
            project,
            branch,
            compute,
            mark,
        } = victim;
        let at = at.to_string();
        let create = |mark: &Option<String>| json!({"at": at, "branch": branch, "platform": platform, "baseline": [], "mark": mark, "asked": {}});
        match self {
            Self::Binding => {
                let id = compute.as_deref().unwrap_or("ep-nobody");
                json!({"binding": {"id": id, "project": project, "platform": platform, "origin": "Created", "at": at}})
            }
            Self::Intent => json!({"intent": create(&None)}),
            Self::Unanswered => json!({"unanswered": [create(&None)]}),
            Self::Mark => json!({"intent": create(mark)}),
            Self::Nonsense => json!({"binding": 7}),
        }
    }
}

/// Seals a record with the UID of the resource, and with a serial number that earlier versions
/// would have trusted.
pub fn sealed(own: &Resource, uid: &str, mut record: Value) -> String {
    record["serial"] = json!(u64::MAX);
    record["uid"] = json!(uid);
    seal(RECORD, &record, object_key(own))
}

pub fn object_key(own: &Resource) -> ObjectKey<'_> {
    let (namespace, name) = place(&own.1);
    ObjectKey { namespace, name }
}
