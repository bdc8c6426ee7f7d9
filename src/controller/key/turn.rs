//! Decides when to probe a key: to ask the platform, with the key itself, whether it still accepts
//! it.

use std::time::Duration;

use jiff::Timestamp;

use super::listing;
use crate::api::{Known, ProjectKey};
use crate::controller::access;
use crate::controller::environment::Environment;
use crate::controller::object::{AccountName, uid};
use crate::decide::identity::ProjectKeyIdentity;
use crate::decide::key::Probe;

/// The share of the account's requests, in percent, that may probe its keys.
const SHARE: u32 = 25;
const MINUTE: Duration = Duration::from_secs(60);

/// The state of the key if its turn is later; `None` if it may be probed now. While no list of keys
/// was read, all of them are probed regularly. They take turns, except those whose result is
/// awaited.
pub(super) fn turn_to_ask<E: Environment>(
    env: &E,
    object: &Known<ProjectKey>,
    known: &ProjectKeyIdentity,
    now: Timestamp,
) -> Option<Probe> {
    let access = access::of(env, object);
    let listed = listing::look(env, object, known, &access);
    let probe = env.state().resource(uid(object)).key.probe;
    let waits = probe == Some(Probe::WANTED) || matches!(probe, Some(Probe::Refused { .. }));
    if waits || object.metadata.deletion_timestamp.is_some() || listed.is_read() {
        return None;
    }
    let spacing = MINUTE * 100 / SHARE / access.connection?.requests_per_minute().max(1);
    let of = (
        AccountName::of(&object.spec.account_ref, object),
        object.namespace().to_owned(),
    );
    let turn = env.state().turn_to_ask(uid(object), &of, spacing, now);
    // As if it had been probed one period before its turn.
    let before = turn
        .checked_sub(env.settings().limits.key_check)
        .unwrap_or(now);
    (turn > now).then_some(Probe::NotAsked(Some(before)))
}
