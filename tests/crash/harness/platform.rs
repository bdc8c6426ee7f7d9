//! The platform of one point: its initial state, and checks of the changes that were made to it.

use dbplane_simulator::log::Entry;
use dbplane_simulator::world::Profile;
use dbplane_simulator::world::console::ComputeLine;
use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options, Simulator};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Error, Result};

pub const PROJECT: &str = "aged-wind-123456";
pub const ORGANIZATION: &str = "org-cool-darkness-1";
pub const ADMIN: &str = "canary-6b1f04d2c9e7-planted-as-credential";
const FOREIGN_TOKEN: &str = "canary-d83a5571be02-planted-as-foreign-key";

/// A branch with a foreign primary and replica, one without computes, and one with a primary to
/// adopt.
pub const SHARED_BRANCH: &str = "br-main-42";
pub const EMPTY_BRANCH: &str = "br-dev-7";
pub const BRANCH_TO_ADOPT: &str = "br-reporting-3";
pub const TO_ADOPT: &str = "ep-waits-for-us-1";
pub const FOREIGN: [&str; 3] = [
    "ep-foreign-primary-1",
    "ep-foreign-replica-1",
    "ep-foreign-replica-2",
];

fn world() -> String {
    format!(
        "settings: {{start_ms: 200}}
users: [{{id: user-ada}}]
organizations:
  - {{id: {ORGANIZATION}, plan: scale, members: [{{user: user-ada, role: admin}}]}}
projects:
  - id: {PROJECT}
    owner: {ORGANIZATION}
    branches: [{{id: {SHARED_BRANCH}}}, {{id: {EMPTY_BRANCH}}}, {{id: {BRANCH_TO_ADOPT}}}]
    computes:
      - {{id: {}, branch: {SHARED_BRANCH}, active: true}}
      - {{id: {}, branch: {SHARED_BRANCH}, type: read_only, active: true}}
      - {{id: {}, branch: {EMPTY_BRANCH}, type: read_only, active: true}}
      - {{id: {TO_ADOPT}, branch: {BRANCH_TO_ADOPT}, active: true}}
keys:
  - {{type: personal, owner: user-ada, name: laptop, token: {ADMIN}}}
  - {{type: project, owner: {ORGANIZATION}, name: ci, project: {PROJECT}, token: {FOREIGN_TOKEN}}}
",
        FOREIGN[0], FOREIGN[1], FOREIGN[2]
    )
}

/// The platform, with the initial state of its foreign objects.
#[derive(Debug)]
pub struct Platform {
    pub simulator: Simulator,
    /// True if it lists keys and revokes them.
    pub lists_keys: bool,
    foreign: Value,
}

/// A project key on the platform.
#[derive(Debug)]
pub struct ProjectKey {
    pub id: i64,
    pub name: String,
    pub revoked: bool,
}

impl Platform {
    pub async fn start(profile: Profile) -> Result<Self> {
        let world = WorldFile::parse(&world()).map_err(Error::while_doing("reading the world"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let options = Options {
            profile,
            ..Options::new(world)
        };
        let simulator = simulator::serve(listener, options)
            .await
            .map_err(Error::while_doing("starting the platform"))?;
        let mut platform = Self {
            simulator,
            lists_keys: profile != Profile::Minimal,
            foreign: Value::Null,
        };
        platform.foreign = platform.foreign_now()?;
        Ok(platform)
    }

    /// Orders a fault, in the format of the simulator's console.
    pub fn order(&self, order: Value) -> Result<()> {
        let order = serde_json::from_value(order)
            .map_err(Error::while_doing("reading an order for a fault"))?;
        self.simulator
            .order_fault(order)
            .map(drop)
            .map_err(Error::new)
    }

    fn lines(&self) -> Result<Vec<ComputeLine>> {
        let lines = self.simulator.with_world(|world, now| {
            world.advance_to(now);
            world.console_computes(None)
        });
        lines.map_err(Error::while_doing("looking at the platform"))
    }

    /// The computes that are neither foreign nor to be adopted.
    pub fn computes(&self) -> Result<Vec<String>> {
        let mut ids: Vec<String> = self.lines()?.into_iter().map(|line| line.id).collect();
        ids.retain(|id| !FOREIGN.contains(&id.as_str()) && id != TO_ADOPT);
        Ok(ids)
    }

    pub fn has(&self, id: &str) -> Result<bool> {
        Ok(self.lines()?.iter().any(|line| line.id == id))
    }

    /// The size of a compute that clients can connect to or wake, as the console shows it.
    pub fn serves(&self, id: &str) -> Result<Option<String>> {
        let serving = self
            .lines()?
            .into_iter()
            .find(|line| line.id == id && line.status != "Init");
        Ok(serving.map(|line| line.size))
    }

    /// The project's keys except the foreign one.
    pub fn keys(&self) -> Result<Vec<ProjectKey>> {
        let lines = self.simulator.with_world(|world, _| world.console_keys());
        let lines = lines.map_err(Error::while_doing("looking at the platform"))?;
        let ours = lines
            .into_iter()
            .filter(|key| key.kind == "project" && key.name != "ci");
        Ok(ours
            .map(|key| ProjectKey {
                id: key.id,
                name: key.name,
                revoked: key.revoked,
            })
            .collect())
    }

    /// The foreign objects, without fields that change by themselves.
    fn foreign_now(&self) -> Result<Value> {
        let computes: Vec<Value> = self
            .lines()?
            .into_iter()
            .filter(|line| FOREIGN.contains(&line.id.as_str()))
            .map(|line| {
                let mut line = json!(line);
                for volatile in ["last_active", "status", "current_size", "release"] {
                    line[volatile] = Value::Null;
                }
                line
            })
            .collect();
        let keys = self.simulator.with_world(|world, _| world.console_keys());
        let keys = keys.map_err(Error::while_doing("looking at the platform"))?;
        let keys: Vec<Value> = keys
            .into_iter()
            .filter(|key| key.name == "ci")
            .map(|key| json!(key))
            .collect();
        Ok(json!({"computes": computes, "keys": keys}))
    }

    /// A message if a foreign object was changed.
    pub fn foreign_change(&self) -> Result<Option<String>> {
        let now = self.foreign_now()?;
        Ok((now != self.foreign).then(|| {
            format!(
                "foreign things changed: before {}, after {now}",
                self.foreign
            )
        }))
    }

    pub fn requests(&self) -> Vec<Entry> {
        self.simulator.requests(0)
    }

    /// Number of changes that were carried out, by method and part of the path.
    pub fn done(&self, method: &str, part: &str) -> usize {
        // A delete of something already gone is answered with 204 and has no effect.
        let carried_out = |entry: &Entry| {
            entry
                .status
                .is_some_and(|status| matches!(status, 200..=203))
        };
        let fits = |entry: &Entry| {
            entry.method == method && entry.path.contains(part) && carried_out(entry)
        };
        self.requests().iter().filter(|entry| fits(entry)).count()
    }

    /// Requests to change a foreign compute, or the adoptable one. No resource declares a setting
    /// of the latter, so it must not be changed either.
    pub fn forbidden_changes(&self) -> Vec<String> {
        let foreign = |path: &str| {
            FOREIGN
                .iter()
                .chain([&TO_ADOPT])
                .any(|id| path.contains(id))
        };
        let entries = self
            .requests()
            .into_iter()
            .filter(|entry| entry.method != "GET" && foreign(&entry.path));
        entries
            .map(|entry| format!("{} {}", entry.method, entry.path))
            .collect()
    }
}
