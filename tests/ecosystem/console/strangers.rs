//! Pages of other sites in the same browser, and the content security policy.

use axum::Router;
use axum::response::Html;
use serde_json::json;

use super::browser::STRANGER;
use super::{ADMIN, Script, Site};
use crate::fixture::listener;

/// Serves a page on another port and returns the port.
async fn serve(page: String) -> u16 {
    let listener = listener();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(async move || Html(page));
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

impl Site {
    fn port(&self) -> u16 {
        reqwest::Url::parse(&self.platform.base_url())
            .unwrap()
            .port()
            .unwrap()
    }

    /// The HTTP status of the displayed page.
    async fn status(&self) -> u64 {
        let status = "return performance.getEntriesByType('navigation')[0].responseStatus";
        self.browser.run(status, json!([])).await.as_u64().unwrap()
    }
}

#[tokio::test]
async fn only_forms_of_our_own_pages_count() {
    let site = Site::start(Script::On).await;
    let browser = &site.browser;
    site.order(
        "/faults",
        json!({ "status": 503, "path": "/projects$", "times": 100 }),
    )
    .await;
    site.open("/pages/faults").await;
    let token = browser
        .run(
            "return document.querySelector('input[name=token]').value",
            json!([]),
        )
        .await;
    let form = format!(
        "<form method=post action={}><input name=token value={}><button>Win</button></form>",
        site.address("/pages/faults/clear"),
        token.as_str().unwrap()
    );
    let port = serve(form).await;
    for host in [STRANGER, "127.0.0.1", "localhost"] {
        browser.open(&format!("http://{host}:{port}/")).await;
        browser.click("button").await;
        browser
            .shows("body", "this was sent by a page of another site")
            .await;
        assert_eq!(site.status().await, 403, "{host}");
        assert_eq!(
            site.get("/projects", ADMIN).await,
            Some(503),
            "{host} has changed nothing"
        );
    }
    site.open("/pages/faults").await;
    let clear = "form[action='/console/pages/faults/clear']";
    browser
        .run(
            "document.querySelector(arguments[0] + ' [name=token]').remove()",
            json!([clear]),
        )
        .await;
    browser.click("#clear-faults").await;
    browser
        .shows("main", "the form is not of this simulator")
        .await;
    assert_eq!(site.status().await, 403);
    assert_eq!(site.get("/projects", ADMIN).await, Some(503));
    site.open("/pages/faults").await;
    browser.click("#clear-faults").await;
    browser.shows("main", "Nothing is ordered any more.").await;
    assert_eq!(site.get("/projects", ADMIN).await, Some(200));
}

#[tokio::test]
async fn scripts_of_other_sites_read_and_change_nothing() {
    let site = Site::start(Script::On).await;
    let port = serve("<p>A page of somebody else".to_owned()).await;
    let attempts = |url: String| {
        format!(
            "const address = '{url}';
             const write = mode => fetch(address + '/clock/advance', {{ method: 'POST', mode, body: '{{\"seconds\": 60}}' }});
             const json = fetch(address + '/clock/advance', {{ method: 'POST', body: '{{\"seconds\": 60}}',
                 headers: {{ 'Content-Type': 'application/json' }} }});
             const all = await Promise.allSettled([write('no-cors'), write('cors'), json, fetch(address + '/api_keys')]);
             return all.map(one => one.status + ' ' + (one.value?.type ?? ''));"
        )
    };
    let before = site.platform.now();
    for host in [STRANGER, "127.0.0.1"] {
        site.browser.open(&format!("http://{host}:{port}/")).await;
        let outcomes = site.browser.run_async(&attempts(site.address(""))).await;
        assert_eq!(outcomes, json!(vec!["rejected "; 4]), "{host}");
        assert_eq!(site.platform.now(), before, "{host} has moved the clock");
    }
    site.open("/pages/keys").await;
    let own = site.browser.run_async(&attempts(site.address(""))).await;
    assert_eq!(own[2], "fulfilled basic");
    assert_ne!(site.platform.now(), before, "a page of ours may do it");
}

#[tokio::test]
async fn other_host_names_and_frames_show_nothing() {
    let site = Site::start(Script::On).await;
    let browser = &site.browser;
    browser
        .open(&format!(
            "http://{STRANGER}:{}/console/pages/keys",
            site.port()
        ))
        .await;
    assert_eq!(site.status().await, 421);
    browser
        .shows("body", "under localhost and addresses only")
        .await;
    browser
        .open(&format!(
            "http://localhost:{}/console/pages/keys",
            site.port()
        ))
        .await;
    site.is_marked_as_a_simulator().await;

    let port = serve(format!("<iframe src='{}'></iframe>", site.address("/"))).await;
    browser.open(&format!("http://127.0.0.1:{port}/")).await;
    let complaints = browser.complaints().await.concat();
    assert!(
        complaints.contains("frame-ancestors 'none'"),
        "{complaints}"
    );
}

#[tokio::test]
async fn the_policy_forbids_everything_that_no_page_has() {
    let site = Site::start(Script::On).await;
    let port = serve(String::new()).await;
    for page in [
        "/",
        "/pages/computes",
        "/pages/keys",
        "/pages/faults",
        "/pages/unknown",
    ] {
        site.open(page).await;
        site.browser.complaints().await;
        let header = "return (await fetch(location.href)).headers.get('content-security-policy')";
        let header = site.browser.run_async(header).await;
        assert!(
            header
                .as_str()
                .is_some_and(|header| header.starts_with("default-src 'none';")),
            "{page}: {header}"
        );
        let foreign = format!("http://127.0.0.1:{port}/");
        assert_eq!(
            site.browser.run(INJECTED, json!([foreign])).await,
            json!([null, "16px"]),
            "{page}"
        );
        assert!(
            !site
                .browser
                .run_async(&format!("await fetch('{foreign}')"))
                .await
                .is_null(),
            "{page}"
        );
        let complaints = site.browser.complaints().await.concat();
        for part in ["script-src", "style-src", "img-src", "connect-src"] {
            assert!(
                complaints.contains(&format!("{part} 'self'")),
                "{page}: nothing about {part} in {complaints}"
            );
        }
    }
}

/// Elements that an attacker could inject into a page.
const INJECTED: &str = "
    const add = (name, text) => { const it = document.createElement(name); it.textContent = text; document.body.append(it); return it };
    add('script', 'window.ran = true');
    add('style', 'body { font-size: 99px }');
    add('img', '').src = arguments[0];
    return [window.ran ?? null, getComputedStyle(document.body).fontSize];";
