//! Saves the keys that only memory holds when the process stops.

use std::time::Duration;

use futures::future::join_all;
use kube::runtime::reflector::ObjectRef;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::error_span;

use super::record::wrote_key;
use super::save::{GIVEN_UP, Saved, write_unsaved};
use crate::api::{Known, ProjectKey, Uid};
use crate::controller::access;
use crate::controller::environment::Environment;
use crate::controller::state::UnsavedKey;
use crate::decide::key::{Probe, tried};
use crate::platform::{Platform, PlatformClient};

/// The pause between two attempts to save a key while the process stops.
const FLUSH_PAUSE: Duration = Duration::from_millis(500);

/// The timeout of one attempt: an API server that does not answer must not use up the time of all
/// keys.
const FLUSH_TRY: Duration = Duration::from_secs(5);

/// The part of an attempt in which the platform must answer whether it accepts a key.
const FLUSH_QUESTION: Duration = Duration::from_secs(2);

/// Why a key is not saved although the platform itself has created it.
const REFUSED: &str =
    "the platform does not accept it, and the key before it works; the next process revokes it";

/// Saves the keys that only memory holds, until all are saved or `grace` is over.
pub async fn flush<E: Environment>(env: &E, grace: Duration) {
    let deadline = Instant::now() + grace;
    loop {
        let unsaved = env.state().unsaved_keys();
        if unsaved.is_empty() {
            return;
        }
        let until = deadline.min(Instant::now() + FLUSH_TRY);
        join_all(
            unsaved
                .iter()
                .map(|(uid, key)| flush_one(env, uid, key, until)),
        )
        .await;
        if Instant::now() >= deadline {
            for (_, key) in env.state().unsaved_keys() {
                key.log_loss(
                    "its Secret could not be written before the end; the next process revokes and replaces it",
                );
            }
            return;
        }
        sleep(FLUSH_PAUSE).await;
    }
}

async fn flush_one<E: Environment>(env: &E, uid: &Uid, key: &UnsavedKey, until: Instant) {
    let reference = ObjectRef::new(&key.name).within(&key.namespace);
    let Some(object) = env
        .object::<Known<ProjectKey>>(&reference)
        .filter(|object| object.uid() == uid)
    else {
        if env
            .unreadable::<Known<ProjectKey>>()
            .iter()
            .any(|meta| meta.uid.as_deref() == Some(uid.as_str()))
        {
            env.state().take_unsaved_key(uid);
            key.log_loss("its ProjectKey cannot be read; once that is corrected, the key is revoked and replaced");
        } else {
            env.state().forget(uid);
        }
        return;
    };
    if is_refused(env, &object, key).await {
        env.state().take_unsaved_key(uid);
        return key.log_loss(REFUSED);
    }
    match timeout_at(until, write_unsaved(env, &object, key)).await {
        Ok(Ok(Saved::Written)) => {
            let lines = error_span!(
                "flush",
                kind = "ProjectKey",
                namespace = key.namespace,
                name = key.name
            );
            lines.in_scope(|| wrote_key(&object.spec.secret.name, &key.key));
            env.state().take_unsaved_key(uid);
        }
        Ok(Ok(Saved::GivenUp)) => {
            env.state().take_unsaved_key(uid);
            key.log_loss(GIVEN_UP);
        }
        Ok(Err(error)) => key.log_delay(&error.to_string()),
        Err(_) => key.log_delay("no answer"),
    }
}

/// True if the platform refuses a key that it has to accept before it replaces a working one.
/// Without an answer the key is written: its secret is nowhere else.
async fn is_refused<E: Environment>(env: &E, object: &Known<ProjectKey>, key: &UnsavedKey) -> bool {
    let Some(before) = key
        .trial
        .filter(|probe| !matches!(probe, Probe::Accepted(_)))
    else {
        return false;
    };
    let connection = access::of(env, object).connection;
    let asked = async {
        let answer = connection?
            .platform
            .for_namespace(object.namespace())
            .probe_key(&key.secret, &object.spec.project_id)
            .await;
        tried(before, answer, env.now()).ok()
    };
    let probe = timeout(FLUSH_QUESTION, asked)
        .await
        .ok()
        .flatten()
        .unwrap_or(before);
    matches!(probe, Probe::Refused { .. })
}
