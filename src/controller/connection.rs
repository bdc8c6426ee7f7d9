//! Reads, observes and writes connection Secrets, for every kind of resource.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

use super::environment::{Environment, StepError};
use super::object::{Managed, uid};
use super::pass::calls::{ActionLine, altered, publish, secret_written};
use crate::api::{Connection, GROUP, Known};
use crate::cluster::{Cluster, Event, Owner, SecretContent, SecretState, secrets};
use crate::decide::Recorded;
use crate::decide::connection::{ConnectionSecret, CredentialsView, SecretText, SecretView};
use crate::decide::memory::ActionProblem;
use crate::decide::{Action, names};

/// The state of the Secret that `object` declares; `None` if there is nothing to write.
pub async fn of<K: Recorded, E: Environment>(
    env: &E,
    object: &Known<K>,
    declared: Option<&Connection>,
) -> Result<Option<(Owner, SecretState)>, kube::Error> {
    let (Some(connection), None) = (declared, &object.meta().deletion_timestamp) else {
        return Ok(None);
    };
    let owner = Owner::of(object);
    let state = secrets::state(env.cluster(), &owner, &connection.secret_name).await?;
    Ok(Some((owner, state)))
}

/// The user and the password from a Secret in the same namespace.
pub async fn credentials<K: Recorded, E: Environment>(
    env: &E,
    object: &Known<K>,
    declared: Option<&Connection>,
) -> Result<CredentialsView, kube::Error> {
    let from = declared.and_then(|connection| connection.credentials_from.as_ref());
    let (Some(from), None) = (from, &object.meta().deletion_timestamp) else {
        return Ok(CredentialsView::NotWanted);
    };
    let Some(secret) = env.cluster().secret(object.namespace(), &from.name).await? else {
        return Ok(CredentialsView::NoSecret);
    };
    if is_written_by_dbplane(&secret) {
        return Ok(CredentialsView::Managed);
    }
    let text =
        |key: &String| entry(&secret, key).ok_or_else(|| CredentialsView::NoText(key.clone()));
    let found = text(&from.username_key).and_then(|user| {
        Ok(CredentialsView::Found {
            user,
            password: text(&from.password_key)?,
        })
    });
    Ok(found.unwrap_or_else(|missing| missing))
}

/// The Secrets in `wrote` that still exist and that spec.connection no longer names. None while the
/// resource is being deleted: Kubernetes deletes them with it.
pub async fn unused<K: Recorded, E: Environment>(
    env: &E,
    object: &Known<K>,
    declared: Option<&Connection>,
    wrote: &[&String],
) -> Result<Vec<String>, kube::Error> {
    if object.meta().deletion_timestamp.is_some() {
        return Ok(Vec::new());
    }
    let owner = Owner::of(object);
    let mut unused = Vec::new();
    for &name in wrote {
        let is_used = declared.is_some_and(|connection| connection.secret_name == *name);
        if !is_used
            && matches!(
                secrets::state(env.cluster(), &owner, name).await?,
                SecretState::Ours(_)
            )
        {
            unused.push(name.clone());
        }
    }
    Ok(unused)
}

/// A write of a connection Secret.
pub struct ConnectionWrite<'a> {
    pub name: &'a str,
    /// The name of the last one that was written.
    pub before: Option<&'a String>,
    pub content: &'a ConnectionSecret,
    /// Its entries that are removed.
    pub without: &'a BTreeSet<String>,
}

/// Writes the Secret. If the spec named another one before, reports that it is no longer updated.
pub async fn write<K: Recorded, E: Environment>(
    env: &E,
    object: &Known<K>,
    write: ConnectionWrite<'_>,
) -> Result<(), StepError>
where
    Known<K>: Managed,
{
    let ConnectionWrite {
        name,
        before,
        without,
        ..
    } = write;
    let (owner, content) = (Owner::of(object), content(write.content));
    let written = secrets::write_replaceable(env.cluster(), &owner, name, &content, without).await;
    if let Some(message) = altered(name, &content, &written) {
        return Err(StepError::Failed(
            Action::WriteSecret,
            ActionProblem::Secret(message),
        ));
    }
    secret_written(env, uid(object), written.map(drop), name)?;
    ActionLine::wrote_secret(name).log(&format!("Wrote Secret {name}."));
    if let Some(before) = before.filter(|before| *before != name) {
        let text = format!(
            "Secret {before} is not updated any more, since spec.connection.secretName is {name}. Once no client uses it: kubectl -n {} delete \
             secret {before}",
            owner.namespace
        );
        publish(env, object, &Event::warning("SecretUnused", text)).await;
    }
    Ok(())
}

