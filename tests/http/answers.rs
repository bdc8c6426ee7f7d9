//! Decoding of answers to changes, and detection of calls that not every platform offers.

use dbplane::domain::{Fault, KeyId, NewCompute, Role, Settings};
use dbplane::platform::Platform;
use secrecy::{ExposeSecret, SecretString};

use crate::server::{Act, EP, ORG, P, Server, answer};

fn primary() -> NewCompute {
    NewCompute {
        branch_id: "br-a".into(),
        role: Role::Primary,
        name: None,
        settings: Settings::default(),
    }
}

#[tokio::test]
async fn every_success_status_is_accepted() {
    let compute =
        r#"{"endpoint":{"id":"ep-a","branch_id":"br-a","type":"read_write"},"operations":[]}"#;
    for status in [200, 201, 202] {
        let server = Server::acting([answer(status, compute)]).await;
        let (created, _) = server
            .platform()
            .create_compute(&P, &primary())
            .await
            .unwrap();
        assert_eq!(created.id, "ep-a");
    }
}

#[tokio::test]
async fn a_create_with_an_unreadable_answer_may_have_happened() {
    for (status, body) in [
        (201, "{}"),
        (204, ""),
        (200, "<html></html>"),
        (200, r#"{"endpoint":{"id":"ep-a"}}"#),
    ] {
        let server = Server::acting([answer(status, body)]).await;
        let fault = server
            .platform()
            .create_compute(&P, &primary())
            .await
            .unwrap_err();
        assert!(fault.may_have_happened(), "{body}: {fault}");
        assert!(
            matches!(fault, Fault::Undecodable { .. }),
            "{body}: {fault}"
        );
    }
}

#[tokio::test]
async fn a_deletion_is_recognized_by_its_status() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec();
    for act in [
        answer(200, r#"{"endpoint":{},"operations":[]}"#),
        answer(204, ""),
        answer(200, ""),
        Act::Raw(cut),
    ] {
        let server = Server::acting([act.clone()]).await;
        assert_eq!(
            server.platform().delete_compute(&P, &EP).await,
            Ok(()),
            "{act:?}"
        );
    }
    // The answer does not come from the platform.
    let server = Server::acting([answer(200, "<html>sign in</html>")]).await;
    let fault = server.platform().delete_compute(&P, &EP).await.unwrap_err();
    assert!(matches!(fault, Fault::Undecodable { .. }), "{fault}");
}

#[tokio::test]
async fn a_restart_needs_no_body() {
    let ops = r#"{"endpoint":{"id":"ep-a","branch_id":"b","type":"read_write"},"operations":[{"id":"o","action":"suspend_compute","status":"running"}]}"#;
    for (act, operations) in [
        (answer(200, ""), 0),
        (answer(202, "[1]"), 0),
        (answer(204, ""), 0),
        (answer(200, ops), 1),
    ] {
        let server = Server::acting([act]).await;
        let answer = server.platform().restart_compute(&P, &EP).await.unwrap();
        assert_eq!(answer.operations.len(), operations);
    }
    // A body that is not JSON is not from the platform, so the call may not have arrived.
    for body in ["<html>Log in</html>", "ok", "\"ok\"", "{"] {
        let server = Server::acting([answer(200, body)]).await;
        let fault = server
            .platform()
            .restart_compute(&P, &EP)
            .await
            .unwrap_err();
        assert!(
            matches!(fault, Fault::Undecodable { .. }) && fault.may_have_happened(),
            "{fault}"
        );
    }
}

#[tokio::test]
async fn an_update_may_answer_with_nothing() {
    let server = Server::acting([answer(204, ""), answer(200, "nonsense")]).await;
    let platform = server.platform();
    assert_eq!(
        platform
            .update_compute(&P, &EP, &Default::default())
            .await
            .unwrap()
            .compute,
        None
    );
    let fault = platform
        .update_compute(&P, &EP, &Default::default())
        .await
        .unwrap_err();
    assert!(matches!(fault, Fault::Undecodable { .. }), "{fault}");
}

#[tokio::test]
async fn a_created_key_has_every_field() {
    let body = r#"{"id":9007199254740993,"key":"minted-secret","name":"n-1","created_at":"2025-01-02T03:04:05.678Z","created_by":"user_01h","project_id":"p"}"#;
    let server = Server::acting([answer(200, body)]).await;
    let key = server.platform().create_key(&ORG, "n-1", &P).await.unwrap();
    assert_eq!(
        (key.id.0, key.name.as_str(), key.project_id.as_deref()),
        (9_007_199_254_740_993, "n-1", Some("p"))
    );
    assert_eq!(key.secret.expose_secret(), "minted-secret");
    assert!(key.created_at.is_some());
}

#[tokio::test]
async fn a_created_key_with_unexpected_fields_is_not_used() {
    for (body, reported) in [
        (
            r#"{"id":7,"key":"minted-secret","name":"n-2","project_id":"p"}"#,
            "not called what was asked for",
        ),
        (
            r#"{"id":7,"key":"minted-secret","name":"n-1","project_id":"q"}"#,
            "of another project",
        ),
    ] {
        let server = Server::acting([answer(200, body)]).await;
        let fault = server
            .platform()
            .create_key(&ORG, "n-1", &P)
            .await
            .unwrap_err();
        assert!(
            matches!(fault, Fault::OtherKey { id: KeyId(7), .. }),
            "{fault}"
        );
        assert!(fault.may_have_happened() && !fault.is_refusal());
        let text = format!("{fault} {fault:?}");
        assert!(
            text.contains(reported) && !text.contains("minted-secret") && !text.contains("n-2"),
            "{text}"
        );
        assert_eq!(
            server.lines().len(),
            1,
            "a key that may be somebody else's is not revoked"
        );
    }
}

#[tokio::test]
async fn a_platform_without_a_list_of_keys_is_recognized() {
    for status in [404, 405, 501] {
        let server = Server::acting([answer(status, "")]).await;
        assert_eq!(
            server.platform().list_keys(&ORG).await.unwrap_err().kind(),
            "unsupported"
        );
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_found_is_absent_only_if_keys_can_be_listed() {
    for (list, expected) in [
        (answer(200, "[]"), "not_found"),
        (answer(200, r#"[{"id":7,"name":"n"}]"#), "unsupported"),
        (answer(404, "404 page not found"), "unsupported"),
        (answer(405, ""), "unsupported"),
        (answer(403, ""), "forbidden"),
        (answer(500, ""), "server"),
        (answer(404, "<html>not found</html>"), "gateway"),
    ] {
        let server = Server::scripted(move |request| {
            match (request.method.as_str(), request.target.as_str()) {
                ("DELETE", _) => answer(404, r#"{"message":"not found"}"#),
                (_, path) if path.contains("/projects") => answer(200, r#"{"projects":[]}"#),
                _ => list.clone(),
            }
        })
        .await;
        let fault = server
            .platform()
            .revoke_key(&ORG, KeyId(7))
            .await
            .unwrap_err();
        assert_eq!(fault.kind(), expected);
        let changes = server
            .requests()
            .iter()
            .filter(|request| request.method != "GET")
            .count();
        assert_eq!(changes, 1);
    }
}

#[tokio::test]
async fn a_404_of_a_gateway_counts_together_with_a_list_without_the_key() {
    let page = || answer(404, "<html>not found</html>");
    for (list, expected) in [("[]", "not_found"), (r#"[{"id":7,"name":"n"}]"#, "gateway")] {
        let server = Server::acting([page(), answer(200, list)]).await;
        assert_eq!(
            server
                .platform()
                .revoke_key(&ORG, KeyId(7))
                .await
                .unwrap_err()
                .kind(),
            expected
        );
    }
}

#[tokio::test]
async fn a_call_with_a_404_in_plain_text_is_unsupported_if_others_are_answered() {
    let text = || answer(404, "404 page not found");
    let projects = || answer(200, r#"{"projects":[]}"#);
    for (acts, expected) in [
        (vec![text(), projects(), text()], Err("unsupported")),
        (
            vec![text(), answer(403, r#"{"message":"no"}"#), text()],
            Err("unsupported"),
        ),
        (vec![text(), projects(), answer(200, "[]")], Ok(())),
        (vec![text(), text()], Err("gateway")),
        (vec![text(), answer(502, "")], Err("gateway")),
        (vec![answer(404, "<html>")], Err("gateway")),
    ] {
        let count = acts.len();
        let server = Server::acting(acts).await;
        let listed = server.platform().list_keys(&ORG).await;
        assert_eq!(listed.as_ref().map(drop).map_err(Fault::kind), expected);
        assert_eq!(server.lines().len(), count);
    }
}

#[tokio::test]
async fn a_revocation_that_the_answer_denies_is_a_fault() {
    let server = Server::acting([
        answer(
            200,
            r#"{"id":7,"name":"n","revoked":false,"last_used_from_addr":""}"#,
        ),
        answer(200, r#"{"id":7,"name":"n","revoked":true}"#),
        answer(204, ""),
    ])
    .await;
    let platform = server.platform();
    assert!(platform.revoke_key(&ORG, KeyId(7)).await.is_err());
    assert!(platform.revoke_key(&ORG, KeyId(7)).await.is_ok());
    assert!(platform.revoke_key(&ORG, KeyId(7)).await.is_ok());
}

#[tokio::test]
async fn a_probed_key_is_accepted_by_a_list_and_revoked_by_a_401() {
    let other = SecretString::from("other");
    let large = format!(
        r#"{{"endpoints":[],"more":"{}"}}"#,
        "x".repeat(2 * 1024 * 1024)
    );
    for (act, expected) in [
        (answer(401, ""), Err("unauthorized")),
        (answer(200, r#"{"endpoints":[]}"#), Ok(())),
        (answer(200, &large), Ok(())),
        (answer(200, "<html>sign in</html>"), Err("undecodable")),
        (answer(200, ""), Err("undecodable")),
        (
            answer(
                404,
                r#"{"message":"not allowed to perform actions outside the project"}"#,
            ),
            Err("forbidden"),
        ),
        (answer(403, "<html>blocked</html>"), Err("gateway")),
        (answer(500, ""), Err("server")),
    ] {
        let server = Server::acting([act]).await;
        let outcome = server.platform().probe_key(&other, &P).await;
        assert_eq!(
            outcome.as_ref().map(drop).map_err(Fault::kind),
            expected,
            "{outcome:?}"
        );
    }
    let server = Server::acting([answer(401, "")]).await;
    let outcome = server
        .platform()
        .probe_key(&SecretString::from("not\u{7f}sendable"), &P)
        .await;
    assert!(
        matches!(outcome, Err(Fault::Transport { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_compute_is_missing_only_by_a_call_that_every_platform_has() {
    let no_such = || answer(404, r#"{"message":"endpoint not found"}"#);
    let no_route = || answer(404, r#"{"message":"this route does not exist"}"#);
    let unchanged = || {
        answer(
            200,
            r#"{"endpoint":{"id":"ep-a","branch_id":"b","type":"read_only"},"operations":[]}"#,
        )
    };
    for (acts, expected) in [
        (vec![unchanged()], Ok(true)),
        (vec![no_such(), no_such()], Ok(false)),
        (vec![no_route(), no_such()], Ok(false)),
        (vec![answer(405, ""), no_such()], Ok(false)),
        (vec![no_route(), unchanged()], Ok(true)),
        (vec![no_such(), unchanged()], Ok(true)),
        (
            vec![answer(404, r#"{"message":"not allowed"}"#)],
            Err("forbidden"),
        ),
        (vec![answer(500, "")], Err("server")),
        (vec![no_such(), no_route()], Err("unsupported")),
        (vec![no_such(), answer(422, "")], Err("rejected")),
        (
            vec![answer(200, "<html>sign in</html>")],
            Err("undecodable"),
        ),
        (
            vec![no_such(), answer(200, "<html>sign in</html>")],
            Err("undecodable"),
        ),
        (vec![answer(404, "<html>"), no_such()], Ok(false)),
        (vec![no_such(), answer(404, "<html>")], Err("gateway")),
    ] {
        let count = acts.len();
        let server = Server::acting(acts).await;
        let answered = server.platform().has_compute(&P, &EP).await;
        assert_eq!(
            answered.as_ref().copied().map_err(Fault::kind),
            expected,
            "{answered:?}"
        );
        let [get, patch] = ["GET", "PATCH"]
            .map(|method| format!("{method} /api/v2/projects/p/endpoints/ep-a?org_id=org-a"));
        assert_eq!(server.lines(), [get, patch][..count]);
    }
}

#[tokio::test]
async fn a_compute_is_missing_after_two_plain_404s_and_a_list_of_the_project_between() {
    let text = || answer(404, "404 page not found");
    let listed = || answer(200, r#"{"endpoints":[]}"#);
    let exists = || {
        answer(
            200,
            r#"{"endpoint":{"id":"ep-a","branch_id":"b","type":"read_only"}}"#,
        )
    };
    for (acts, expected) in [
        (vec![text(), text(), listed(), text(), text()], Ok(false)),
        (vec![text(), text(), listed(), exists()], Ok(true)),
        (vec![text(), text(), text()], Err("gateway")),
    ] {
        let server = Server::acting(acts).await;
        let answered = server.platform().has_compute(&P, &EP).await;
        assert_eq!(
            answered.as_ref().copied().map_err(Fault::kind),
            expected,
            "{answered:?}"
        );
    }
}

#[tokio::test]
async fn a_revocation_with_an_unreadable_answer_is_checked_by_the_list() {
    let listed = |keys: &str| answer(200, keys);
    for (list, revoked) in [
        (listed(r#"[{"id":7,"name":"ci"}]"#), false),
        (listed("[]"), true),
    ] {
        let server = Server::acting([answer(200, "<html>done</html>"), list]).await;
        let answered = server.platform().revoke_key(&ORG, KeyId(7)).await;
        assert_eq!(answered.is_ok(), revoked, "{answered:?}");
        assert_eq!(server.lines().len(), 2);
    }
    let server = Server::acting([answer(200, "<html>done</html>"), answer(500, "")]).await;
    assert!(
        server.platform().revoke_key(&ORG, KeyId(7)).await.is_err(),
        "nothing shows that it is revoked"
    );
}
