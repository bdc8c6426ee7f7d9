//! A bare client with the same work: the lower bound of a figure on this machine in this run.

use std::time::{Duration, Instant};

use dbplane::api::Compute;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::bed::Setting;
use super::fleet;
use super::spent::processor_time;
use super::support::{Error, Result};

/// The operator's concurrency per account and namespace without --concurrency.
pub const AT_ONCE: usize = 16;
const PAGE: u32 = 500;

/// Creates the objects and makes the writes of a create: two of metadata, two of the status. Then
/// it deletes them. Events are not included, because the operator sends them in parallel.
pub async fn writes(computes: &Api<Compute>, count: usize) -> Result<Duration> {
    let begun = Instant::now();
    let each = stream::iter(0..count).map(Ok);
    each.try_for_each_concurrent(AT_ONCE, async |number| life(computes, number).await)
        .await?;
    let took = begun.elapsed();
    let names = stream::iter(0..count).map(Ok);
    names
        .try_for_each_concurrent(AT_ONCE, async |number| remove(computes, number).await)
        .await?;
    Ok(took)
}

fn name(number: usize) -> String {
    format!("floor-{number}")
}

async fn life(computes: &Api<Compute>, number: usize) -> Result<()> {
    let mut compute = fleet::compute(number, Setting::unlimited(1));
    compute.metadata.name = Some(name(number));
    // The operator must ignore it.
    compute.metadata.annotations =
        Some([("dbplane.dev/paused".to_owned(), "true".to_owned())].into());
    computes.create(&PostParams::default(), &compute).await?;
    for round in 0..2 {
        let text = "x".repeat(400);
        let record =
            json!({"metadata": {"annotations": {"example.com/record": format!("{round}{text}")}}});
        computes
            .patch(
                &name(number),
                &PatchParams::default(),
                &Patch::Merge(record),
            )
            .await?;
        let status = json!({"status": {"host": format!("host-{round}")}});
        computes
            .patch_status(
                &name(number),
                &PatchParams::default(),
                &Patch::Merge(status),
            )
            .await?;
    }
    Ok(())
}

async fn remove(computes: &Api<Compute>, number: usize) -> Result<()> {
    computes
        .delete(&name(number), &kube::api::DeleteParams::default())
        .await?;
    Ok(())
}

/// The size of one Compute as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bytes {
    /// As the API server stores it.
    pub stored: usize,
    /// Without the fields that the operator drops.
    pub kept: usize,
}

/// Lists and decodes all objects, and returns the processor time.
pub async fn list(computes: &Api<Compute>) -> Result<(Duration, Bytes)> {
    let before = processor_time(std::process::id())?;
    let mut parameters = ListParams::default().limit(PAGE);
    let mut sample = None;
    loop {
        let page = computes.list(&parameters).await?;
        sample = sample.or_else(|| page.items.into_iter().next());
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = ListParams::default().limit(PAGE).continue_token(&token),
            None => break,
        }
    }
    let took = processor_time(std::process::id())?.saturating_sub(before);
    let mut sample = sample.ok_or_else(|| Error::new("there is no Compute".to_owned()))?;
    let bytes = |compute: &Compute| {
        let json =
            serde_json::to_vec(compute).map_err(Error::while_doing("writing a Compute as JSON"))?;
        Ok::<_, Error>(json.len())
    };
    let stored = bytes(&sample)?;
    sample.metadata.managed_fields = None;
    Ok((
        took,
        Bytes {
            stored,
            kept: bytes(&sample)?,
        },
    ))
}
