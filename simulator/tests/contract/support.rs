//! A served simulator, a client for it, and the shared test world.

use std::sync::LazyLock;
use std::time::Duration;

pub use dbplane_simulator::world::Profile;
use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{Options, Simulator, serve};
use reqwest::Method;
use serde_json::{Value, json};

/// Tokens of the keys in [`WORLD`].
pub const ADMIN: &str = "test-admin-key";
pub const MEMBER: &str = "test-member-key";
pub const STRANGER: &str = "test-stranger-key";
pub const ORGANIZATION: &str = "test-organization-key";
pub const LAUNCH: &str = "test-launch-key";
pub const FREE: &str = "test-free-key";
pub const SCOPED: &str = "test-scoped-key";

/// An organization on every plan, and a user with a personal project.
pub const WORLD: &str = "
settings:
  start_time: 2026-01-05T08:00:00Z
  rate_limit: {enabled: false}
users:
  - {id: user-ada, name: Ada, email: ada@example.com, plan: free}
  - {id: user-ben, plan: free}
  - {id: user-eve, plan: free}
organizations:
  - {id: org-scale-1, name: Scale, plan: scale, members: [{user: user-ada, role: admin}, {user: user-ben, role: member}]}
  - {id: org-launch-2, plan: launch, members: [{user: user-ada, role: admin}]}
  - {id: org-free-3, plan: free, members: [{user: user-ada, role: admin}]}
projects:
  - id: shop-1
    name: shop
    owner: org-scale-1
    region_id: aws-eu-central-1
    branches:
      - {id: br-main, name: main, default: true}
      - {id: br-dev, name: dev, parent: br-main}
      - {id: br-kept, name: kept, parent: br-main, protected: true}
  - {id: other-2, owner: org-scale-1, branches: [{id: br-other}]}
  - {id: rocket-3, owner: org-launch-2, branches: [{id: br-rocket}]}
  - {id: hobby-4, owner: org-free-3, branches: [{id: br-hobby}]}
  - {id: notes-5, owner: user-ada, branches: [{id: br-notes}]}
keys:
  - {type: personal, owner: user-ada, name: admin, token: test-admin-key}
  - {type: personal, owner: user-ben, name: member, token: test-member-key}
  - {type: personal, owner: user-eve, name: stranger, token: test-stranger-key}
  - {type: organization, owner: org-scale-1, name: all, token: test-organization-key}
  - {type: organization, owner: org-launch-2, name: all, token: test-launch-key}
  - {type: organization, owner: org-free-3, name: all, token: test-free-key}
  - {type: project, owner: org-scale-1, project: shop-1, name: shop, token: test-scoped-key}
";

/// The profiles that offer more than the specification shows.
pub const BEYOND: [Profile; 2] = [Profile::Default, Profile::Public];

/// The answer to a request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
    /// Null if the body is not JSON.
    pub body: Value,
}

impl Answer {
    pub fn text_at(&self, pointer: &str) -> String {
        self.body
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("no {pointer} in {self:?}"))
            .to_owned()
    }

    pub fn message(&self) -> String {
        self.text_at("/message")
    }

    pub fn operations(&self) -> Vec<(String, String)> {
        let text = |operation: &Value, name: &str| operation[name].as_str().unwrap().to_owned();
        let operations = self.body["operations"]
            .as_array()
            .unwrap_or_else(|| panic!("no operations in {self:?}"));
        operations
            .iter()
            .map(|operation| (text(operation, "action"), text(operation, "status")))
            .collect()
    }

    /// Asserts the status and returns the answer.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

/// A served simulator whose clock moves only by advances.
pub struct Platform {
    pub profile: Profile,
    pub simulator: Simulator,
    pub http: reqwest::Client,
}

/// One client for all tests, because creating one takes longer than most tests. Each test has its
/// own runtime, which a connection cannot outlive, so no idle connections are kept.
fn client() -> reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| {
        reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .build()
            .unwrap()
    });
    CLIENT.clone()
}

/// Options for a world whose clock moves only by advances.
pub fn options(yaml: &str, profile: Profile) -> Options {
    let world = WorldFile::parse(yaml).unwrap();
    Options {
        profile,
        clock_speed: 0.0,
        seed: 42,
        ..Options::new(world)
    }
}

impl Platform {
    pub async fn start(profile: Profile) -> Self {
        Self::start_with(options(WORLD, profile)).await
    }

    /// A platform of the default profile.
    pub async fn new() -> Self {
        Self::start(Profile::Default).await
    }

    pub async fn public() -> Self {
        Self::start(Profile::Public).await
    }

    pub async fn minimal() -> Self {
        Self::start(Profile::Minimal).await
    }

