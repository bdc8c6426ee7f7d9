//! Counts the keys by account and state, for the metrics.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::ProjectKeys;
use crate::api::ProjectKeyStatus;
use crate::controller::access;
use crate::controller::environment::Environment;
use crate::controller::object::AccountName;
use crate::telemetry::metrics::{AccountKeys, KeyStage};

/// The keys in the statuses, and the number of keys in the organizations of their accounts.
pub fn census<E: Environment>(env: &E) -> Vec<AccountKeys> {
    let mut uids: BTreeMap<AccountName, String> = BTreeMap::new();
    let mut accounts: BTreeMap<String, AccountKeys> = BTreeMap::new();
    for object in env.objects::<ProjectKeys>() {
        let name = AccountName::of(&object.spec.account_ref, object.as_ref());
        // Accounts that do not exist have no UID, and are counted together.
        let uid = uids
            .entry(name.clone())
            .or_insert_with_key(|name| access::uid(env, name).unwrap_or_default());
        let counted = accounts
            .entry(uid.clone())
            .or_insert_with(|| of_account(env, &name, uid));
        object
            .status
            .iter()
            .for_each(|status| count(counted, status));
    }
    accounts.into_values().collect()
}

fn of_account<E: Environment>(env: &E, name: &AccountName, uid: &str) -> AccountKeys {
    let connection = env.state().account(name).and_then(|entry| entry.connection);
    let organization = connection
        .and_then(|connection| env.count_keys(name, &connection))
        .map(|counted| counted.what);
    AccountKeys::of(uid.to_owned(), organization)
}

fn count(counted: &mut AccountKeys, status: &ProjectKeyStatus) {
    if status.key_id.is_some() {
        counted.add(KeyStage::InUse, status.created_at.map(Timestamp::as_second));
    }
    for (state, keys) in [
        (KeyStage::Previous, &status.previous_keys),
        (KeyStage::Lost, &status.lost_keys),
    ] {
        keys.iter()
            .for_each(|key| counted.add(state, Some(key.since.as_second())));
    }
}
