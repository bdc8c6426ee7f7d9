//! The steps of the demo, in order. Each shows one promise and checks it where it can be broken.

use std::time::Duration;

use serde_json::json;

use super::cast::Cast;
use super::stage::Stage;
use super::support::{Error, PATIENCE, Result, wait_for, wait_until};

/// Waits as a person would: for a condition, with kubectl.
const WAIT: &str = "kubectl -n shop wait --timeout=60s";
/// Longer than the compute's scaleToZero.
const SIX_MINUTES: Duration = Duration::from_secs(360);

/// Installs dbplane as in any cluster, and starts the operator.
pub async fn install(stage: &Stage, cast: &mut Cast) -> Result<()> {
    stage.scene("Install: definitions, rights and the operator's Deployment");
    stage.run(cast, "kubectl apply -k deploy/").await?;
    stage.run(cast, "kubectl wait --for=condition=Established crd -l app.kubernetes.io/part-of=dbplane").await?;
    stage.say("   This cluster has no nodes to run Pods on. The operator runs as a process here, with the token of");
    stage.say("   the ServiceAccount that was just installed, and so with exactly the rights that deploy/ gives it.");
    cast.enter_operator().await?;
    stage.checked("the operator is ready");
    Ok(())
}

pub async fn play(stage: &Stage, cast: &Cast) -> Result<()> {
    declare(stage, cast).await?;
    resize(stage, cast).await?;
    restart(stage, cast).await?;
    idle(stage, cast).await?;
    key(stage, cast).await?;
    refuse(stage, cast).await?;
    drift(stage, cast).await?;
    delete(stage, cast).await
}

async fn declare(stage: &Stage, cast: &Cast) -> Result<()> {
    stage.scene("Declare: two accounts, a primary compute, a read replica and an API key");
    stage.say("   The examples name https://platform.example; the simulated platform takes its place.");
    let base_url = &cast.console.base_url;
    stage
        .run(
            cast,
            &format!(
                "kubectl kustomize deploy/examples | sed 's#https://platform.example/api/v2#{base_url}#' | kubectl apply -f -"
            ),
        )
        .await?;
    stage.run(cast, &format!("{WAIT} --for=condition=Ready accounts,computes,projectkeys --all")).await?;
    stage.run(cast, "kubectl -n shop get dbplane").await?;
    let primary = compute_id(cast, "orders").await?;
    let found = cast.console.compute(&primary).await?;
    stage.check(found.size == "0.25 - 2 CU", "the platform has the compute that is declared, in its size")?;
    let all = cast.console.computes().await?;
    stage.check(all.len() == 2, "it has two computes: none was made twice")?;
    let secret =
        cast.kubectl(&["-n", "shop", "get", "secret", "orders-db", "-o", "jsonpath={.data.computeID}"]).await?;
    stage.check(!secret.is_empty(), "the Secret orders-db says where to connect")
}

async fn resize(stage: &Stage, cast: &Cast) -> Result<()> {
    stage.scene("Resize: from 0.25-2 to 0.5-4 compute units");
    let id = compute_id(cast, "orders").await?;
    let patch = json!({"spec": {"size": {"autoscaling": {"min": 0.5, "max": 4}}}});
    stage.run(cast, &format!("kubectl -n shop patch compute orders --type merge -p '{patch}'")).await?;
    stage.run(cast, &format!("{WAIT} --for=jsonpath='{{.status.size}}'=0.5-4 compute/orders")).await?;
    stage.run(cast, &format!("{WAIT} --for=condition=Ready compute/orders")).await?;
    let found = cast.console.compute(&id).await?;
    stage.check(found.size == "0.5 - 4 CU", "the same compute has the new size on the platform")
}

async fn restart(stage: &Stage, cast: &Cast) -> Result<()> {
    stage.scene("Restart: once for each new value of an annotation (or of spec.restartToken)");
    let id = compute_id(cast, "orders").await?;
    cast.console.use_compute(&id).await?;
    let before = cast.console.wait_for(&id, "the compute to be active", |compute| compute.status == "Active").await?;
    stage.run(cast, &format!("{WAIT} --for=jsonpath='{{.status.state}}'=active compute/orders")).await?;
    let restarts = |requests: &[super::console::Request]| {
        requests.iter().filter(|request| request.method == "POST" && request.path.ends_with("/restart")).count()
    };
    let already = restarts(&cast.console.requests(0).await?);
    stage.run(cast, "kubectl -n shop annotate compute orders dbplane.dev/restart=demo-1").await?;
    stage.run(cast, &format!("{WAIT} --for=jsonpath='{{.status.restart.token}}'=demo-1 compute/orders")).await?;
    let restarted =
        |compute: &super::console::Compute| compute.interruptions > before.interruptions && compute.status == "Active";
    cast.console.wait_for(&id, "the compute to be active again", restarted).await?;
    stage.run(cast, &format!("{WAIT} --for=condition=Ready compute/orders")).await?;
    let requests = cast.console.requests(0).await?;
    stage.check(restarts(&requests) == already + 1, "the platform was asked for one restart, and has made it")
}

