//! Uses the console only by keyboard, and checks that the focus is always visible.

use serde_json::{Value, json};

use super::keys::number;
use super::looks::{busy, each_page};
use super::{BOTH, Script, Site, computes};

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
/// More focusable elements than any page has.
const MOST_STOPS: u64 = 300;

/// Describes the focused element and problems with its focus outline, which may be the browser's or
/// the page's own.
const STOP: &str = "
    const at = document.activeElement;
    const style = getComputedStyle(at), box = at.getBoundingClientRect();
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 && style.outlineColor !== 'transparent';
    const inside = box.width > 4 && box.height > 4 && box.left >= 0 && box.right <= innerWidth && box.top < innerHeight && box.bottom > 0;
    return { name: at.tagName + '#' + at.id + ' ' + at.innerText.slice(0, 30), body: at === document.body, seen: outlined && inside };";

/// Counts the visible controls of a page.
const CONTROLS: &str = "
    const all = document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex=\"0\"]');
    return [...all].filter(one => one.checkVisibility()).length;";

/// Moves to the next element; `None` after the last one.
async fn next(site: &Site) -> Option<Value> {
    site.browser.press(TAB).await;
    let stop = site.browser.run(STOP, json!([])).await;
    if stop["body"] == true {
        return None;
    }
    assert_eq!(stop["seen"], true, "the focus is not seen: {stop}");
    Some(stop)
}

/// Presses Tab until this element has the focus.
async fn tab_to(site: &Site, selector: &str) {
    for _ in 0..MOST_STOPS {
        next(site)
            .await
            .unwrap_or_else(|| panic!("Tab does not lead to {selector}"));
        if site
            .browser
            .run(
                "return document.activeElement.matches(arguments[0])",
                json!([selector]),
            )
            .await
            == true
        {
            return;
        }
    }
    panic!("Tab does not lead to {selector}");
}

#[tokio::test]
async fn a_key_is_created_and_revoked_by_keyboard() {
    for script in BOTH {
        let site = Site::start(script).await;
        let browser = &site.browser;
        site.open("/pages/keys").await;
        // A project of an organization is preselected.
        tab_to(&site, "#key-name").await;
        browser.press("typed").await;
        tab_to(&site, "#create").await;
        browser.press(ENTER).await;
        tab_to(&site, "#secret").await;
        let secret = browser.text("#secret").await;
        assert_eq!(site.get(&computes(), &secret).await, Some(200));
        tab_to(&site, "main a[href='/console/pages/keys']").await;
        browser.press(ENTER).await;
        browser.shows("h1", "API keys").await;
        tab_to(&site, &format!("#revoke-{}", number(&site, "typed").await)).await;
        browser.press(ENTER).await;
        browser.shows("h1", "Revoke this key?").await;
        tab_to(&site, "#revoke").await;
        browser.press(ENTER).await;
        browser.shows(".notice", "The key was revoked.").await;
        assert_eq!(site.get(&computes(), &secret).await, Some(401));
        site.without_complaints().await;
    }
}

#[tokio::test]
async fn everything_is_reached_by_keyboard_and_the_focus_is_seen() {
    for script in BOTH {
        let site = busy(script).await;
        each_page(&site, async |page| {
            let controls = site
                .browser
                .run(CONTROLS, json!([]))
                .await
                .as_u64()
                .unwrap();
            let mut stops = 0;
            while let Some(stop) = next(&site).await {
                stops += 1;
                assert!(stops <= MOST_STOPS, "{page}: {stop}");
            }
            assert_eq!(
                stops, controls,
                "{page}: stops of Tab, and what there is to use"
            );
        })
        .await;
    }
}

#[tokio::test]
async fn the_skip_link_is_the_first_focus() {
    let site = Site::start(Script::On).await;
    site.open("/pages/keys").await;
    let first = next(&site).await.unwrap();
    assert!(
        first["name"].as_str().unwrap().contains("Skip to content"),
        "{first}"
    );
    site.browser.press(ENTER).await;
    assert_eq!(
        site.browser
            .run("return document.activeElement.id", json!([]))
            .await,
        "main"
    );
}

#[tokio::test]
async fn the_focus_is_kept_while_the_page_is_updated() {
    let site = Site::start(Script::On).await;
    let id = site.idle_compute("br-main-42").await;
    site.open("/pages/computes").await;
    tab_to(&site, &format!("#use-{id}")).await;
    site.platform
        .advance(std::time::Duration::from_hours(3))
        .unwrap();
    site.browser.shows("#computes", "3 h ago").await;
    let focused = site
        .browser
        .run("return document.activeElement.id", json!([]))
        .await;
    assert_eq!(focused, format!("use-{id}"));
}
