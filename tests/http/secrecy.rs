//! A token appears in an Authorization header and nowhere else.

use std::sync::Arc;
use std::time::Duration;

use dbplane::platform::{
    Budget, ConnectError, Endpoint, HttpOptions, HttpPlatform, NoMeter, Platform, PlatformClient,
    Rate, RateLimited,
};
use secrecy::SecretString;

use crate::server::{Act, ORG, P, Server, TOKEN, answer, options, with_headers};

fn assert_silent(text: &str) {
    assert!(
        !text.contains("canary") && !text.contains("0123456789"),
        "a token: {text}"
    );
}

#[tokio::test]
async fn not_in_debug() {
    let server = Server::acting([answer(200, r#"{"projects":[]}"#)]).await;
    let platform = Arc::new(server.platform());
    platform.list_projects().await.unwrap();
    assert_silent(&format!("{platform:?} {platform:#?}"));
    let rate_limited = RateLimited::new(
        platform,
        Arc::new(Budget::new(Rate::default())),
        Arc::new(NoMeter),
    );
    assert_silent(&format!(
        "{rate_limited:?} {rate_limited:#?} {:?}",
        rate_limited.probing()
    ));
}

#[tokio::test]
async fn not_in_the_faults_of_a_platform_that_repeats_it() {
    let echo =
        format!(r#"{{"message":"no such key: {TOKEN}","code":"{TOKEN}","request_id":"{TOKEN}"}}"#);
    let listed = format!(r#"{{"projects":[{{"id":"a"}}],"{TOKEN}":"{TOKEN}"}}"#);
    for act in [
        answer(400, &echo),
        answer(401, &echo),
        answer(404, TOKEN),
        answer(500, &format!("<html><body>{TOKEN}</body></html>")),
        answer(
            500,
            &format!("<html>{}{TOKEN}", "<br>".repeat((64 * 1024 - 16) / 4)),
        ),
        with_headers(
            302,
            &[("location", &format!("https://h/?token={TOKEN}"))],
            "",
        ),
        with_headers(422, &[("x-request-id", TOKEN)], ""),
        answer(200, &format!("\"{TOKEN}\"")),
        answer(200, &format!(r#"{{"projects":"{TOKEN}"}}"#)),
        Act::Raw(format!("HTTP/1.1 {TOKEN}\r\n\r\n").into_bytes()),
    ] {
        let server = Server::acting([act.clone()]).await;
        let fault = server.platform().list_projects().await.unwrap_err();
        assert_silent(&format!("{fault} {fault:?}"));
    }
    for body in [listed, format!(r#"{{"projects":["{TOKEN}"]}}"#)] {
        let server = Server::acting([answer(200, &body)]).await;
        let projects = server.platform().list_projects().await.unwrap();
        assert_silent(&format!("{projects:?} {}", projects.unreadable()));
    }
}

#[tokio::test]
async fn not_the_probed_one_either() {
    let probed = SecretString::from("canary-probed");
    let server = Server::acting([answer(401, r#"{"message":"canary-probed is revoked"}"#)]).await;
    let fault = server.platform().probe_key(&probed, &P).await.unwrap_err();
    assert_silent(&format!("{fault} {fault:?}"));
}

#[tokio::test]
async fn not_the_created_one_where_its_answer_cannot_be_read() {
    for body in [
        r#"{"id":"canary-minted","key":"canary-minted"}"#,
        r#"{"key":"canary-minted"}"#,
        r#"["canary-minted"]"#,
        r#""canary-minted"#,
        r#"{"id":1,"key":["canary-minted"]}"#,
    ] {
        let server = Server::acting([answer(200, body)]).await;
        let fault = server
            .platform()
            .create_key(&ORG, "n", &P)
            .await
            .unwrap_err();
        assert_silent(&format!("{fault} {fault:?}"));
        assert!(fault.may_have_happened());
    }
    // Some servers report an error, but include the key in the answer.
    for body in [
        r#"{"id":1,"key":"canary-minted","name":"n"}"#,
        r#"{"error":{"key":"canary-minted"}}"#,
        r#"["canary-minted"]"#,
        "canary-minted",
        r#"{"message":"made canary_minted_0123456789abcdefgh"}"#,
    ] {
        let server = Server::acting([answer(500, body)]).await;
        let fault = server
            .platform()
            .create_key(&ORG, "n", &P)
            .await
            .unwrap_err();
        assert_silent(&format!("{fault} {fault:?}"));
    }
    let server =
        Server::acting([answer(200, r#"{"id":1,"key":"canary-minted","name":"n"}"#)]).await;
    let key = server.platform().create_key(&ORG, "n", &P).await.unwrap();
    assert_silent(&format!("{key:?}"));
}

#[tokio::test]
async fn no_value_of_an_answer_that_cannot_be_read() {
    for body in [
        r#"{"projects":"canary-value"}"#,
        r#"{"projects":"a list, expected canary-value"}"#,
        r#""canary-value""#,
    ] {
        let server = Server::acting([answer(200, body)]).await;
        let fault = server.platform().list_projects().await.unwrap_err();
        assert_silent(&format!("{fault} {fault:?}"));
    }
    let server = Server::acting([answer(200, r#"{"projects":[{"id":1},"canary-value"]}"#)]).await;
    let projects = server.platform().list_projects().await.unwrap();
    assert_silent(&format!("{projects:?} {}", projects.unreadable()));
}

#[tokio::test]
async fn not_in_the_errors_of_the_transport() {
    let endpoint = Server::acting([]).await.endpoint();
    let fault = crate::server::platform(endpoint)
        .list_computes(&P)
        .await
        .unwrap_err();
    assert_silent(&format!("{fault} {fault:?}"));
    let server = Server::acting([Act::Silence]).await;
    let options = HttpOptions {
        request_timeout: Duration::from_millis(100),
        ..options()
    };
    let platform =
        HttpPlatform::new(server.endpoint(), SecretString::from(TOKEN), &options).unwrap();
    let fault = platform.list_computes(&P).await.unwrap_err();
    assert_silent(&format!("{fault} {fault:?}"));
    assert!(
        !fault.to_string().contains("127.0.0.1"),
        "the address is the account's, not the fault's: {fault}"
    );
}

#[test]
fn not_in_the_errors_of_the_constructor() {
    let build = |url: &str, key: &str| {
        let endpoint = Endpoint {
            base_url: url.to_owned(),
            ..Endpoint::default()
        };
        HttpPlatform::new(endpoint, SecretString::from(key), &options()).unwrap_err()
    };
    for (url, key, expected) in [
        ("https://canary:canary@h/v2", "k", ConnectError::NotPlain),
        (
            "https://h/v2",
            "canary\u{1}canary",
            ConnectError::UnusableKey,
        ),
        ("https://h/v2", " \n", ConnectError::NoKey),
        ("http://h/v2", "canary", ConnectError::Insecure),
    ] {
        let error = build(url, key);
        assert_silent(&format!("{error} {error:?}"));
        assert_eq!(error, expected);
    }
}
