//! The account that a resource refers to, as seen by that resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::core::{Selector, SelectorExt};
use kube::{Resource, ResourceExt};

use super::environment::{Environment, Kind, StepError, account_of};
use super::object::AccountName;
use super::state::{AccountConnection, AccountEntry, SharedConnection};
use crate::api::{
    Account, AccountKind, AccountRef, ClusterAccount, Compute, Condition, Known,
    MassDeletionPolicy, NamespaceAccess, ProjectKey,
};
use crate::decide::account::Availability;
use crate::decide::memory::ActionProblem;
use crate::decide::released::has_finalizer;
use crate::decide::{AccountView, Action, Observed, Reason};
use crate::domain::{Fault, NameSupport, ProjectId};
use crate::platform::{Latest, Listing};

/// How a resource may use its account.
#[derive(Clone, Debug)]
pub struct Access<P> {
    pub view: AccountView,
    /// Present if the account admits the resource and its credentials are known.
    pub connection: Option<SharedConnection<P>>,
    /// The account to requeue for the sake of this resource.
    pub wake: Option<AccountName>,
    /// The account's checks show that the project of the resource no longer exists.
    pub project_gone: bool,
}

/// A resource that acts on a project of the platform through an account.
pub trait UsesAccount: Resource {
    fn account_ref(&self) -> &AccountRef;
    fn project_id(&self) -> &ProjectId;
}

impl UsesAccount for Known<Compute> {
    fn account_ref(&self) -> &AccountRef {
        &self.spec.account_ref
    }

    fn project_id(&self) -> &ProjectId {
        &self.spec.project_id
    }
}

impl UsesAccount for Known<ProjectKey> {
    fn account_ref(&self) -> &AccountRef {
        &self.spec.account_ref
    }

    fn project_id(&self) -> &ProjectId {
        &self.spec.project_id
    }
}

/// How `object` may use the account that it refers to.
pub fn of<K: UsesAccount, E: Environment>(env: &E, object: &K) -> Access<E::Client> {
    let reference = object.account_ref();
    let name = AccountName::of(reference, object);
    let namespace = object.meta().namespace.as_deref().unwrap_or_default();
    let account = meta(env, &name)
        .map(|account| (account, refusal(env, &name, namespace, object.project_id())));
    let served = env.settings().cluster_accounts;
    assemble(&name, served, account, env.state().account(&name), object)
}

fn assemble<K: UsesAccount, P>(
    name: &AccountName,
    served: bool,
    account: Option<(ObjectMeta, Option<AccountView>)>,
    entry: Option<AccountEntry<P>>,
    object: &K,
) -> Access<P> {
    let reference = object.account_ref();
    let label = format!("{:?} {}", reference.kind, reference.name);
    let without = |view| Access {
        view,
        connection: None,
        wake: None,
        project_gone: false,
    };
    let Some((account, refusal)) = account else {
        return without(match reference.kind {
            AccountKind::ClusterAccount if !served => AccountView::NotServed { name: label },
            _ => AccountView::Missing { name: label },
        });
    };
    if let Some(refusal) = refusal {
        return without(refusal);
    }
    let Some(AccountEntry {
        connection,
        availability,
        protected,
        gone,
        ..
    }) = entry
    else {
        return without(AccountView::Pending);
    };
    let project_gone = gone.contains(object.project_id());
    let mut access = Access {
        view: AccountView::Pending,
        connection,
        wake: None,
        project_gone,
    };
    match (availability, &access.connection) {
        _ if is_lost(&account, object) => {
            access.view = AccountView::NotReady {
                name: label,
                message: "it is being deleted.".to_owned(),
            };
            // The account may have waited only for this resource.
            access.wake = Some(name.clone());
        }
        (Availability::Unusable(message), _) => {
            access.view = AccountView::NotReady {
                name: label,
                message,
            }
        }
        (Availability::Pending, _) | (Availability::Usable, None) => {}
        // Nothing is created before the account and its credentials are protected.
        (Availability::Usable, Some(_)) if !protected => access.wake = Some(name.clone()),
        (Availability::Usable, Some(connection)) => {
            access.view = AccountView::Usable {
                organization: connection.access.organization_id.clone(),
            };
        }
    }
    access
}

/// True if the account that `object` refers to is not checked yet. The end of the check wakes all
/// resources that refer to it.
pub fn is_pending<K: Kind, E: Environment>(env: &E, object: &K::Object) -> bool {
    let Some(name) = account_of::<K>(object) else {
        return false;
    };
    let is_known = || {
        env.state()
            .account(&name)
            .is_some_and(|entry| entry.availability != Availability::Pending)
    };
    meta(env, &name).is_some() && !is_known()
}

