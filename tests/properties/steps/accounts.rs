//! Steps of accounts: finalizers of accounts and Secrets, and the checks of the platform.

use dbplane::decide::names::{self, AccountFinalizers};
use dbplane_simulator::world::Profile;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::accounts::CREDENTIAL;
use crate::faults::Fault;
use crate::history::{Access, History, compute};
use crate::in_memory::cluster::NAMESPACE;
use crate::in_memory::{Print, Resource};
use crate::injector::{Injected, LIST, Times};
use crate::process::Process;
use crate::run::Run;
use crate::watching::{history, replica};

const PROJECTS: &str = "Get /projects";

fn other() -> Resource {
    ("Account", "other".to_owned())
}

impl Run<'_> {
    fn finalizers_of_secret(&self) -> Vec<String> {
        self.simulation.lock().cluster.secrets[CREDENTIAL]
            .finalizers()
            .to_vec()
    }

    /// Number of changes to the finalizers of the Secret.
    fn changes_of_secret(&self) -> usize {
        let simulation = self.simulation.lock();
        simulation
            .ledger
            .writes
            .iter()
            .filter(|write| write.starts_with("PatchSecret"))
            .count()
    }

    fn spec_of(&self, resource: &Resource) -> Value {
        self.simulation.lock().cluster.objects[resource].value["spec"].clone()
    }

    /// The account's Ready condition after another check.
    fn checked(&mut self) -> String {
        let account = Access::Account.resource();
        let now = self.now().to_string();
        self.annotate(&account, names::RECONCILE, &now);
        self.run_for(60).unwrap();
        self.condition(&account, "Ready")
    }
}

#[test]
fn credentials_are_protected_as_long_as_one_account_uses_them() {
    let history = history(&[replica(), replica()], false);
    let nothing = History {
        computes: Vec::new(),
        ..history.clone()
    };
    let mut run = Run::begin(&nothing).unwrap();
    let prod = Access::Account.resource();
    let spec = run.spec_of(&prod);
    run.apply(&other(), &spec);
    for (number, account) in [(0, "prod"), (1, "other")] {
        let mut spec = history.spec(&compute(number)).unwrap();
        spec["accountRef"]["name"] = json!(account);
        run.apply(&compute(number), &spec);
    }
    run.run_for(60).unwrap();
    let protected = vec![names::CREDENTIAL_FINALIZER.to_owned()];
    for (number, account, after) in [
        (0, prod, (protected.clone(), 1)),
        (1, other(), (Vec::new(), 2)),
    ] {
        assert_eq!(run.finalizers_of(&account), [names::FINALIZER]);
        // Added once for both accounts, and never removed in between.
        assert_eq!(
            (run.finalizers_of_secret(), run.changes_of_secret()),
            (protected.clone(), 1)
        );
        run.delete_now(&compute(number));
        run.run_for(300).unwrap();
        assert!(!run.is_there(&compute(number)));
        assert_eq!(run.finalizers_of(&account), Vec::<String>::new());
        assert_eq!((run.finalizers_of_secret(), run.changes_of_secret()), after);
    }
}

/// Each operator has its own finalizer, derived from the namespaces that it watches.
#[test]
fn operators_that_share_an_account_leave_each_other_their_finalizers() {
    let history = History {
        account: Access::ClusterAccount,
        ..history(&[replica()], false)
    };
    let account = history.account.resource();
    let namespaces = [vec![NAMESPACE.to_owned()], vec!["billing".to_owned()]];
    let [ours, theirs] = [0, 1].map(|which| AccountFinalizers::confined_to(&namespaces[which]));
    let mut run = Run::prepared(&history);
    {
        let mut simulation = run.simulation.lock();
        simulation.cluster.edit(
            &account,
            &json!({"metadata": {"finalizers": [theirs.account]}}),
        );
        let mut secret = simulation.cluster.secrets[CREDENTIAL].clone_inner();
        secret.metadata.finalizers = Some(vec![theirs.credential.clone()]);
        simulation
            .cluster
            .secrets
            .insert(CREDENTIAL.to_owned(), Print::of(secret));
    }
    run.process = Some(Process::new(&run.simulation, 30).confined_to(&namespaces[0]));
    run.declare();
    run.run_for(60).unwrap();
    assert_eq!(
        run.finalizers_of(&account),
        [theirs.account.clone(), ours.account]
    );
    assert_eq!(
        run.finalizers_of_secret(),
        [theirs.credential.clone(), ours.credential]
    );
    run.delete_now(&compute(0));
    run.delete_now(&account);
    run.run_for(300).unwrap();
    assert!(!run.is_there(&compute(0)));
    assert_eq!(
        (run.finalizers_of(&account), run.finalizers_of_secret()),
        (vec![theirs.account], vec![theirs.credential])
    );
}

#[test]
fn an_account_that_may_not_list_projects_is_tried_on_the_computes_of_one() {
    let history = history(&[replica()], false);
    let restricted = "Available: The platform accepts the API key. It may not list projects (no)";
    for (computes, expected) in [
        (None, restricted),
        (Some(Fault::Refused(403)), restricted),
        (Some(Fault::Refused(404)), restricted),
        (Some(Fault::Huge), restricted),
        (
            Some(Fault::Refused(500)),
            "PlatformUnreachable: The platform failed (500): no",
        ),
    ] {
        let mut run = Run::begin(&history).unwrap();
        run.inject(
            PROJECTS,
            Times::Always,
            Injected::Fault(Fault::Refused(403)),
        );
        if let Some(fault) = computes.clone() {
            run.inject(LIST, Times::Always, Injected::Fault(fault));
        }
        assert_eq!(run.checked(), expected, "{computes:?}");
    }
}

#[test]
fn an_account_shows_whether_the_platform_keeps_names() {
    // The first compute shows that the platform has names; the second one gets a mark as its name.
    let history = history(&[replica(), replica()], false);
    for (profile, kept) in [(Profile::Default, true), (Profile::Minimal, false)] {
        let history = History {
            profile,
            ..history.clone()
        };
        let mut run = Run::begin(&history).unwrap();
        run.run_for(60).unwrap();
        run.checked();
        let capabilities = run.status_of(&history.account.resource())["capabilities"].clone();
        assert_eq!(
            capabilities["computeNames"],
            json!(kept),
            "{profile:?}: {capabilities}"
        );
    }
}