/// True if dbplane writes this Secret, for any resource. Two Secrets that are copied from each
/// other would never settle.
fn is_written_by_dbplane(secret: &Secret) -> bool {
    let is_ours = |owner: &OwnerReference| owner.api_version.split('/').next() == Some(GROUP);
    let of_ours = secret.owner_references().iter().any(is_ours)
        || secret.annotations().contains_key(names::SECRET_OF);
    secrets::is_managed(secret) && of_ours
}

/// No user or password is longer: PostgreSQL's names have up to 63 bytes, and its poolers take
/// passwords of up to 2048.
const LONGEST_CREDENTIAL: usize = 4096;

/// An entry with text that PostgreSQL accepts, without the line break at the end of a file.
fn entry(secret: &Secret, key: &str) -> Option<SecretText> {
    let text = std::str::from_utf8(&secret.data.as_ref()?.get(key)?.0).ok()?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    (!text.is_empty() && text.len() <= LONGEST_CREDENTIAL && !text.contains('\0'))
        .then(|| text.into())
}

/// The name of the connection Secret, if it exists.
pub fn written(
    declared: Option<&Connection>,
    secret: Option<&(Owner, SecretState)>,
) -> Option<String> {
    match secret {
        Some((_, SecretState::Ours(_))) => declared.map(|it| it.secret_name.clone()),
        _ => None,
    }
}

/// The connection Secret, as decisions see it.
pub fn view(secret: Option<&(Owner, SecretState)>) -> SecretView {
    let Some((owner, state)) = secret else {
        return SecretView::NotWanted;
    };
    match state {
        SecretState::Absent => SecretView::Absent,
        SecretState::Foreign(who) => SecretView::Foreign(who.clone()),
        // Its content can be replaced, so a Secret left by an earlier resource of the same name is
        // overwritten.
        SecretState::Restored(secret) if owner.formerly_owned(secret) => SecretView::Absent,
        SecretState::Restored(_) => SecretView::Foreign("not dbplane's".to_owned()),
        SecretState::Ours(secret) => SecretView::Ours(ConnectionSecret {
            data: secret
                .data
                .iter()
                .flatten()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            labels: secret.labels().clone(),
            annotations: secret.annotations().clone(),
        }),
    }
}

/// dbplane writes only text, so a lossy conversion differs from anything that it writes.
fn text(value: &ByteString) -> SecretText {
    String::from_utf8_lossy(&value.0).into_owned().into()
}

fn content(secret: &ConnectionSecret) -> SecretContent {
    let data: BTreeMap<_, _> = secret
        .data
        .iter()
        .map(|(name, text)| (name.clone(), text.as_secret().clone()))
        .collect();
    SecretContent {
        type_: None,
        data,
        labels: secret.labels.clone(),
        annotations: secret.annotations.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_text_without_the_line_break_of_its_file() {
        for (bytes, expected) in [
            ("geheim".as_bytes(), Some("geheim")),
            (b" a b ", Some(" a b ")),
            (b"geheim\n", Some("geheim")),
            (b"geheim\r\n", Some("geheim")),
            (b"geheim\n\n", Some("geheim\n")),
            (b"\n", None),
            (b"", None),
            (b"a\0b", None),
            (b"\xff", None),
            (&[b'a'; LONGEST_CREDENTIAL + 1], None),
        ] {
            let data = BTreeMap::from([("password".to_owned(), ByteString(bytes.to_vec()))]);
            let secret = Secret {
                data: Some(data),
                ..Secret::default()
            };
            assert_eq!(
                entry(&secret, "password"),
                expected.map(SecretText::from),
                "{bytes:?}"
            );
            assert_eq!(entry(&secret, "username"), None);
        }
        assert_eq!(entry(&Secret::default(), "password"), None);
    }

    #[test]
    fn a_secret_that_dbplane_writes_is_told_from_one_that_somebody_labelled() {
        let owner = |version: &str| OwnerReference {
            api_version: version.to_owned(),
            ..OwnerReference::default()
        };
        let of = || Some("Compute orders");
        for (label, annotation, owners, expected) in [
            ("dbplane", of(), vec![], true),
            ("dbplane", None, vec![owner("dbplane.dev/v1alpha1")], true),
            ("dbplane", None, vec![owner("example.com/v1")], false),
            ("dbplane", None, vec![], false),
            ("helm", of(), vec![owner("dbplane.dev/v1alpha1")], false),
        ] {
            let mut secret = Secret::default();
            secret
                .labels_mut()
                .insert(names::MANAGED_BY.0.to_owned(), label.to_owned());
            secret
                .annotations_mut()
                .extend(annotation.map(|of| (names::SECRET_OF.to_owned(), of.to_owned())));
            secret.metadata.owner_references = Some(owners);
            assert_eq!(
                is_written_by_dbplane(&secret),
                expected,
                "{:?}",
                secret.metadata
            );
        }
    }
}
