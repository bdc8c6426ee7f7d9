//! Sets of read replicas under random edits, deletions, releases and faults. In the end there are
//! as many Computes as declared, and as many computes.

mod outages;
mod steps;

use dbplane::api::{Compute, Known, ReadReplicaSet};
use dbplane_simulator::world::Profile;
use kube::ResourceExt;
use kube::core::object::HasStatus;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use super::config;
use super::elsewhere::Move;
use super::faults::{Fault, Hit, faults};
use super::history::{Access, Event, History, profile};
use super::in_memory::Resource;
use super::injector::{Injected, Times};
use super::run::Run;
use super::simulation::PROJECT;
use super::watching::history;

/// An event of the set.
#[derive(Clone, Copy, Debug)]
enum SetEvent {
    Nothing,
    Kill,
    Scale(u32),
    Branch(u8),
    Resize(u8),
    /// The replica at this position is deleted, or loses the label of the set, or its controller.
    ReplicaDeleted(usize),
    ReplicaReleased(usize),
    ReplicaOrphaned(usize),
    /// The set is deleted with or without its Computes, and applied again.
    Deleted(bool),
}

fn event() -> impl Strategy<Value = SetEvent> {
    let which = || 0..4_usize;
    prop_oneof![
        2 => Just(SetEvent::Nothing),
        2 => Just(SetEvent::Kill),
        6 => (0..5_u32).prop_map(SetEvent::Scale),
        3 => (0..2_u8).prop_map(SetEvent::Branch),
        3 => (0..3_u8).prop_map(SetEvent::Resize),
        2 => which().prop_map(SetEvent::ReplicaDeleted),
        1 => which().prop_map(SetEvent::ReplicaReleased),
        1 => which().prop_map(SetEvent::ReplicaOrphaned),
        1 => any::<bool>().prop_map(SetEvent::Deleted),
    ]
}

fn set() -> Resource {
    ("ReadReplicaSet", "reads".to_owned())
}

/// The declared spec of the set, in short form.
#[derive(Clone, Copy)]
struct Declared {
    replicas: u32,
    branch: u8,
    size: u8,
}

impl Declared {
    fn spec(self) -> Value {
        let Self {
            replicas,
            branch,
            size,
        } = self;
        let labels = json!({"app": "reads"});
        let compute = json!({
            "accountRef": {"name": "prod"}, "projectID": PROJECT, "branchID": format!("b{branch}"),
            "size": {"fixed": size + 1},
        });
        json!({
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": compute},
        })
    }
}

struct SetRun<'a> {
    run: Run<'a>,
    declared: Declared,
}

impl<'a> SetRun<'a> {
    /// Declares a set with this many replicas.
    fn begin(history: &'a History, replicas: u32) -> Self {
        let mut set_run = Self {
            run: Run::prepared(history),
            declared: Declared {
                replicas,
                branch: 0,
                size: 0,
            },
        };
        set_run.declare(set_run.declared);
        set_run
    }
}

