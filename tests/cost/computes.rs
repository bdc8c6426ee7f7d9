//! Computes.

use std::collections::{BTreeMap, BTreeSet};

use dbplane::api::{ComputeSpec, ComputeStatus};
use dbplane::decide::compute::{
    Claims, ComputeFacts, ComputeObserved, ComputeStep, SnapshotState, decide, foresee, status,
};
use dbplane::decide::connection::{CredentialsView, SecretView};
use dbplane::decide::identity::{
    Binding, ComputeIdentity, CreateIntent, Maintained, Origin, RestartRecord,
};
use dbplane::decide::{AccountView, Limits, Memory, Meta, drift};
use dbplane::domain::{Compute, ComputeState, NameSupport, Role, Settings, Support};
use serde_json::{Value, json};

use super::worst::{Place, compute};
use super::{NOW, before, excess, is_worst};

/// Number of other computes that a malicious server lists on the branch. More would cost
/// proportionally more.
const LISTED: usize = 500;
/// Number of creates that it did not answer.
const CREATES: i64 = 8;

struct Given {
    spec: ComputeSpec,
    observed: ComputeObserved,
}

fn identity(spec: &ComputeSpec) -> ComputeIdentity {
    let create = |seconds| CreateIntent {
        at: before(seconds),
        branch: spec.branch_id.clone(),
        platform: None,
        baseline: Some(BTreeSet::new()),
        newest: None,
        mark: None,
        asked: Some(drift::declared(spec)),
    };
    let binding = Binding {
        id: "ep-own".into(),
        project: spec.project_id.clone(),
        platform: None,
        branch: Some(spec.branch_id.clone()),
        origin: Origin::Created,
        at: before(9000),
    };
    let maintained = Some(Maintained {
        schedule: "* * * * * Africa/Casablanca".to_owned(),
        time: NOW,
        made: Some(before(60)),
    });
    ComputeIdentity {
        binding: Some(binding),
        intent: None,
        unanswered: (1..=CREATES).map(create).collect(),
        made: (1..=CREATES).map(create).collect(),
        twins: BTreeMap::new(),
        restart: Some(RestartRecord {
            at: before(9000),
            maintained,
            ..RestartRecord::default()
        }),
    }
}

fn shown(id: &str, spec: &ComputeSpec, settings: Settings) -> Compute {
    Compute {
        id: id.into(),
        project_id: spec.project_id.clone(),
        branch_id: spec.branch_id.clone(),
        region: None,
        role: Role::Primary,
        host: Some("h".repeat(253)),
        pooled_host: Some("h".repeat(253)),
        name: None,
        current_state: ComputeState::Active,
        pending_state: None,
        settings,
        last_active: None,
        created_at: Some(before(60)),
        updated_at: Some(before(60)),
        started_at: Some(before(60)),
        support: Support::default(),
    }
}

fn observed(spec: &ComputeSpec, listed: usize) -> ComputeObserved {
    let own = shown("ep-own", spec, drift::declared(spec));
    let others =
        (0..listed).map(|number| shown(&format!("ep-{number:0>57}"), spec, Settings::default()));
    let credentials = CredentialsView::Found {
        user: "u".repeat(4096).into(),
        password: "p".repeat(4096).into(),
    };
    let mut memory = Memory::default();
    foresee(&mut memory, spec, 1, NOW);
    ComputeObserved {
        meta: Meta {
            namespace: "evil".to_owned(),
            name: "n".repeat(253),
            generation: 1,
            has_finalizer: true,
            ..Meta::default()
        },
        uid: "0a1b2c3d-4e5f".into(),
        account: AccountView::Usable { organization: None },
        memory,
        limits: Limits::default(),
        cluster: "c1u57e".parse().unwrap(),
        random: 7,
        facts: ComputeFacts {
            identity: Ok(identity(spec)),
            wish: None,
            waiting_since: None,
            restart_annotation: None,
            not_created: BTreeSet::new(),
            platform: None,
            project_gone: false,
            snapshot: SnapshotState::Taken {
                at: NOW,
                computes: [own].into_iter().chain(others).collect(),
            },
            claims: Claims::default(),
            secret: SecretView::Absent,
            credentials,
            last_seen: None,
            connection_secret: None,
            unused_secrets: Vec::new(),
            name_support: NameSupport::Unseen,
            returned: Vec::new(),
            stale_from: None,
        },
    }
}

impl Given {
    /// Compute and Secret are in sync. Any of the other computes may be the result of a create.
    fn at_rest(listed: usize) -> Self {
        let spec: ComputeSpec =
            serde_json::from_value(compute(&Place::default())["spec"].clone()).unwrap();
        let mut given = Self {
            observed: observed(&spec, listed),
            spec,
        };
        if let Some(ComputeStep::RecordTwins { twins }) = given.step() {
            given.observed.identity.as_mut().unwrap().twins = twins;
        }
        let Some(ComputeStep::WriteConnection { secret, .. }) = given.step() else {
            panic!("no Secret is written")
        };
        given.observed.secret = SecretView::Ours(*secret);
        assert_eq!(given.step(), None);
        given
    }

    fn step(&self) -> Option<ComputeStep> {
        decide(&self.spec, &self.observed, NOW).step
    }

    fn pass(&self) {
        let report = decide(&self.spec, &self.observed, NOW).report.unwrap();
        status(
            &report,
            &self.spec,
            &self.observed,
            &ComputeStatus::default(),
            NOW,
        );
    }
}

/// One schedule above the limit.
fn more() -> Value {
    let mut more = compute(&Place::default());
    let schedules = more["spec"]["schedules"].as_array_mut().unwrap();
    schedules.push(
        json!({"name": "more", "start": "0 0 1 1 *", "duration": "1m", "size": {"fixed": 1}}),
    );
    more
}

pub fn rows() -> Vec<Option<String>> {
    is_worst(&compute(&Place::default()), &more(), "spec.schedules");
    vec![excess(
        "a Compute at rest, beside others of its branch",
        LISTED,
        Given::at_rest,
        Given::pass,
    )]
}
