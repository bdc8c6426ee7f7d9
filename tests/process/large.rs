//! Oversized answers of a platform must neither exhaust the operator's memory nor delay other
//! accounts.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::{ControlPlane, wait_for};
use crate::{Operator, cluster, declare, platform, until_ready};

const MOST_MEMORY_KIB: u64 = 128 * 1024;
/// Answers are read one at a time, here by an unoptimized build. A read that has waited for half a
/// minute starts again.
const PATIENCE: Duration = Duration::from_secs(300);
const COMPUTE: &str =
    r#"{"id":"ep-a","branch_id":"b","type":"read_only","current_state":"active","host":"h""#;

/// A repeated part between a start and an end, so that only one piece of the answer is in memory.
struct Body {
    start: String,
    part: &'static str,
    /// The total bytes of the repeated parts.
    bytes: usize,
    end: &'static str,
}

/// The list of a project, by its name.
fn list(project: &str) -> Body {
    const HALF_GIB: usize = 512 << 20;
    let body = |start: &str, part, bytes, end| Body {
        start: start.to_owned(),
        part,
        bytes,
        end,
    };
    match project {
        // This is no list at all.
        "padding" => body("", " ", HALF_GIB, "{}"),
        // A valid list with an unused field.
        "unknown" => body(
            &format!(r#"{{"endpoints":[{COMPUTE}}}],"filler":""#),
            "x",
            HALF_GIB,
            r#""}"#,
        ),
        // Within the limit of bytes, but many times larger if all fields were kept.
        "entries" => body(
            r#"{"endpoints":["#,
            r#"{"id":"e","branch_id":"b","type":"t"},"#,
            7 << 20,
            r#"{"id":"e","branch_id":"b","type":"t"}]}"#,
        ),
        "member" => body(
            &format!(r#"{{"endpoints":[{COMPUTE},"name":["#),
            "0,",
            7 << 20,
            "0]}]}",
        ),
        "settings" => body(
            &format!(r#"{{"endpoints":[{COMPUTE},"settings":{{"pg_settings":{{"a":["#),
            "0,",
            7 << 20,
            "0]}}}]}",
        ),
        other => panic!("no such project: {other}"),
    }
}

async fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut first = String::new();
    stream.read_line(&mut first).await?;
    let mut line = first.clone();
    while !line.trim().is_empty() {
        line.clear();
        stream.read_line(&mut line).await?;
    }
    let path = first.split([' ', '?']).nth(1).unwrap_or_default();
    if path.contains("/projects/many-") {
        // The maximal number of entries that are read, each of minimal size.
        let entries = (1..20_000).map(|number| {
            format!(
                r#",{{"id":"{number}","branch_id":"{}","type":"t"}}"#,
                number / 100
            )
        });
        let list = format!(
            r#"{{"endpoints":[{COMPUTE}}}{}]}}"#,
            entries.collect::<String>()
        );
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
            .await?;
        stream.write_all(list.as_bytes()).await?;
        return stream.shutdown().await;
    }
    let Body {
        start,
        part,
        bytes,
        end,
    } = match path.strip_suffix("/endpoints") {
        Some(project) => list(project.rsplit('/').next().unwrap_or_default()),
        None => Body {
            start: r#"{"projects":["#.to_owned(),
            part: r#"{"id":"p"},"#,
            bytes: 7 << 20,
            end: r#"{"id":"p"}]}"#,
        },
    };
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        .await?;
    stream.write_all(start.as_bytes()).await?;
    let piece = part.repeat((64 << 10) / part.len());
    for _ in 0..bytes / piece.len() {
        stream.write_all(piece.as_bytes()).await?;
    }
    stream.write_all(end.as_bytes()).await?;
    stream.shutdown().await
}

/// Starts a platform with such lists and returns its base URL. It ends with its tasks.
async fn oversized() -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api/v2", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(answer(stream));
        }
    });
    (url, tasks)
}

async fn declare_oversized(cluster: &ControlPlane, url: &str, projects: &[&str]) {
    let account = format!(
        "apiVersion: v1
kind: Secret
metadata: {{name: large}}
stringData: {{api-key: demo-personal-key-not-a-secret}}
---
apiVersion: dbplane.dev/v1alpha1
kind: Account
metadata: {{name: large}}
spec:
  baseURL: {url}
  apiKeySecretRef: {{name: large}}
  pollInterval: 5s
"
    );
    let computes = projects.iter().map(|project| {
        format!(
            "---
apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: {project}}}
spec:
  accountRef: {{name: large}}
  projectID: {project}
  branchID: b
  type: ReadOnly
  management: Observe
  computeID: ep-a
"
        )
    });
    let manifests: String = std::iter::once(account).chain(computes).collect();
    cluster.apply(&manifests).await.unwrap();
}

