//! Performs the steps for an account: protects it and its Secret while it is used, and checks its
//! credentials with the platform.

use std::collections::BTreeSet;

use tracing::warn;

use super::{AnyAccount, dependents};
use crate::api::AccountCapabilities;
use crate::cluster::{MetadataPatch, secrets};
use crate::controller::environment::{Environment, StepError};
use crate::controller::labels;
use crate::controller::object::uid;
use crate::controller::pass::calls::{ActionLine, patch_metadata, writing};
use crate::controller::state::AccountConnection;
use crate::decide::account::{self, Absence, AccountCheck, AccountStep, Answers, Verdict};
use crate::domain::{Fault, Listed, NameSupport, Project, ProjectId, Support, Unreadable};
use crate::platform::{Platform, PlatformClient};

pub(super) async fn perform<A: AnyAccount, E: Environment>(
    env: &E,
    object: &A,
    step: AccountStep,
) -> Result<(), StepError> {
    match step {
        AccountStep::Protect { account, secret } => protect(env, object, account, secret).await,
        AccountStep::Unprotect { account, secret } => unprotect(env, object, account, secret).await,
        AccountStep::UnprotectSecret => protect_secret(env, object, false).await,
        AccountStep::Check => {
            let name = object.account_name();
            if let Some(connection) = env
                .state()
                .account(&name)
                .and_then(|entry| entry.connection)
            {
                let check = check(env, object, &connection)
                    .await
                    .after(connection.check.as_ref());
                if check.is_refused() {
                    connection.platform.refused();
                }
                env.state().account_checked(&name, connection.number, check);
            }
            Ok(())
        }
    }
}

/// The Secret gets its finalizer before the account does, so that the credentials never go first.
async fn protect<A: AnyAccount, E: Environment>(
    env: &E,
    object: &A,
    account: bool,
    secret: bool,
) -> Result<(), StepError> {
    if secret {
        protect_secret(env, object, true).await?;
    }
    if account {
        patch_metadata(env, object, &finalizer(env, object, true)).await?;
    }
    Ok(())
}

/// The Secret loses its finalizer first, because the account remembers it.
async fn unprotect<A: AnyAccount, E: Environment>(
    env: &E,
    object: &A,
    account: bool,
    secret: bool,
) -> Result<(), StepError> {
    if secret && !is_shared(env, object) {
        protect_secret(env, object, false).await?;
    }
    if account {
        patch_metadata(env, object, &finalizer(env, object, false)).await?;
    }
    if object.meta().deletion_timestamp.is_some() {
        env.state().forget_account(&object.account_name());
        env.state().forget(uid(object));
    }
    Ok(())
}

async fn protect_secret<A: AnyAccount, E: Environment>(
    env: &E,
    object: &A,
    protected: bool,
) -> Result<(), StepError> {
    let reference = object.credential();
    let finalizer = env.settings().finalizers(object).credential;
    let (namespace, name) = (&reference.namespace, &reference.name);
    let what = format!("the finalizer of Secret {namespace}/{name}");
    secrets::protect(env.cluster(), namespace, name, &finalizer, protected)
        .await
        .map_err(writing(&what))?;
    let (action, text) = if protected {
        (
            labels::PROTECT_SECRET,
            "stays until nothing needs the account",
        )
    } else {
        (labels::UNPROTECT_SECRET, "is no longer held")
    };
    let done = ActionLine {
        secret: Some(name),
        ..ActionLine::of(action)
    };
    done.log(&format!("Secret {}/{} {text}.", namespace, name));
    Ok(())
}

fn finalizer<A: AnyAccount, E: Environment>(env: &E, object: &A, present: bool) -> MetadataPatch {
    MetadataPatch::new().finalizer_named(&env.settings().finalizers(object).account, present)
}

/// True if another account in use has the same Secret, protected by the same finalizer.
fn is_shared<A: AnyAccount, E: Environment>(env: &E, object: &A) -> bool {
    let credential = object.credential();
    let users = dependents::users_of_secret(env, &credential.namespace, &credential.name);
    let finalizer = env.settings().finalizers(object).account;
    users
        .iter()
        .any(|user| user.finalizers.contains(&finalizer) && user.uid != *uid(object))
}

