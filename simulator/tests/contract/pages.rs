//! The console's pages, used as by a browser without JavaScript, and the protection of the console.

mod faults;
mod protection;

use std::collections::HashMap;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use regex::Regex;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::support::*;

const PLACES: [&str; 7] = [
    "/",
    "/pages/computes",
    "/pages/keys",
    "/pages/projects",
    "/pages/operations",
    "/pages/requests",
    "/pages/faults",
];

impl Platform {
    async fn page(&self, path: &str) -> Answer {
        self.console(Method::GET, path, Value::Null).await
    }

    /// Submits a form to `path` with the hidden fields of the page `from`.
    async fn submit(&self, from: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let page = self.page(from).await.expect(200);
        self.send(path, &hidden(&page), fields).await
    }

    async fn send(
        &self,
        path: &str,
        hidden: &HashMap<String, String>,
        fields: &[(&str, &str)],
    ) -> Answer {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let hidden = ["token", "once"]
            .iter()
            .filter_map(|name| Some((*name, hidden.get(*name)?.as_str())));
        let pairs = hidden.chain(fields.iter().copied());
        let body: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={}", encode(value)))
            .collect();
        let url = format!("{}{path}", self.simulator.console_url());
        let request = self
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        answer(request.body(body.join("&")).send().await.unwrap()).await
    }

    /// A request to the console with arbitrary headers.
    async fn strange(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &'static str,
    ) -> Answer {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.simulator.console_url()))
            .body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(request.send().await.unwrap()).await
    }
}

fn hidden(page: &Answer) -> HashMap<String, String> {
    let field = Regex::new(r#"<input type="hidden" name="([a-z]+)" value="([^"]*)">"#).unwrap();
    field
        .captures_iter(&page.text)
        .map(|found| (found[1].to_owned(), found[2].to_owned()))
        .collect()
}

/// The text of the element with this id. It must not contain other elements.
fn text_of(page: &Answer, id: &str) -> String {
    let element = Regex::new(&format!(r#" id="{id}"[^>]*>([^<]*)<"#)).unwrap();
    element
        .captures(&page.text)
        .unwrap_or_else(|| panic!("no {id} in {}", page.text))[1]
        .to_owned()
}

/// The compute's id and the path of its page.
fn page_of(path: &str) -> (&str, String) {
    let id = path.rsplit_once('/').unwrap().1;
    (id, format!("/pages/computes/{id}"))
}

#[track_caller]
fn shows(page: &Answer, parts: &[&str]) {
    for part in parts {
        assert!(page.text.contains(part), "no {part} in {}", page.text);
    }
}

#[tokio::test]
async fn pages_list_computes_projects_and_operations() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let (id, page) = page_of(&path);
        platform.advance(120);
        let computes = platform.page("/pages/computes").await.expect(200);
        shows(
            &computes,
            &[id, "Primary", "Active", "1 CU", "2 min ago</time>"],
        );
        shows(
            &computes,
            &[
                r#"<time datetime="2026-01-05T08:0"#,
                "<th role=\"columnheader\" scope=\"col\">Last active</th>",
            ],
        );
        shows(
            &platform.page(&page).await.expect(200),
            &[id, "shop-1", "br-main", "450", "start_compute", "finished"],
        );
        let projects = platform.page("/pages/projects").await.expect(200);
        shows(
            &projects,
            &[
                "shop-1",
                "org-scale-1",
                "br-main",
                "br-kept",
                "protected",
                "default",
            ],
        );
        platform
            .push(&format!("{path}/restart"), ORGANIZATION)
            .await;
        shows(
            &platform.page("/pages/operations").await.expect(200),
            &[id, "suspend_compute", "running", "scheduling"],
        );
        shows(
            &platform.page("/").await.expect(200),
            &["1 compute:", "2 operations under way"],
        );
        let found = platform
            .page("/pages/operations?search=suspend")
            .await
            .expect(200);
        shows(&found, &["suspend_compute"]);
        assert!(!found.text.contains("start_compute"), "{}", found.text);
        platform
            .page("/pages/computes/ep-unknown")
            .await
            .expect(404);
        platform.page("/pages/unknown").await.expect(404);
    }
}

#[tokio::test]
async fn a_key_is_created_with_its_secret_shown_once_and_revoked_after_a_confirmation() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let form = hidden(&platform.page("/pages/keys").await.expect(200));
        let fields = [
            ("reach", "project/org-scale-1/shop-1"),
            ("name", "for <b>me</b>"),
        ];
        let created = platform
            .send("/pages/keys", &form, &fields)
            .await
            .expect(201);
        assert_eq!(created.headers["cache-control"], "no-store");
        let secret = text_of(&created, "secret");
        platform
            .get("/projects/shop-1/endpoints", &secret)
            .await
            .expect(200);

        let repeated = platform
            .send("/pages/keys", &form, &fields)
            .await
            .expect(409);
        let listed = platform.page("/pages/keys").await.expect(200);
        assert_eq!(
            listed
                .text
                .matches("for &lt;b&gt;me&lt;/b&gt; <span")
                .count(),
            1,
            "{}",
            listed.text
        );
        assert!(!repeated.text.contains(&secret));
        for place in PLACES {
            let page = platform.page(place).await.expect(200);
            assert!(!page.text.contains(&secret), "{place}");
        }
        platform.revokes_after_a_confirmation(&secret).await;
    }
}

