//! Access from closed networks: proxies and private certificate authorities.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::reach::operator;
use crate::support::{ControlPlane, PATIENCE, wait_until};
use crate::{account, cluster, declare, platform};

/// A proxy for CONNECT. It records each request line, and connects only to known names.
pub struct Proxy {
    pub port: u16,
    pub first_lines: watch::Receiver<Vec<String>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub async fn start(known: impl IntoIterator<Item = (String, SocketAddr)>) -> Self {
        let known: BTreeMap<String, SocketAddr> = known.into_iter().collect();
        let (noted, first_lines) = watch::channel(Vec::new());
        let (known, noted) = (Arc::new(known), Arc::new(noted));
        let (port, _tasks) = serve(move |stream| {
            let (known, noted) = (known.clone(), noted.clone());
            async move {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n")
                    && stream.read_line(&mut head).await.is_ok_and(|read| read > 0)
                {
                }
                let line = head.lines().next().unwrap_or_default();
                noted.send_modify(|lines| lines.push(line.to_owned()));
                let target = line
                    .strip_prefix("CONNECT ")
                    .and_then(|rest| rest.split(' ').next());
                let Some(address) = target.and_then(|target| known.get(target)) else {
                    return;
                };
                let mut behind = TcpStream::connect(address).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut behind).await;
            }
        })
        .await;
        Self {
            port,
            first_lines,
            _tasks,
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The targets in the order of their first request.
    fn asked_for(&self) -> Vec<String> {
        let mut targets = Vec::new();
        for line in self.first_lines.borrow().iter() {
            let target = line.split(' ').nth(1).unwrap_or(line).to_owned();
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        targets
    }
}

/// Handles each connection with this function until the tasks are dropped.
async fn serve<F, Done>(with_each: F) -> (u16, JoinSet<()>)
where
    F: Fn(TcpStream) -> Done + Send + 'static,
    Done: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(with_each(stream));
        }
    });
    (port, tasks)
}

/// A TLS server for this name in front of `behind`, with its self-signed certificate as PEM.
async fn with_certificate(name: &str, behind: String) -> (SocketAddr, String, JoinSet<()>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (port, tasks) = serve(move |stream| {
        let (acceptor, behind) = (acceptor.clone(), behind.clone());
        async move {
            // A client that does not trust the certificate disconnects.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            let mut behind = TcpStream::connect(behind).await.unwrap();
            let _ = copy_bidirectional(&mut stream, &mut behind).await;
        }
    })
    .await;
    (SocketAddr::from(([127, 0, 0, 1], port)), cert.pem(), tasks)
}

/// A modified kubeconfig of the administrator.
fn kubeconfig(
    cluster: &ControlPlane,
    name: &str,
    change: impl Fn(&mut serde_json::Value),
) -> PathBuf {
    let text = fs::read_to_string(cluster.kubeconfig_path()).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    change(&mut config);
    let path = cluster.sandbox().folder().join(name);
    fs::write(&path, config.to_string()).unwrap();
    path
}

/// Runs `dbplane status` with a kubeconfig and these variables.
async fn status(kubeconfig: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    // Without the proxy variables of the caller.
    command
        .arg("status")
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .envs(variables.iter().copied())
        .kill_on_drop(true);
    tokio::time::timeout(PATIENCE, command.output())
        .await
        .expect("it ends")
        .unwrap()
}

fn shows_the_compute(output: &Output) -> bool {
    output.status.success() && String::from_utf8_lossy(&output.stdout).contains("orders")
}

