//! The steps of a hand-over: who is told what, what is recorded, and what is left to the other one.

use dbplane::api::{Compute, ProjectKey};
use dbplane::decide::identity::{self, ComputeIdentity, ProjectKeyIdentity};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::faults::{Carried, Fault};
use crate::handed::{Order, names};
use crate::history::{Event, History, compute, key};
use crate::in_memory::Resource;
use crate::run::Run;
use crate::snares::{Snag, Times};
use crate::watching::{history, replica};

const OLD: &str = "r0";
const NEW: &str = "h0";

fn asking(history: &History, of: &Resource, changes: &Value) -> Value {
    let mut spec = history.spec(of).unwrap();
    spec.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    spec
}

impl Run<'_> {
    fn identity(&self, name: &str) -> ComputeIdentity {
        let object = self.simulation.lock().cluster.get::<Compute>(name).unwrap();
        identity::of_compute(&object).unwrap().identity
    }

    fn key_identity(&self, name: &str) -> ProjectKeyIdentity {
        let object = self.simulation.lock().cluster.get::<ProjectKey>(name).unwrap();
        identity::of_key(&object).unwrap().identity
    }

    fn secret(&self, name: &str) -> Option<Secret> {
        Some(self.simulation.lock().cluster.secrets.get(name)?.clone_inner())
    }

    fn owner_of(&self, secret: &str) -> Option<String> {
        Some(self.secret(secret)?.owner_references().first()?.name.clone())
    }
}

#[test]
fn a_compute_is_handed_over_with_its_restarts_and_its_secret() {
    let history = history(&[replica()], false);
    let mut run = Run::begin(&history).unwrap();
    run.happen(&Event::Restart(0, 1));
    run.go_on(120).unwrap();
    run.told();
    let before = run.identity(OLD);
    let told = run.told_after(120, |run| run.happen(&Event::HandedOver(0, 0, Order::ApplyDeclareDelete)));
    assert!(told.contains(&format!("{NEW} Linked: Took over compute ID from Compute shop/{OLD}")), "{told:?}");
    assert!(!run.is_there(&compute(0)));
    let after = run.identity(NEW);
    let id = |identity: &ComputeIdentity| identity.binding.clone().unwrap().id;
    let token = |identity: &ComputeIdentity| identity.restart.clone().unwrap().token;
    assert_eq!((id(&after), token(&after)), (id(&before), token(&before)));
    assert_eq!(after.hand_over.predecessor.unwrap().place.name, OLD);
    assert_eq!(run.owner_of("to-r0").as_deref(), Some(NEW));
    assert_eq!(run.finalizers_of(&names(0)[1]).len(), 1);
    // Back again.
    let told = run.told_after(120, |run| run.happen(&Event::HandedOver(0, 0, Order::DeclareDeleteApply)));
    assert!(told.contains(&format!("{OLD} Linked: Took over compute ID from Compute shop/{NEW}")), "{told:?}");
    assert_eq!((id(&run.identity(OLD)), run.calls("Post", "Compute")), (id(&before), 2), "one create, one restart");
}

#[test]
fn a_release_that_is_written_in_one_place_is_written_in_the_other_and_counts_then() {
    let history = history(&[replica()], false);
    let mut run = Run::begin(&history).unwrap();
    run.go_on(60).unwrap();
    let new = names(0)[1].clone();
    run.apply(&new, &asking(&history, &new, &json!({"takeOverFrom": {"name": OLD}})));
    run.go_on(60).unwrap();
    run.snare("status of Compute r0", Times::Once, Snag::Fault(Fault::Dies(Carried::Never)));
    run.apply(&compute(0), &json!({"handOverTo": {"name": NEW}, "size": {"fixed": 2}}));
    run.go_on(1).unwrap();
    let released = run.identity(OLD).hand_over.released.unwrap();
    assert_eq!((released.to.name.as_str(), run.identity(NEW).binding), (NEW, None));
    run.go_on(120).unwrap();
    assert!(run.identity(NEW).binding.is_some());
    assert_eq!(run.calls("Patch", "Compute"), 0, "what the old one declares now is nobody's business");
    let status = run.status_of(&compute(0));
    assert_eq!(
        status["record"],
        run.simulation.lock().cluster.objects[&compute(0)].value["metadata"]["annotations"]["dbplane.dev/record"]
    );
}