/// The connection of the account that `object` refers to, or an error if it has none.
pub fn connection<K: UsesAccount, E: Environment>(
    env: &E,
    object: &K,
    action: Action,
) -> Result<SharedConnection<E::Client>, StepError> {
    of(env, object).connection.ok_or_else(|| {
        let message = "the account's credentials are gone".to_owned();
        StepError::Failed(
            action,
            ActionProblem::Platform(Fault::Transport { message }),
        )
    })
}

/// Like `connection`, but fails if the account leads to another platform by now.
pub fn connection_to<K: UsesAccount, E: Environment>(
    env: &E,
    object: &K,
    platform: &str,
    action: Action,
) -> Result<SharedConnection<E::Client>, StepError> {
    let (settings, connection) = (env.settings(), connection(env, object, action)?);
    if settings.platforms.of(platform) == settings.platform(&connection) {
        Ok(connection)
    } else {
        let message = "the account leads to another platform".to_owned();
        Err(StepError::Failed(
            action,
            ActionProblem::Platform(Fault::Transport { message }),
        ))
    }
}

/// The base URL of the account's platform; empty while it is not known.
pub fn base_url<K: UsesAccount, E: Environment>(env: &E, object: &K) -> String {
    let entry = env
        .state()
        .account(&AccountName::of(object.account_ref(), object));
    let connection = entry.and_then(|entry| entry.connection);
    connection
        .map(|connection| connection.access.base_url.clone())
        .unwrap_or_default()
}

/// Records whether computes that were read through the account of `object` show names. Returns what
/// is known of that by now.
pub fn names_shown<E: Environment>(
    env: &E,
    object: &Known<Compute>,
    connection: &AccountConnection<E::Client>,
    shown: NameSupport,
) -> NameSupport {
    let account = AccountName::of(&object.spec.account_ref, object);
    env.state().names_shown(&account, connection.number, shown)
}

pub fn wake<E: Environment>(env: &E, name: &AccountName) {
    match name.kind {
        AccountKind::Account => env.wake::<Known<Account>>(name.object_ref()),
        AccountKind::ClusterAccount => env.wake::<Known<ClusterAccount>>(name.object_ref()),
    }
}

/// Requeues an account to report a list that is too large or has unreadable entries, unless it
/// reports that already.
pub fn tell_of_list<E: Environment, L: Listing>(env: &E, name: &AccountName, latest: &Latest<L>) {
    let is_told = |reason: Reason| {
        let told =
            |conditions: &[Condition]| conditions.iter().any(|it| it.type_ == reason.as_str());
        match name.kind {
            AccountKind::Account => {
                env.object::<Known<Account>>(&name.object_ref())
                    .is_none_or(|account| {
                        account
                            .status
                            .as_ref()
                            .is_some_and(|status| told(&status.conditions))
                    })
            }
            AccountKind::ClusterAccount => env
                .object::<Known<ClusterAccount>>(&name.object_ref())
                .is_none_or(|account| {
                    account
                        .status
                        .as_ref()
                        .is_some_and(|status| told(&status.conditions))
                }),
        }
    };
    let too_large = matches!(latest.fault, Some(Fault::TooLarge { .. }));
    let unreadable = latest
        .snapshot
        .as_ref()
        .is_some_and(|snapshot| !snapshot.unreadable.is_empty());
    if too_large && !is_told(Reason::ListsTooLarge)
        || unreadable && !is_told(Reason::UnreadableEntries)
    {
        wake(env, name);
    }
}

/// True if the resource has lost its account since the decision. The step is marked before this
/// check. An account that is being deleted looks for running steps, and a step looks for that
/// deletion, so one of them sees the other.
pub fn is_lost_since<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    observed: &Observed<K::Facts>,
) -> bool {
    let Some(name) = account_of::<K>(object) else {
        return false;
    };
    let usable = matches!(observed.account, AccountView::Usable { .. });
    usable && meta(env, &name).is_none_or(|account| is_lost(&account, object))
}

/// A deleted account goes as soon as nothing on the platform needs it. A step that begins then
/// could not be finished.
fn is_lost<K: Resource>(account: &ObjectMeta, object: &K) -> bool {
    account.deletion_timestamp.is_some() && !has_finalizer(object.meta())
}

/// The metadata of an account, usable or not; `None` if there is no such account.
fn meta<E: Environment>(env: &E, name: &AccountName) -> Option<ObjectMeta> {
    match name.kind {
        AccountKind::Account => Some(
            env.object::<Known<Account>>(&name.object_ref())?
                .metadata
                .clone(),
        ),
        AccountKind::ClusterAccount => Some(
            env.object::<Known<ClusterAccount>>(&name.object_ref())?
                .metadata
                .clone(),
        ),
    }
}

