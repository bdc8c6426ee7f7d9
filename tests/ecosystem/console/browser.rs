//! A headless Chromium, controlled over WebDriver.
//!
//! A small client of our own replaces those on crates.io. thirtyfour enables ordered JSON objects
//! in everything built with it, including the programs under test. fantoccini adds a second HTTP
//! and a second time library. A dozen commands are enough here.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use regex::Regex;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{PATIENCE, Running, Sandbox, wait_for, wait_until};
use crate::{of_packages, tools};

/// The WebDriver key of an element's identifier.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// A foreign name that resolves to this machine, but only in this browser.
pub const STRANGER: &str = "evil.example";
/// Keeps all traffic on the machine. There is no sandbox, since that does not work as root.
const FLAGS: [&str; 14] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--no-pings",
    "--no-proxy-server",
    "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--lang=en-US",
    "--hide-scrollbars",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
];

pub struct Browser {
    http: reqwest::Client,
    session: String,
    driver: Running,
    sandbox: Sandbox,
}

impl Browser {
    pub async fn start() -> Self {
        let sandbox = Sandbox::new("browser").unwrap();
        fs::write(sandbox.folder().join("fonts.conf"), fonts(&sandbox)).unwrap();
        let mut command = Command::new(of_packages("browser", &["usr", "bin", "chromedriver"]));
        command
            .arg("--port=0")
            .env_clear()
            .env("LC_ALL", "C.UTF-8")
            .env("LD_LIBRARY_PATH", libraries());
        command.env("FONTCONFIG_FILE", sandbox.folder().join("fonts.conf"));
        command
            .env("HOME", sandbox.folder())
            .env("TMPDIR", sandbox.folder());
        let driver = sandbox
            .start("chromedriver", command)
            .unwrap()
            .log_on_panic();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let address = wait_for("chromedriver to listen", PATIENCE, async || {
            listening(&driver.log())
        })
        .await
        .unwrap();
        let mut browser = Self {
            http,
            session: format!("{address}/session"),
            driver,
            sandbox,
        };
        let session = browser
            .ask(Method::POST, "", capabilities(&browser))
            .await
            .unwrap();
        browser.session = format!(
            "{}/{}",
            browser.session,
            session["sessionId"].as_str().unwrap()
        );
        browser
    }

    /// A command to chromedriver; the error is its message.
    async fn ask(&self, method: Method, command: &str, body: Value) -> Result<Value, String> {
        let request = self
            .http
            .request(method.clone(), format!("{}{command}", self.session));
        let request = if method == Method::POST {
            request.json(&body)
        } else {
            request
        };
        let response = request
            .send()
            .await
            .map_err(|error| format!("{error}\n{}", self.driver.last_lines(5)))?;
        let status = response.status();
        let mut answer: Value = response.json().await.unwrap();
        if status.is_success() {
            Ok(answer["value"].take())
        } else {
            Err(format!(
                "{command}: {} {}",
                answer["value"]["error"], answer["value"]["message"]
            ))
        }
    }

    async fn tell(&self, command: &str, body: Value) -> Value {
        self.ask(Method::POST, command, body).await.unwrap()
    }

    pub async fn open(&self, url: &str) {
        self.tell("/url", json!({ "url": url })).await;
    }

    pub async fn back(&self) {
        self.tell("/back", json!({})).await;
    }

    pub async fn reload(&self) {
        self.tell("/refresh", json!({})).await;
    }

