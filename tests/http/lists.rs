//! Lists: pages, unreadable entries, and answers that are not lists.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dbplane::domain::{Compute, ComputeState, Fault, KeyId, Listed};
use dbplane::platform::{Budget, Platform, Rate};

use crate::server::{Act, ORG, P, Server, answer};

#[tokio::test]
async fn a_list_without_pages_is_requested_once() {
    let server = Server::acting([answer(
        200,
        r#"{"projects":[{"id":"a","name":"A"}],"applications":{}}"#,
    )])
    .await;
    let projects = server.platform().list_projects().await.unwrap();
    assert_eq!(projects.count(), 1);
    assert_eq!(server.lines(), ["GET /api/v2/projects?org_id=org-a"]);
}

#[tokio::test]
async fn pages_are_followed_to_the_end() {
    let server = Server::acting([
        answer(
            200,
            r#"{"projects":[{"id":"a"}],"pagination":{"cursor":"c&1"}}"#,
        ),
        answer(
            200,
            r#"{"projects":[{"id":"b"}],"pagination":{"cursor":"c2"}}"#,
        ),
        answer(200, r#"{"projects":[{"id":"c"}]}"#),
    ])
    .await;
    let projects = server.platform().list_projects().await.unwrap();
    assert_eq!(
        projects
            .shown()
            .iter()
            .map(|p| p.id.as_str())
            .collect::<Vec<_>>(),
        ["a", "b", "c"]
    );
    assert_eq!(
        server.lines(),
        [
            "GET /api/v2/projects?org_id=org-a",
            "GET /api/v2/projects?org_id=org-a&cursor=c%261&limit=400",
            "GET /api/v2/projects?org_id=org-a&cursor=c2&limit=400"
        ]
    );
}

#[tokio::test]
async fn further_pages_are_taken_from_the_budget() {
    let page = |cursor: &str| {
        answer(
            200,
            &format!(r#"{{"projects":[{{"id":"a"}}],"pagination":{{"cursor":"{cursor}"}}}}"#),
        )
    };
    let last = answer(200, r#"{"projects":[]}"#);
    let server = Server::acting([page("1"), page("2"), page("3"), last]).await;
    let budget = Arc::new(Budget::new(Rate {
        requests_per_minute: 600,
        burst: 1,
    }));
    let platform = server.platform().sharing(budget);
    let start = Instant::now();
    platform.list_projects().await.unwrap();
    assert_eq!(server.lines().len(), 4);
    assert!(
        start.elapsed() >= Duration::from_millis(240),
        "two further pages had to wait 125 ms each"
    );
}

#[tokio::test]
async fn a_cursor_on_the_last_page_does_not_make_a_loop() {
    let first = r#"{"projects":[{"id":"a"}],"pagination":{"cursor":"same"}}"#;
    for (last, requests) in [
        // Checks which cursors are followed; a repeated one is detected at once.
        (
            r#"{"projects":[{"id":"b"}],"pagination":{"cursor":"same"}}"#,
            3,
        ),
        (r#"{"projects":[],"pagination":{"cursor":"other"}}"#, 2),
    ] {
        let server = Server::acting([answer(200, first), answer(200, last)]).await;
        server.platform().list_projects().await.unwrap();
        assert_eq!(server.lines().len(), requests, "{last}");
    }
}

#[tokio::test]
async fn a_repeated_cursor_with_further_entries_is_a_fault() {
    let page = |id: &str| {
        answer(
            200,
            &format!(r#"{{"projects":[{{"id":"{id}"}}],"pagination":{{"cursor":"same"}}}}"#),
        )
    };
    let server = Server::acting([page("a"), page("b"), page("c")]).await;
    let fault = server.platform().list_projects().await.unwrap_err();
    assert!(
        matches!(&fault, Fault::Undecodable { path, .. } if path == "pagination"),
        "{fault}"
    );
}

#[tokio::test]
async fn an_endless_list_is_a_fault() {
    let mut page = 0;
    let server = Server::scripted(move |_| {
        page += 1;
        answer(200, &format!(r#"{{"endpoints":[{{"id":"ep-{page}","branch_id":"b","type":"read_only"}}],"pagination":{{"next":"{page}"}}}}"#))
    })
    .await;
    let fault = server.platform().list_computes(&P).await.unwrap_err();
    assert!(matches!(fault, Fault::Undecodable { .. }), "{fault}");
    assert_eq!(server.lines().len(), 100);
}

#[tokio::test]
async fn pages_of_computes_are_joined_without_doubles() {
    let item = |id: &str, state: &str| {
        format!(r#"{{"id":"{id}","branch_id":"b","type":"read_write","current_state":"{state}"}}"#)
    };
    let first = format!(
        r#"{{"endpoints":[{},{}],"pagination":{{"cursor":"c"}}}}"#,
        item("ep-b", "idle"),
        item("ep-a", "idle")
    );
    let second = format!(r#"{{"endpoints":[{}]}}"#, item("ep-b", "active"));
    let server = Server::acting([answer(200, &first), answer(200, &second)]).await;
    let computes = server.platform().list_computes(&P).await.unwrap();
    let states: Vec<_> = computes
        .shown()
        .iter()
        .map(|c| (c.id.as_str(), c.current_state.clone()))
        .collect();
    assert_eq!(
        states,
        [("ep-a", ComputeState::Idle), ("ep-b", ComputeState::Active)]
    );
}

/// The readable and the unreadable entries of a list.
fn entries_of(listed: &Listed<Compute>) -> (Vec<&str>, Vec<String>) {
    let shown = listed
        .shown()
        .iter()
        .map(|compute| compute.id.as_str())
        .collect();
    (
        shown,
        listed
            .unreadable()
            .iter()
            .map(ToString::to_string)
            .collect(),
    )
}

fn endpoints(items: &[&str], cursor: Option<&str>) -> Act {
    let pagination = cursor
        .map(|cursor| format!(r#","pagination":{{"cursor":"{cursor}"}}"#))
        .unwrap_or_default();
    answer(
        200,
        &format!(r#"{{"endpoints":[{}]{pagination}}}"#, items.join(",")),
    )
}

const GOOD: &str = r#"{"id":"ep-a","branch_id":"b","type":"read_write"}"#;

#[tokio::test]
async fn an_unreadable_compute_is_reported_and_the_others_are_listed() {
    let nameless = |field: &str| format!("one whose identifier cannot be read ({field})");
    for (odd, expected) in [
        (
            r#"{"id":"ep-b","type":"read_only"}"#,
            "ep-b (branch_id)".to_owned(),
        ),
        (
            r#"{"id":"ep-b","branch_id":7,"type":"read_only"}"#,
            "ep-b (branch_id)".to_owned(),
        ),
        (
            r#"{"id":"ep-b","branch_id":"b","type":["read_only"]}"#,
            "ep-b (type)".to_owned(),
        ),
        (
            r#"{"id":"ep-b","branch_id":"b","type":"read_only","host":"no host"}"#,
            "ep-b (host)".to_owned(),
        ),
        (
            r#"{"id":"ep-b","branch_id":"b","type":"read_only","project_id":"No Project"}"#,
            "ep-b (project_id)".to_owned(),
        ),
        (r#"{"branch_id":"b","type":"read_only"}"#, nameless("id")),
        (
            r#"{"id":"EP B","branch_id":"b","type":"read_only"}"#,
            nameless("id"),
        ),
        ("7", nameless("of another form")),
        ("null", nameless("of another form")),
    ] {
        let server = Server::acting([endpoints(&[odd, GOOD], None)]).await;
        let computes = server.platform().list_computes(&P).await.unwrap();
        assert_eq!(
            entries_of(&computes),
            (vec!["ep-a"], vec![expected]),
            "{odd}"
        );
    }
}

#[tokio::test]
async fn unreadable_entries_of_every_page_are_kept() {
    let odd = |id: &str| format!(r#"{{"id":"{id}","type":"read_only"}}"#);
    let nameless = r#"{"type":"read_only"}"#;
    let pages = [
        endpoints(&[&odd("ep-b"), nameless], Some("1")),
        endpoints(&[GOOD, nameless], Some("2")),
        // The entry moved to the last page in the meantime, where it is unreadable.
        endpoints(&[&odd("ep-a"), &odd("ep-b")], None),
    ];
    let server = Server::acting(pages).await;
    let computes = server.platform().list_computes(&P).await.unwrap();
    let nameless = "one whose identifier cannot be read (id)".to_owned();
    let expected = vec![
        nameless.clone(),
        nameless,
        "ep-a (branch_id)".to_owned(),
        "ep-b (branch_id)".to_owned(),
    ];
    assert_eq!(entries_of(&computes), (vec![], expected));
}

#[tokio::test]
async fn a_repeated_identifier_makes_a_list_unreadable() {
    let odd = r#"{"id":"ep-a","type":"read_only"}"#;
    for (items, fails) in [
        ([GOOD, GOOD], true),
        ([GOOD, odd], true),
        ([odd, odd], true),
        ([GOOD, "{}"], false),
    ] {
        let server = Server::acting([endpoints(&items, None)]).await;
        let listed = server.platform().list_computes(&P).await;
        assert_eq!(
            matches!(listed, Err(Fault::Undecodable { .. })),
            fails,
            "{items:?} {listed:?}"
        );
    }
}

#[tokio::test]
async fn a_key_that_may_be_an_unreadable_entry_is_not_absent() {
    for (entry, expected) in [
        (r#"{"id":7}"#, Some("undecodable")),
        (r#"{"name":"n"}"#, Some("undecodable")),
        (r#"{"id":8}"#, None),
    ] {
        let unreadable = answer(200, "<html>done</html>");
        let server = Server::acting([unreadable, answer(200, &format!("[{entry}]"))]).await;
        let revoked = server.platform().revoke_key(&ORG, KeyId(7)).await;
        assert_eq!(revoked.err().map(|fault| fault.kind()), expected, "{entry}");
    }
}

#[tokio::test]
async fn an_answer_without_a_list_is_not_an_empty_list() {
    for body in [
        "",
        "{}",
        "null",
        "[]",
        "<html>sign in</html>",
        r#"{"endpoints":[{"id":"ep-a""#,
    ] {
        let server = Server::acting([answer(200, body)]).await;
        let fault = server.platform().list_computes(&P).await.unwrap_err();
        assert!(
            matches!(fault, Fault::Undecodable { .. }),
            "{body}: {fault}"
        );
    }
}
