//! The scenarios: their acts, and the goal that must be reached under any fault.

use dbplane::decide::names;
use dbplane_simulator::world::Profile;
use serde_json::{Value, json};

use super::gate::Counted;
use super::manifests::{compute, key, key_secret, replica_set, with};
use super::modes::{Extent, Fault, Mode, Place};
use super::pairs::pairs;
use super::platform::{BRANCH_TO_ADOPT, EMPTY_BRANCH, SHARED_BRANCH};

/// Number of Lease requests that are tried with faults.
const LEASE_REQUESTS: usize = 2;

#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub profile: Profile,
    /// Number of operators at the start.
    pub operators: usize,
    /// True if they run with leader election.
    pub elected: bool,
    /// True if the account is a ClusterAccount with credentials in another namespace.
    pub elsewhere: bool,
    /// Resources that are declared and settled before the act.
    pub before: Vec<Value>,
    pub act: Vec<Act>,
    pub goal: Goal,
}

#[derive(Clone, Debug)]
pub enum Act {
    Create(Value),
    /// A merge patch of the spec.
    Change(&'static str, &'static str, Value),
    /// Sets an annotation.
    Annotate(&'static str, &'static str, &'static str, &'static str),
    Delete(&'static str, &'static str),
    DeleteNamespace,
    /// Makes the times in a resource's record three days older: the current key, the last restart.
    Age(&'static str, &'static str),
}

/// The final state, and the number of changes that cannot be undone.
#[derive(Clone, Debug, Default)]
pub struct Goal {
    /// Ready Computes and ProjectKeys. All others are gone from the cluster and the platform.
    pub computes: Vec<&'static str>,
    pub keys: Vec<&'static str>,
    pub namespace_gone: bool,
    pub created: usize,
    pub changed: usize,
    pub restarted: usize,
    pub deleted: usize,
    /// Created keys, if no secret is lost.
    pub created_keys: usize,
}

impl Scenario {
    /// The modes for its requests. Scenarios with very many requests get only the most distinct
    /// ones.
    fn modes(&self, extent: Extent) -> Vec<Mode> {
        let stays = !self.goal.computes.is_empty() || !self.goal.keys.is_empty();
        match extent {
            Extent::Quick => Mode::QUICK.to_vec(),
            Extent::Pairs(_) => Vec::new(),
            Extent::Whole(_) if self.elected => Mode::SUCCESSIONS.to_vec(),
            Extent::Whole(_) if self.repeats() => Mode::FEW.to_vec(),
            Extent::Whole(_) if self.act.len() > 2 => {
                [Mode::FEW.as_slice(), &Mode::REWRITES].concat()
            }
            Extent::Whole(_) if stays => [Mode::ALL.as_slice(), &Mode::REWRITES].concat(),
            Extent::Whole(_) => Mode::ALL.to_vec(),
        }
    }

    /// Combines the modes with the counted requests.
    pub fn points(&self, extent: Extent, counted: &[Counted]) -> Vec<Vec<Fault>> {
        let mut points = Vec::new();
        for mode in self.modes(extent) {
            let tried = counted
                .iter()
                .zip(1..)
                .filter(|(request, _)| self.tries(extent, mode, request));
            points.extend(tried.map(|(_, at)| {
                vec![Fault {
                    mode,
                    at: Place::Request(at),
                }]
            }));
        }
        match extent {
            Extent::Whole(_) if self.elected => {
                let places = (1..=LEASE_REQUESTS).map(Place::Lease);
                points.extend(
                    places.flat_map(|at| Mode::OF_THE_LEASE.map(|mode| vec![Fault { mode, at }])),
                );
            }
            _ => {}
        }
        if let Extent::Whole(seed) | Extent::Pairs(seed) = extent {
            points.extend(pairs(self, counted, seed).into_iter().map(Vec::from));
        }
        points
    }

    fn tries(&self, extent: Extent, mode: Mode, request: &Counted) -> bool {
        let differs = match extent {
            // Observations of the former leader are stale when it continues.
            Extent::Whole(_) if self.elected => mode == Mode::Frozen,
            // A kill before a read equals one after it.
            _ => mode != Mode::KillAfter,
        };
        mode.suits(request) && self.has_evidence(mode) && (request.write || differs)
    }

    /// True if the result of a create can be recognized without a user. Without names, differing
    /// clocks make that impossible.
    fn has_evidence(&self, mode: Mode) -> bool {
        mode != Mode::ClockOff || self.profile != Profile::Minimal
    }

    /// True if requests repeat many times. Two operators that read the platform at different times
    /// correct each other's status. A deleted account waits for its resources.
    pub fn repeats(&self) -> bool {
        self.operators > 1 || self.goal.namespace_gone
    }

    pub fn new(name: &'static str, act: Vec<Act>, goal: Goal) -> Self {
        Self {
            name,
            profile: Profile::Default,
            operators: 1,
            elected: false,
            elsewhere: false,
            before: Vec::new(),
            act,
            goal,
        }
    }