    /// The current HTML of the page.
    pub async fn source(&self) -> String {
        self.ask(Method::GET, "/source", Value::Null)
            .await
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Runs a function body in the page and returns its result.
    pub async fn run(&self, body: &str, arguments: Value) -> Value {
        self.tell(
            "/execute/sync",
            json!({ "script": body, "args": arguments }),
        )
        .await
    }

    /// Like `run`, for a body that uses promises.
    pub async fn run_async(&self, body: &str) -> Value {
        let script = format!(
            "const done = arguments[0]; (async () => {{ {body} }})().then(done, e => done(String(e)));"
        );
        self.tell("/execute/async", json!({ "script": script, "args": [] }))
            .await
    }

    /// A command of Chromium's own protocol.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.tell(
            "/goog/cdp/execute",
            json!({ "cmd": command, "params": parameters }),
        )
        .await
    }

    pub async fn has(&self, selector: &str) -> bool {
        let found = self
            .tell(
                "/elements",
                json!({ "using": "css selector", "value": selector }),
            )
            .await;
        found.as_array().is_some_and(|found| !found.is_empty())
    }

    /// Runs an element command and retries: the element may not exist yet, or the page's script may
    /// be replacing it.
    async fn on(&self, selector: &str, method: Method, command: &str, body: Value) -> Value {
        let mut last = String::new();
        let done = wait_for(selector, PATIENCE, async || {
            let attempt = self
                .attempt(selector, method.clone(), command, body.clone())
                .await;
            attempt.map_err(|error| last = error).ok()
        });
        let done = done.await;
        done.unwrap_or_else(|error| panic!("{error}: {last}"))
    }

    async fn attempt(
        &self,
        selector: &str,
        method: Method,
        command: &str,
        body: Value,
    ) -> Result<Value, String> {
        let wanted = json!({ "using": "css selector", "value": selector });
        let found = self.ask(Method::POST, "/element", wanted).await?;
        let element = found[ELEMENT].as_str().unwrap_or_default();
        self.ask(method, &format!("/element/{element}/{command}"), body)
            .await
    }

    pub async fn click(&self, selector: &str) {
        self.on(selector, Method::POST, "click", json!({})).await;
    }

    /// The visible text.
    pub async fn text(&self, selector: &str) -> String {
        self.on(selector, Method::GET, "text", Value::Null)
            .await
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Waits until an element shows a text.
    pub async fn shows(&self, selector: &str, part: &str) {
        let mut seen = String::new();
        let what = format!("{part:?} in {selector}");
        let shown = wait_for(&what, PATIENCE, async || {
            seen = self.text(selector).await;
            seen.contains(part).then_some(())
        });
        let shown = shown.await;
        assert!(shown.is_ok(), "{}: {seen}", shown.unwrap_err());
    }

    /// Waits until the URL of the page contains this part.
    pub async fn arrives(&self, part: &str) {
        let arrived = async || {
            self.run("return location.href", json!([]))
                .await
                .as_str()
                .unwrap()
                .contains(part)
        };
        wait_until(
            &format!("a page whose address has {part}"),
            PATIENCE,
            arrived,
        )
        .await
        .unwrap();
    }

    pub async fn fill(&self, selector: &str, text: &str) {
        self.on(selector, Method::POST, "clear", json!({})).await;
        self.on(selector, Method::POST, "value", json!({ "text": text }))
            .await;
    }

    /// Selects an option of a list.
    pub async fn choose(&self, list: &str, value: &str) {
        self.click(&format!("{list} option[value='{value}']")).await;
    }

    /// Presses keys in sequence on the focused element.
    pub async fn press(&self, keys: &str) {
        let press = |key: char| {
            [
                json!({ "type": "keyDown", "value": key }),
                json!({ "type": "keyUp", "value": key }),
            ]
        };
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        self.tell(
            "/actions",
            json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }),
        )
        .await;
    }

    /// New messages of the browser's log: script errors, policy violations, failed requests.
    pub async fn complaints(&self) -> Vec<String> {
        let entries = self.tell("/se/log", json!({ "type": "browser" })).await;
        entries
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["message"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Sets the size of the page in pixels.
    pub async fn resize(&self, width: u32, height: u32) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)
            .await;
    }

    /// Sets the preferred colour scheme, `light` or `dark`.
    pub async fn prefer(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        )
        .await;
    }

    /// Disables the scripts of pages; those of the test still run.
    pub async fn without_script(&self) {
        self.devtools(
            "Emulation.setScriptExecutionDisabled",
            json!({ "value": true }),
        )
        .await;
    }
}

/// The address that chromedriver prints in its log.
fn listening(log: &str) -> Option<String> {
    static STARTED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"started successfully on port (\d+)\.").unwrap());
    STARTED
        .captures(log)
        .map(|found| format!("http://127.0.0.1:{}", &found[1]))
}

fn capabilities(browser: &Browser) -> Value {
    let profile = format!(
        "--user-data-dir={}",
        browser.sandbox.folder().join("profile").display()
    );
    let flags: Vec<&str> = FLAGS.into_iter().chain([profile.as_str()]).collect();
    let options = json!({ "binary": of_packages("browser", &["usr", "lib", "chromium", "chromium"]), "args": flags });
    let wanted =
        json!({ "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
    json!({ "capabilities": { "alwaysMatch": wanted } })
}

/// The folders of unpacked libraries; none if the system has the browser installed.
fn libraries() -> String {
    let folders = fs::read_dir(tools("browser").join("usr/lib"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    let of_machine = |folder: &PathBuf| folder.to_string_lossy().ends_with("-linux-gnu");
    let all = folders
        .filter(of_machine)
        .flat_map(|folder| [folder.join("pulseaudio"), folder]);
    all.map(|folder| folder.display().to_string())
        .collect::<Vec<_>>()
        .join(":")
}

/// A single font family, so that pages look the same on every machine.
fn fonts(sandbox: &Sandbox) -> String {
    let folder = of_packages("browser", &["usr", "share", "fonts", "truetype", "dejavu"]);
    let default = |tests: &str, family: &str| {
        let edit = format!(
            "<edit name=\"family\" mode=\"assign\" binding=\"strong\"><string>{family}</string></edit>"
        );
        format!("<match>{tests}{edit}</match>\n")
    };
    let monospace = "<test name=\"family\"><string>monospace</string></test>";
    let others = "<test name=\"family\" compare=\"not_eq\" qual=\"all\"><string>DejaVu Sans Mono</string></test>";
    format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE fontconfig SYSTEM \"urn:fontconfig:fonts.dtd\">\n<fontconfig>\n<dir>{}</dir>\n\
         <cachedir>{}</cachedir>\n{}{}</fontconfig>\n",
        folder.display(),
        sandbox.folder().join("fonts").display(),
        default(monospace, "DejaVu Sans Mono"),
        default(others, "DejaVu Sans")
    )
}
