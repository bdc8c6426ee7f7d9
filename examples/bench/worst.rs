//! Measures passes and memory for the worst admissible objects of every kind, in the namespace of a
//! tenant with usable accounts. Texts are shorter than allowed: with the longest ones, etcd would
//! hold some GB.

#[path = "../../tests/support/worst.rs"]
mod objects;

use std::fmt::Debug;
use std::path::Path;

use dbplane::api::{Account, ClusterAccount, Compute, ObjectMeta, ProjectKey, ReadReplicaSet};
use dbplane::decide::identity::{KeyRecords, LostBecause, LostKey, ProjectKeyIdentity, written};
use dbplane::decide::names::RECORD;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::objects::Place;
use super::bed::{Bed, Setting};
use super::spent::processor_time;
use super::support::{Error, Result};
use super::{fleet, floor, stages};

const NAMESPACE: &str = "evil";
/// Length of texts that could be longer.
const LENGTH: usize = 128;
/// Number of foreign keys in each record, about the maximum that fits into metadata.
const KEYS: usize = 500;
const REPLICAS: usize = 100;
/// Number of branches in a project of the fleet.
const BRANCHES: usize = 10;

/// The cost of adding objects, until everything is quiet.
#[derive(Debug, Serialize)]
pub struct Stage {
    pub what: String,
    pub objects: usize,
    pub passes: u64,
    /// Processor time per pass in seconds, including all other work of the process.
    pub pass: f64,
    /// Resident memory of the process.
    pub resident_kib: u64,
}

struct Tenant {
    bed: Bed,
    stages: Vec<Stage>,
}

/// Adds the objects kind by kind. At the end, the operator restarts with nothing to do.
pub async fn run(operator: &Path, objects: usize) -> Result<Vec<Stage>> {
    let setting = Setting {
        strangers: KEYS,
        ..Setting::unlimited(objects * BRANCHES)
    };
    let mut tenant = Tenant {
        bed: Bed::new(operator, setting).await?,
        stages: Vec::new(),
    };
    tenant.prepare().await?;
    tenant.add(Counts::of(objects)).await?;
    tenant.bed.restart(&[]).await?;
    stages::settled(&mut tenant.bed).await?;
    tenant
        .measured("all after a restart", objects, (0, 0.0))
        .await?;
    Ok(tenant.stages)
}

/// Number of objects of each kind.
struct Counts {
    accounts: usize,
    cluster_accounts: usize,
    keys: usize,
    sets: usize,
    computes: usize,
}

impl Counts {
    /// Each set has its replicas besides.
    fn of(objects: usize) -> Self {
        let (accounts, cluster_accounts) = (objects / 5, objects.div_ceil(50));
        let (keys, sets) = (objects * 3 / 10, objects.div_ceil(5 * REPLICAS));
        let others = accounts + cluster_accounts + keys + sets * (1 + REPLICAS);
        Self {
            accounts,
            cluster_accounts,
            keys,
            sets,
            computes: objects.saturating_sub(others),
        }
    }
}

/// Each Compute has its own branch.
fn place(what: &str, number: usize) -> Place {
    Place {
        name: format!("{what}-{number}"),
        namespace: NAMESPACE.to_owned(),
        account: "account-0".to_owned(),
        project: format!("project-{}", number / BRANCHES),
        branch: format!("br-{}", number % BRANCHES),
        length: LENGTH,
    }
}

/// Annotations of about the size that the operator keeps.
fn annotated(mut object: Value) -> Value {
    for name in ["not-created", "restart", "reconcile-requested-at"] {
        object["metadata"]["annotations"][format!("dbplane.dev/{name}")] =
            json!("x".repeat(5 * 1024));
    }
    object
}

/// Adds a record with the keys of others, as if it came from a backup.
fn recorded(mut object: Value, base_url: &str) -> Value {
    let meta = ObjectMeta {
        namespace: Some(NAMESPACE.to_owned()),
        name: object["metadata"]["name"].as_str().map(str::to_owned),
        ..ObjectMeta::default()
    };
    let lost = |number| LostKey {
        id: None,
        name: fleet::stranger(number),
        since: Timestamp::UNIX_EPOCH,
        because: LostBecause::Unanswered,
        unlisted: None,
    };
    let records = KeyRecords {
        lost: (0..KEYS).map(lost).collect(),
        organization: Some(fleet::ORGANIZATION.into()),
        platform: Some(base_url.to_owned()),
        ..KeyRecords::default()
    };
    let identity = ProjectKeyIdentity {
        records,
        intent: None,
    };
    object["metadata"]["annotations"][RECORD] = json!(written(&identity, &meta));
    object
}