#[test]
fn what_is_released_to_nobody_is_taken_back() {
    let history = history(&[replica()], false);
    let mut run = Run::begin(&history).unwrap();
    run.go_on(60).unwrap();
    let new = names(0)[1].clone();
    let asks = json!({"takeOverFrom": {"name": OLD}, "accountRef": {"name": "none"}});
    run.apply(&new, &asking(&history, &new, &asks));
    run.apply(&compute(0), &json!({"handOverTo": {"name": NEW}}));
    run.go_on(60).unwrap();
    assert!(run.identity(OLD).hand_over.released.is_some());
    run.delete_now(&new);
    run.go_on(60).unwrap();
    assert!(run.condition(&compute(0), "Stalled").starts_with("HandingOver: "), "{:?}", run.status_of(&compute(0)));
    // It is there again before it is looked for, and this process does not know yet.
    run.snare(
        "read of Compute h0",
        Times::Once,
        Snag::Meanwhile(|simulation| {
            let now = simulation.now;
            let spec = json!({"accountRef": {"name": "none"}, "projectID": "p", "branchID": "b0", "type": "ReadOnly"});
            simulation.cluster.create(&("Compute", NEW.to_owned()), &spec, &json!({}), now);
        }),
    );
    run.apply(&compute(0), &json!({"handOverTo": null}));
    run.go_on(1).unwrap();
    assert!(run.identity(OLD).hand_over.released.is_some(), "whoever is there may take over");
    assert_eq!(run.simulation.lock().ledger.refused, [(409, format!("Compute shop/{NEW} exists"))]);
    run.delete_now(&new);
    run.go_on(120).unwrap();
    assert_eq!(run.identity(OLD).hand_over.released, None);
    assert!(run.condition(&compute(0), "Ready").starts_with("Available: "));
}

#[test]
fn a_key_is_handed_over_into_another_secret_and_into_the_same() {
    let history = history(&[], true);
    for (secret, copied) in [("di", true), ("ci", false)] {
        let mut run = Run::begin(&history).unwrap();
        run.go_on(60).unwrap();
        run.told();
        let (before, held) = (run.key_identity("ci"), run.secret("ci").unwrap());
        let new: Resource = ("ProjectKey", "di".to_owned());
        let changes = json!({"takeOverFrom": {"name": "ci"}, "secret": {"name": secret, "key": "api-key"}});
        run.apply(&new, &asking(&history, &key(), &changes));
        let told = run.told_after(120, |run| run.apply(&key(), &json!({"handOverTo": {"name": "di"}})));
        assert!(told.contains(&"di Linked: Took over key NAME from ProjectKey shop/ci".to_owned()), "{told:?}");
        assert_eq!(run.key_identity("di").records, before.records);
        let data = |secret: &Secret| secret.data.clone().unwrap()["api-key"].clone();
        assert_eq!(data(&run.secret(secret).unwrap()), data(&held));
        assert_eq!(run.owner_of(secret).as_deref(), Some("di"));
        assert_eq!(run.owner_of("ci").as_deref(), Some(if copied { "ci" } else { "di" }));
        run.delete_now(&key());
        run.go_on(120).unwrap();
        assert_eq!((run.is_there(&key()), run.secret("ci").is_some()), (false, !copied));
        assert_eq!((run.calls("Post", "ProjectKey"), run.calls("Delete", "ProjectKey")), (1, 0));
    }
}

#[test]
fn a_key_whose_secret_is_gone_when_it_is_taken_over_is_replaced() {
    let history = history(&[], true);
    let mut run = Run::begin(&history).unwrap();
    run.go_on(60).unwrap();
    run.told();
    let new: Resource = ("ProjectKey", "di".to_owned());
    let changes = json!({"takeOverFrom": {"name": "ci"}, "secret": {"name": "di", "key": "api-key"}});
    run.apply(&new, &asking(&history, &key(), &changes));
    run.snare(
        "creation of Secret di",
        Times::Once,
        Snag::Meanwhile(|simulation| drop(simulation.cluster.secrets.remove("ci"))),
    );
    let told = run.told_after(300, |run| run.apply(&key(), &json!({"handOverTo": {"name": "di"}})));
    assert!(told.iter().any(|text| text.starts_with("di KeyReplaced: Secret di was deleted or altered")), "{told:?}");
    assert!(told.contains(&"di KeyRevoked: Revoked key NAME (ID)".to_owned()), "{told:?}");
    assert_eq!(run.key_identity("di").records.previous, []);
}
