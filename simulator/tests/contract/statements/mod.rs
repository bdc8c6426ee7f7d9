//! The platform's specification, statement by statement, each tested in every profile.
//!
//! A statement has its text, an observation and the expected results. If the expectations for the
//! default and the public profile differ, the public API contradicts the specification, and
//! docs/platform.md says so.

mod authentication;
mod contradictions;
mod endpoints;
mod fields;
mod keys;
mod limits;
mod service;
mod sizes;
mod states;

use dbplane_simulator::world::Profile;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

/// The expected observation in each profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    default: &'static str,
    public: &'static str,
    minimal: &'static str,
}

/// The same in every profile.
const fn same(answer: &'static str) -> Expected {
    Expected {
        default: answer,
        public: answer,
        minimal: answer,
    }
}

/// The public API contradicts the specification.
const fn contradicted(specified: &'static str, public: &'static str) -> Expected {
    Expected {
        default: specified,
        public,
        minimal: specified,
    }
}

/// The specification is silent: all profiles except the minimal one offer more.
const fn added(more: &'static str, minimal: &'static str) -> Expected {
    Expected {
        default: more,
        public: more,
        minimal,
    }
}

impl Expected {
    fn of(self, profile: Profile) -> &'static str {
        match profile {
            Profile::Default => self.default,
            Profile::Public => self.public,
            Profile::Minimal => self.minimal,
        }
    }
}

/// A statement of the specification.
#[derive(Debug)]
pub struct Statement {
    name: &'static str,
    says: &'static str,
    expected: Expected,
}

/// Defines a test for each statement, and the list of all statements.
macro_rules! statements {
    ($($name:ident: $says:literal, $observe:expr, $expected:expr;)*) => {
        pub const STATEMENTS: &[super::Statement] =
            &[$(super::Statement { name: stringify!($name), says: $says, expected: $expected }),*];

        mod tried {
            #[allow(unused_imports, reason = "not every section needs all of it")]
            use super::*;
            $(
                #[tokio::test]
                async fn $name() {
                    crate::statements::observe($says, $observe, $expected).await;
                }
            )*
        }
    };
}
use statements;

/// Observes every profile, each on its own platform.
async fn observe(says: &str, look: impl AsyncFn(Platform) -> String, expected: Expected) {
    for profile in Profile::ALL {
        let seen = look(Platform::start(profile).await).await;
        assert_eq!(seen, expected.of(profile), "{profile:?}: {says}");
    }
}

const COMPUTES: &str = "/projects/shop-1/endpoints";
const KEYS: &str = "/organizations/org-scale-1/api_keys";

fn for_shop(name: &str) -> Value {
    json!({ "key_name": name, "project_id": "shop-1" })
}

fn endpoint(attributes: Value) -> Value {
    json!({ "endpoint": attributes })
}

fn sized(min: f64, max: f64) -> Value {
    json!({ "autoscaling_limit_min_cu": min, "autoscaling_limit_max_cu": max })
}

/// The type of a JSON value; UTC times are a type of their own.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "absent",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) if is_utc(value) => "time",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
    .to_owned()
}

/// The operations in an answer, e.g. `start_compute running`.
fn shown(answer: &Answer) -> String {
    if answer.body["operations"].is_array() {
        let all = answer
            .operations()
            .into_iter()
            .map(|(action, status)| format!("{action} {status}"));
        format!("[{}]", all.collect::<Vec<_>>().join(", "))
    } else {
        "no list".to_owned()
    }
}

/// The status and, unless the request was refused, the operations.
fn outcome(answer: &Answer) -> String {
    match answer.status {
        200..300 => format!("{} {}", answer.status, shown(answer)),
        status => status.to_string(),
    }
}

fn projects(answer: &Answer) -> String {
    let all = answer.body["projects"]
        .as_array()
        .map(|all| all.iter().filter_map(|one| one["id"].as_str()));
    all.map_or_else(
        || answer.status.to_string(),
        |ids| ids.collect::<Vec<_>>().join(" "),
    )
}

fn joined<T: ToString>(parts: impl IntoIterator<Item = T>) -> String {
    parts
        .into_iter()
        .map(|part| part.to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

impl Platform {
    /// The current and pending state, e.g. `init, pending active`.
    async fn state(&self, path: &str) -> String {
        match self.states(path).await {
            (current, None) => current,
            (current, Some(pending)) => format!("{current}, pending {pending}"),
        }
    }

    /// A primary in a state: `init`, `idle`, `active`, or `disabled` (which is also idle).
    async fn primary_that_is(&self, state: &str) -> String {
        match state {
            "init" => self.compute(primary()).await,
            "idle" => self.idle_primary().await,
            "active" => self.active_primary().await,
            _ => {
                let path = self.active_primary().await;
                self.patch(&path, ORGANIZATION, endpoint(json!({ "disabled": true })))
                    .await
                    .expect(200);
                self.advance(5);
                path
            }
        }
    }

    /// The newest operation of `shop-1`, if the profile lists operations.
    async fn newest_operation(&self) -> String {
        let answer = self.get("/projects/shop-1/operations", ORGANIZATION).await;
        match answer.status {
            200 => answer
                .operations()
                .first()
                .map_or_else(String::new, |(action, _)| action.clone()),
            status => status.to_string(),
        }
    }

    /// Revokes the latest key with this name in the console.
    async fn revoke(&self, name: &str) -> Answer {
        let listed = self
            .console(Method::GET, "/api_keys", Value::Null)
            .await
            .expect(200);
        let lines = listed.body.as_array().unwrap();
        let id = &lines
            .iter()
            .rev()
            .find(|line| line["name"] == name)
            .unwrap()["id"];
        self.console(Method::POST, &format!("/api_keys/{id}/revoke"), Value::Null)
            .await
    }

    /// Creates a key for `shop-1` through the API.
    async fn project_key(&self, name: &str) -> Answer {
        self.post(KEYS, ADMIN, for_shop(name)).await.expect(200)
    }
}
