//! The brake on mass deletion, as one process applies it to what it deletes on the platform because a resource is deleted.

use jiff::Timestamp;
use kube::Resource;

use super::super::environment::{Environment, Kind, KindVisitor, Kinds};
use super::super::index::Key;
use super::super::object::{AccountName, Managed, uid};
use crate::decide::Brake;
use crate::decide::brake::Refusal;

/// Why a deletion on the platform has to wait; `None` where it may be made.
pub fn paused<K: Kind, E: Environment>(env: &E, object: &K::Object, step: &K::Step, now: Timestamp) -> Option<String> {
    object.meta().deletion_timestamp.as_ref()?;
    let target = K::removes(step)?;
    let kind = K::Object::kind(&());
    let meta = object.meta_observed();
    let limit = env.settings().limits.deletes_per_minute;
    if limit > 0 && meta.brake != Brake::Confirmed {
        let mut others = Others {
            env,
            me: uid(object),
            namespace: object.meta().namespace.clone().unwrap_or_default(),
            wait: false,
        };
        E::Kinds::each(&mut others);
        let account = AccountName::of(K::account(object)?, object);
        if let Err(refusal) = env.state().admit_deletion((&account, target), limit, others.wait, now) {
            return Some(Refusal::text(refusal, &kind, &meta));
        }
    }
    env.count_deletion(&kind);
    None
}

/// Whether the deletion of another resource of the namespace is paused; its own status says so, also to the next process.
struct Others<'a, E> {
    env: &'a E,
    me: String,
    namespace: String,
    wait: bool,
}

impl<E: Environment> KindVisitor for Others<'_, E> {
    fn visit<K: Kind>(&mut self) {
        let paused = self.env.objects_by::<K>(&Key::Braked(self.namespace.clone()));
        self.wait = self.wait || paused.iter().any(|other| uid(other.as_ref()) != self.me);
    }
}
