//! The page where faults are ordered.

use super::shows;
use crate::support::*;

#[tokio::test]
async fn faults_are_ordered_seen_and_cleared() {
    let platform = Platform::new().await;
    let fault = [
        ("kind", "status"),
        ("status", "503"),
        ("path", "/projects$"),
        ("times", "2"),
        ("after", "0"),
    ];
    let ordered = platform
        .submit("/pages/faults", "/pages/faults", &fault)
        .await
        .expect(200);
    shows(&ordered, &["The fault is ordered.", "(503)", "2 of 2"]);
    platform.get("/projects?limit=7", ADMIN).await.expect(503);
    platform.get("/users/me", ADMIN).await.expect(200);
    let failed = platform
        .page("/pages/requests?outcome=failed")
        .await
        .expect(200);
    shows(&failed, &["GET /projects", "limit=7", "503"]);
    assert!(!failed.text.contains("/users/me"), "{}", failed.text);
    for (filter, expected) in [
        ("method=POST", false),
        ("path=projects", true),
        ("key=999", false),
        ("outcome=5", true),
    ] {
        let page = platform
            .page(&format!("/pages/requests?{filter}"))
            .await
            .expect(200);
        assert_eq!(page.text.contains("GET /projects"), expected, "{filter}");
    }
    platform
        .submit("/pages/faults", "/pages/faults/clear", &[])
        .await
        .expect(200);
    platform.get("/projects", ADMIN).await.expect(200);
    platform
        .submit("/pages/requests", "/pages/requests/clear", &[])
        .await
        .expect(200);
    shows(
        &platform.page("/pages/requests").await,
        &["No requests to show."],
    );
}

#[tokio::test]
async fn invalid_faults_are_refused() {
    let platform = Platform::new().await;
    let invalid = [
        &[("kind", "status"), ("path", "(")][..],
        &[("kind", "clock_off")],
    ];
    for fields in invalid {
        platform
            .submit("/pages/faults", "/pages/faults", fields)
            .await
            .expect(400);
    }
}

#[tokio::test]
async fn odd_entries_and_states_are_ordered_and_happen() {
    let platform = Platform::new().await;
    let odd = [
        ("kind", "odd_entry"),
        ("status", "503"),
        ("entry", "notes-5"),
        ("field", "id"),
        ("path", "/projects$"),
    ];
    let ordered = platform
        .submit("/pages/faults", "/pages/faults", &odd)
        .await
        .expect(200);
    shows(
        &ordered,
        &[
            "the right answer, with an odd entry in its list, entry notes-5, field id",
            "1 of 1",
        ],
    );
    let state = [
        ("kind", "state"),
        ("body", "degraded"),
        ("path", "/endpoints$"),
    ];
    shows(
        &platform
            .submit("/pages/faults", "/pages/faults", &state)
            .await
            .expect(200),
        &["with computes in another state"],
    );
    let projects = platform.get("/projects", ADMIN).await.expect(200).body["projects"].clone();
    assert!(
        projects
            .as_array()
            .unwrap()
            .iter()
            .any(|project| project.get("id").is_none()),
        "{projects}"
    );
}

/// A kind, its fields in the form, and what the page shows of it.
type Ordered = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

const KINDS: [Ordered; 11] = [
    ("status", &[], "another status, nothing is done (503)"),
    (
        "redirect",
        &[("location", "/login"), ("seconds", "5")],
        "a redirect, but it was done, to /login",
    ),
    (
        "redirect",
        &[("status", "307")],
        "a redirect, but it was done (307)",
    ),
    (
        "login_page",
        &[("status", "503")],
        "a page to log in, nothing is done",
    ),
    (
        "login_page_after_work",
        &[],
        "a page to log in, but it was done",
    ),
    (
        "gateway_page",
        &[("status", "404")],
        "the page of a gateway, nothing is done (404)",
    ),
    (
        "repeat",
        &[],
        "it is done twice, and the second answer comes",
    ),
    (
        "clock_off",
        &[("seconds", "-90")],
        "it is done by a machine whose clock is off (-90 s)",
    ),
    (
        "times_without_zone",
        &[("status", "503")],
        "the right answer, with times without a zone",
    ),
    (
        "normalized_settings",
        &[],
        "the right answer, with Postgres settings in other units",
    ),
    (
        "young_key",
        &[("seconds", "30")],
        "a key that is new is not known yet (30 s)",
    ),
];

#[tokio::test]
async fn a_fault_of_each_kind_is_ordered_in_the_form() {
    let platform = Platform::new().await;
    for (kind, fields, shown) in KINDS {
        let form = [&[("kind", kind), ("every", "3")][..], fields].concat();
        let ordered = platform
            .submit("/pages/faults", "/pages/faults", &form)
            .await
            .expect(200);
        shows(
            &ordered,
            &[
                &format!("data-label=\"What goes wrong\">{shown}<"),
                "any path, one in 3<",
            ],
        );
    }
}

#[tokio::test]
async fn operations_are_ordered_to_fail() {
    let platform = Platform::new().await;
    let order = [
        ("action", "start_compute"),
        ("operations", "1"),
        ("tries", "1"),
        ("error", "no <host> is free"),
    ];
    let ordered = platform
        .submit("/pages/faults", "/pages/faults/operations", &order)
        .await
        .expect(200);
    shows(&ordered, &["start_compute", "no &lt;host&gt; is free"]);
    platform.compute(primary()).await;
    platform.advance(60);
    shows(
        &platform.page("/pages/operations").await,
        &["1× failed", "no &lt;host&gt; is free"],
    );
    platform
        .submit("/pages/faults", "/pages/faults/operations", &order)
        .await
        .expect(200);
    platform
        .submit("/pages/faults", "/pages/faults/operations/clear", &[])
        .await
        .expect(200);
    shows(
        &platform.page("/pages/faults").await,
        &["No operation is ordered to fail."],
    );
}
