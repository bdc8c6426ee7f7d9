//! The steps of the demo in order. Each shows one guarantee and checks it under the conditions that
//! could break it.

use std::time::Duration;

use serde_json::json;

use super::environment::Environment;
use super::support::{Error, PATIENCE, Result, wait_for, wait_until};
use super::terminal::Terminal;

/// Waits with kubectl for a condition, as a user would.
const WAIT: &str = "kubectl -n shop wait --timeout=60s";
/// Longer than the compute's scaleToZero.
const SIX_MINUTES: Duration = Duration::from_secs(360);

/// Installs dbplane as in any cluster, and starts the operator.
pub async fn install(terminal: &Terminal, env: &mut Environment) -> Result<()> {
    terminal.step("Install: definitions, rights and the operator's Deployment");
    terminal.run(env, "kubectl apply -k deploy/").await?;
    terminal
        .run(
            env,
            "kubectl wait --for=condition=Established crd -l app.kubernetes.io/part-of=dbplane",
        )
        .await?;
    terminal
        .print("   This cluster has no nodes to run Pods on. The operator runs as a process here, with the token of");
    terminal
        .print("   the ServiceAccount that was just installed, and so with exactly the rights that deploy/ gives it.");
    env.start_operator().await?;
    terminal.checked("the operator is ready");
    Ok(())
}

pub async fn show(terminal: &Terminal, env: &Environment) -> Result<()> {
    declare(terminal, env).await?;
    resize(terminal, env).await?;
    restart(terminal, env).await?;
    idle(terminal, env).await?;
    key(terminal, env).await?;
    refuse(terminal, env).await?;
    drift(terminal, env).await?;
    delete(terminal, env).await
}

async fn declare(terminal: &Terminal, env: &Environment) -> Result<()> {
    terminal.step("Declare: two accounts, a primary compute, a read replica and an API key");
    terminal.print(
        "   The examples name https://platform.example; the simulated platform takes its place.",
    );
    let base_url = &env.console.base_url;
    terminal
        .run(
            env,
            &format!(
                "kubectl kustomize deploy/examples | sed 's#https://platform.example/api/v2#{base_url}#' | kubectl apply -f -"
            ),
        )
        .await?;
    terminal
        .run(
            env,
            &format!("{WAIT} --for=condition=Ready accounts,computes,projectkeys --all"),
        )
        .await?;
    terminal.run(env, "kubectl -n shop get dbplane").await?;
    let primary = compute_id(env, "orders").await?;
    let found = env.console.compute(&primary).await?;
    terminal.check(
        found.size == "0.25 - 2 CU",
        "the platform has the compute that is declared, in its size",
    )?;
    let all = env.console.computes().await?;
    terminal.check(all.len() == 2, "it has two computes: none was made twice")?;
    let secret = env
        .kubectl(&[
            "-n",
            "shop",
            "get",
            "secret",
            "orders-db",
            "-o",
            "jsonpath={.data.uri}",
        ])
        .await?;
    terminal.check(
        !secret.is_empty(),
        "the Secret orders-db has the URI that an app connects with",
    )
}

async fn resize(terminal: &Terminal, env: &Environment) -> Result<()> {
    terminal.step("Resize: from 0.25-2 to 0.5-4 compute units");
    let id = compute_id(env, "orders").await?;
    let patch = json!({"spec": {"size": {"autoscaling": {"min": 0.5, "max": 4}}}});
    terminal
        .run(
            env,
            &format!("kubectl -n shop patch compute orders --type merge -p '{patch}'"),
        )
        .await?;
    terminal
        .run(
            env,
            &format!("{WAIT} --for=jsonpath='{{.status.size}}'=0.5-4 compute/orders"),
        )
        .await?;
    terminal
        .run(env, &format!("{WAIT} --for=condition=Ready compute/orders"))
        .await?;
    let found = env.console.compute(&id).await?;
    terminal.check(
        found.size == "0.5 - 4 CU",
        "the same compute has the new size on the platform",
    )
}

