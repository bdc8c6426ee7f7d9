//! Observes an account: its Secret, its users, and the platform's last answer about
//! its credentials.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use secrecy::{ExposeSecret, SecretString};

use super::dependents::{self, Dependent};
use super::{AnyAccount, CredentialRef};
use crate::api::SeenProjects;
use crate::cluster::Cluster;
use crate::controller::environment::{Effects, Environment, Observation, observed};
use crate::controller::state::{AccountConnection, AccountEntry};
use crate::decide::account::{
    self, AccountFacts, AccountObserved, AccountSubject, Credential, ProjectsObserved,
    SecretProtection,
};
use crate::decide::released::has_finalizer_named;
use crate::decide::{AccountView, Meta};
use crate::domain::NameSupport;
use crate::platform::{ConnectError, PlatformClient, address_of};

const POLL_INTERVAL: Duration = Duration::from_secs(30);

pub(super) async fn observe<A: AnyAccount, E: Environment>(
    env: &E,
    object: &A,
) -> Result<Observation<AccountFacts, E::Client>, kube::Error> {
    let reference = object.credential();
    let secret = env
        .cluster()
        .secret(&reference.namespace, &reference.name)
        .await?;
    let key = entry(secret.as_ref(), &reference);
    let subject = subject(object, &reference, key.as_ref().ok());
    let (credential, connection) = match key {
        Ok(key) => connected(env, object, key, &subject),
        Err(missing) => (Credential::Missing(missing), None),
    };
    let users = dependents::of(env, &object.account_name());
    let finalizers = env.settings().finalizers(object);
    let list_faults = env.list_faults(&object.account_name());
    let blocking = users.iter().filter(|user| user.needs_it);
    let meta = Meta {
        has_finalizer: has_finalizer_named(object.meta(), &finalizers.account),
        ..object.meta_observed()
    };
    let facts = AccountFacts {
        shared: env.settings().is_shared(object),
        subject,
        credential,
        check: connection
            .as_ref()
            .and_then(|connection| connection.check.clone()),
        suspended: connection
            .as_ref()
            .and_then(|connection| connection.platform.suspended()),
        users: users.iter().map(|user| user.label.clone()).collect(),
        blocking: blocking.clone().map(|user| user.label.clone()).collect(),
        in_use: users.iter().any(|user| user.has_something),
        blocking_deleted: blocking.clone().any(|user| user.deleting.is_some()),
        projects: projects(env, object, &users, secret.as_ref(), connection.as_deref()),
        reported: object
            .status()
            .filter(|status| status.observed_generation == object.meta().generation)
            .cloned(),
        keys: connection
            .as_ref()
            .and_then(|connection| env.count_keys(&object.account_name(), connection)),
        too_large: list_faults.too_large,
        unreadable: list_faults.unreadable,
        secret: match &secret {
            Some(secret) => Some(protection(env, secret, &finalizers.credential).await?),
            None => None,
        },
    };
    let observed = observed(env, object, meta, AccountView::NotNeeded, facts);
    let entry = account_entry(connection, &observed);
    let effects = Effects {
        account: Some((object.account_name(), entry)),
        ..Effects::default()
    };
    Ok(Observation { observed, effects })
}

fn subject<A: AnyAccount>(
    object: &A,
    reference: &CredentialRef,
    key: Option<&SecretString>,
) -> AccountSubject {
    let access = object.access();
    AccountSubject {
        address: address_of(&access.base_url),
        organization: access.organization_id.clone(),
        entry: format!(
            "entry {} of Secret {}/{}",
            reference.key, reference.namespace, reference.name
        ),
        key_mistake: key.and_then(|key| account::mistake_in_key(key.expose_secret())),
    }
}

/// The entry that the resources of the account rely on.
pub fn account_entry<P: Clone>(
    connection: Option<Arc<AccountConnection<P>>>,
    observed: &AccountObserved,
) -> AccountEntry<P> {
    AccountEntry {
        connection: connection.map(|connection| with_seen_projects(connection, observed)),
        gone: account::gone(observed),
        availability: account::availability(observed),
        protected: account::is_protected(observed),
        many_keys: account::has_many_keys(observed),
        in_use: observed.in_use,
        generation: observed.meta.generation,
    }
}

/// Adds the projects that were seen through the connection. The status has them only while the
/// Secret keeps its version.
fn with_seen_projects<P: Clone>(
    connection: Arc<AccountConnection<P>>,
    observed: &AccountObserved,
) -> Arc<AccountConnection<P>> {
    let seen = account::seen(observed)
        .map(|seen| seen.projects)
        .unwrap_or_default();
    if connection.seen == seen {
        connection
    } else {
        Arc::new(AccountConnection {
            seen,
            ..connection.as_ref().clone()
        })
    }
}

