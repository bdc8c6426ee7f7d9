//! Imports computes from the platform.

use std::collections::BTreeSet;
use std::io::Write;

use super::existing::{self, ExistingResources};
use super::{Error, ImportArgs};
use crate::cli::platform::{Credentials, PlatformReader, retrying};
use crate::cli::progress::Progress;
use crate::domain::{Compute, Listed, ProjectId};
use crate::import::{FoundCompute, FoundKey, Subjects};
use crate::platform::Platform;

const PREFACE: &str = "The computes as the platform shows them, by dbplane import. What is next: docs/guide/import.md";

/// Everything to declare, without computes that resources of the cluster already manage.
pub async fn subjects(args: &ImportArgs, notes: &mut impl Write) -> Result<Subjects, Error> {
    let (credentials, existing) = match args.platform.given()? {
        Some(credentials) => (credentials, ExistingResources::default()),
        None => of_cluster(args, notes).await?,
    };
    let reader = credentials
        .reader()
        .map_err(crate::cli::platform::PlatformError::from)?;
    let mut subjects = Subjects {
        preface: vec![PREFACE.to_owned()],
        taken: existing.taken,
        ..Subjects::default()
    };
    for compute in computes(args, &reader, notes).await? {
        match existing
            .had
            .get(&(compute.project_id.clone(), compute.id.clone()))
        {
            Some(resource) => writeln!(
                notes,
                "left out: compute {}, which Compute {resource} has",
                compute.id
            )?,
            None => subjects.computes.push(FoundCompute::from(compute)),
        }
    }
    if let Some(organization) = &credentials.endpoint.organization_id {
        match retrying(async || reader.platform.list_keys(organization).await).await {
            Ok(listed) => {
                subjects.keys = readable("API keys of the organization", listed, notes)?
                    .into_iter()
                    .filter_map(FoundKey::of)
                    .collect();
            }
            Err(fault) => writeln!(
                notes,
                "the manifests name no API keys, which cannot be listed: {fault}"
            )?,
        }
    }
    Ok(subjects)
}

async fn of_cluster(
    args: &ImportArgs,
    notes: &mut impl Write,
) -> Result<(Credentials, ExistingResources), Error> {
    let connected = args.cluster.connect().await?;
    let namespace = args.namespace.as_deref().unwrap_or(&connected.namespace);
    let credentials = args
        .platform
        .of_account(&connected.client, &args.account(), namespace)
        .await?;
    Ok((
        credentials,
        existing::existing(&connected.client, namespace, notes).await?,
    ))
}

/// The readable entries. Unreadable ones are listed in `notes`, because they get no manifests.
fn readable<T>(of: &str, listed: Listed<T>, notes: &mut impl Write) -> Result<Vec<T>, Error> {
    let (shown, unreadable) = listed.into_parts();
    if !unreadable.is_empty() {
        writeln!(
            notes,
            "left out: entries of the list of {of} that cannot be read: {unreadable}"
        )?;
    }
    Ok(shown)
}

/// The computes of all projects. An unreadable list fails the whole import.
async fn computes(
    args: &ImportArgs,
    reader: &PlatformReader,
    notes: &mut impl Write,
) -> Result<Vec<Compute>, Error> {
    let platform = &reader.platform;
    let projects: BTreeSet<ProjectId> = match args.project.as_slice() {
        [] => {
            let listed = retrying(async || platform.list_projects().await)
                .await
                .map_err(Error::Projects)?;
            readable("projects", listed, notes)?
                .into_iter()
                .map(|project| project.id)
                .collect()
        }
        named => named.iter().cloned().collect(),
    };
    let progress = Progress::counting("projects", projects.len());
    let mut computes = Vec::new();
    for project in projects {
        let listed = retrying(async || platform.list_computes(&project).await).await;
        let listed = listed.map_err(|fault| Error::Computes {
            project: project.clone(),
            fault,
        })?;
        computes.extend(readable(
            &format!("computes of project {project}"),
            listed,
            notes,
        )?);
        progress.advance();
    }
    Ok(computes)
}
