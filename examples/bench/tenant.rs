//! A tenant with the highest cost that the definitions admit. It has many Computes with maximal
//! specs in its own namespace, without an account, and it changes them continuously.

use std::ops::Range;

use dbplane::api::Compute;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::bed::Bed;
use super::moments::{self, Waits};
use super::spent::processor_time;
use super::support::{Error, Result};
use super::{floor, stages};

const NAMESPACE: &str = "evil";

/// The tenant's cost, and its effect on others.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Tenant {
    pub objects: usize,
    /// Processor time per pass until everything is quiet, in seconds.
    pub pass: f64,
    /// Memory of all its objects.
    pub resident_kib: u64,
    /// Waiting time of another tenant's single Compute in the meantime.
    pub beside: Waits,
}

pub async fn measured(bed: &mut Bed, objects: usize, others: Range<usize>) -> Result<Tenant> {
    bed.create_namespace(NAMESPACE).await?;
    let (resident, processor) = (
        bed.operator.resident_kib()?,
        processor_time(bed.operator.id())?,
    );
    let passes = bed.passes().await?;
    let computes = Api::<Compute>::namespaced(bed.client.clone(), NAMESPACE);
    let declare = async |number| -> Result<()> {
        computes
            .create(&PostParams::default(), &worst(number)?)
            .await?;
        Ok(())
    };
    stream::iter(0..objects)
        .map(Ok)
        .try_for_each_concurrent(floor::AT_ONCE, declare)
        .await?;
    stages::settled(bed).await?;
    let spent = (processor_time(bed.operator.id())? - processor).as_secs_f64();
    let pass = spent / (bed.passes().await? - passes).max(1) as f64;
    let resident_kib = bed.operator.resident_kib()?.saturating_sub(resident);

    let stop = CancellationToken::new();
    let changing = tokio::spawn(change(computes.clone(), objects, stop.clone()));
    let beside = moments::singles(bed, others).await;
    stop.cancel();
    changing
        .await
        .map_err(Error::while_doing("changing the tenant's Computes"))??;
    computes
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    stages::settled(bed).await?;
    Ok(Tenant {
        objects,
        pass,
        resident_kib,
        beside: beside?,
    })
}

/// Changes as fast as the API server accepts them.
async fn change(computes: Api<Compute>, objects: usize, stop: CancellationToken) -> Result<()> {
    let numbers = stream::iter((0..objects).cycle())
        .take_until(stop.cancelled_owned())
        .map(Ok::<usize, Error>);
    let one = async |number: usize| -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"schedules": schedules(number % 59 + 1)}}));
        computes
            .patch(&format!("worst-{number}"), &PatchParams::default(), &patch)
            .await?;
        Ok(())
    };
    numbers.try_for_each_concurrent(floor::AT_ONCE, one).await
}

/// The maximal number of schedules, each of which is expensive to evaluate.
fn schedules(minute: usize) -> Vec<Value> {
    let entry = |number: usize| {
        let times = (format!("*/{} * * * *", minute.max(2)), "1-59/2 * * * *");
        json!({"name": format!("e-{number}"), "start": times.0, "end": times.1, "timeZone": "Africa/Casablanca", "size": {"fixed": 1}})
    };
    (0..16).map(entry).collect()
}

fn worst(number: usize) -> Result<Compute> {
    let annotations: serde_json::Map<String, Value> =
        ["not-created", "restart", "reconcile-requested-at"]
            .map(|name| (format!("dbplane.dev/{name}"), json!("x".repeat(8 * 1024))))
            .into_iter()
            .chain([(
                "somebody.example/notes".to_owned(),
                json!("x".repeat(64 * 1024)),
            )])
            .collect();
    let compute = json!({
        "apiVersion": "dbplane.dev/v1alpha1",
        "kind": "Compute",
        "metadata": {"name": format!("worst-{number}"), "namespace": NAMESPACE, "annotations": annotations},
        "spec": {
            "accountRef": {"name": "nobody"},
            "projectID": "project-0",
            "branchID": "br-0",
            "type": "ReadWrite",
            "size": {"fixed": 1},
            "schedules": schedules(2),
            "maintenance": {"restart": {"schedule": "* * * * *", "timeZone": "Africa/Casablanca", "jitter": "24h"}},
        },
    });
    serde_json::from_value(compute).map_err(Error::while_doing("making a Compute"))
}
