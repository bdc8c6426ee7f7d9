//! The appearance of the pages on phones and desktops, in light and dark mode, and their
//! accessibility.

use std::fs;

use serde_json::{Value, json};

use super::keys::{create, number};
use super::{ADMIN, ORGANIZATION_KEY, PROJECT, Script, Site, computes};
use crate::tools;

/// The width of a small phone.
const PHONE: u32 = 360;
const DESK: u32 = 1000;

/// A site with one of everything: all states of computes and operations, keys with odd names,
/// faults, failed requests.
pub async fn busy(script: Script) -> Site {
    let site = Site::start(script).await;
    let used = site.idle_compute("br-main-42").await;
    site.idle_compute("br-dev-7").await;
    site.order(&format!("/computes/{used}/activity"), json!({}))
        .await;
    site.platform
        .advance(std::time::Duration::from_secs(60))
        .unwrap();
    let failing = json!({ "action": "start_compute", "operations": 1, "tries": 1, "error": "no <host> is free" });
    site.order("/failing_operations", failing).await;
    let replica = json!({ "project_id": PROJECT, "branch_id": "br-dev-7", "type": "read_only" });
    site.order("/computes", replica.clone()).await;
    site.platform
        .advance(std::time::Duration::from_secs(5))
        .unwrap();
    site.order("/computes", replica).await;
    for name in [
        "revoked",
        &"long".repeat(50),
        "<img src=x onerror=alert(1)>",
    ] {
        site.order("/users/user-ada/api_keys", json!({ "key_name": name }))
            .await;
    }
    site.order(
        &format!("/api_keys/{}/revoke", number(&site, "revoked").await),
        json!({}),
    )
    .await;
    for fault in [
        json!({ "status": 503, "path": "/projects$" }),
        json!({ "kind": "drop", "path": "/users/me" }),
    ] {
        site.order("/faults", fault).await;
    }
    for (path, key, status) in [
        ("/projects", ADMIN, Some(503)),
        ("/users/me", ADMIN, None),
        ("/users/me", "nobody's", Some(401)),
        (&computes(), ORGANIZATION_KEY, Some(200)),
    ] {
        assert_eq!(site.get(path, key).await, status, "{path}");
    }
    site
}

/// Visits every kind of page.
pub async fn each_page(site: &Site, look: impl AsyncFn(&str)) {
    let computes = site.console("/computes").await;
    let compute = format!("/pages/computes/{}", computes[0]["id"].as_str().unwrap());
    let revocation = |key: i64| format!("/pages/keys/{key}/revoke");
    for page in [
        "/",
        "/pages/computes",
        &compute,
        &format!("{compute}/delete"),
        "/pages/keys",
        &revocation(number(site, "revoked").await),
        &revocation(number(site, &"long".repeat(50)).await),
        "/pages/projects",
        "/pages/operations",
        "/pages/requests",
        "/pages/faults",
        "/pages/operations?search=nothing",
        "/pages/unknown",
    ] {
        site.open(page).await;
        look(page).await;
    }
    site.open(&compute).await;
    site.browser.click("#disk").await;
    site.browser.shows("h1", "The temporary disk is full").await;
    look("a full disk").await;
    site.open("/pages/faults").await;
    site.browser.fill("#path", "(").await;
    site.browser.click("#order").await;
    site.browser.shows("h1", "This was not done").await;
    look("what was refused").await;
    create(site, &format!("new {}", rand::random::<u32>())).await;
    look("a new key").await;
}

#[tokio::test]
async fn no_page_is_wider_than_a_phone() {
    let site = busy(Script::On).await;
    site.browser.resize(PHONE, 740).await;
    each_page(&site, async |page| {
        let widths = "return [innerWidth, document.documentElement.scrollWidth]";
        assert_eq!(
            site.browser.run(widths, json!([])).await,
            json!([PHONE, PHONE]),
            "{page}"
        );
        assert_eq!(
            site.browser.run(SQUEEZED, json!([])).await,
            json!([]),
            "{page}: texts in a column of letters"
        );
    })
    .await;
}

/// Finds texts that are rendered much higher than wide, except those only for screen readers.
const SQUEEZED: &str = "
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange(), found = [];
    const hidden = at => at !== null && (getComputedStyle(at).clipPath !== 'none' || hidden(at.parentElement));
    while (texts.nextNode()) {
        range.selectNodeContents(texts.currentNode);
        const box = range.getBoundingClientRect();
        if (box.height > 60 && box.height > 2 * box.width && !hidden(texts.currentNode.parentElement)) found.push(texts.currentNode.textContent);
    }
    return found;";

#[tokio::test]
async fn no_page_breaks_its_policy_or_fails_in_its_script() {
    let site = busy(Script::On).await;
    each_page(&site, async |page| {
        site.is_marked_as_a_simulator().await;
        let mut complaints = site.browser.complaints().await;
        // Responses with an error status are intended here.
        complaints
            .retain(|complaint| !complaint.contains("the server responded with a status of 40"));
        assert_eq!(complaints, Vec::<String>::new(), "{page}");
    })
    .await;
}

#[tokio::test]
async fn every_page_is_accessible_in_light_and_in_dark() {
    let site = busy(Script::On).await;
    let axe = fs::read_to_string(tools("axe").join("node_modules/axe-core/axe.min.js")).unwrap();
    for (scheme, dark) in [("light", false), ("dark", true)] {
        site.browser.prefer(scheme).await;
        for width in [PHONE, DESK] {
            site.browser.resize(width, 740).await;
            each_page(&site, async |page| {
                let page = format!("{page}, {scheme}, {width} pixels wide");
                assert_eq!(is_dark(&site).await, dark, "{page}");
                site.browser
                    .devtools("Runtime.evaluate", json!({ "expression": axe }))
                    .await;
                assert_eq!(site.browser.run_async(AXE).await, json!([]), "{page}");
            })
            .await;
        }
    }
}

/// Runs all rules of axe, including target sizes. Colours that axe cannot compare count as errors.
const AXE: &str = "
    const rules = { 'target-size': { enabled: true } };
    const found = await axe.run({ rules, preload: false });
    if (found.passes.length < 10) throw new Error('axe looked at nothing');
    const unclear = found.incomplete.filter(rule => rule.id === 'color-contrast');
    return [...found.violations, ...unclear].flatMap(rule => rule.nodes.map(node =>
        rule.id + ': ' + node.html.slice(0, 200) + ' ' + node.any.concat(node.all, node.none).map(check => check.message).join('; ')));";

/// True if the background is darker than medium grey.
async fn is_dark(site: &Site) -> bool {
    let colour = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)";
    let colour: Value = site.browser.run(colour, json!([])).await;
    colour
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_u64)
        .sum::<u64>()
        < 3 * 128
}