impl SetRun<'_> {
    fn happen(&mut self, event: SetEvent) {
        match event {
            SetEvent::Nothing => {}
            SetEvent::Kill => self.run.kill(),
            SetEvent::Scale(replicas) => self.declare(Declared {
                replicas,
                ..self.declared
            }),
            SetEvent::Branch(branch) => self.declare(Declared {
                branch,
                ..self.declared
            }),
            SetEvent::Resize(size) => self.declare(Declared {
                size,
                ..self.declared
            }),
            SetEvent::ReplicaDeleted(which) => {
                self.on_replica(which, |run, replica| run.delete_now(replica))
            }
            SetEvent::ReplicaReleased(which) => self.edit(which, json!({"labels": {"app": null}})),
            SetEvent::ReplicaOrphaned(which) => self.edit(which, json!({"ownerReferences": null})),
            SetEvent::Deleted(orphans) => {
                if orphans {
                    (0..self.replicas().len())
                        .for_each(|which| self.edit(which, json!({"ownerReferences": null})));
                }
                self.run.delete_now(&set());
                self.declare(self.declared);
            }
        }
    }

    fn declare(&mut self, declared: Declared) {
        self.declared = declared;
        self.run.apply(&set(), &declared.spec());
    }

    /// All Computes except released ones.
    fn replicas(&self) -> Vec<Resource> {
        let all = self.run.simulation.lock().cluster.all::<Known<Compute>>();
        let labelled = all
            .iter()
            .filter(|compute| compute.labels().contains_key("app"));
        labelled
            .map(|compute| ("Compute", compute.name_any()))
            .collect()
    }

    fn on_replica(&mut self, which: usize, act: impl FnOnce(&mut Run, &Resource)) {
        if let Some(replica) = self.replicas().get(which) {
            act(&mut self.run, replica);
        }
    }

    fn edit(&mut self, which: usize, metadata: Value) {
        self.on_replica(which, |run, replica| {
            run.simulation
                .lock()
                .cluster
                .edit(replica, &json!({"metadata": metadata}));
        });
    }

    /// Checks the number and the specs of the replicas, and that every compute on the platform
    /// belongs to a Compute.
    fn kept(&self) -> Result<(), String> {
        let simulation = self.run.simulation.lock();
        let set = simulation
            .cluster
            .get::<Known<ReadReplicaSet>>("reads")
            .ok_or("there is no set")?;
        let computes = simulation.cluster.all::<Known<Compute>>();
        let uid = set.uid();
        let is_own = |compute: &&std::sync::Arc<Known<Compute>>| {
            compute
                .owner_references()
                .iter()
                .any(|owner| owner.uid == uid.as_str())
        };
        let own: Vec<_> = computes.iter().filter(is_own).collect();
        let alike = own
            .iter()
            .all(|compute| set.spec.template.spec.of(&compute.spec) == compute.spec);
        let status = set.status().cloned().unwrap_or_default();
        let numbers = [
            status.replicas,
            status.ready_replicas,
            status.updated_replicas,
        ];
        let declared = self.declared.replicas;
        if own.len() != declared as usize || !alike || numbers != [declared; 3] {
            let names: Vec<_> = own.iter().map(|compute| compute.name_any()).collect();
            return Err(format!(
                "{declared} are declared: {names:?}, {numbers:?}, {:?}",
                status.conditions
            ));
        }
        let live = simulation.world.console_computes(None).len();
        if live == computes.len() {
            Ok(())
        } else {
            Err(format!("{live} computes for {} Computes", computes.len()))
        }
    }
}

fn play(profile: Profile, events: &[(SetEvent, u16)], faults: Vec<Hit>) -> Result<(), String> {
    let history = History {
        profile,
        faults,
        account: Access::Account,
        deletes_per_minute: 1000,
        ..history(&[], false)
    };
    let mut set_run = SetRun::begin(&history, 2);
    set_run.run.run_for(5)?;
    for (event, seconds) in events {
        set_run.happen(*event);
        set_run.run.run_for(*seconds)?;
    }
    set_run.run.settle()?;
    set_run.kept()
}

proptest! {
    #![proptest_config(config(32))]

    #[test]
    fn a_set_has_the_declared_replicas(profile in profile(), events in prop::collection::vec((event(), 0..90_u16), 0..6), faults in faults()) {
        play(profile, &events, faults).map_err(TestCaseError::fail)?;
    }
}

/// The account refers to another platform, which refuses creates. No existing replica is deleted or
/// changed, whatever is declared.
#[test]
fn the_replicas_of_a_set_stay_on_their_platform() {
    for recreated in [false, true] {
        let history = history(&[], false);
        let mut set_run = SetRun::begin(&history, 2);
        set_run.run.run_for(300).unwrap();
        let live = |set_run: &SetRun| -> Vec<_> {
            let computes = set_run.run.simulation.lock().world.console_computes(None);
            computes
                .into_iter()
                .map(|compute| (compute.id, compute.size))
                .collect()
        };
        let before = live(&set_run);
        set_run.run.inject(
            "elsewhere Post *",
            Times::Always,
            Injected::Fault(Fault::Refused(403)),
        );
        set_run
            .run
            .happen(&Event::Moved(Move::Account { recreated }));
        for event in [
            SetEvent::Nothing,
            SetEvent::Resize(1),
            SetEvent::Kill,
            SetEvent::Scale(3),
            SetEvent::ReplicaDeleted(0),
            SetEvent::Scale(1),
        ] {
            set_run.happen(event);
            set_run.run.run_for(300).unwrap();
            assert_eq!(live(&set_run), before, "{event:?}");
        }
        set_run.run.settle().unwrap();
        set_run.kept().unwrap();
    }
}