async fn restart(terminal: &Terminal, env: &Environment) -> Result<()> {
    terminal.step("Restart: once for each new value of an annotation (or of spec.restartToken)");
    let id = compute_id(env, "orders").await?;
    env.console.use_compute(&id).await?;
    let before = env
        .console
        .wait_for(&id, "the compute to be active", |compute| {
            compute.status == "Active"
        })
        .await?;
    terminal
        .run(
            env,
            &format!("{WAIT} --for=jsonpath='{{.status.state}}'=active compute/orders"),
        )
        .await?;
    let restarts = |requests: &[super::console::Request]| {
        requests
            .iter()
            .filter(|request| request.method == "POST" && request.path.ends_with("/restart"))
            .count()
    };
    let already = restarts(&env.console.requests(0).await?);
    terminal
        .run(
            env,
            "kubectl -n shop annotate compute orders dbplane.dev/restart=demo-1",
        )
        .await?;
    terminal
        .run(
            env,
            &format!("{WAIT} --for=jsonpath='{{.status.restart.completedAt}}' compute/orders"),
        )
        .await?;
    let restarted = |compute: &super::console::Compute| {
        compute.interruptions > before.interruptions && compute.status == "Active"
    };
    env.console
        .wait_for(&id, "the compute to be active again", restarted)
        .await?;
    terminal
        .run(env, &format!("{WAIT} --for=condition=Ready compute/orders"))
        .await?;
    let requests = env.console.requests(0).await?;
    terminal.check(
        restarts(&requests) == already + 1,
        "the platform was asked for one restart, and has made it",
    )
}

async fn idle(terminal: &Terminal, env: &Environment) -> Result<()> {
    terminal.step("Idle: scale to zero is normal, so an idle compute stays Ready and is not woken");
    let id = compute_id(env, "orders").await?;
    terminal.print(
        "   (The platform's clock is put six minutes forward. Nobody connects in that time.)",
    );
    env.console.advance(SIX_MINUTES).await?;
    terminal
        .run(
            env,
            &format!("{WAIT} --for=jsonpath='{{.status.state}}'=idle compute/orders"),
        )
        .await?;
    let since = env
        .console
        .requests(0)
        .await?
        .last()
        .map_or(0, |request| request.n);
    let looked_twice = async || {
        let requests = env.console.requests(since).await.unwrap_or_default();
        requests
            .iter()
            .filter(|request| request.path.ends_with("/endpoints"))
            .count()
            >= 2
    };
    wait_until(
        "the operator to look at the platform again",
        PATIENCE,
        looked_twice,
    )
    .await?;
    terminal
        .run(env, "kubectl -n shop get compute orders")
        .await?;
    let ready = condition(env, "compute/orders", "Ready").await?;
    terminal.check(ready == "True", "it is Ready")?;
    let requests = env.console.requests(since).await?;
    let changes = requests
        .iter()
        .filter(|request| request.method != "GET")
        .count();
    let found = env.console.compute(&id).await?;
    terminal.check(
        changes == 0 && found.status == "Idle",
        "the operator has read the platform again and changed nothing; the compute is still idle",
    )
}

async fn key(terminal: &Terminal, env: &Environment) -> Result<()> {
    terminal.step("Project key: created once, and kept in a Secret");
    terminal
        .run(env, "kubectl -n shop get projectkey ci -o wide")
        .await?;
    let masked = "kubectl -n shop get secret ci-platform-key -o jsonpath='{.data.api-key}' | base64 -d | sed -E 's/(.{4}).*/\\1****************/'";
    terminal.run(env, masked).await?;
    let args = [
        "-n",
        "shop",
        "get",
        "secret",
        "ci-platform-key",
        "-o",
        r"jsonpath={.data.api-key}",
    ];
    let key = decode(&env.kubectl(&args).await?)?;
    let own = env
        .console
        .status_for(&key, "/projects/aged-wind-123456/endpoints")
        .await?;
    terminal.check(own == 200, "the key opens its project on the platform")?;
    let organization = env
        .console
        .status_for(&key, "/organizations/org-cool-darkness-1/api_keys")
        .await?;
    terminal.check(organization >= 400, "it does not open the organization")
}