    pub async fn start_with(options: Options) -> Self {
        let profile = options.profile;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let simulator = serve(listener, options).await.unwrap();
        Self {
            profile,
            simulator,
            http: client(),
        }
    }

    pub async fn call(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: Option<Value>,
    ) -> Answer {
        let url = format!("{}{path}", self.simulator.base_url());
        let mut request = self.http.request(method, url).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        answer(request.send().await.unwrap()).await
    }

    pub async fn get(&self, path: &str, token: &str) -> Answer {
        self.call(Method::GET, path, token, None).await
    }

    pub async fn post(&self, path: &str, token: &str, body: Value) -> Answer {
        self.call(Method::POST, path, token, Some(body)).await
    }

    pub async fn patch(&self, path: &str, token: &str, body: Value) -> Answer {
        self.call(Method::PATCH, path, token, Some(body)).await
    }

    pub async fn delete(&self, path: &str, token: &str) -> Answer {
        self.call(Method::DELETE, path, token, None).await
    }

    pub async fn push(&self, path: &str, token: &str) -> Answer {
        self.call(Method::POST, path, token, None).await
    }

    pub async fn console(&self, method: Method, path: &str, body: Value) -> Answer {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.simulator.console_url()));
        if !body.is_null() {
            request = request.json(&body);
        }
        answer(request.send().await.unwrap()).await
    }

    pub fn advance(&self, seconds: u64) {
        self.simulator
            .advance(Duration::from_secs(seconds))
            .unwrap();
    }

    /// Creates a compute in `shop-1` and returns its path.
    pub async fn compute(&self, attributes: Value) -> String {
        let answer = self
            .post(
                "/projects/shop-1/endpoints",
                ORGANIZATION,
                json!({ "endpoint": attributes }),
            )
            .await;
        assert!(answer.status < 300, "{answer:?}");
        format!(
            "/projects/shop-1/endpoints/{}",
            answer.text_at("/endpoint/id")
        )
    }

    /// Creates a primary on `br-main` and lets it become active.
    pub async fn active_primary(&self) -> String {
        let path = self.compute(primary()).await;
        self.advance(5);
        path
    }

    /// Creates a primary on `br-main` and lets it become idle.
    pub async fn idle_primary(&self) -> String {
        let path = self.active_primary().await;
        self.advance(600);
        path
    }

    /// The compute's entry in the list of its project; null if it is missing.
    pub async fn listed(&self, path: &str) -> Value {
        let (list, id) = path.rsplit_once('/').unwrap();
        let answer = self.get(list, ORGANIZATION).await.expect(200);
        let computes = answer.body["endpoints"].as_array().unwrap().clone();
        computes
            .into_iter()
            .find(|compute| compute["id"] == id)
            .unwrap_or_default()
    }

    pub async fn states(&self, path: &str) -> (String, Option<String>) {
        let compute = self.listed(path).await;
        let text = |name: &str| compute[name].as_str().map(str::to_owned);
        (text("current_state").unwrap(), text("pending_state"))
    }

    /// The compute in the console's list.
    pub async fn line(&self, path: &str) -> Value {
        let id = path.rsplit_once('/').unwrap().1;
        let answer = self
            .console(Method::GET, "/computes", Value::Null)
            .await
            .expect(200);
        answer
            .body
            .as_array()
            .unwrap()
            .iter()
            .find(|line| line["id"] == id)
            .cloned()
            .unwrap_or_default()
    }

    /// Simulates activity on the compute.
    pub async fn activity(&self, path: &str) -> Answer {
        let id = path.rsplit_once('/').unwrap().1;
        self.console(
            Method::POST,
            &format!("/computes/{id}/activity"),
            Value::Null,
        )
        .await
    }
}

pub async fn answer(response: reqwest::Response) -> Answer {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or_default();
    Answer {
        status,
        headers,
        text,
        body,
    }
}

pub fn primary() -> Value {
    json!({ "branch_id": "br-main", "type": "read_write" })
}

pub fn replica() -> Value {
    json!({ "branch_id": "br-main", "type": "read_only" })
}

/// A state and a pending state, to compare with [`Platform::states`].
pub fn state(current: &str, pending: Option<&str>) -> (String, Option<String>) {
    (current.to_owned(), pending.map(str::to_owned))
}

/// Operations, to compare with [`Answer::operations`].
pub fn operations(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(action, status)| ((*action).to_owned(), (*status).to_owned()))
        .collect()
}

pub fn fields(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

/// True if the text is a UTC time in whole seconds in ISO 8601.
pub fn is_utc(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == 20 && text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok()
}
