//! Limits on the size of answers.

use dbplane::domain::{Fault, Listed, NewCompute, Role, Settings};
use dbplane::platform::Platform;

use crate::server::{Act, ORG, P, Server, answer, with_headers};

const LARGEST_LIST: usize = 8 << 20;
const MOST_ENTRIES: usize = 20_000;

/// A page of `bytes` bytes with one compute; most of it is an unused field.
fn page(number: usize, bytes: usize, more: bool) -> Act {
    let cursor = if more {
        format!(r#""cursor":"c{number}""#)
    } else {
        String::new()
    };
    let body = |filler: usize| {
        let filler = "x".repeat(filler);
        format!(
            r#"{{"endpoints":[{{"id":"ep-{number}","branch_id":"b","type":"read_only"}}],"filler":"{filler}","pagination":{{{cursor}}}}}"#
        )
    };
    let body = body(bytes - body(0).len());
    assert_eq!(body.len(), bytes);
    answer(200, &body)
}

async fn listed(pages: impl IntoIterator<Item = Act>) -> (Result<usize, Fault>, usize) {
    let server = Server::acting(pages).await;
    let list = server.platform().list_computes(&"aged-wind-1".into()).await;
    (list.map(|computes| computes.count()), server.lines().len())
}

fn assert_too_large(list: Result<usize, Fault>) {
    let fault = list.unwrap_err();
    assert!(matches!(fault, Fault::TooLarge { .. }), "{fault}");
    for words in [
        "the list of computes of project aged-wind-1",
        "8 MiB",
        "20000 entries",
        "Delete computes",
    ] {
        assert!(fault.to_string().contains(words), "{fault}");
    }
}

#[tokio::test]
async fn a_list_may_be_as_large_as_the_bound_and_no_larger() {
    assert_eq!(listed([page(1, LARGEST_LIST, false)]).await, (Ok(1), 1));
    assert_too_large(listed([page(1, LARGEST_LIST + 1, false)]).await.0);
}

#[tokio::test]
async fn the_pages_of_a_list_count_together() {
    let third = LARGEST_LIST / 3;
    let pages = |last: usize| {
        [
            page(1, third, true),
            page(2, third, true),
            page(3, last, false),
        ]
    };
    assert_eq!(listed(pages(LARGEST_LIST - 2 * third)).await, (Ok(3), 3));
    assert_too_large(listed(pages(LARGEST_LIST - 2 * third + 1)).await.0);
    // A list above the limit is not read to its end.
    let (list, requests) = listed((1..9).map(|number| page(number, third, true))).await;
    assert_too_large(list);
    assert_eq!(requests, 4);
}

#[tokio::test]
async fn the_entries_of_all_pages_are_counted() {
    let page = |from: usize, count: usize, rest: &str| {
        let entries: Vec<_> = (from..from + count)
            .map(|number| {
                format!(
                    r#"{{"id":"ep-{number}","branch_id":"b-{}","type":"read_only"}}"#,
                    number / 1000
                )
            })
            .collect();
        answer(
            200,
            &format!(r#"{{"endpoints":[{}]{rest}}}"#, entries.join(",")),
        )
    };
    let more = r#","pagination":{"next":"n"}"#;
    let half = MOST_ENTRIES / 2;
    assert_eq!(
        listed([page(0, MOST_ENTRIES, "")]).await.0,
        Ok(MOST_ENTRIES)
    );
    assert_too_large(listed([page(0, MOST_ENTRIES + 1, "")]).await.0);
    assert_eq!(
        listed([page(0, half, more), page(half, half, "")]).await.0,
        Ok(MOST_ENTRIES)
    );
    assert_too_large(
        listed([page(0, half, more), page(half, half + 1, "")])
            .await
            .0,
    );
}

/// A pass keeps the computes of its branch in memory.
#[tokio::test]
async fn the_computes_of_a_branch_are_counted() {
    let page = |count: usize| {
        let entry =
            |number: usize| format!(r#"{{"id":"ep-{number}","branch_id":"b","type":"read_only"}}"#);
        let entries: Vec<_> = (0..count).map(entry).collect();
        answer(200, &format!(r#"{{"endpoints":[{}]}}"#, entries.join(",")))
    };
    assert_eq!(listed([page(1000)]).await.0, Ok(1000));
    let fault = listed([page(1001)]).await.0.unwrap_err();
    assert!(matches!(&fault, Fault::TooLarge { .. }), "{fault}");
    assert!(
        fault
            .to_string()
            .contains("a branch of project aged-wind-1 has 1001 computes"),
        "{fault}"
    );
}

#[tokio::test]
async fn each_list_is_named_with_what_can_be_done() {
    let large = || {
        answer(
            200,
            &format!(r#"{{"filler":"{}"}}"#, "x".repeat(LARGEST_LIST)),
        )
    };
    let server = Server::acting([large()]).await;
    let fault = server
        .platform()
        .list_projects()
        .await
        .unwrap_err()
        .to_string();
    assert!(
        fault.contains("the list of projects has more than 8 MiB")
            && fault.contains("fewer projects"),
        "{fault}"
    );
    let fault = server
        .platform()
        .list_keys(&ORG)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        fault.contains("API keys of organization org-a") && fault.contains("Revoke keys"),
        "{fault}"
    );
}

#[tokio::test]
async fn another_answer_may_have_a_mebibyte() {
    let new = NewCompute {
        branch_id: "b".into(),
        role: Role::Replica,
        name: None,
        settings: Settings::default(),
    };
    for (filler, outcome) in [((1 << 20) - 100, Ok("ep-a")), (1 << 20, Err("too_large"))] {
        let compute = r#"{"id":"ep-a","branch_id":"b","type":"read_only"}"#;
        let body = format!(
            r#"{{"endpoint":{compute},"filler":"{}"}}"#,
            "x".repeat(filler)
        );
        let server = Server::acting([answer(201, &body)]).await;
        let created = server.platform().create_compute(&P, &new).await;
        let created = created.map(|(compute, _)| compute.id.to_string());
        assert!(
            created.as_ref().err().is_none_or(Fault::may_have_happened),
            "{created:?}"
        );
        assert_eq!(created.as_deref().map_err(Fault::kind), outcome);
    }
}

/// A compressed answer of a few KiB could expand to gigabytes.
#[tokio::test]
async fn compressed_answers_are_not_asked_for_and_not_unpacked() {
    let server = Server::acting([with_headers(
        200,
        &[("content-encoding", "gzip")],
        r#"{"endpoints":[]}"#,
    )])
    .await;
    // A client that decompressed would fail, because the body is not compressed.
    assert_eq!(
        server.platform().list_computes(&P).await,
        Ok(Listed::default())
    );
    assert_eq!(
        server.requests()[0].header("accept-encoding"),
        Vec::<&str>::new()
    );
}
