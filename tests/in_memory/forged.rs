//! Records that a hostile tenant seals itself: no key is needed for a seal.

use dbplane::decide::names::RECORD;
use dbplane::decide::seal::{ObjectKey, seal};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::cluster::place;
use super::request::Resource;

/// What is forged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forged {
    /// It has the compute of somebody else.
    Binding,
    /// A create of it is open that excludes nothing that is on the branch.
    Intent,
    /// The same for one that was never answered.
    Unanswered,
    /// The open create has the name of somebody else's compute as its mark.
    Mark,
    Nonsense,
}

/// Whose compute it is about.
#[derive(Debug)]
pub struct Victim<'a> {
    pub platform: &'a str,
    pub project: &'a str,
    pub branch: &'a str,
    /// The compute that it is bound to.
    pub compute: Option<String>,
    /// The name of what was made for it.
    pub mark: Option<String>,
}

impl Forged {
    pub fn record(self, victim: &Victim, at: Timestamp) -> Value {
        let Victim { platform, project, branch, compute, mark } = victim;
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

/// With the number that versions of before would have believed, and the UID of the resource.
pub fn sealed(own: &Resource, uid: &str, mut record: Value) -> String {
    record["serial"] = json!(u64::MAX);
    record["uid"] = json!(uid);
    seal(RECORD, &record, object_key(own))
}

pub fn object_key(own: &Resource) -> ObjectKey<'_> {
    let (namespace, name) = place(&own.1);
    ObjectKey { namespace, name }
}
