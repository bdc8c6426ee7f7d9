//! The pages for API keys: a secret is shown once, and a revocation needs a confirmation.

use serde_json::{Value, json};

use super::{BOTH, ORGANIZATION, PROJECT, Script, Site, computes};
use crate::support::{PATIENCE, wait_until};

const KEYS: &str = "/pages/keys";

/// Creates a key of the sample project on the page and returns its secret.
pub async fn create(site: &Site, name: &str) -> String {
    let browser = &site.browser;
    site.open(KEYS).await;
    browser
        .choose("#reach", &format!("project/{ORGANIZATION}/{PROJECT}"))
        .await;
    browser.fill("#key-name", name).await;
    browser.click("#create").await;
    let secret = browser.text("#secret").await;
    assert_eq!(
        site.get(&computes(), &secret).await,
        Some(200),
        "the secret that is shown opens the API"
    );
    secret
}

/// The id of the only key with this name.
pub async fn number(site: &Site, name: &str) -> i64 {
    let keys = site.console("/api_keys").await;
    let named: Vec<&Value> = keys
        .as_array()
        .unwrap()
        .iter()
        .filter(|key| key["name"] == name)
        .collect();
    assert_eq!(named.len(), 1, "{keys}");
    named[0]["id"].as_i64().unwrap()
}

/// Checks that neither the page, its source nor its URL contains the secret.
async fn is_gone(site: &Site, secret: &str, when: &str) {
    let source = site.browser.source().await;
    let address = site
        .browser
        .run("return location.href", json!([]))
        .await
        .to_string();
    assert!(
        !source.contains(secret) && !address.contains(secret),
        "the secret is still there {when}"
    );
}

#[tokio::test]
async fn a_secret_is_shown_once() {
    for script in BOTH {
        let site = Site::start(script).await;
        let secret = create(&site, "first").await;
        site.without_complaints().await;
        site.browser
            .click("nav a[href='/console/pages/projects']")
            .await;
        site.browser.shows("h1", "Projects").await;
        site.browser.back().await;
        let heading = "return document.querySelector('h1')?.textContent";
        let left = async || site.browser.run(heading, json!([])).await != "Projects";
        wait_until("the page before", PATIENCE, left).await.unwrap();
        is_gone(&site, &secret, "after going back").await;
        site.browser.reload().await;
        site.browser
            .shows("main", "no second key was created")
            .await;
        is_gone(&site, &secret, "after going back and asking for it again").await;
        site.open(KEYS).await;
        site.browser.shows("#keys", "first").await;
        is_gone(&site, &secret, "in the list").await;
        number(&site, "first").await;

        let secret = create(&site, "second").await;
        site.browser.reload().await;
        is_gone(&site, &secret, "after a reload").await;
        number(&site, "second").await;
    }
}

#[tokio::test]
async fn a_key_is_revoked_only_after_a_confirmation() {
    for script in BOTH {
        let site = Site::start(script).await;
        let browser = &site.browser;
        let secret = create(&site, "for a while").await;
        let revoke = format!("#revoke-{}", number(&site, "for a while").await);
        site.open(KEYS).await;
        browser.click(&revoke).await;
        browser.shows("h1", "Revoke this key?").await;
        browser.shows("main", "immediate and permanent").await;
        browser.shows("main", "for a while").await;
        browser.click("main .buttons a").await;
        browser.shows("h1", "API keys").await;
        assert_eq!(
            site.get(&computes(), &secret).await,
            Some(200),
            "it was kept"
        );

        browser.click(&revoke).await;
        browser.click("#revoke").await;
        browser.shows(".notice", "The key was revoked.").await;
        browser
            .shows("#keys tbody tr:has(.badge.wrong)", "for a while")
            .await;
        browser
            .shows("#keys tbody tr:has(.badge.wrong)", "revoked")
            .await;
        assert!(!browser.has(&revoke).await, "nothing is left to be revoked");
        site.without_complaints().await;
        assert_eq!(site.get(&computes(), &secret).await, Some(401));
    }
}

#[tokio::test]
async fn a_secret_is_copied_where_the_script_runs() {
    let site = Site::start(Script::On).await;
    let permission = json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] });
    site.browser
        .devtools("Browser.grantPermissions", permission)
        .await;
    let secret = create(&site, "copied").await;
    site.browser.click("#copy").await;
    site.browser.shows("#copied", "Copied.").await;
    let copied = site
        .browser
        .run_async("return await navigator.clipboard.readText()")
        .await;
    assert!(copied == secret, "something else was copied");
    site.without_complaints().await;
}