impl Platform {
    /// Revokes the last key on its page.
    async fn revokes_after_a_confirmation(&self, secret: &str) {
        let keys = self
            .console(Method::GET, "/api_keys", Value::Null)
            .await
            .expect(200);
        let id = keys.body.as_array().unwrap().last().unwrap()["id"].clone();
        let revoke = format!("/pages/keys/{id}/revoke");
        shows(
            &self.page(&revoke).await.expect(200),
            &["Revoke this key?", "permanent", "shop-1", "Keep it"],
        );
        self.get("/projects/shop-1/endpoints", secret)
            .await
            .expect(200);
        shows(
            &self.submit(&revoke, &revoke, &[]).await.expect(200),
            &["The key was revoked", "revoked</span>"],
        );
        self.get("/projects/shop-1/endpoints", secret)
            .await
            .expect(401);
    }

    /// Creates a primary on the page, and returns its id. A second one is refused.
    async fn creates_a_primary(&self) -> String {
        let fields = [("branch", "shop-1/br-main"), ("type", "read_write")];
        self.submit("/pages/computes", "/pages/computes", &fields)
            .await
            .expect(200);
        self.submit("/pages/computes", "/pages/computes", &fields)
            .await
            .expect(409);
        let lines = self
            .console(Method::GET, "/computes", Value::Null)
            .await
            .expect(200);
        lines.body[0]["id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn pages_create_keys_of_each_type() {
    let platform = Platform::new().await;
    let types = [
        ("user/user-ada", "personal", "user-ada"),
        ("organization/org-scale-1", "organization", "org-scale-1"),
        ("project/org-scale-1/other-2", "project", "org-scale-1"),
    ];
    for (reach, kind, owner) in types {
        platform
            .submit(
                "/pages/keys",
                "/pages/keys",
                &[("reach", reach), ("name", kind)],
            )
            .await
            .expect(201);
        let keys = platform
            .console(Method::GET, "/api_keys", Value::Null)
            .await
            .expect(200);
        let created = keys.body.as_array().unwrap().last().unwrap().clone();
        assert_eq!(
            (&created["name"], &created["owner"]),
            (&json!(kind), &json!(owner))
        );
        assert_eq!(
            created["project_id"],
            if kind == "project" {
                json!("other-2")
            } else {
                Value::Null
            }
        );
    }
    for refused in [
        ("reach", "nobody/x"),
        ("reach", "project/org-scale-1/unknown"),
        ("reach", ""),
    ] {
        let answer = platform
            .submit("/pages/keys", "/pages/keys", &[refused, ("name", "x")])
            .await;
        assert!((400..500).contains(&answer.status), "{answer:?}");
        shows(&answer, &["This was not done", "Nothing was changed"]);
    }
}

#[tokio::test]
async fn a_compute_is_used_changed_and_deleted_on_its_page() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let id = platform.creates_a_primary().await;
        let (path, page) = (
            format!("/projects/shop-1/endpoints/{id}"),
            format!("/pages/computes/{id}"),
        );
        platform.advance(600);
        assert_eq!(platform.states(&path).await, state("idle", None));
        let used = platform
            .submit(&page, &format!("{page}/activity"), &[("load", "")])
            .await
            .expect(200);
        shows(&used, &["The compute was used."]);
        platform.advance(5);
        assert_eq!(platform.states(&path).await, state("active", None));

        platform
            .submit(
                &page,
                &format!("{page}/size"),
                &[("min", "0.5"), ("max", "2")],
            )
            .await
            .expect(200);
        platform.advance(5);
        shows(&platform.page(&page).await, &["0.5 - 2 CU"]);
        let restarted = platform
            .submit(&page, &format!("{page}/restart"), &[])
            .await
            .expect(200);
        shows(&restarted, &["The compute restarts.", "suspend_compute"]);
        platform.advance(5);
        shows(
            &platform
                .submit(&page, &format!("{page}/disk"), &[])
                .await
                .expect(200),
            &["53100", "No space left on device"],
        );

        let delete = format!("{page}/delete");
        shows(
            &platform.page(&delete).await.expect(200),
            &["Delete this compute?", "permanent"],
        );
        assert_eq!(platform.states(&path).await, state("active", None));
        platform.submit(&delete, &delete, &[]).await.expect(200);
        platform.page(&page).await.expect(404);
    }
}