#[tokio::test]
async fn a_verb_reaches_the_cluster_as_kubectl_does() {
    let cluster = cluster().await;
    let platform = platform().await;
    declare(&cluster, &platform).await;
    let direct = cluster
        .url()
        .trim_start_matches("https://")
        .parse()
        .unwrap();
    // A name in the API server's certificate that only the proxy can resolve.
    let name = "kubernetes.default.svc:443";
    let proxy = Proxy::start([(name.to_owned(), direct)]).await;
    let proxy_url = proxy.url();
    let named = format!("https://{name}");
    let elsewhere = kubeconfig(&cluster, "elsewhere.kubeconfig", |config| {
        config["clusters"][0]["cluster"]["server"] = named.clone().into();
    });
    let tunnelled = kubeconfig(&cluster, "tunnelled.kubeconfig", |config| {
        config["clusters"][0]["cluster"]["server"] = named.clone().into();
        config["clusters"][0]["cluster"]["proxy-url"] = proxy_url.clone().into();
    });

    let unreached = status(&elsewhere, &[]).await;
    assert!(!unreached.status.success(), "{unreached:?}");
    for (kubeconfig, variables) in [
        (&tunnelled, vec![]),
        (&elsewhere, vec![("HTTPS_PROXY", proxy_url.as_str())]),
    ] {
        let asked = proxy.first_lines.borrow().len();
        let shown = status(kubeconfig, &variables).await;
        assert!(shows_the_compute(&shown), "{variables:?}: {shown:?}");
        assert!(proxy.first_lines.borrow().len() > asked, "{variables:?}");
    }
    assert_eq!(proxy.asked_for(), ["kubernetes.default.svc:443"]);

    // Loopback addresses and exceptions bypass the proxy of the environment.
    let asked = proxy.first_lines.borrow().len();
    let here = status(&cluster.kubeconfig_path(), &[("HTTPS_PROXY", &proxy_url)]).await;
    assert!(shows_the_compute(&here), "{here:?}");
    let excepted = status(
        &elsewhere,
        &[
            ("HTTPS_PROXY", &proxy_url),
            ("NO_PROXY", "kubernetes.default.svc"),
        ],
    )
    .await;
    assert!(!excepted.status.success(), "{excepted:?}");
    assert_eq!(proxy.first_lines.borrow().len(), asked);

    let stranger = kubeconfig(&cluster, "stranger.kubeconfig", |config| {
        config["users"][0]["user"]["token"] = "of-nobody".into();
    });
    let refused = status(&stranger, &[]).await;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(1)
            && said.contains("does not accept who you are: Unauthorized"),
        "{said}"
    );
}

/// Uses the variables that the chart sets from `proxy.https` and `caBundle`.
#[tokio::test]
async fn a_platform_is_reached_through_a_proxy_with_a_custom_certificate() {
    let cluster = cluster().await;
    let platform = platform().await;
    let behind = platform
        .base_url()
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let (address, certificate, _tasks) = with_certificate("platform.example", behind).await;
    let proxy = Proxy::start([("platform.example:443".to_owned(), address)]).await;
    let authorities = cluster.sandbox().folder().join("ca.crt");
    fs::write(&authorities, certificate).unwrap();
    let base_url = platform.base_url();
    let path = base_url
        .trim_start_matches("http://")
        .split_once('/')
        .map_or("", |(_, path)| path);
    let url = format!("https://platform.example/{path}");
    account(
        &cluster,
        "default",
        "prod",
        &url,
        "  organizationID: org-cool-darkness-1\n",
    )
    .await;
    let conditions =
        "jsonpath={range .status.conditions[?(@.type==\"Ready\")]}{.status} {.message}{end}";
    let says = async || {
        cluster
            .kubectl(&["get", "account", "prod", "-o", conditions])
            .await
            .unwrap_or_default()
    };

    let by_proxy = ("HTTPS_PROXY", proxy.url());
    let untrusting = operator(&cluster, "untrusting", &[], std::slice::from_ref(&by_proxy));
    wait_until("the certificate to be refused", PATIENCE, async || {
        says().await.contains("certificate")
    })
    .await
    .unwrap();
    drop(untrusting);

    let trusted = ("SSL_CERT_FILE", authorities.display().to_string());
    let _trusting = operator(&cluster, "trusting", &[], &[by_proxy, trusted]);
    wait_until("the account to be ready", PATIENCE, async || {
        says().await.starts_with("True")
    })
    .await
    .unwrap();
    // The API server is on this machine, so it is not reached through the proxy.
    assert_eq!(proxy.asked_for(), ["platform.example:443"]);
}
