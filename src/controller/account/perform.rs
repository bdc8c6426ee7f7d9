//! What is done for an account: protect it and its Secret while it is used, and ask the platform about its credentials.

use super::super::accounts::Handle;
use super::super::any_account::AnyAccount;
use super::super::kind::{StepError, uid};
use super::super::{Context, dependents};
use super::Observed;
use crate::api::AccountCapabilities;
use crate::clock;
use crate::cluster::{MetadataPatch, resource_version};
use crate::decide::account::{AccountStep, Check, Verdict};
use crate::domain::{NameSupport, Support};
use crate::platform::{Fault, Platform, RateLimited};

pub(super) async fn perform<A: AnyAccount>(
    context: &Context,
    object: &A,
    observed: &Observed,
    step: AccountStep,
) -> Result<(), StepError> {
    match step {
        AccountStep::Protect => protect(context, object, observed, true).await,
        AccountStep::Unprotect => protect(context, object, observed, false).await,
        AccountStep::UnprotectSecret => {
            let reference = object.credential();
            Ok(context.secrets.protect(&reference.namespace, &reference.name, false).await?)
        }
        AccountStep::Check => {
            if let Some(handle) = &observed.handle {
                let check = check(context, object, handle).await;
                handle.checked(check);
            }
            Ok(())
        }
    }
}

/// The Secret is protected before the account and released before it, so that credentials never go first.
async fn protect<A: AnyAccount>(
    context: &Context,
    object: &A,
    observed: &Observed,
    protected: bool,
) -> Result<(), StepError> {
    let secret_differs = match observed.account.secret {
        None => false,
        Some(secret) if secret.protected => !protected && !shared(context, object),
        // The API server takes no new finalizer for what is being deleted.
        Some(secret) => protected && secret.deleting.is_none(),
    };
    if secret_differs {
        let reference = object.credential();
        context.secrets.protect(&reference.namespace, &reference.name, protected).await?;
    }
    if observed.account.meta.has_finalizer != protected {
        let patched = MetadataPatch::new().finalizer(protected).apply(&object.api(&context.client), object).await?;
        context.traces.update(&uid(object), |trace| trace.version = resource_version(&patched));
    }
    if !protected && object.meta().deletion_timestamp.is_some() {
        context.accounts.forget(&object.reference());
        context.traces.forget(&uid(object));
    }
    Ok(())
}

/// Whether another account in use has the same Secret.
fn shared<A: AnyAccount>(context: &Context, object: &A) -> bool {
    let credential = object.credential();
    dependents::accounts_with(context, &credential.namespace, &credential.name)
        .into_iter()
        .any(|(name, protected)| protected && name != object.reference())
}

/// Asks what the resources of the account will need: the project list, or where that is not allowed the computes of a project in use.
async fn check<A: AnyAccount>(context: &Context, object: &A, handle: &Handle) -> Check {
    let platform = handle.platform.probing();
    let in_use = dependents::projects(context, &object.reference()).into_iter().next();
    let mut capabilities = AccountCapabilities::default();
    let verdict = match platform.list_projects().await {
        Ok(projects) => {
            let mut ids: Vec<String> = projects.into_iter().map(|project| project.id).collect();
            ids.sort();
            Verdict::Projects(ids)
        }
        Err(Fault::Forbidden { message, .. }) => restricted(&platform, in_use.as_deref(), message).await,
        Err(fault) => Verdict::Failed(fault),
    };
    if let (Verdict::Projects(_) | Verdict::Restricted(_), Some(organization)) =
        (&verdict, &handle.access.organization_id)
    {
        capabilities.key_listing = platform.list_keys(organization).await.is_ok();
    }
    if let (Verdict::Projects(_), Some(project)) = (&verdict, in_use)
        && let Ok(computes) = platform.list_computes(&project).await
    {
        let support = Support::among(&computes);
        capabilities.compute_names = support.names == NameSupport::Kept;
        capabilities.scale_to_zero = support.scale_to_zero;
    }
    Check { at: clock::now(), verdict, capabilities }
}

async fn restricted(platform: &RateLimited, project: Option<&str>, message: String) -> Verdict {
    match project {
        None => Verdict::Restricted(message),
        Some(project) => match platform.list_computes(project).await {
            Ok(_) => Verdict::Restricted(message),
            // One resource that names a project out of reach must not take the account from all others.
            Err(fault) if fault.is_refusal() => Verdict::Restricted(message),
            Err(fault) => Verdict::Failed(fault),
        },
    }
}