/// `None` if there is no such account, or it is an Account.
fn cluster_account<E: Environment>(
    env: &E,
    name: &AccountName,
) -> Option<Arc<Known<ClusterAccount>>> {
    match name.kind {
        AccountKind::Account => None,
        AccountKind::ClusterAccount => env.object::<Known<ClusterAccount>>(&name.object_ref()),
    }
}

/// True if the resources of a namespace may use an account for a project. An Account has no such
/// limits.
pub fn is_granted<E: Environment>(
    env: &E,
    name: &AccountName,
    namespace: &str,
    project: &ProjectId,
) -> bool {
    refusal(env, name, namespace, project).is_none()
}

/// Why the resources of a namespace may not use an account for a project.
fn refusal<E: Environment>(
    env: &E,
    name: &AccountName,
    namespace: &str,
    project: &ProjectId,
) -> Option<AccountView> {
    let account = cluster_account(env, name)?;
    refused_by(
        &account,
        namespace,
        || env.namespace_labels(namespace),
        project,
    )
}

fn refused_by(
    account: &ClusterAccount,
    namespace: &str,
    labels: impl FnOnce() -> Option<BTreeMap<String, String>>,
    project: &ProjectId,
) -> Option<AccountView> {
    let name = || format!("ClusterAccount {}", account.name_any());
    let NamespaceAccess {
        names,
        selector,
        projects,
    } = &account.spec.namespaces;
    let is_selected =
        |selector: &LabelSelector| labels().is_some_and(|labels| matches(selector, &labels));
    if !names.iter().any(|name| name == namespace) && !selector.as_ref().is_some_and(is_selected) {
        return Some(AccountView::NamespaceNotAllowed { name: name() });
    }
    let is_admitted = projects
        .as_ref()
        .is_none_or(|projects| projects.iter().any(|admitted| admitted == project));
    (!is_admitted).then(|| AccountView::ProjectNotAllowed {
        name: name(),
        project: project.clone(),
    })
}

/// The policy for deletions beyond the limit of an account. An Account needs none: its only
/// namespace has a lower limit of its own.
pub fn mass_deletion_policy<E: Environment>(env: &E, name: &AccountName) -> MassDeletionPolicy {
    cluster_account(env, name)
        .map(|account| account.spec.mass_deletion_policy)
        .unwrap_or_default()
}

fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    // An invalid selector admits no namespace.
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The refusal for a resource that uses the account for project `p-1`. Its namespace is `shop`,
    /// with the label `db=yes`.
    fn refused(namespaces: &Value) -> Option<AccountView> {
        let secret = json!({"namespace": "dbplane", "name": "key"});
        let spec = json!({"baseURL": "https://p.example/v2", "apiKeySecretRef": secret, "namespaces": namespaces});
        let account = ClusterAccount::new("prod", serde_json::from_value(spec).unwrap());
        refused_by(
            &account,
            "shop",
            || Some(BTreeMap::from([("db".to_owned(), "yes".to_owned())])),
            &"p-1".into(),
        )
    }

    #[test]
    fn a_namespace_may_use_what_admits_it_for_the_projects_that_are_listed() {
        let selector = || json!({"matchLabels": {"db": "yes"}});
        for admitted in [
            json!({"names": ["shop"]}),
            json!({"selector": selector()}),
            json!({"names": ["other"], "selector": {}}),
            json!({"names": ["shop"], "projects": ["p-1"]}),
            json!({"selector": selector(), "projects": ["p-2", "p-1"]}),
        ] {
            assert_eq!(refused(&admitted), None, "{admitted}");
        }
        let name = || "ClusterAccount prod".to_owned();
        for namespaces in [
            json!({}),
            json!({"projects": ["p-1"]}),
            json!({"names": ["shopping"], "projects": ["p-1"]}),
            json!({"selector": {"matchLabels": {"db": "no"}}}),
        ] {
            let expected = AccountView::NamespaceNotAllowed { name: name() };
            assert_eq!(refused(&namespaces), Some(expected), "{namespaces}");
        }
        for namespaces in [
            json!({"names": ["shop"], "projects": ["p-2"]}),
            json!({"names": ["shop"], "projects": ["p-11", "p"]}),
            json!({"selector": {}, "projects": ["p-2"]}),
            // The definition does not admit an empty list.
            json!({"names": ["shop"], "projects": []}),
        ] {
            let expected = AccountView::ProjectNotAllowed {
                name: name(),
                project: "p-1".into(),
            };
            assert_eq!(refused(&namespaces), Some(expected), "{namespaces}");
        }
    }
}
