//! The client itself never resends a change.

use dbplane::domain::{NewCompute, Role, Settings};
use dbplane::platform::Platform;

use crate::server::{Act, P, Request, Server, answer};

const COMPUTE: &str = r#"{"endpoint":{"id":"ep-a","branch_id":"br-a","type":"read_only"}}"#;

fn replica() -> NewCompute {
    NewCompute {
        branch_id: "br-a".into(),
        role: Role::Replica,
        name: None,
        settings: Settings::default(),
    }
}

fn posts(server: &Server) -> usize {
    server
        .requests()
        .iter()
        .filter(|request| request.method == "POST")
        .count()
}

#[tokio::test]
async fn on_a_new_connection_that_is_closed_after_the_request() {
    for act in [Act::Raw(Vec::new()), Act::Reset] {
        let server = Server::acting([act]).await;
        let fault = server
            .platform()
            .create_compute(&P, &replica())
            .await
            .unwrap_err();
        assert!(fault.may_have_happened(), "{fault}");
        assert_eq!(posts(&server), 1);
    }
}

#[tokio::test]
async fn on_a_reused_connection_that_is_closed_after_the_request() {
    for act in [Act::Raw(Vec::new()), Act::Reset] {
        let server = Server::scripted(move |request| match request.method.as_str() {
            "GET" => answer(200, r#"{"endpoints":[]}"#),
            _ => act.clone(),
        })
        .await;
        let platform = server.platform();
        platform.list_computes(&P).await.unwrap();
        let fault = platform.create_compute(&P, &replica()).await.unwrap_err();
        assert!(fault.may_have_happened(), "{fault}");
        let requests = server.requests();
        assert_eq!(
            requests.iter().map(Request::line).collect::<Vec<_>>().len(),
            2
        );
        assert_eq!(
            requests[0].connection, requests[1].connection,
            "the connection was to be used again"
        );
    }
}

/// The client may notice the closed connection before it writes, and open another one. Then nothing
/// was sent twice either.
#[tokio::test]
async fn on_a_connection_that_is_closed_at_the_moment_of_sending() {
    let server = Server::scripted(|request| match request.method.as_str() {
        "GET" => Act::AnswerAndClose(r#"{"endpoints":[]}"#.to_owned()),
        _ => answer(201, COMPUTE),
    })
    .await;
    let platform = server.platform();
    for round in 0..100 {
        platform.list_computes(&P).await.unwrap();
        let before = posts(&server);
        let outcome = platform.create_compute(&P, &replica()).await;
        let sent = posts(&server) - before;
        match outcome {
            Ok(_) => assert_eq!(sent, 1, "round {round}"),
            Err(fault) => assert!(
                sent <= 1 && (sent == 0 || fault.may_have_happened()),
                "round {round}: {fault}"
            ),
        }
    }
}

#[tokio::test]
async fn with_every_status_that_invites_a_retry() {
    for status in [408, 423, 425, 429, 500, 502, 503, 504] {
        let again = crate::server::with_headers(status, &[("retry-after", "0")], "");
        let server = Server::acting([again, answer(201, COMPUTE)]).await;
        assert!(
            server
                .platform()
                .create_compute(&P, &replica())
                .await
                .is_err()
        );
        assert_eq!(posts(&server), 1, "{status}");
    }
}
