//! Failing requests: refusals, redirects, slow and truncated answers, no connection.

use std::time::{Duration, Instant};

use dbplane::domain::{Fault, NewCompute, Role, Settings};
use dbplane::platform::{HttpPlatform, Platform};
use jiff::Timestamp;
use secrecy::SecretString;

use crate::server::{Act, P, Server, TOKEN, answer, options, with_headers};

async fn create(platform: &HttpPlatform) -> Fault {
    let new = NewCompute {
        branch_id: "br-a".into(),
        role: Role::Replica,
        name: None,
        settings: Settings::default(),
    };
    platform.create_compute(&P, &new).await.unwrap_err()
}

#[tokio::test]
async fn every_status_of_a_change_and_of_a_read() {
    for (status, change, read) in [
        (400, "rejected", "rejected"),
        (401, "unauthorized", "unauthorized"),
        (403, "forbidden", "forbidden"),
        (404, "not_found", "not_found"),
        (405, "unsupported", "unsupported"),
        (406, "rejected", "rejected"),
        (408, "server", "server"),
        (409, "conflict", "conflict"),
        (412, "rejected", "rejected"),
        (422, "rejected", "rejected"),
        (423, "busy", "busy"),
        (429, "throttled", "throttled"),
        (500, "server", "server"),
        (501, "unsupported", "unsupported"),
        (502, "server", "server"),
        (503, "server", "throttled"),
        (504, "server", "server"),
        (524, "server", "server"),
    ] {
        let server = Server::acting([answer(status, r#"{"message":"because","code":""}"#)]).await;
        let platform = server.platform();
        let fault = create(&platform).await;
        assert_eq!(fault.kind(), change, "{status}");
        assert_eq!(fault.may_have_happened(), change == "server", "{status}");
        assert_eq!(
            platform.list_computes(&P).await.unwrap_err().kind(),
            read,
            "{status}"
        );
        assert_eq!(server.lines().len(), 2, "{status}");
    }
}

#[tokio::test]
async fn an_error_page_is_described_and_not_quoted() {
    let page = format!(
        "<!DOCTYPE html>\n<html><head><title>524</title></head><body>{}</body></html>",
        "<p>A timeout\r\noccurred</p>".repeat(200)
    );
    let server = Server::acting([with_headers(524, &[("content-type", "text/html")], &page)]).await;
    let text = create(&server.platform()).await.to_string();
    assert!(
        text.contains("524") && text.contains("an HTML page") && !text.contains("occurred"),
        "{text}"
    );
}

#[tokio::test]
async fn the_request_identifier_is_kept() {
    let server = Server::acting([
        answer(
            422,
            r#"{"request_id":"req-1","code":"BRANCHES_LIMIT_EXCEEDED","message":"too many"}"#,
        ),
        with_headers(500, &[("x-request-id", "req-2")], ""),
    ])
    .await;
    let platform = server.platform();
    assert!(
        create(&platform)
            .await
            .to_string()
            .ends_with("too many (code BRANCHES_LIMIT_EXCEEDED, request req-1)")
    );
    assert!(
        create(&platform)
            .await
            .to_string()
            .ends_with("(request req-2)")
    );
}

#[tokio::test]
async fn a_large_error_body_is_not_read_to_its_end() {
    let endless = format!(
        "HTTP/1.1 500 X\r\ncontent-length: 1000000\r\n\r\n{}",
        "x".repeat(65 << 10)
    );
    let server = Server::acting([Act::Stall(endless.into_bytes())]).await;
    let start = Instant::now();
    assert_eq!(create(&server.platform()).await.kind(), "server");
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "it was waited for the rest"
    );
}

#[tokio::test]
async fn both_forms_of_retry_after_are_understood() {
    for (value, expected) in [
        ("7", Some(7)),
        ("Thu, 20 Nov 2025 10:00:30 GMT", Some(30)),
        ("86400", Some(3600)),
        ("whenever", None),
    ] {
        let headers = [
            ("retry-after", value),
            ("date", "Thu, 20 Nov 2025 10:00:00 GMT"),
        ];
        let server = Server::acting([
            with_headers(429, &headers, ""),
            with_headers(423, &headers, ""),
        ])
        .await;
        let platform = server.platform();
        let expected = expected.map(Duration::from_secs);
        assert_eq!(
            platform.list_projects().await.unwrap_err().retry_after(),
            expected,
            "{value}"
        );
        assert_eq!(create(&platform).await.retry_after(), expected, "{value}");
    }
}

#[tokio::test]
async fn without_a_date_header_the_clock_of_the_options_serves() {
    let server = Server::acting([with_headers(
        503,
        &[("retry-after", "Thu, 20 Nov 2025 10:00:30 GMT")],
        "",
    )])
    .await;
    let options = dbplane::platform::HttpOptions {
        clock: || Timestamp::constant(1_763_632_820, 0),
        ..options()
    };
    let platform =
        HttpPlatform::new(server.endpoint(), SecretString::from(TOKEN), &options).unwrap();
    let fault = platform.list_projects().await.unwrap_err();
    assert_eq!(
        (fault.kind(), fault.retry_after()),
        ("throttled", Some(Duration::from_secs(10)))
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::acting([answer(200, r#"{"projects":[]}"#)]).await;
    for status in [301, 302, 307, 308] {
        let target = format!("http://127.0.0.1:{}/api/v2/projects", elsewhere.port);
        let server = Server::acting([with_headers(status, &[("location", &target)], "")]).await;
        let platform = server.platform();
        for fault in [
            platform.list_projects().await.unwrap_err(),
            create(&platform).await,
        ] {
            assert!(
                matches!(fault, Fault::Gateway { .. }) && fault.may_have_happened(),
                "{fault}"
            );
            assert!(fault.to_string().contains(&target), "{fault}");
        }
    }
    assert_eq!(elsewhere.lines().len(), 0);
}

#[tokio::test]
async fn no_connection_means_not_sent() {
    let gone = {
        let server = Server::acting([]).await;
        server.endpoint()
    };
    let platform = crate::server::platform(gone);
    let fault = create(&platform).await;
    assert!(
        matches!(fault, Fault::Transport { .. }) && !fault.may_have_happened(),
        "{fault}"
    );
    let mut unnamed = Server::acting([]).await.endpoint();
    unnamed.base_url = "http://no-such-host.invalid/v2".to_owned();
    let fault = create(&crate::server::platform(unnamed)).await;
    assert!(matches!(fault, Fault::Transport { .. }), "{fault}");
}

#[tokio::test]
async fn a_missing_answer_leaves_the_outcome_unknown() {
    let head = b"HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{".to_vec();
    let chunked =
        b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"end\r\n".to_vec();
    for act in [
        Act::Silence,
        Act::Stall(Vec::new()),
        Act::Stall(head.clone()),
        Act::Raw(head),
        Act::Raw(chunked),
        Act::Raw(b"HTTP/1.1 201 Cre".to_vec()),
        Act::Raw(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()),
        Act::Raw(Vec::new()),
        Act::Reset,
    ] {
        let server = Server::acting([act.clone()]).await;
        let options = dbplane::platform::HttpOptions {
            request_timeout: Duration::from_secs(1),
            ..options()
        };
        let platform =
            HttpPlatform::new(server.endpoint(), SecretString::from(TOKEN), &options).unwrap();
        let start = Instant::now();
        let fault = create(&platform).await;
        assert!(matches!(fault, Fault::Unknown { .. }), "{act:?}: {fault}");
        assert!(start.elapsed() < Duration::from_secs(3), "{act:?}");
        assert_eq!(server.lines().len(), 1, "{act:?}");
    }
}

#[tokio::test]
async fn a_refusal_with_a_truncated_body_is_not_a_refusal() {
    for (status, expected) in [
        (401, "unauthorized"),
        (404, "gateway"),
        (409, "gateway"),
        (500, "server"),
    ] {
        let cut = format!("HTTP/1.1 {status} X\r\ncontent-length: 100\r\n\r\n{{\"mess");
        let server = Server::acting([Act::Raw(cut.into_bytes())]).await;
        assert_eq!(create(&server.platform()).await.kind(), expected);
    }
}

#[tokio::test]
async fn a_key_refused_during_a_request() {
    let server = Server::acting([
        answer(200, r#"{"projects":[]}"#),
        answer(401, ""),
        answer(200, r#"{"projects":[]}"#),
    ])
    .await;
    let platform = server.platform();
    assert!(platform.list_projects().await.is_ok());
    assert!(matches!(
        platform.list_projects().await,
        Err(Fault::Unauthorized { .. })
    ));
    assert!(platform.list_projects().await.is_ok());
}