/// The projects that resources name, and those that the credentials of this Secret have seen.
fn projects<A: AnyAccount, E: Environment>(
    env: &E,
    object: &A,
    users: &[Dependent],
    secret: Option<&Secret>,
    connection: Option<&AccountConnection<E::Client>>,
) -> ProjectsObserved {
    let name = object.account_name();
    let source = connection
        .zip(secret)
        .map(|(connection, secret)| SeenProjects {
            base_url: connection.access.base_url.clone(),
            organization_id: connection.access.organization_id.clone(),
            secret_uid: secret.uid().unwrap_or_default(),
            secret_version: secret.resource_version().unwrap_or_default(),
            projects: connection.seen.clone(),
        });
    ProjectsObserved {
        named: dependents::named(env, &name, users),
        leaving: dependents::leaving(env, &name, users),
        seen: source,
        reported: object
            .status()
            .and_then(|status| status.seen_projects.clone()),
        settle: env.settings().limits.settle,
    }
}

async fn protection<E: Environment>(
    env: &E,
    secret: &Secret,
    finalizer: &str,
) -> Result<SecretProtection, kube::Error> {
    let namespace = secret.namespace().unwrap_or_default();
    let deleting = secret
        .metadata
        .deletion_timestamp
        .as_ref()
        .map(|time| time.0);
    Ok(SecretProtection {
        protected: has_finalizer_named(&secret.metadata, finalizer),
        deleting,
        // Asks the API server itself: a store may not know yet that the namespace is being deleted.
        namespace_deleting: deleting.is_some()
            && env.cluster().is_namespace_terminating(&namespace).await?,
    })
}

/// The API key, or what is missing.
pub fn entry(secret: Option<&Secret>, reference: &CredentialRef) -> Result<SecretString, String> {
    let CredentialRef {
        namespace,
        name,
        key,
    } = reference;
    let secret = secret.ok_or_else(|| {
        format!("Secret {namespace}/{name} does not exist. Create it with the platform's API key under {key}.")
    })?;
    let entry = secret.data.as_ref().and_then(|data| data.get(key));
    let bytes = entry.ok_or_else(|| {
        format!("Secret {namespace}/{name} has no entry {key}. Put the platform's API key there.")
    })?;
    let text = std::str::from_utf8(&bytes.0)
        .map(str::trim)
        .unwrap_or_default();
    if text.is_empty() {
        return Err(format!(
            "The entry {key} of Secret {namespace}/{name} holds no API key."
        ));
    }
    Ok(SecretString::from(text))
}

/// The existing connection if it was made of exactly these parts, or a new one.
fn connected<A: AnyAccount, E: Environment>(
    env: &E,
    object: &A,
    key: SecretString,
    subject: &AccountSubject,
) -> (Credential, Option<Arc<AccountConnection<E::Client>>>) {
    let (name, access) = (object.account_name(), object.access());
    let before = env
        .state()
        .account(&name)
        .and_then(|entry| entry.connection);
    if let Some(before) = before.filter(|before| before.is_made_of(access, &key)) {
        return (Credential::Usable, Some(before));
    }
    match env.connect(&name, access, &key) {
        Ok(platform) => {
            let poll_interval = access
                .poll_interval
                .as_ref()
                .and_then(crate::api::Duration::value);
            let connection = AccountConnection {
                number: env.state().next_connection(),
                platform,
                access: access.clone(),
                poll_interval: poll_interval.unwrap_or(POLL_INTERVAL),
                credential: key,
                names: NameSupport::Unseen,
                check: None,
                seen: Vec::new(),
            };
            (Credential::Usable, Some(Arc::new(connection)))
        }
        Err(error) => (refused(&error, subject), None),
    }
}

fn refused(error: &ConnectError, subject: &AccountSubject) -> Credential {
    match error {
        ConnectError::Insecure => Credential::InvalidBaseUrl(
            "spec.baseURL is plain http, which the operator allows only with --allow-insecure-platform. Use https."
                .into(),
        ),
        ConnectError::NoKey | ConnectError::UnusableKey => {
            let mistake = subject.key_mistake.unwrap_or_default();
            let text = format!("Correct {}: {error}. {mistake}", subject.entry);
            Credential::Missing(text.trim_end().to_owned())
        }
        ConnectError::NotAdmitted(why) => {
            Credential::PlatformNotAllowed(format!("Nothing is sent to spec.baseURL: {why}."))
        }
        error => Credential::InvalidBaseUrl(format!("spec.baseURL cannot be used: {error}.")),
    }
}
