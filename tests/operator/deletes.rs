//! Deletions: whole namespaces, blocked deletions, and states that must not be mistaken for a
//! deletion.

mod brake;
mod namespaces;
mod projects;
mod refusals;
mod unlisted;
mod unresolved;

use serde_json::Value;

use crate::fixture::{Fixture, Shared, condition, kill_operator, start_operator_with};
use crate::support::Running;

/// Its own control plane, whose operator is killed and restarted.
pub struct Alone {
    shared: &'static Shared,
    flags: &'static [&'static str],
    /// The operators after the first one.
    later: Vec<(Running, String)>,
}

impl Alone {
    pub async fn new(flags: &'static [&'static str]) -> Self {
        Self {
            shared: Box::leak(Box::new(Shared::start_in(&[], flags).await)),
            flags,
            later: Vec::new(),
        }
    }

    pub async fn bare(&self, name: &str) -> Fixture {
        Fixture::within(self.shared, name, |_| {}).await
    }

    pub async fn fixture(&self, name: &str) -> Fixture {
        let fixture = self.bare(name).await;
        fixture.account().await;
        fixture
    }

    /// Kills the current operator with SIGKILL.
    fn kill(&self) {
        kill_operator(
            self.later
                .last()
                .map_or(&self.shared.operator, |(operator, _)| operator),
        );
    }

    async fn start(&mut self) {
        let (operator, metrics) = start_operator_with(&[], self.shared.cluster, self.flags).await;
        self.later.push((operator.log_on_panic(), metrics));
    }

    /// The value of a metric of the current operator.
    async fn metric(&self, series: &str) -> Option<u64> {
        let url = self
            .later
            .last()
            .map_or(&self.shared.metrics, |(_, url)| url);
        let text = reqwest::get(url).await.unwrap().text().await.unwrap();
        text.lines()
            .find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }
}

fn message(object: &Value, kind: &str) -> String {
    condition(object, kind)
        .and_then(|condition| condition["message"].as_str())
        .unwrap_or_default()
        .to_owned()
}

fn is_reported(object: &Value, reason: &str) -> bool {
    condition(object, "Stalled").is_some_and(|stalled| stalled["reason"] == reason)
}
