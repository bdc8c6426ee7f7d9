//! The simulator's console in a real browser: by mouse and keyboard, with and without JavaScript.

mod browser;
mod keyboard;
mod keys;
mod looks;
mod pictures;
mod strangers;
mod work;

use std::time::Duration;

use dbplane_simulator::{self as simulator, Options, Simulator};
use serde_json::{Value, json};

use crate::fixture::{ADMIN, ORGANIZATION_KEY, PROJECT, listener, world};
use crate::public::ORGANIZATION;
use browser::Browser;

/// Switches the script of the pages, which must work without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    On,
    Off,
}

const BOTH: [Script; 2] = [Script::On, Script::Off];
const START: &str = "2026-01-05T08:00:00Z";

/// A simulated platform and a browser for its console.
struct Site {
    platform: Simulator,
    browser: Browser,
    http: reqwest::Client,
}

impl Site {
    /// Starts with a clock that moves only by advances.
    async fn start(script: Script) -> Self {
        Self::at_speed(script, 0.0).await
    }

    async fn at_speed(script: Script, clock_speed: f64) -> Self {
        let mut options = Options::new(world(PROJECT));
        options.world.settings.start_time = Some(START.parse().unwrap());
        (options.clock_speed, options.seed) = (clock_speed, 7);
        let platform = simulator::serve(listener(), options).await.unwrap();
        let browser = Browser::start().await;
        if script == Script::Off {
            browser.without_script().await;
        }
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            platform,
            browser,
            http,
        }
    }

    fn address(&self, page: &str) -> String {
        format!("{}{page}", self.platform.console_url())
    }

    /// Opens a page of the console and checks that it identifies itself as a simulator.
    async fn open(&self, page: &str) {
        self.browser.open(&self.address(page)).await;
        self.is_marked_as_a_simulator().await;
    }

    async fn is_marked_as_a_simulator(&self) {
        let said = self.browser.text("header").await;
        assert!(said.contains("This is a simulator."), "{said}");
        let title = self.browser.run("return document.title", json!([])).await;
        assert!(
            title.as_str().unwrap().ends_with("Simulated platform"),
            "{title}"
        );
    }

    /// The status of an API request with this key; `None` without an answer.
    async fn get(&self, path: &str, key: &str) -> Option<u16> {
        let request = self
            .http
            .get(format!("{}{path}", self.platform.base_url()))
            .bearer_auth(key);
        request
            .send()
            .await
            .ok()
            .map(|answer| answer.status().as_u16())
    }

    /// The state according to the JSON console, to compare with a page.
    async fn console(&self, path: &str) -> Value {
        let answer = self.http.get(self.address(path)).send().await.unwrap();
        answer.error_for_status().unwrap().json().await.unwrap()
    }

    /// A POST to the JSON console.
    async fn order(&self, path: &str, body: Value) -> Value {
        let answer = self
            .http
            .post(self.address(path))
            .json(&body)
            .send()
            .await
            .unwrap();
        answer.error_for_status().unwrap().json().await.unwrap()
    }

    /// A new primary on a branch, without activity since its creation.
    async fn idle_compute(&self, branch: &str) -> String {
        let endpoint = json!({ "project_id": PROJECT, "branch_id": branch, "type": "read_write" });
        let created = self.order("/computes", endpoint).await;
        self.platform.advance(Duration::from_mins(30)).unwrap();
        created["id"].as_str().unwrap().to_owned()
    }

    /// Checks that there were no script errors and no violations of the policy.
    async fn without_complaints(&self) {
        assert_eq!(self.browser.complaints().await, Vec::<String>::new());
    }
}

/// A path that every key of the sample project may read.
fn computes() -> String {
    format!("/projects/{PROJECT}/endpoints")
}