impl Tenant {
    /// Creates the namespace and the Secrets that the objects refer to.
    async fn prepare(&self) -> Result<()> {
        self.bed.create_namespace(NAMESPACE).await?;
        self.secret("credentials", json!({"api-key": fleet::KEY}))
            .await?;
        let login = json!({"username": "shop", "password": "not-a-secret"});
        self.secret("login", login).await
    }

    async fn add(&mut self, counts: Counts) -> Result<()> {
        let base_url = self.bed.platform.base_url();
        let account = |number| objects::account(&place("account", number), &base_url);
        self.stage::<Account>(counts.accounts, self.namespaced(), account)
            .await?;
        let all = Api::all(self.bed.client.clone());
        let cluster_account =
            |number| objects::cluster_account(&place("account", number), &base_url, 256);
        self.stage::<ClusterAccount>(counts.cluster_accounts, all, cluster_account)
            .await?;
        let key = |number| recorded(objects::project_key(&place("key", number), 32), &base_url);
        self.stage::<ProjectKey>(counts.keys, self.namespaced(), key)
            .await?;
        let compute = |number| annotated(objects::compute(&place("compute", number)));
        self.stage::<Compute>(counts.computes, self.namespaced(), compute)
            .await?;
        // These branches have no Compute.
        let first = counts.computes.next_multiple_of(BRANCHES);
        let set =
            |number| objects::read_replica_set(&place("set", first + number * BRANCHES), REPLICAS);
        self.stage::<ReadReplicaSet>(counts.sets, self.namespaced(), set)
            .await
    }

    fn namespaced<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.bed.client.clone(), NAMESPACE)
    }

    async fn secret(&self, name: &str, entries: Value) -> Result<()> {
        let secret =
            json!({"metadata": {"name": name, "namespace": NAMESPACE}, "stringData": entries});
        create::<Secret>(&self.namespaced(), secret).await
    }

    async fn stage<K>(
        &mut self,
        count: usize,
        api: Api<K>,
        manifest: impl Fn(usize) -> Value,
    ) -> Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
    {
        let before = self.spent().await?;
        let one = async |number| create(&api, manifest(number)).await;
        stream::iter(0..count)
            .map(Ok)
            .try_for_each_concurrent(floor::AT_ONCE, one)
            .await?;
        stages::settled(&mut self.bed).await?;
        self.measured(&K::kind(&()), count, before).await
    }

    /// Passes and processor time in seconds so far.
    async fn spent(&self) -> Result<(u64, f64)> {
        Ok((
            self.bed.passes().await?,
            processor_time(self.bed.operator.id())?.as_secs_f64(),
        ))
    }

    async fn measured(&mut self, what: &str, objects: usize, before: (u64, f64)) -> Result<()> {
        let (passes, processor) = self.spent().await?;
        let passes = passes - before.0;
        let pass = (processor - before.1) / passes.max(1) as f64;
        let resident_kib = self.bed.operator.resident_kib()?;
        self.stages.push(Stage {
            what: what.to_owned(),
            objects,
            passes,
            pass,
            resident_kib,
        });
        Ok(())
    }
}

async fn create<K>(api: &Api<K>, manifest: Value) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
{
    let object: K =
        serde_json::from_value(manifest).map_err(Error::while_doing("making an object"))?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

pub fn print(stages: &[Stage]) {
    println!("\nThe worst objects that the definitions admit");
    println!(
        "  {:<24} {:>8} {:>8} {:>16} {:>16}",
        "", "objects", "passes", "CPU for each", "resident memory"
    );
    for Stage {
        what,
        objects,
        passes,
        pass,
        resident_kib,
    } in stages
    {
        let (milliseconds, mebibytes) = (pass * 1000.0, *resident_kib as f64 / 1024.0);
        println!(
            "  {what:<24} {objects:>8} {passes:>8} {milliseconds:>13.2} ms {mebibytes:>12.1} MiB"
        );
    }
}
