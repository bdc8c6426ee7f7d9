//! The list of operations, which not every platform offers.

use dbplane::platform::Platform;

use crate::server::{EP, P, Server, answer};

/// Operations of two computes, one of them without a status. The failed one contains a token.
fn operations() -> String {
    let operation = |id: &str, compute: &str, at: &str, more: &str| {
        format!(
            r#"{{"id":"{id}","endpoint_id":"{compute}","action":"start_compute","created_at":"{at}"{more}}}"#
        )
    };
    let failed =
        r#","status":"failed","failures_count":3,"error":"no room; token napi_3kd9s0qwlx82mzn4"#;
    format!(
        r#"{{"operations":[{},{},{},{}],"pagination":{{"cursor":"c"}}}}"#,
        operation(
            "old",
            "ep-a",
            "2026-01-01T00:00:00Z",
            r#","status":"finished","failures_count":0"#
        ),
        operation(
            "other",
            "ep-b",
            "2026-01-03T00:00:00Z",
            r#","status":"running""#
        ),
        operation(
            "new",
            "ep-a",
            "2026-01-02T00:00:00Z",
            &format!(r#"{failed}""#)
        ),
        operation("without a status", "ep-a", "2026-01-04T00:00:00Z", ""),
    )
}

#[tokio::test]
async fn the_operations_of_one_compute_are_listed_newest_first_without_tokens() {
    let server = Server::acting([answer(200, &operations())]).await;
    let (listed, unreadable) = server
        .platform()
        .list_operations(&P, &EP)
        .await
        .unwrap()
        .into_parts();
    assert_eq!(
        unreadable.to_string(),
        "one whose identifier cannot be read (status)"
    );
    assert_eq!(
        listed
            .iter()
            .map(|operation| operation.id.as_str())
            .collect::<Vec<_>>(),
        ["new", "old"]
    );
    assert_eq!(
        (listed[0].status.as_str(), listed[0].failures),
        ("failed", Some(3))
    );
    assert_eq!(
        listed[0].error.as_deref(),
        Some("no room; token [redacted]")
    );
    assert_eq!(
        server.lines(),
        ["GET /api/v2/projects/p/operations?org_id=org-a&limit=100"]
    );
}

#[tokio::test]
async fn platforms_without_operations_are_recognized() {
    for (act, kind) in [
        (answer(404, r#"{"message":"not found"}"#), "unsupported"),
        (answer(405, ""), "unsupported"),
        (answer(404, r#"{"message":"not allowed"}"#), "forbidden"),
        (answer(200, "{}"), "undecodable"),
    ] {
        let server = Server::acting([act]).await;
        assert_eq!(
            server
                .platform()
                .list_operations(&P, &EP)
                .await
                .unwrap_err()
                .kind(),
            kind
        );
    }
}