/// Waits until Ready has this reason, and returns its message.
async fn until_reason(cluster: &ControlPlane, resource: &str, reason: &str) -> String {
    let path = "jsonpath={range .status.conditions[?(@.type==\"Ready\")]}{.reason} {.message}{end}";
    let what = format!("{resource} to say {reason}");
    wait_for(&what, PATIENCE, async || {
        let text = cluster.kubectl(&["get", resource, "-o", path]).await.ok()?;
        text.strip_prefix(reason).map(str::to_owned)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn large_answers_do_not_affect_memory_or_other_accounts() {
    let cluster = cluster().await;
    let platform = platform().await;
    let (url, _tasks) = oversized().await;
    let operator = Operator::start(&cluster, "operator", &[]);
    let projects = ["padding", "unknown", "entries", "member", "settings"];
    declare_oversized(&cluster, &url, &projects).await;
    for project in ["padding", "unknown", "entries"] {
        let message = until_reason(&cluster, &format!("compute/{project}"), "AnswerTooLarge").await;
        let list = format!(
            "the list of computes of project {project} has more than 8 MiB or 20000 entries"
        );
        assert!(
            message.contains(&list) && message.contains("Delete computes"),
            "{message}"
        );
    }
    // Malformed parts are ignored.
    for project in ["member", "settings"] {
        until_reason(&cluster, &format!("compute/{project}"), "Available").await;
    }
    let message = until_reason(&cluster, "account/large", "Available").await;
    assert!(
        message.contains("Its projects are not counted: the list of projects has more than"),
        "{message}"
    );
    declare(&cluster, &platform).await;
    until_ready(&cluster).await;
    let most = operator.process.most_resident_kib().unwrap();
    assert!(most < MOST_MEMORY_KIB, "{} MiB", most / 1024);
}

async fn scraped(operator: &Operator) -> String {
    reqwest::get(&operator.metrics)
        .await
        .unwrap()
        .text()
        .await
        .unwrap()
}

/// For the kept lists and one being read. Without a limit on lists it was 206 MiB.
const MOST_WITH_LISTS_KIB: u64 = 176 * 1024;

/// Each list is within the limits of a single list.
#[tokio::test]
async fn lists_of_one_namespace_stay_within_its_memory_limit_and_are_dropped_with_their_account() {
    let cluster = cluster().await;
    let platform = platform().await;
    let (url, _tasks) = oversized().await;
    let operator = Operator::start(&cluster, "operator", &[]);
    let projects: Vec<_> = (0..12).map(|number| format!("many-{number}")).collect();
    declare_oversized(
        &cluster,
        &url,
        &projects.iter().map(String::as_str).collect::<Vec<_>>(),
    )
    .await;
    let told = "jsonpath={.status.conditions[?(@.type==\"ListsTooLarge\")].message}";
    let message = wait_for("the account to tell of its lists", PATIENCE, async || {
        let message = cluster
            .kubectl(&["get", "account/large", "-o", told])
            .await
            .ok()?;
        (!message.is_empty()).then_some(message)
    });
    let message = message.await.unwrap();
    assert!(
        message.contains("more than 32 MiB") && message.contains("project many-"),
        "{message}"
    );
    let reasons =
        "jsonpath={range .items[*]}{.status.conditions[?(@.type==\"Ready\")].reason} {end}";
    let looked = wait_for("all to be looked at", PATIENCE, async || {
        let text = cluster
            .kubectl(&["get", "computes", "-o", reasons])
            .await
            .ok()?;
        let count = |reason: &str| {
            text.split_whitespace()
                .filter(|found| *found == reason)
                .count()
        };
        let (kept, left) = (count("Available"), count("AnswerTooLarge"));
        (kept + left == 12).then_some((kept, left))
    });
    let (kept, left) = looked.await.unwrap();
    assert!(kept > 0 && left > 0, "{kept} {left}");
    let most = operator.process.most_resident_kib().unwrap();
    assert!(most < MOST_WITH_LISTS_KIB, "{} MiB", most / 1024);
    // Series, connections and reads end with the account, even though the resources stay.
    let label = r#"account="large""#;
    assert!(scraped(&operator).await.contains(label));
    cluster.kubectl(&["delete", "account/large"]).await.unwrap();
    wait_for("its series to go", PATIENCE, async || {
        (!scraped(&operator).await.contains(label)).then_some(())
    })
    .await
    .unwrap();
    declare(&cluster, &platform).await;
    until_ready(&cluster).await;
}
