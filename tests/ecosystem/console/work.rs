//! Typical work of a developer with the simulator: using a compute, ordering faults, changing the
//! time.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ADMIN, BOTH, Script, Site};
use crate::support::{PATIENCE, wait_until};

#[tokio::test]
async fn a_used_compute_starts_and_shows_when_it_was_last_active() {
    for script in BOTH {
        let site = Site::start(script).await;
        let browser = &site.browser;
        let id = site.idle_compute("br-main-42").await;
        site.open("/pages/computes").await;
        browser.shows("#computes tbody tr", "Idle").await;
        browser.shows("#computes tbody tr", "29 min ago").await;
        browser.click(&format!("#use-{id}")).await;
        browser.shows(".notice", "The compute was used.").await;
        browser.shows("h1", &id).await;
        browser.shows("#operations", "start_compute").await;
        browser.click("button[value='60']").await;
        browser.click(&format!("#to-{id}")).await;
        browser.shows("#facts", "Active").await;
        browser.shows("#facts", "59 s ago").await;
        let exact = browser
            .run(
                "return document.querySelector('#facts time').title",
                json!([]),
            )
            .await;
        assert_eq!(exact, "2026-01-05 08:30:01 UTC");
        site.without_complaints().await;
    }
}

#[tokio::test]
async fn an_open_page_is_updated() {
    let site = Site::start(Script::On).await;
    let browser = &site.browser;
    let id = site.idle_compute("br-main-42").await;
    site.open("/pages/computes").await;
    browser.run("window.opened = true", json!([])).await;
    let activity = site.address(&format!("/computes/{id}/activity"));
    site.http
        .post(activity)
        .send()
        .await
        .unwrap()
        .error_for_status()
        .unwrap();
    site.platform.advance(Duration::from_secs(90)).unwrap();
    browser.shows("#computes", "Active").await;
    browser.shows("#computes", "1 min ago").await;
    browser.click("#live").await;
    assert_eq!(
        browser
            .run(
                "return document.getElementById('live').ariaPressed",
                json!([])
            )
            .await,
        "false"
    );
    assert_eq!(
        browser.run("return window.opened", json!([])).await,
        true,
        "without a reload"
    );
    site.without_complaints().await;
}

#[tokio::test]
async fn an_injected_fault_hits_the_next_request_and_is_in_the_log() {
    for script in BOTH {
        let site = Site::start(script).await;
        let browser = &site.browser;
        site.open("/pages/faults").await;
        browser.choose("#kind", "status").await;
        browser.fill("#status", "503").await;
        browser.choose("#method", "GET").await;
        browser.fill("#path", "/projects$").await;
        browser.click("#order").await;
        browser.shows(".notice", "The fault is ordered.").await;
        browser.shows("#faults tbody tr", "1 of 1").await;

        assert_eq!(
            site.get("/users/me", ADMIN).await,
            Some(200),
            "it is not meant"
        );
        assert_eq!(site.get("/projects", ADMIN).await, Some(503));
        assert_eq!(
            site.get("/projects", ADMIN).await,
            Some(200),
            "it is used up"
        );
        site.open("/pages/faults").await;
        browser.shows("#faults tbody tr", "0 of 1").await;

        site.open("/pages/requests").await;
        for (filter, value, expected) in [
            ("#outcome", "failed", &["GET /projects 503"][..]),
            ("#outcome", "2", &["GET /projects 200", "GET /users/me 200"]),
            ("#method", "POST", &[]),
            (
                "#method",
                "GET",
                &[
                    "GET /projects 200",
                    "GET /projects 503",
                    "GET /users/me 200",
                ],
            ),
        ] {
            site.open("/pages/requests").await;
            browser.choose(filter, value).await;
            browser.click(".filter button").await;
            browser.arrives(&format!("{}={value}", &filter[1..])).await;
            assert_eq!(listed(&site).await, expected, "{filter} {value}");
        }
        browser.fill("#path", "users").await;
        browser.click(".filter button").await;
        browser.arrives("path=users").await;
        assert_eq!(listed(&site).await, ["GET /users/me 200"]);
        site.without_complaints().await;
    }
}

/// The requests in the table with their statuses, newest first.
async fn listed(site: &Site) -> Vec<String> {
    let rows = "return [...document.querySelectorAll('#requests tbody tr')].map(row => \
                [row.cells[1], row.cells[2]].map(cell => cell.innerText.trim()).join(' '))";
    let rows = site.browser.run(rows, json!([])).await;
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| row.as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn time_is_paused_stepped_and_sped_up() {
    for script in BOTH {
        let site = Site::at_speed(script, 1.0).await;
        let browser = &site.browser;
        site.open("/pages/projects").await;
        browser.shows("#clock", "at speed 1").await;
        browser.click(".clock summary").await;
        browser.click("#pause").await;
        browser.shows("#clock", "paused").await;
        browser.shows("h1", "Projects").await;
        let stopped = clock(&site).await;
        assert_eq!(stopped["paused"], true);

        for (button, seconds) in [("60", 60), ("300", 360), ("3600", 3960), ("86400", 90_360)] {
            browser.click(&format!("button[value='{button}']")).await;
            let reached = async || {
                time(&clock(&site).await).as_second() == time(&stopped).as_second() + seconds
            };
            wait_until(&format!("{seconds} seconds more"), PATIENCE, reached)
                .await
                .unwrap();
            browser.shows(".notice", "The clock was changed.").await;
        }
        browser
            .shows(
                "#clock",
                &time(&clock(&site).await)
                    .strftime("%Y-%m-%d %H:%M:%S UTC paused")
                    .to_string(),
            )
            .await;

        browser.fill("#speed", "3600").await;
        browser.click("form:has(#speed) button").await;
        browser.shows("#pause", "Resume").await;
        browser.click("#pause").await;
        browser.shows("#clock", "at speed 3600").await;
        let passed = async || {
            time(&clock(&site).await).as_second() > time(&stopped).as_second() + 90_360 + 600
        };
        wait_until("ten minutes to pass", PATIENCE, passed)
            .await
            .unwrap();
        site.without_complaints().await;
    }
}

async fn clock(site: &Site) -> Value {
    site.console("/clock").await
}

fn time(clock: &Value) -> jiff::Timestamp {
    clock["now"].as_str().unwrap().parse().unwrap()
}
