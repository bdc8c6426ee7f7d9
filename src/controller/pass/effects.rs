//! Applies what follows from an observation.

use crate::cluster::resource_version;
use crate::controller::access;
use crate::controller::environment::{Effects, Environment, Kind, account_of, wake_by};
use crate::controller::index::Key;
use crate::controller::object::uid;

pub fn apply<K: Kind, E: Environment>(env: &E, object: &K::Object, effects: Effects<E::Client>) {
    let (uid, state) = (uid(object), env.state());
    if let Some(memory) = effects.memory {
        state.remember(uid, memory);
    }
    if effects.ends_reservation {
        state.resolved(uid, resource_version(object));
    }
    if let Some((name, entry)) = effects.account
        && state.publish_account(&name, entry)
    {
        wake_by(env, &Key::Account(name));
    }
    let held = K::needs_finalizer(object);
    let was_held = state.hold(uid, held);
    if let Some(account) = account_of::<K>(object)
        && (held && state.is_unused(&account) || was_held && !held)
    {
        access::wake(env, &account);
    }
    for account in &effects.requeue_accounts {
        access::wake(env, account);
    }
    if let Some(compute) = effects.requeue_compute {
        env.wake(compute);
    }
}