#[tokio::test]
async fn the_root_leads_to_the_console() {
    let platform = Platform::start(Profile::Public).await;
    let console = platform.simulator.console_url();
    let root = console.strip_suffix("console").unwrap();
    let page = answer(platform.http.get(root).send().await.unwrap()).await;
    shows(&page.expect(200), &["<h1>Overview</h1>"]);
}

#[tokio::test]
async fn the_clock_takes_one_line_until_it_is_opened() {
    let platform = Platform::start(Profile::Public).await;
    let page = platform.page("/pages/keys").await.expect(200);
    shows(&page, &[r#"<details class="clock"><summary>"#]);
    let changed = platform
        .submit("/", "/pages/clock", &[("paused", "true")])
        .await
        .expect(200);
    shows(&changed, &[r#"<details class="clock" open><summary>"#]);
}

/// The heading above a table says the same.
#[tokio::test]
async fn no_table_shows_its_name_twice() {
    let platform = Platform::start(Profile::Public).await;
    platform.active_primary().await;
    let mut tables = 0;
    for place in PLACES {
        let page = platform.page(place).await.expect(200);
        assert!(!page.text.contains("<caption"), "{place}: {}", page.text);
        let named = page.text.matches(r#"<table role="table" aria-label=""#);
        let named = named.count();
        assert_eq!(named, page.text.matches("<table").count(), "{place}");
        tables += named;
    }
    assert!(tables > 3, "only {tables} tables were found");
}

#[tokio::test]
async fn the_log_of_requests_has_pages() {
    let platform = Platform::start(Profile::Public).await;
    for _ in 0..130 {
        platform.get("/projects", ORGANIZATION).await;
    }
    let numbers = |page: &Answer| -> Vec<u64> {
        let row = Regex::new(r#"data-label="No\.">(\d+)<"#).unwrap();
        row.captures_iter(&page.text)
            .map(|found| found[1].parse().unwrap())
            .collect()
    };
    let first = platform.page("/pages/requests?method=GET").await;
    assert_eq!(numbers(&first), (31..=130).rev().collect::<Vec<_>>());
    let older = r#"<button id="older" name="before" value="31">Older</button>"#;
    let kept = r#"<input type="hidden" name="method" value="GET">"#;
    shows(&first, &[older, kept]);
    assert!(!first.text.contains("Newest"), "{}", first.text);
    let last = platform
        .page("/pages/requests?method=GET&before=31")
        .await
        .expect(200);
    assert_eq!(numbers(&last), (1..=30).rev().collect::<Vec<_>>());
    shows(&last, &["Newest"]);
    assert!(!last.text.contains("Older"), "{}", last.text);
}

#[tokio::test]
async fn time_is_paused_stepped_and_sped_up() {
    let platform = Platform::new().await;
    let clock = async || {
        platform
            .console(Method::GET, "/clock", Value::Null)
            .await
            .expect(200)
            .body
    };
    let back = ("back", "/console/pages/keys");
    let paused = platform
        .submit("/", "/pages/clock", &[("paused", "true"), back])
        .await
        .expect(200);
    shows(
        &paused,
        &["<strong>paused</strong>", "Resume", "<h1>API keys</h1>"],
    );
    platform
        .submit("/", "/pages/clock", &[("speed", "60")])
        .await
        .expect(200);
    let stepped = platform
        .submit("/", "/pages/clock/advance", &[("seconds", "300"), back])
        .await
        .expect(200);
    shows(
        &stepped,
        &[r#"<time datetime="2026-01-05T08:05:00Z">2026-01-05 08:05:00 UTC</time>"#],
    );
    assert_eq!(
        clock().await,
        json!({ "now": "2026-01-05T08:05:00Z", "speed": 60.0, "paused": true })
    );
    platform
        .submit(
            "/",
            "/pages/clock",
            &[("paused", "false"), ("back", "//evil.example")],
        )
        .await
        .expect(200);
    assert_eq!(clock().await["paused"], false);
    for (path, field) in [
        ("/pages/clock", ("speed", "-1")),
        ("/pages/clock/advance", ("seconds", "-1")),
    ] {
        platform.submit("/", path, &[field]).await.expect(400);
    }
}
