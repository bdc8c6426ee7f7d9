//! A simulated platform of the public profile, and a harness that tests all functions of public
//! clients on it.

use std::time::Duration;

use dbplane_simulator::world::Profile;
use dbplane_simulator::world::message::{Method, Request, Response};
use dbplane_simulator::{self as simulator, Options, Simulator};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use serde_json::Value;

use crate::fixture::{ADMIN, PROJECT, listener, world};

pub const ORGANIZATION: &str = "org-cool-darkness-1";
pub const MAIN: &str = "br-main-42";
pub const DEV: &str = "br-dev-7";

/// A platform whose clock moves only in [`Platform::settle`].
pub struct Platform {
    pub simulator: Simulator,
}

impl Platform {
    pub async fn start() -> Self {
        let mut options = Options::new(world(PROJECT));
        options.profile = Profile::Public;
        options.clock_speed = 0.0;
        Self {
            simulator: simulator::serve(listener(), options).await.unwrap(),
        }
    }

    /// The platform's answer to an administrator, to compare with a client.
    pub fn get(&self, path: &str) -> Value {
        let answer = self.call(Method::Get, path, &Value::Null);
        assert_eq!(answer.status, 200, "{path}: {}", answer.value());
        answer.value()
    }

    /// True if a GET of this path succeeds.
    pub fn has(&self, path: &str) -> bool {
        self.call(Method::Get, path, &Value::Null).status == 200
    }

    /// Creates a precondition of a test.
    pub fn create(&self, path: &str, body: &Value) -> Value {
        let answer = self.call(Method::Post, path, body);
        assert!(answer.status < 300, "{path}: {}", answer.value());
        self.settle();
        answer.value()
    }

    fn call(&self, method: Method, path: &str, body: &Value) -> Response {
        let respond = |world: &mut simulator::world::World, now| {
            let request = Request::new(method, path, Timestamp::now()).bearer(ADMIN);
            world.respond(
                &if body.is_null() {
                    request
                } else {
                    request.json(body)
                },
                now,
            )
        };
        self.simulator.with_world(respond).unwrap()
    }

    /// Advances the clock until all operations are done.
    pub fn settle(&self) {
        self.simulator.advance(Duration::from_secs(30)).unwrap();
    }

    pub fn advance_days(&self, days: u64) {
        self.simulator
            .advance(Duration::from_hours(24 * days))
            .unwrap();
    }

    /// The simulated time in this many days, in whole seconds.
    pub fn after_days(&self, days: i64) -> String {
        let seconds = self.simulator.now().as_second() + days * 24 * 3600;
        Timestamp::from_second(seconds).unwrap().to_string()
    }

    /// An active primary on a branch.
    pub fn compute(&self, branch: &str) -> String {
        self.compute_of(branch, "read_write")
    }

    pub fn compute_of(&self, branch: &str, kind: &str) -> String {
        let endpoint = serde_json::json!({"branch_id": branch, "type": kind});
        let created = self.create(
            &of_project("endpoints"),
            &serde_json::json!({"endpoint": endpoint}),
        );
        text(&created["endpoint"]["id"]).to_owned()
    }
}

/// A path in the sample project.
pub fn of_project(rest: &str) -> String {
    format!("/projects/{PROJECT}/{rest}")
}

pub fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a text: {value}"))
}

/// The value of this member in every object of a list.
pub fn each<'a>(list: &'a Value, member: &str) -> Vec<&'a str> {
    list.as_array()
        .unwrap_or_else(|| panic!("not a list: {list}"))
        .iter()
        .map(|item| text(&item[member]))
        .collect()
}

/// A function of a client with its test.
pub type Try<C> = (&'static str, fn(&C));

/// Runs all tests, each on its own platform. The test fails with the names of failed ones.
pub async fn try_all<C: Send + Sync + 'static>(
    tries: &'static [Try<C>],
    client: fn(Platform) -> C,
) {
    let failed = stream::iter(tries).map(|(name, attempt)| async move {
        let client = client(Platform::start().await);
        let done = tokio::task::spawn_blocking(move || attempt(&client)).await;
        done.err().map(|_| *name)
    });
    let failed: Vec<&str> = failed
        .buffer_unordered(4)
        .filter_map(async |failed| failed)
        .collect()
        .await;
    assert!(
        failed.is_empty(),
        "these did not come out as they should: {failed:?}"
    );
}

/// Checks that every function of the client is tested or left out on purpose. A new version may add
/// functions.
pub fn assert_complete<C>(offered: &[String], tried: &[Try<C>], left_out: &[(&str, &str)]) {
    let mut known: Vec<&str> = tried
        .iter()
        .map(|(name, _)| *name)
        .chain(left_out.iter().map(|(name, _)| *name))
        .collect();
    let mut offered: Vec<&str> = offered.iter().map(String::as_str).collect();
    known.sort_unstable();
    offered.sort_unstable();
    assert_eq!(
        offered, known,
        "on the left what the client offers, on the right what is tried or left out"
    );
}