/// Checks what the resources of the account will need: the project list, or if that is not allowed,
/// the computes of a project in use.
async fn check<A: AnyAccount, E: Environment>(
    env: &E,
    object: &A,
    connection: &AccountConnection<E::Client>,
) -> AccountCheck {
    let began = env.now();
    let platform = connection.platform.probing();
    let in_use = dependents::project(env, &object.account_name());
    let mut capabilities = AccountCapabilities::default();
    let (mut keys, mut projects) = (None, FoundProjects::default());
    let verdict = match platform.list_projects().await {
        Ok(listed) => {
            projects = found_projects(env, object, connection, &platform, listed).await;
            Verdict::Projects(projects.ids.clone())
        }
        Err(Fault::Forbidden { message, .. }) => {
            let why = format!("It may not list projects ({message}).");
            restricted(&platform, in_use.as_ref(), why).await
        }
        Err(Fault::TooLarge { message }) => {
            let why = format!("Its projects are not counted: {message}.");
            restricted(&platform, in_use.as_ref(), why).await
        }
        Err(fault) => Verdict::Failed(fault),
    };
    if let (Verdict::Projects(_) | Verdict::Restricted(_), Some(organization)) =
        (&verdict, &connection.access.organization_id)
    {
        let listed = platform.list_keys(organization).await.ok();
        keys = listed.map(|keys| keys.count());
        capabilities.key_listing = keys.is_some();
    }
    if let (Verdict::Projects(_), Some(project)) = (&verdict, in_use)
        && let Ok(computes) = platform.list_computes(&project).await
    {
        let support = Support::among(computes.shown());
        capabilities.compute_names = support.names == NameSupport::Kept;
        capabilities.scale_to_zero = support.scale_to_zero;
    }
    let at = env.now();
    let absence = Absence {
        since: at,
        again: began,
    };
    AccountCheck {
        began,
        at,
        verdict,
        capabilities,
        keys,
        unreadable: projects.unreadable,
        answers: Answers::default(),
        absent: projects
            .absent
            .into_iter()
            .map(|project| (project, absence))
            .collect(),
    }
}

/// The projects in a list.
#[derive(Default)]
struct FoundProjects {
    /// Their IDs, also of unreadable entries that show one: such a project exists.
    ids: Vec<ProjectId>,
    unreadable: Unreadable,
    /// The projects of resources that are being deleted that no longer exist.
    absent: BTreeSet<ProjectId>,
}

async fn found_projects<A: AnyAccount, E: Environment>(
    env: &E,
    object: &A,
    connection: &AccountConnection<E::Client>,
    platform: &E::Client,
    listed: Listed<Project>,
) -> FoundProjects {
    let (projects, unreadable) = listed.into_parts();
    if !unreadable.is_empty() {
        let account = object.account_name().to_string();
        warn!(account, list = "projects", entries = %unreadable, "entries of a list cannot be read");
    }
    let ids: BTreeSet<ProjectId> = projects
        .into_iter()
        .map(|project| project.id)
        .chain(unreadable.ids().cloned().map(ProjectId::from))
        .collect();
    let ids: Vec<ProjectId> = ids.into_iter().collect();
    // An unreadable entry without an ID may be any project.
    let absent = if unreadable.ids().count() == unreadable.len() {
        absent_projects(env, object, connection, platform, &ids).await
    } else {
        BTreeSet::new()
    };
    FoundProjects {
        ids,
        unreadable,
        absent,
    }
}

/// The projects of resources that are being deleted that this list lacks and that the platform
/// itself says it does not know.
async fn absent_projects<A: AnyAccount, E: Environment>(
    env: &E,
    object: &A,
    connection: &AccountConnection<E::Client>,
    platform: &E::Client,
    listed: &[ProjectId],
) -> BTreeSet<ProjectId> {
    let name = object.account_name();
    let leaving = dependents::leaving(env, &name, &dependents::of(env, &name));
    let mut absent = BTreeSet::new();
    for project in account::to_ask(&leaving, &connection.seen, listed) {
        if let Err(Fault::NotFound { .. }) = platform.list_computes(project).await {
            absent.insert(project.clone());
        }
    }
    absent
}

async fn restricted<P: Platform>(
    platform: &P,
    project: Option<&ProjectId>,
    why: String,
) -> Verdict {
    match project {
        None => Verdict::Restricted(why),
        Some(project) => match platform.list_computes(project).await {
            Ok(_) => Verdict::Restricted(why),
            // One resource whose project is out of reach, or has too many computes, must not take
            // the account from all others.
            Err(fault) if fault.is_refusal() || matches!(fault, Fault::TooLarge { .. }) => {
                Verdict::Restricted(why)
            }
            Err(fault) => Verdict::Failed(fault),
        },
    }
}
