//! Forbidden platform addresses: the message for the user, and that nothing is sent.

use std::process::Command;

use crate::proxies::Proxy;
use crate::support::{ControlPlane, PATIENCE, Running, free_port, wait_for};
use crate::{account, cluster};

/// An operator without the flag for tests, as in a real installation.
pub fn operator(
    cluster: &ControlPlane,
    name: &str,
    args: &[&str],
    env: &[(&str, String)],
) -> Running {
    let [health, metrics] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port().unwrap()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command
        .args([
            "run",
            "--health-listen",
            &health,
            "--metrics-listen",
            &metrics,
        ])
        .args(args)
        .env("KUBECONFIG", cluster.kubeconfig_path())
        .envs(env.iter().map(|(name, value)| (name, value)));
    cluster
        .sandbox()
        .start(name, command)
        .unwrap()
        .log_on_panic()
}

/// Waits until Ready has this reason, and returns its message.
async fn until_reason(cluster: &ControlPlane, name: &str, reason: &str) -> String {
    let path = "jsonpath={range .status.conditions[?(@.type==\"Ready\")]}{.reason} {.message}{end}";
    let says = async || {
        let text = cluster
            .kubectl(&["get", "account", name, "-o", path])
            .await
            .ok()?;
        text.strip_prefix(reason).map(str::to_owned)
    };
    wait_for(&format!("account {name} to say {reason}"), PATIENCE, says)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_account_reaches_neither_this_machine_nor_the_api_server() {
    let cluster = cluster().await;
    let bystander = Proxy::start([]).await;
    let port = bystander.port;
    let api_server = ("KUBERNETES_SERVICE_HOST", "192.0.2.1".to_owned());
    let _operator = operator(&cluster, "operator", &[], &[api_server]);
    for (name, url, reason, words) in [
        (
            "literal",
            format!("https://127.0.0.1:{port}/v2"),
            "PlatformNotAllowed",
            "a loopback address",
        ),
        (
            "mapped",
            format!("https://[::ffff:127.0.0.1]:{port}/v2"),
            "PlatformNotAllowed",
            "a loopback address",
        ),
        (
            "metadata",
            "https://169.254.169.254/v2".to_owned(),
            "PlatformNotAllowed",
            "a link-local address",
        ),
        (
            "wire",
            "https://168.63.129.16/v2".to_owned(),
            "PlatformNotAllowed",
            "a cloud's metadata service",
        ),
        (
            "api-server",
            "https://192.0.2.1/v2".to_owned(),
            "PlatformNotAllowed",
            "the API server's address",
        ),
        (
            "named",
            format!("https://localhost:{port}/v2"),
            "PlatformUnreachable",
            "a loopback address",
        ),
    ] {
        account(&cluster, "default", name, &url, "").await;
        let message = until_reason(&cluster, name, reason).await;
        for words in [words, "--allow-insecure-platform"] {
            assert!(message.contains(words), "{name}: {message}");
        }
        assert!(!message.contains(&url), "{name}: {message}");
    }
    assert_eq!(*bystander.first_lines.borrow(), Vec::<String>::new());
}

#[tokio::test]
async fn only_allowed_platforms_are_reached_and_a_proxy_resolves_addresses() {
    let cluster = cluster().await;
    let mut bystander = Proxy::start([]).await;
    // The proxy is on this machine, but is used nevertheless.
    let proxy = ("ALL_PROXY", format!("http://localhost:{}", bystander.port));
    let platforms =
        "https://platform.example:8443,https://*.internal.example,https://127.0.0.1:8443";
    let allowed = ["--allowed-platforms", platforms];
    let _operator = operator(&cluster, "operator", &allowed, &[proxy]);
    let others = "https://platform.example.evil.example:8443/v2";
    account(&cluster, "default", "other", others, "").await;
    let message = until_reason(&cluster, "other", "PlatformNotAllowed").await;
    assert!(
        message.contains("--allowed-platforms") && !message.contains("evil"),
        "{message}"
    );
    assert_eq!(*bystander.first_lines.borrow(), Vec::<String>::new());

    // The proxy resolves names, but a literal address is still rejected.
    account(
        &cluster,
        "default",
        "literal",
        "https://127.0.0.1:8443/v2",
        "",
    )
    .await;
    let message = until_reason(&cluster, "literal", "PlatformNotAllowed").await;
    assert!(message.contains("a loopback address"), "{message}");
    assert_eq!(*bystander.first_lines.borrow(), Vec::<String>::new());

    account(
        &cluster,
        "default",
        "allowed",
        "https://platform.example:8443/v2",
        "",
    )
    .await;
    let asked = bystander.first_lines.wait_for(|lines| !lines.is_empty());
    let asked = tokio::time::timeout(PATIENCE, asked)
        .await
        .expect("the proxy is asked")
        .unwrap()
        .clone();
    assert!(
        asked[0].starts_with("CONNECT platform.example:8443 "),
        "{asked:?}"
    );
}
