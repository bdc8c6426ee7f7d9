//! What is seen of an account: its Secret, its users, and what the platform last said to its credentials.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, ResourceExt};
use secrecy::SecretString;

use super::super::accounts::Handle;
use super::super::any_account::{AnyAccount, CredentialRef};
use super::super::{Context, dependents};
use super::Observed;
use crate::api::PlatformAccess;
use crate::decide::account::{AccountObserved, Credential, SecretProtection};
use crate::decide::names::CREDENTIAL_FINALIZER;
use crate::platform::{Access, Connect, ConnectError, Endpoint, OverHttp, Rate, RateLimited};

const POLL_INTERVAL: Duration = Duration::from_secs(30);

pub(super) async fn observe<A: AnyAccount>(context: &Context, object: &A) -> Result<Observed, kube::Error> {
    let name = object.reference();
    let reference = object.credential();
    let secret = context.secrets.read(&reference.namespace, &reference.name).await?;
    let before = context.accounts.get(&name).and_then(|entry| entry.handle);
    let (credential, handle) = match entry(secret.as_ref(), &reference) {
        Ok(key) => match before.filter(|handle| handle.made_of(object.access(), &key)) {
            Some(handle) => (Credential::Usable, Some(handle)),
            None => connect(context, object, key),
        },
        Err(missing) => (Credential::Missing(missing), None),
    };
    let users = dependents::of(context, &name);
    let account = AccountObserved {
        meta: object.meta_observed(),
        credential,
        check: handle.as_ref().and_then(|handle| handle.check()),
        suspended: handle.as_ref().and_then(|handle| handle.platform.suspended()),
        users: users.iter().map(|user| user.label.clone()).collect(),
        blocking: users.iter().filter(|user| user.holds).map(|user| user.label.clone()).collect(),
        blocking_deleted: users.iter().any(|user| user.holds && user.leaves),
        secret: match &secret {
            Some(secret) => Some(secret_hold(context, secret, &reference.namespace).await?),
            None => None,
        },
    };
    Ok(Observed { account, handle })
}

async fn secret_hold(context: &Context, secret: &Secret, namespace: &str) -> Result<SecretProtection, kube::Error> {
    let deleting = secret.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    Ok(SecretProtection {
        protected: secret.finalizers().iter().any(|finalizer| finalizer == CREDENTIAL_FINALIZER),
        deleting,
        // Asked of the API server itself: a store may not know yet that the namespace is being deleted.
        namespace_deleting: deleting.is_some() && namespace_deleting(context, namespace).await?,
    })
}

async fn namespace_deleting(context: &Context, name: &str) -> Result<bool, kube::Error> {
    let namespaces: Api<Namespace> = Api::all(context.client.clone());
    let namespace = namespaces.get_metadata_opt(name).await?;
    Ok(namespace.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()))
}

/// The API key, or what is missing.
fn entry(secret: Option<&Secret>, reference: &CredentialRef) -> Result<SecretString, String> {
    let CredentialRef { namespace, name, key } = reference;
    let secret = secret.ok_or_else(|| {
        format!("Secret {namespace}/{name} does not exist. Create it with the platform's API key under {key}.")
    })?;
    let entry = secret.data.as_ref().and_then(|data| data.get(key));
    let bytes = entry
        .ok_or_else(|| format!("Secret {namespace}/{name} has no entry {key}. Put the platform's API key there."))?;
    let text = std::str::from_utf8(&bytes.0).map(str::trim).unwrap_or_default();
    if text.is_empty() {
        return Err(format!("The entry {key} of Secret {namespace}/{name} holds no API key."));
    }
    Ok(SecretString::from(text))
}

fn connect<A: AnyAccount>(context: &Context, object: &A, key: SecretString) -> (Credential, Option<Arc<Handle>>) {
    match client(context, object.access(), &key) {
        Ok(platform) => {
            let platform = Arc::new(platform);
            context.triggers.when_gate_moves(&platform, object.reference());
            let poll_interval = object.access().poll_interval.as_ref().and_then(crate::api::Duration::value);
            let poll_interval = poll_interval.unwrap_or(POLL_INTERVAL);
            let handle = Handle::new(platform, object.access().clone(), poll_interval, key);
            (Credential::Usable, Some(Arc::new(handle)))
        }
        Err(ConnectError::Insecure) => (
            Credential::InvalidBaseUrl(
                "spec.baseURL is plain http, which the operator allows only with --allow-insecure-platform. Use https."
                    .into(),
            ),
            None,
        ),
        Err(error @ (ConnectError::NoKey | ConnectError::UnusableKey)) => {
            (Credential::Missing(format!("The Secret cannot be used: {error}.")), None)
        }
        Err(error) => (Credential::InvalidBaseUrl(format!("spec.baseURL cannot be used: {error}.")), None),
    }
}

fn client(context: &Context, access: &PlatformAccess, key: &SecretString) -> Result<RateLimited, ConnectError> {
    let standard = Rate::default();
    let access = Access {
        endpoint: Endpoint {
            base_url: access.base_url.clone(),
            organization_id: access.organization_id.clone(),
            allow_insecure: context.settings.allow_insecure_platform,
        },
        request_timeout: context.settings.request_timeout,
        rate: access.rate_limit.map_or(standard, |limit| Rate {
            requests_per_minute: limit.requests_per_minute,
            burst: limit.burst.unwrap_or(standard.burst),
        }),
    };
    OverHttp::default().connect(&access, key, context.metrics.clone())
}