async fn refuse(terminal: &Terminal, env: &Environment) -> Result<()> {
    terminal.step("Mistakes are refused when they are applied, in words that say what to do");
    let shown = terminal
        .show(env, "kubectl apply -f examples/demo/bad-compute.yaml")
        .await?;
    let explained =
        shown.text.contains("write a size in CU:") && shown.text.contains("min is above max");
    terminal.check(
        !shown.success && explained,
        "both manifests were refused; nothing reached the operator",
    )
}

async fn drift(terminal: &Terminal, env: &Environment) -> Result<()> {
    terminal.step("Drift: somebody changes a declared field in the platform's console");
    let id = compute_id(env, "orders").await?;
    let attributes = json!({"autoscaling_limit_min_cu": 1, "autoscaling_limit_max_cu": 8});
    let changed = env.console.change(&id, &attributes).await?;
    terminal.print(&format!(
        "   (In the console the size of {id} is now {}.)",
        changed.size
    ));
    env.console
        .wait_for(&id, "the declared size to be back", |compute| {
            compute.size == "0.5 - 4 CU"
        })
        .await?;
    terminal
        .run(
            env,
            &format!("{WAIT} --for=condition=Synced compute/orders"),
        )
        .await?;
    let events = terminal
        .run(env, "kubectl -n shop events --for compute/orders")
        .await?;
    terminal.check(
        events.contains("size is 1-8, declared is 0.5-4"),
        "an event says what was changed back",
    )?;
    terminal.checked("the platform has the declared size again");
    Ok(())
}

async fn delete(terminal: &Terminal, env: &Environment) -> Result<()> {
    terminal.step("Delete: the resource goes once its compute is gone from the platform");
    let id = compute_id(env, "orders-replica").await?;
    terminal
        .run(
            env,
            "kubectl -n shop delete compute orders-replica --timeout=60s",
        )
        .await?;
    let left = env.console.computes().await?;
    terminal.check(
        left.iter().all(|compute| compute.id != id),
        "the platform no longer has the replica",
    )?;
    let primary = compute_id(env, "orders").await?;
    terminal.check(
        left.iter().any(|compute| compute.id == primary),
        "the primary is untouched",
    )
}

/// Suggestions for the user of the running demo.
pub fn next_steps(terminal: &Terminal, env: &Environment) -> Result<()> {
    terminal.print("\nYours to try: everything stays up until Ctrl-C. In another terminal:\n");
    terminal.print(&format!(
        "     export KUBECONFIG={}",
        env.kubeconfig().display()
    ));
    let programs = env.programs()?;
    terminal.print(&format!("     export PATH={}:$PATH", programs.display()));
    terminal.print(
        "
     kubectl -n shop get dbplane
     kubectl explain compute.spec
     kubectl -n shop edit compute orders
     kubectl -n shop describe compute orders
     kubectl -n shop events --watch
     kubectl -n shop patch compute orders --type merge -p '{\"spec\":{\"deletionProtection\":false}}'
     kubectl delete namespace shop          # and look what is left on the platform
     kubectl dbplane status -A              # what needs attention, and what to do
",
    );
    terminal.print(&format!("   The platform's console: {}", env.console.url()));
    Ok(())
}

async fn compute_id(env: &Environment, name: &str) -> Result<String> {
    let path = "jsonpath={.status.computeID}";
    let read = async || {
        env.kubectl(&["-n", "shop", "get", "compute", name, "-o", path])
            .await
            .ok()
    };
    wait_for("a compute's id", PATIENCE, async || {
        read().await.filter(|id| !id.is_empty())
    })
    .await
}

async fn condition(env: &Environment, object: &str, kind: &str) -> Result<String> {
    let path = format!("jsonpath={{.status.conditions[?(@.type==\"{kind}\")].status}}");
    env.kubectl(&["-n", "shop", "get", object, "-o", &path])
        .await
}

/// Decodes an entry of a Secret.
fn decode(base64: &str) -> Result<String> {
    let bytes: k8s_openapi::ByteString = serde_json::from_value(json!(base64))
        .map_err(Error::while_doing("reading a Secret's entry"))?;
    String::from_utf8(bytes.0).map_err(|_| Error::new("a Secret's entry is not text"))
}