    pub fn after(self, before: Vec<Value>) -> Self {
        Self { before, ..self }
    }

    fn elected(self, name: &'static str) -> Self {
        Self {
            name,
            elected: true,
            ..self
        }
    }

    fn minimal(self, name: &'static str) -> Self {
        Self {
            name,
            profile: Profile::Minimal,
            ..self
        }
    }

    fn public(self, name: &'static str) -> Self {
        Self {
            name,
            profile: Profile::Public,
            ..self
        }
    }
}

fn replica(name: &str) -> Value {
    compute(name, SHARED_BRANCH, "ReadOnly")
}

fn creates() -> Vec<Scenario> {
    let one = Goal {
        computes: vec!["orders"],
        created: 1,
        ..Goal::default()
    };
    let two = Goal {
        computes: vec!["orders", "reports"],
        created: 2,
        ..Goal::default()
    };
    let create = Scenario::new("create", vec![Act::Create(replica("orders"))], one.clone());
    let twice = Scenario::new(
        "create-two",
        vec![
            Act::Create(replica("orders")),
            Act::Create(replica("reports")),
        ],
        two,
    );
    let sized = json!({
        "size": {"autoscaling": {"min": 0.5, "max": 2}}, "scaleToZero": {"after": "10m"},
        "pooler": {"enabled": true}, "connection": {"secretName": "orders-db"},
    });
    let sized = with(compute("orders", EMPTY_BRANCH, "ReadWrite"), &sized);
    vec![
        create.clone(),
        create.clone().minimal("create-minimal"),
        create.clone().public("create-public"),
        create.clone().elected("create-elected"),
        twice.clone().minimal("create-two-minimal"),
        twice,
        Scenario::new("create-sized", vec![Act::Create(sized)], one),
        Scenario {
            operators: 2,
            ..create.minimal("create-contended")
        },
    ]
}

fn keys() -> Vec<Scenario> {
    let goal = Goal {
        keys: vec!["ci"],
        created_keys: 1,
        ..Goal::default()
    };
    let create = Scenario::new("create-key", vec![Act::Create(key("ci"))], goal.clone());
    let replaced = Goal {
        created_keys: 2,
        ..goal
    };
    let rotated = with(
        key("ci"),
        &json!({"rotation": {"every": "1h", "overlap": "30m"}}),
    );
    // The previous key stays in the Secret beside the new one, and is revoked at once.
    let secret = json!({"name": key_secret("ci"), "previousKey": "previous"});
    let at_once = with(
        key("ci"),
        &json!({"secret": secret, "rotation": {"every": "8760h", "overlap": "0s"}}),
    );
    let ask = Act::Annotate("ProjectKey", "ci", names::ROTATE, "once");
    let requested = Scenario::new("rotate-key", vec![ask], replaced.clone()).after(vec![at_once]);
    vec![
        create.clone(),
        create.clone().minimal("create-key-minimal"),
        create.clone().elected("create-key-elected"),
        Scenario::new(
            "replace-key",
            vec![Act::Delete("Secret", "ci-key")],
            replaced.clone(),
        )
        .after(vec![key("ci")]),
        Scenario::new(
            "rotate",
            vec![Act::Age("ProjectKey", "ci")],
            replaced.clone(),
        )
        .after(vec![rotated]),
        requested.clone(),
        requested.minimal("rotate-key-minimal"),
        Scenario {
            name: "create-key-contended",
            operators: 2,
            ..create
        },
    ]
}

/// The declared primary that the changes start from.
fn primary() -> Value {
    with(
        compute("orders", EMPTY_BRANCH, "ReadWrite"),
        &json!({"size": {"fixed": 1}}),
    )
}

fn change(spec: Value) -> Vec<Act> {
    vec![Act::Change("Compute", "orders", spec)]
}

/// The primary after this many changes and restarts.
fn kept(changed: usize, restarted: usize) -> Goal {
    Goal {
        computes: vec!["orders"],
        created: 1,
        changed,
        restarted,
        ..Goal::default()
    }
}

/// Only for the minimal profile: others show that the compute has started since.
fn maintain() -> Scenario {
    let daily =
        json!({"maintenance": {"restart": {"schedule": not_soon(), "startingDeadline": "168h"}}});
    let act = vec![Act::Age("Compute", "orders")];
    Scenario::new("maintain", act, kept(0, 1))
        .after(vec![with(primary(), &daily)])
        .minimal("maintain")
}

fn adopt() -> Scenario {
    let adopted = with(
        compute("orders", BRANCH_TO_ADOPT, "ReadWrite"),
        &json!({"existing": "Adopt"}),
    );
    let goal = Goal {
        created: 0,
        ..kept(0, 0)
    };
    Scenario::new("adopt", vec![Act::Create(adopted)], goal)
}

