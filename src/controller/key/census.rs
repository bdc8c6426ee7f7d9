//! Counts the keys by namespace, account and state, for the metrics.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::ProjectKeys;
use crate::api::ProjectKeyStatus;
use crate::controller::environment::Environment;
use crate::controller::object::{AccountName, namespace};
use crate::telemetry::metrics::{AccountKeys, KeyStage};

/// The keys in the statuses.
pub fn census<E: Environment>(env: &E) -> Vec<AccountKeys> {
    let mut accounts: BTreeMap<(String, AccountName), AccountKeys> = BTreeMap::new();
    for object in env.objects::<ProjectKeys>() {
        let namespace = namespace(object.as_ref());
        let name = AccountName::of(&object.spec.account_ref, object.as_ref());
        let empty = AccountKeys::of(namespace, &format!("{:?}", name.kind), &name.name);
        let counted = accounts
            .entry((namespace.to_owned(), name))
            .or_insert(empty);
        object
            .status
            .iter()
            .for_each(|status| count(counted, status));
    }
    accounts.into_values().collect()
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
