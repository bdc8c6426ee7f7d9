//! Judges every state that a decision can report, as in the table of docs/guide/gitops.md.

use std::collections::BTreeSet;

use dbplane::controller::definitions;
use dbplane::decide::{Health, Reason, Report, Sync};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::checks::installed;
use crate::judge::{judge, root};

const GENERATION: i64 = 2;

/// A stored resource.
struct State {
    /// The row of the table.
    row: &'static str,
    object: Value,
    what: String,
    /// The expected message in Argo CD, if it is that of the report.
    message: Option<String>,
}

#[tokio::test]
async fn tools_see_every_state_as_in_the_guide() {
    let checks = &installed().await.patched;
    let kinds: Vec<String> = definitions()
        .into_iter()
        .map(|crd| crd.spec.names.kind)
        .collect();
    let states: Vec<State> = kinds.iter().flat_map(|kind| states(kind)).collect();
    let objects: Vec<Value> = states.iter().map(|state| state.object.clone()).collect();
    let table = table();
    let mut used = BTreeSet::new();
    for (
        State {
            row,
            object,
            what,
            message,
        },
        verdict,
    ) in states.iter().zip(judge(checks, &objects))
    {
        let (_, kstatus, health) = table
            .iter()
            .find(|(name, ..)| name == row)
            .unwrap_or_else(|| panic!("no {row:?}"));
        assert_eq!(
            (&verdict.kstatus, &verdict.health),
            (kstatus, health),
            "{row}: {what}\n{object}"
        );
        assert!(!verdict.message.is_empty(), "{what}");
        assert!(
            message
                .as_ref()
                .is_none_or(|message| *message == verdict.message),
            "{what}: {verdict:?}"
        );
        used.insert(*row);
    }
    assert_eq!(used.len(), table.len(), "only {used:?}");
}

/// The rows of the table: dbplane's report, the status of kstatus, and Argo CD's health.
fn table() -> Vec<(String, String, String)> {
    let page = std::fs::read_to_string(root().join("docs/guide/gitops.md")).unwrap();
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = rows.map(|row| row.split(" | ").map(str::to_owned).collect::<Vec<_>>());
    let mut found: Vec<_> = cells
        .map(|cells| (cells[0].clone(), cells[1].clone(), cells[2].clone()))
        .collect();
    assert_eq!(found.remove(0).1, "kstatus");
    found
}

/// All reports of decisions: each health with each reason, and for a usable resource each way to be
/// out of sync.
fn reports() -> Vec<Report> {
    let of_reason = |reason: &Reason| {
        let (reason, text) = (*reason, || format!("because of {reason}"));
        let other = || format!("out of sync because of {reason}");
        let ready = || Report::of(Health::Ready(reason, text()));
        [
            ready(),
            Report::progressing(reason, text()),
            Report::stalled(reason, text()),
            Report::unknown(reason, text()),
            ready().with_sync(Sync::OutOfSync(reason, other())),
            ready().with_sync(Sync::Unknown(reason, text())),
            ready().with_sync(Sync::NotApplicable),
            ready().beside(Health::Stalled(reason, other())),
            Report::unknown(reason, text()).beside(Health::Stalled(reason, other())),
        ]
    };
    Reason::ALL.iter().flat_map(of_reason).collect()
}

/// Resources of this kind: each report alone, with a newer spec, paused, and in deletion; and a
/// resource that was never observed.
fn states(kind: &str) -> Vec<State> {
    let now = Timestamp::UNIX_EPOCH;
    let new = json!({"observedGeneration": -1});
    let mut all = vec![
        state(
            kind,
            "nothing yet, or nothing about the last change",
            &new,
            "new",
        ),
        state(kind, "anything, and it is being deleted", &new, "new"),
    ];
    let paused = Report::of(Health::Paused("by a person".to_owned()));
    for report in reports() {
        let what = format!("{report:?}");
        let at = |generation| {
            let conditions = report.conditions(&[], generation, now);
            json!({"conditions": conditions, "observedGeneration": report.observed_generation(None, generation)})
        };
        let paused_at = |generation| {
            let before = report.conditions(&[], generation, now);
            let observed = paused
                .observed_generation(report.observed_generation(None, generation), GENERATION);
            json!({"conditions": paused.conditions(&before, GENERATION, now), "observedGeneration": observed})
        };
        let was_ready = matches!(report.health, Health::Ready(..));
        let not_ready = "`Paused` is `True`, and it was not `Ready`, or its spec was changed since";
        let paused_row = if was_ready {
            "`Paused` is `True`, and it was `Ready`"
        } else {
            not_ready
        };
        all.extend([
            State {
                message: Some(shown(&report)),
                ..state(kind, row(&report), &at(GENERATION), &what)
            },
            state(
                kind,
                "nothing yet, or nothing about the last change",
                &at(GENERATION - 1),
                &what,
            ),
            state(
                kind,
                "anything, and it is being deleted",
                &at(GENERATION),
                &what,
            ),
            state(kind, paused_row, &paused_at(GENERATION), &what),
            state(kind, not_ready, &paused_at(GENERATION - 1), &what),
        ]);
    }
    all
}

/// The row of a report about the current generation.
fn row(report: &Report) -> &'static str {
    match (&report.health, &report.sync) {
        (Health::Progressing(..), _) => "`Reconciling` is `True`",
        (Health::Stalled(..), _) | (_, Sync::Refused(..)) => {
            "`Stalled` is `True`: a person has to act"
        }
        (
            Health::Ready(..),
            Sync::InSync | Sync::OutOfSync(..) | Sync::Unknown(..) | Sync::NotApplicable,
        ) => "`Ready` is `True`",
        (Health::Unknown(..), _) => "`Ready` is `Unknown`",
        (Health::Paused(_), _) => "`Paused` is `True`, and it was `Ready`",
    }
}

/// The message about an unapplied change comes first.
fn shown(report: &Report) -> String {
    match (&report.health, &report.sync) {
        (Health::Ready(..), Sync::OutOfSync(_, message)) | (_, Sync::Refused(_, message)) => {
            message.clone()
        }
        _ => report.headline().1.to_owned(),
    }
}

fn state(kind: &str, row: &'static str, status: &Value, what: &str) -> State {
    let mut metadata = json!({"name": "orders", "namespace": "shop", "generation": GENERATION});
    if row.contains("being deleted") {
        metadata["deletionTimestamp"] = json!("2026-11-20T10:00:00Z");
    }
    let object = json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": kind, "metadata": metadata, "status": status});
    State {
        row,
        object,
        what: format!("{kind}, {what}"),
        message: None,
    }
}
