//! Applies the brake on mass deletion to deletions on the platform. They follow from a deleted
//! resource, or concern a compute that a create made in addition to the bound one.

use jiff::Timestamp;
use kube::Resource;

use crate::api::Uid;
use crate::controller::access;
use crate::controller::environment::{
    Change, Environment, Kind, KindVisitor, Kinds, Occurrence, account_of,
};
use crate::controller::index::Key;
use crate::controller::object::{Managed, uid};
use crate::decide::Brake;
use crate::decide::brake::{DeletionRequest, Rules};

/// The state of the brake if a deletion on the platform has to wait. `None` admits the deletion,
/// which is then counted.
pub fn held<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    step: &K::Step,
    now: Timestamp,
) -> Option<Brake> {
    let deleting = object.meta().deletion_timestamp.is_some();
    let target = match K::change(object, step) {
        Change::Delete(target) if deleting => target,
        Change::DeleteStray(target) if !deleting => target,
        _ => return None,
    };
    let kind = K::Object::kind(&());
    let meta = object.meta_observed();
    let limit = env.settings().limits.deletes_per_minute;
    if limit > 0 && !meta.brake.is_confirmed(now) {
        let account = account_of::<K>(object)?;
        let policy = access::mass_deletion_policy(env, &account);
        let uid = uid(object);
        let mut others = Others {
            env,
            me: uid,
            key: Key::Braked(account.clone(), meta.namespace.clone()),
            wait: false,
        };
        E::Kinds::each(&mut others);
        let rules = Rules {
            limit,
            policy,
            others_wait: others.wait,
        };
        let account = account.to_string();
        let asked = DeletionRequest {
            account: &account,
            namespace: &meta.namespace,
            target,
            uid: uid.as_str(),
        };
        if let Err(refusal) = env.state().admit_deletion(&asked, &rules, now) {
            return Some(refusal.brake(&kind, &meta));
        }
    }
    env.record(object, Occurrence::Deletion);
    None
}

/// Finds another resource of the account and namespace with a paused deletion. Its own status
/// records that, also for the next process.
struct Others<'a, E> {
    env: &'a E,
    me: &'a Uid,
    key: Key,
    wait: bool,
}

impl<E: Environment> KindVisitor for Others<'_, E> {
    fn visit<K: Kind>(&mut self) {
        let paused = self.env.objects_by::<K>(&self.key);
        self.wait = self.wait || paused.iter().any(|other| uid(other.as_ref()) != self.me);
    }
}
