//! User actions other than deletions.

use dbplane::decide::names;
use serde_json::json;

use super::actions::Action;
use super::bound::{Bound, OTHER};
use super::edits::{STANDING_ACCOUNTS, edits};
use super::effects::credential;
use super::in_memory::cluster::Stored;
use super::promises::bound_compute;
use super::remote::number;
use super::state::{State, at};
use super::tenant::TENANTS;

/// The possible user actions on resources.
pub fn of_people(bound: &Bound, state: &State) -> Vec<Action> {
    let mut actions = Vec::new();
    // In bounds with a hostile tenant, only the tenant acts, so that any harm is the tenant's.
    for i in bound
        .subjects()
        .filter(|i| bound.forgeries == 0 || *i == TENANTS)
    {
        actions.extend([
            Action::UserDeletes(i),
            Action::UserConfirms(i),
            Action::UserReplaces(i),
            Action::UserExports(i),
            Action::UserApplies(i),
        ]);
        actions.extend(
            bound
                .subjects()
                .filter(|other| *other != i)
                .map(|other| Action::UserCopies(i, other)),
        );
        actions.extend(
            edits(bound, state, i)
                .into_iter()
                .map(|edit| Action::UserEdits(i, edit)),
        );
    }
    actions
}

/// Changes of a user to the annotations of a resource that is not being deleted.
pub fn rewritten(bound: &Bound, state: &State, action: Action, i: usize) -> Option<State> {
    let mut next = state.clone();
    let resource = bound.resource(i);
    let stored = state
        .cluster
        .objects
        .get(&resource)
        .filter(|stored| !stored.is_deleting())?;
    let record = stored.value["metadata"]["annotations"][names::RECORD].as_str();
    match action {
        Action::UserReplaces(_) => {
            next.left.replacements = state.left.replacements.checked_sub(1)?;
            if record.is_none() && !has_finalizer(stored) {
                return None;
            }
            next.cluster_mut().replace(&resource);
        }
        Action::UserExports(_) => {
            if state.left.older == 0 || state.exported.is_some() {
                return None;
            }
            next.exported = Some((i, record?.to_owned()));
        }
        Action::UserCopies(from, _) => {
            next.left.copies = state.left.copies.checked_sub(1)?;
            let copied =
                &state.cluster.objects.get(&bound.resource(from))?.value["metadata"]["annotations"];
            let text = copied[names::RECORD]
                .as_str()
                .filter(|text| Some(*text) != record)?;
            next.cluster_mut().edit(
                &resource,
                &json!({"metadata": {"annotations": {names::RECORD: text}}}),
            );
        }
        _ => {
            next.left.older = state.left.older.checked_sub(1)?;
            let (_, text) = next
                .exported
                .take_if(|(of, text)| *of == i && Some(text.as_str()) != record)?;
            next.cluster_mut().edit(
                &resource,
                &json!({"metadata": {"annotations": {names::RECORD: text}}}),
            );
        }
    }
    Some(next)
}

pub fn has_finalizer(stored: &Stored) -> bool {
    stored.value["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|all| !all.is_empty())
}

pub fn is_recorded(stored: &Stored) -> bool {
    !stored.value["status"]["record"].is_null()
}

/// Changes of a user to the account, and confirmations.
pub fn people(bound: &Bound, state: &State, action: Action) -> Option<State> {
    let mut next = state.clone();
    let account = bound.account_resource();
    match action {
        Action::UserConfirms(i) => {
            next.left.confirmations = state.left.confirmations.checked_sub(1)?;
            let resource = bound.resource(i);
            let stored = state.cluster.objects.get(&resource)?;
            let waits = stored.value["status"]
                .to_string()
                .contains("DeletionPaused");
            let confirmed = &stored.value["metadata"]["annotations"][names::CONFIRM_DELETION];
            if !waits || confirmed.is_string() {
                return None;
            }
            let since = stored.value["metadata"]["deletionTimestamp"].clone();
            next.cluster_mut().edit(
                &resource,
                &json!({"metadata": {"annotations": {names::CONFIRM_DELETION: since}}}),
            );
        }
        Action::KeyExchanged => {
            next.left.exchanges = state.left.exchanges.checked_sub(1)?;
            next.platform.accepted += 1;
            let credential = credential(next.platform.accepted);
            next.cluster_mut()
                .put_secret("platform-api-key", credential);
        }
        Action::AccountAppears => {
            next.left.late_accounts = state.left.late_accounts.checked_sub(1)?;
            let account = ("Account", format!("{OTHER}/prod"));
            next.cluster_mut()
                .create(&account, &STANDING_ACCOUNTS[0].spec(), &json!({}), at(0));
            for p in 0..next.processes.len() {
                let stored = next.cluster.objects[&account].clone();
                next.process_mut(p).caches.insert(account.clone(), stored);
            }
        }
        Action::AccountDeleted => {
            next.left.account_deletions = state.left.account_deletions.checked_sub(1)?;
            next.cluster_mut().delete(&account, at(0));
        }
        _ => {
            next.left.admissions = state.left.admissions.checked_sub(1)?;
            let admits = state.cluster.objects.get(&account)?.value["spec"]["namespaces"]["names"]
                == json!(["shop"]);
            let names = if admits { json!([]) } else { json!(["shop"]) };
            next.cluster_mut()
                .edit(&account, &json!({"spec": {"namespaces": {"names": names}}}));
        }
    }
    Some(next)
}

/// The computes that resources are bound to, if the bound allows lists without them or their
/// deletion.
pub fn exposed(bound: &Bound, state: &State) -> Vec<u8> {
    if state.left.partial == 0 && state.left.vanishing == 0 {
        return Vec::new();
    }
    let computes = state
        .cluster
        .objects
        .iter()
        .filter(|((kind, _), _)| *kind == "Compute");
    let recorded = computes.map(|(_, stored)| bound_compute(bound, stored).identity);
    recorded
        .filter_map(|identity| Some(number(&identity.binding.as_ref()?.id)))
        .collect()
}