async fn idle(stage: &Stage, cast: &Cast) -> Result<()> {
    stage.scene("Idle: scale to zero is normal, so an idle compute stays Ready and is not woken");
    let id = compute_id(cast, "orders").await?;
    stage.say("   (The platform's clock is put six minutes forward. Nobody connects in that time.)");
    cast.console.advance(SIX_MINUTES).await?;
    stage.run(cast, &format!("{WAIT} --for=jsonpath='{{.status.state}}'=idle compute/orders")).await?;
    let since = cast.console.requests(0).await?.last().map_or(0, |request| request.n);
    let looked_twice = async || {
        let requests = cast.console.requests(since).await.unwrap_or_default();
        requests.iter().filter(|request| request.path.ends_with("/endpoints")).count() >= 2
    };
    wait_until("the operator to look at the platform again", PATIENCE, looked_twice).await?;
    stage.run(cast, "kubectl -n shop get compute orders").await?;
    let ready = condition(cast, "compute/orders", "Ready").await?;
    stage.check(ready == "True", "it is Ready")?;
    let requests = cast.console.requests(since).await?;
    let changes = requests.iter().filter(|request| request.method != "GET").count();
    let found = cast.console.compute(&id).await?;
    stage.check(
        changes == 0 && found.status == "Idle",
        "the operator has read the platform again and changed nothing; the compute is still idle",
    )
}

async fn key(stage: &Stage, cast: &Cast) -> Result<()> {
    stage.scene("Project key: created once, and kept in a Secret");
    stage.run(cast, "kubectl -n shop get projectkey ci -o wide").await?;
    let masked = "kubectl -n shop get secret ci-platform-key -o jsonpath='{.data.api-key}' | base64 -d | sed -E 's/(.{4}).*/\\1****************/'";
    stage.run(cast, masked).await?;
    let args = ["-n", "shop", "get", "secret", "ci-platform-key", "-o", r"jsonpath={.data.api-key}"];
    let key = decode(&cast.kubectl(&args).await?)?;
    let own = cast.console.status_for(&key, "/projects/aged-wind-123456/endpoints").await?;
    stage.check(own == 200, "the key opens its project on the platform")?;
    let organization = cast.console.status_for(&key, "/organizations/org-cool-darkness-1/api_keys").await?;
    stage.check(organization >= 400, "it does not open the organization")
}

async fn refuse(stage: &Stage, cast: &Cast) -> Result<()> {
    stage.scene("Mistakes are refused when they are applied, in words that say what to do");
    let shown = stage.show(cast, "kubectl apply -f deploy/examples/bad-compute.yaml").await?;
    let explained = shown.text.contains("supported values:") && shown.text.contains("min is above max");
    stage.check(!shown.success && explained, "both manifests were refused; nothing reached the operator")
}

async fn drift(stage: &Stage, cast: &Cast) -> Result<()> {
    stage.scene("Drift: somebody changes a declared field in the platform's console");
    let id = compute_id(cast, "orders").await?;
    let attributes = json!({"autoscaling_limit_min_cu": 1, "autoscaling_limit_max_cu": 8});
    let changed = cast.console.change(&id, &attributes).await?;
    stage.say(&format!("   (In the console the size of {id} is now {}.)", changed.size));
    cast.console.wait_for(&id, "the declared size to be back", |compute| compute.size == "0.5 - 4 CU").await?;
    stage.run(cast, &format!("{WAIT} --for=condition=Synced compute/orders")).await?;
    let events = stage.run(cast, "kubectl -n shop events --for compute/orders").await?;
    stage.check(events.contains("size is 1-8, declared is 0.5-4"), "an event says what was changed back")?;
    stage.checked("the platform has the declared size again");
    Ok(())
}

async fn delete(stage: &Stage, cast: &Cast) -> Result<()> {
    stage.scene("Delete: the resource goes once its compute is gone from the platform");
    let id = compute_id(cast, "orders-replica").await?;
    stage.run(cast, "kubectl -n shop delete compute orders-replica --timeout=60s").await?;
    let left = cast.console.computes().await?;
    stage.check(left.iter().all(|compute| compute.id != id), "the platform no longer has the replica")?;
    let primary = compute_id(cast, "orders").await?;
    stage.check(left.iter().any(|compute| compute.id == primary), "the primary is untouched")
}

/// What to do with the running demo.
pub fn farewell(stage: &Stage, cast: &Cast) {
    stage.say("\nYours to try: everything stays up until Ctrl-C. In another terminal:\n");
    stage.say(&format!("     export KUBECONFIG={}", cast.kubeconfig().display()));
    if let Some(folder) = cast.kubectl_folder() {
        stage.say(&format!("     export PATH={}:$PATH", folder.display()));
    }
    stage.say(
        "
     kubectl -n shop get dbplane
     kubectl explain compute.spec
     kubectl -n shop edit compute orders
     kubectl -n shop describe compute orders
     kubectl -n shop events --watch
     kubectl delete namespace shop          # and look what is left on the platform
",
    );
    stage.say(&format!("   The platform's console: {}", cast.console.url()));
}

async fn compute_id(cast: &Cast, name: &str) -> Result<String> {
    let path = "jsonpath={.status.computeID}";
    let read = async || cast.kubectl(&["-n", "shop", "get", "compute", name, "-o", path]).await.ok();
    wait_for("a compute's id", PATIENCE, async || read().await.filter(|id| !id.is_empty())).await
}

async fn condition(cast: &Cast, object: &str, kind: &str) -> Result<String> {
    let path = format!("jsonpath={{.status.conditions[?(@.type==\"{kind}\")].status}}");
    cast.kubectl(&["-n", "shop", "get", object, "-o", &path]).await
}

/// The text of a Secret's entry.
fn decode(base64: &str) -> Result<String> {
    let bytes: k8s_openapi::ByteString =
        serde_json::from_value(json!(base64)).map_err(Error::while_doing("reading a Secret's entry"))?;
    String::from_utf8(bytes.0).map_err(|_| Error::new("a Secret's entry is not text"))
}