fn changes() -> Vec<Scenario> {
    let size = json!({"size": {"fixed": 2}});
    let token = json!({"restartToken": "once"});
    let both = json!({"size": {"fixed": 2}, "restartToken": "once"});
    let from_primary =
        |name, spec, goal| Scenario::new(name, change(spec), goal).after(vec![primary()]);
    let resize = from_primary("resize", size, kept(1, 0));
    let restart = from_primary("restart", token, kept(0, 1));
    vec![
        maintain(),
        maintain().elected("maintain-elected"),
        resize.clone(),
        resize.elected("resize-elected"),
        from_primary("resize-and-restart", both, kept(1, 0)),
        restart.clone(),
        restart.clone().elected("restart-elected"),
        restart.public("restart-public"),
        adopt(),
    ]
}

/// Several concurrent changes, with each kind of call.
fn busy() -> Scenario {
    let before = vec![
        with(
            compute("orders", EMPTY_BRANCH, "ReadWrite"),
            &json!({"size": {"fixed": 1}}),
        ),
        with(replica("ledger"), &json!({"size": {"fixed": 1}})),
    ];
    let act = vec![
        Act::Create(replica("reports")),
        Act::Create(key("ci")),
        Act::Change("Compute", "orders", json!({"size": {"fixed": 2}})),
        Act::Create(replica("audits")),
        Act::Change("Compute", "ledger", json!({"restartToken": "once"})),
    ];
    let goal = Goal {
        computes: vec!["orders", "ledger", "reports", "audits"],
        keys: vec!["ci"],
        created: 4,
        changed: 1,
        restarted: 1,
        created_keys: 1,
        ..Goal::default()
    };
    Scenario::new("busy", act, goal)
        .after(before)
        .elected("busy-elected")
}

/// A daily schedule that is half a day away, so that only an aged restart is due.
fn not_soon() -> String {
    let now = jiff::Zoned::now().with_time_zone(jiff::tz::TimeZone::UTC);
    format!("0 {} * * *", (now.hour() + 12) % 24)
}

fn deletes() -> Vec<Scenario> {
    let gone = Goal {
        created: 1,
        deleted: 1,
        ..Goal::default()
    };
    let everything = Goal {
        created: 2,
        deleted: 2,
        created_keys: 2,
        namespace_gone: true,
        ..Goal::default()
    };
    let shop = || vec![replica("orders"), replica("reports"), key("ci"), key("cd")];
    let namespace =
        Scenario::new("delete-namespace", vec![Act::DeleteNamespace], everything).after(shop());
    let delete = Scenario::new("delete", vec![Act::Delete("Compute", "orders")], gone)
        .after(vec![replica("orders")]);
    vec![
        delete.clone(),
        delete.clone().elected("delete-elected"),
        delete.public("delete-public"),
        Scenario::new(
            "delete-key",
            vec![Act::Delete("ProjectKey", "ci")],
            Goal {
                created_keys: 1,
                ..Goal::default()
            },
        )
        .after(vec![key("ci")]),
        namespace.clone(),
        Scenario {
            name: "delete-namespace-elsewhere",
            elsewhere: true,
            ..namespace
        },
    ]
}

/// A set of replicas is scaled up and down, moves to another branch, is changed one by one, and is
/// deleted.
fn replica_sets() -> Vec<Scenario> {
    let change = |spec: Value| vec![Act::Change("ReadReplicaSet", "reads", spec)];
    let of = |replicas| vec![replica_set("reads", SHARED_BRANCH, replicas)];
    let one = Goal {
        computes: vec!["reads-0"],
        created: 1,
        ..Goal::default()
    };
    let two = Goal {
        computes: vec!["reads-0", "reads-1"],
        created: 2,
        ..Goal::default()
    };
    let moved = Goal {
        computes: vec!["reads-1"],
        created: 2,
        deleted: 1,
        ..Goal::default()
    };
    let branch = json!({"template": {"spec": {"branchID": EMPTY_BRANCH}}});
    let size = json!({"template": {"spec": {"size": {"fixed": 2}}}});
    let up =
        Scenario::new("set-scale-up", change(json!({"replicas": 2})), two.clone()).after(of(1));
    vec![
        Scenario::new(
            "set-create",
            vec![Act::Create(replica_set("reads", SHARED_BRANCH, 2))],
            two.clone(),
        ),
        up.clone(),
        up.elected("set-scale-up-elected"),
        Scenario::new(
            "set-scale-down",
            change(json!({"replicas": 1})),
            Goal {
                created: 2,
                deleted: 1,
                ..one.clone()
            },
        )
        .after(of(2)),
        Scenario::new("set-roll", change(branch), moved).after(of(1)),
        Scenario::new("set-change", change(size), Goal { changed: 1, ..one }).after(of(1)),
        Scenario::new(
            "set-delete",
            vec![delete("ReadReplicaSet", "reads")],
            Goal {
                created: 2,
                deleted: 2,
                ..Goal::default()
            },
        )
        .after(of(2)),
    ]
}

fn delete(kind: &'static str, name: &'static str) -> Act {
    Act::Delete(kind, name)
}

/// All scenarios.
pub fn scenarios() -> Vec<Scenario> {
    [
        creates(),
        keys(),
        changes(),
        deletes(),
        replica_sets(),
        vec![busy()],
    ]
    .concat()
}
