//! Finds the accounts that read their credentials from the Secret of a ProjectKey, and what they
//! use at present.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt};
use secrecy::ExposeSecret;

use crate::api::{Account, ClusterAccount, Known, ProjectKey};
use crate::cluster::SecretState;
use crate::controller::account::{Accounts, AnyAccount, dependents, observe};
use crate::controller::environment::Environment;
use crate::controller::index::Key;
use crate::controller::pass::label;
use crate::decide::account::Availability;
use crate::decide::key::KeyAccount;
use crate::decide::names::{AccountFinalizers, is_for_credentials};

/// The accounts that read this Secret.
pub(super) fn accounts<E: Environment>(env: &E, secret: &SecretState) -> Vec<KeyAccount> {
    let SecretState::Ours(secret) = secret else {
        return Vec::new();
    };
    let mut own = BTreeSet::from([AccountFinalizers::whole().credential]);
    let mut found = of_kind::<Known<Account>, E>(env, secret, &mut own);
    found.extend(of_kind::<Known<ClusterAccount>, E>(env, secret, &mut own));
    found.extend(unknown(secret, found.is_empty(), &own));
    found
}

fn of_kind<A: AnyAccount, E: Environment>(
    env: &E,
    secret: &Secret,
    own: &mut BTreeSet<String>,
) -> Vec<KeyAccount> {
    let place = (secret.namespace().unwrap_or_default(), secret.name_any());
    let accounts = env.objects_by::<Accounts<A>>(&Key::Secret(place.0, place.1));
    own.extend(
        accounts
            .iter()
            .map(|account| env.settings().finalizers(account.as_ref()).credential),
    );
    accounts
        .iter()
        .map(|account| view(env, account.as_ref(), secret))
        .collect()
}

fn view<A: AnyAccount, E: Environment>(env: &E, account: &A, secret: &Secret) -> KeyAccount {
    let dependents = dependents::of(env, &account.account_name()).into_iter();
    let needing = dependents
        .filter(|dependent| dependent.needs_it && dependent.kind != ProjectKey::kind(&()));
    KeyAccount {
        label: label(account),
        users: needing.map(|dependent| dependent.label).collect(),
        follows: follows(env, account, secret),
    }
}

/// True if an account uses what the Secret holds. An account that was not checked yet may have read
/// something older.
fn follows<A: AnyAccount, E: Environment>(env: &E, account: &A, secret: &Secret) -> bool {
    let name = account.account_name();
    let Some(entry) = env.state().account(&name) else {
        return false;
    };
    let Some(connection) = entry.connection else {
        return true;
    };
    let held = observe::entry(Some(secret), &account.credential());
    let is_held =
        held.is_ok_and(|key| key.expose_secret() == connection.credential.expose_secret());
    is_held && entry.availability == Availability::Usable && !env.state().uses_former_key(&name)
}

/// Accounts that only their finalizer on the Secret shows: they cannot be read, or other operators
/// manage them. What those operators use is not visible here; the overlap of a rotation covers
/// them.
fn unknown(secret: &Secret, none_known: bool, own: &BTreeSet<String>) -> Option<KeyAccount> {
    let (ours, others): (Vec<&String>, Vec<&String>) = secret
        .finalizers()
        .iter()
        .filter(|name| is_for_credentials(name))
        .partition(|name| own.contains(*name));
    let unreadable = none_known && !ours.is_empty();
    (unreadable || !others.is_empty()).then(|| KeyAccount {
        label: "an account that cannot be read here".to_owned(),
        users: vec!["resources that are not known".to_owned()],
        follows: !unreadable,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finalizers_tell_of_accounts_that_are_not_known() {
        let shop = AccountFinalizers::confined_to(&["shop".to_owned()]).credential;
        let other = AccountFinalizers::confined_to(&["other".to_owned()]).credential;
        let own = BTreeSet::from([AccountFinalizers::whole().credential, shop.clone()]);
        let found = |finalizers: &[&str], none_known: bool| {
            let mut secret = Secret::default();
            secret.metadata.finalizers =
                Some(finalizers.iter().map(|name| (*name).to_owned()).collect());
            unknown(&secret, none_known, &own).map(|account| (account.users.len(), account.follows))
        };
        let whole = AccountFinalizers::whole().credential;
        assert_eq!(found(&["example.com/theirs"], true), None);
        assert_eq!(found(&[&whole, &shop], false), None, "the account is known");
        assert_eq!(
            found(&[&whole], true),
            Some((1, false)),
            "it cannot be read, and works with what it had"
        );
        assert_eq!(found(&[&whole, &other], false), Some((1, true)));
        assert_eq!(found(&[&other], true), Some((1, true)));
    }
}
