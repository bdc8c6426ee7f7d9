//! The advice of a status works as written: each test brings a reason about, carries out what the
//! message or docs/conditions.md says with kubectl, and sees the resource become Ready.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::fixture::{ADMIN, Fixture, PROJECT, account, compute, condition, key, listener, world};
use crate::support::free_port;

/// The reasons after which a user has nothing to do.
const NOTHING_TO_DO: [&str; 13] = [
    "Available",
    "InSync",
    "Pending",
    "Creating",
    "ConfirmingCreate",
    "Starting",
    "Updating",
    "Restarting",
    "Deleting",
    "DeletionSlowed",
    "PlatformBusy",
    "CallNotRecorded",
    "NewKeyRefused",
];

/// The reasons that are brought about elsewhere, the file, and why not here.
const ELSEWHERE: [(&str, &str, &str); 29] = [
    (
        "DeletionPaused",
        "tests/operator/deletes/brake.rs",
        "runs its command",
    ),
    (
        "SettingNotApplied",
        "tests/operator/computes/refusals.rs",
        "the advice is for the platform's plan",
    ),
    (
        "DriftPersists",
        "tests/operator/computes/changes.rs",
        "the advice is to find who changes the field",
    ),
    (
        "Unreadable",
        "tests/process/unreadable.rs",
        "needs an older definition",
    ),
    (
        "NamespaceNotAllowed",
        "tests/operator/accounts/cluster_accounts.rs",
        "admits the namespace",
    ),
    (
        "ProjectNotAllowed",
        "tests/operator/accounts/cluster_accounts.rs",
        "adds the project",
    ),
    (
        "Unauthorized",
        "tests/operator/accounts.rs",
        "takes a minute of refusals",
    ),
    (
        "Forbidden",
        "tests/operator/key_faults.rs",
        "the advice is another account",
    ),
    (
        "InvalidBaseUrl",
        "src/decide/account/tests.rs",
        "this operator allows http",
    ),
    (
        "PlatformNotAllowed",
        "tests/process/reach.rs",
        "needs an option of the operator",
    ),
    (
        "ManyKeys",
        "src/decide/account/tests/status.rs",
        "needs 9,000 keys",
    ),
    (
        "ListsTooLarge",
        "tests/process/large.rs",
        "needs a large list",
    ),
    (
        "AnswerTooLarge",
        "tests/process/large.rs",
        "needs a large list",
    ),
    (
        "UnreadableEntries",
        "tests/operator/computes/unreadable.rs",
        "the advice is to ask the platform",
    ),
    (
        "Overwritten",
        "tests/operator/overwritten.rs",
        "needs another writer, which stops there",
    ),
    (
        "StatusRefused",
        "tests/operator/refused.rs",
        "needs a policy, which is removed there",
    ),
    (
        "RequestRefused",
        "tests/operator/refused.rs",
        "needs a policy, which is removed there",
    ),
    (
        "ReplicaNotReady",
        "src/decide/replica_set/tests/reports.rs",
        "the advice is that of the replica",
    ),
    (
        "AmbiguousCreate",
        "tests/operator/creates.rs",
        "needs a settle time without an answer; a command names the compute there",
    ),
    (
        "RestartUnconfirmed",
        "tests/properties/steps/restarts.rs",
        "needs an answer that never comes",
    ),
    (
        "StrayCompute",
        "tests/operator/repeated.rs",
        "needs a create that is repeated",
    ),
    (
        "StartTimeout",
        "tests/operator/computes/operations.rs",
        "the advice is to ask the platform",
    ),
    (
        "StateUnknown",
        "tests/operator/computes/unreadable.rs",
        "the advice is to ask the platform",
    ),
    (
        "OperationFailed",
        "tests/operator/computes/operations.rs",
        "the advice is to ask the platform",
    ),
    (
        "SecretNotWritten",
        "tests/operator/key_faults.rs",
        "needs a policy, or a Secret of another owner",
    ),
    ("KeyRevoked", "tests/operator/keys.rs", "sets onRevoked"),
    (
        "RotationWaiting",
        "src/decide/key/tests/requests.rs",
        "needs three rotations",
    ),
    (
        "RevocationUnsupported",
        "tests/operator/key_faults.rs",
        "needs a platform that cannot revoke",
    ),
    (
        "KeyOfAnotherCluster",
        "tests/process/identity.rs",
        "needs a second cluster",
    ),
];

#[test]
fn every_reason_is_tried_or_has_a_cause() {
    let page = include_str!("../../docs/conditions.md");
    let reasons: BTreeSet<_> = page
        .lines()
        .filter_map(|it| it.strip_prefix("### "))
        .collect();
    let source = include_str!("advice.rs");
    let is_tried = |reason: &&str| source.contains(&format!(".reports(\"{reason}\""));
    let tried: BTreeSet<_> = reasons.iter().copied().filter(is_tried).collect();
    let mut others = BTreeSet::from(NOTHING_TO_DO);
    for (reason, file, _) in ELSEWHERE {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = fs::read_to_string(root.join(file)).unwrap();
        assert!(source.contains(reason), "{file} has no {reason}");
        others.insert(reason);
    }
    assert_eq!(&tried & &others, BTreeSet::new());
    assert_eq!(&tried | &others, reasons);
}

impl Fixture {
    /// Waits until an object reports a reason. Returns its message.
    async fn reports(&self, reason: &str, object: &str) -> String {
        let told = |seen: &Value| {
            let conditions = seen["status"]["conditions"].as_array()?;
            let told = conditions.iter().find(|it| it["reason"] == reason)?;
            Some(told["message"].as_str().unwrap().to_owned())
        };
        let seen = self
            .until(object, reason, |seen| told(seen).is_some())
            .await;
        told(&seen).unwrap()
    }

    /// Runs the last command of a message, with these values for its placeholders.
    async fn obeys(&self, message: &str, placeholders: &[(&str, &str)]) {
        let at = message
            .rfind("kubectl ")
            .unwrap_or_else(|| panic!("no command: {message}"));
        let mut command = message[at + "kubectl ".len()..].to_owned();
        for (name, value) in placeholders {
            command = command.replace(name, value);
        }
        let command = command.split(" Or ").next().unwrap().trim_end_matches('.');
        let parts = command.split('\'').enumerate();
        let words = parts.flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.shared.cluster.kubectl(&words).await.unwrap();
    }

    async fn until_in_sync(&self, object: &str) {
        self.until_condition(object, "Synced", "True", "InSync")
            .await;
        self.until_ready(object).await;
    }

    async fn is_ready(&self, object: &str) -> bool {
        let seen = self.get(object).await.unwrap();
        condition(&seen, "Ready").is_some_and(|ready| ready["status"] == "True")
    }

    /// The refusal of a change of the spec by the API server.
    async fn refusal(&self, object: &str, spec: Value) -> String {
        let patch = json!({"spec": spec}).to_string();
        let arguments = [
            "-n",
            &self.namespace,
            "patch",
            object,
            "--type=merge",
            "-p",
            &patch,
        ];
        let answer = self.shared.cluster.kubectl(&arguments).await;
        answer.unwrap_err().to_string()
    }
}

#[tokio::test]
async fn a_compute_is_brought_back_by_what_its_status_says() {
    let fixture = Fixture::new("advice-computes").await;
    let orders = "compute/orders";
    fixture
        .apply(&compute("orders", "br-main-42", "  computeID: ep-typo\n"))
        .await;
    let message = fixture.reports("ComputeNotFound", orders).await;
    fixture.obeys(&message, &[]).await;
    let ready = fixture.until_ready(orders).await;
    let id = ready["status"]["computeID"].as_str().unwrap().to_owned();

    let refusal = fixture.refusal(orders, json!({"computeID": "ep-1"})).await;
    assert!(
        refusal.contains(&format!("this Compute has compute {id}")),
        "{refusal}"
    );
    assert!(fixture.is_ready(orders).await);

    fixture
        .patch(orders, json!({"accountRef": {"name": "typo"}}))
        .await;
    fixture.reports("AccountNotFound", orders).await;
    assert!(fixture.is_ready(orders).await);
    fixture
        .patch(orders, json!({"accountRef": {"name": "prod"}}))
        .await;
    fixture.until_in_sync(orders).await;

    fixture.annotate(orders, "dbplane.dev/paused=true").await;
    fixture.reports("Paused", orders).await;
    fixture.annotate(orders, "dbplane.dev/paused-").await;
    fixture.until_in_sync(orders).await;

    let window = json!({"schedule": "0 3 1 1 *", "duration": "1h"});
    let waiting =
        json!({"size": {"fixed": 2}, "disruption": {"policy": "Window", "window": window}});
    fixture.patch(orders, waiting).await;
    fixture.reports("WaitingForDisruption", orders).await;
    let at_once = json!({"disruption": {"policy": "Immediate", "window": null}});
    fixture.patch(orders, at_once).await;
    fixture.until_in_sync(orders).await;

    let never = json!({"schedule": "0 3 30 2 *", "duration": "1h"});
    fixture
        .patch(
            orders,
            json!({"disruption": {"policy": "Window", "window": never}}),
        )
        .await;
    fixture.reports("InvalidSchedule", orders).await;
    fixture
        .patch(
            orders,
            json!({"disruption": {"window": {"schedule": "0 3 28 2 *"}}}),
        )
        .await;
    fixture.until_in_sync(orders).await;
}

#[tokio::test]
async fn drift_a_connection_and_a_protection_are_resolved_by_what_the_status_says() {
    let fixture = Fixture::new("advice-others").await;
    let orders = "compute/orders";
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready(orders).await;

    fixture
        .patch(
            orders,
            json!({"management": "Observe", "size": {"fixed": 4}}),
        )
        .await;
    fixture.reports("Drifted", orders).await;
    fixture.patch(orders, json!({"management": "Full"})).await;
    fixture.until_in_sync(orders).await;

    let connection =
        json!({"secretName": "to-orders", "database": "shop", "credentialsFrom": {"name": "role"}});
    fixture
        .patch(orders, json!({"connection": connection}))
        .await;
    fixture.reports("ConnectionIncomplete", orders).await;
    fixture.role("a", "b").await;
    fixture.until_in_sync(orders).await;

    fixture
        .patch(orders, json!({"deletionProtection": true}))
        .await;
    fixture.delete(orders).await;
    let message = fixture.reports("DeletionProtected", orders).await;
    fixture.obeys(&message, &[]).await;
    fixture.until_gone(orders).await;
}

#[tokio::test]
async fn claims_and_mistaken_references_are_resolved_by_what_the_status_says() {
    let fixture = Fixture::new("advice-claims").await;
    fixture
        .apply(&compute("orders", "br-main-42", "  deletion: Orphan\n"))
        .await;
    fixture.until_ready("compute/orders").await;

    let other = dbplane_simulator::serve(
        listener(),
        dbplane_simulator::Options::new(world(&fixture.project)),
    );
    let other = other.await.unwrap();
    fixture.account_named("elsewhere", &other.base_url()).await;
    fixture.until_ready("account/elsewhere").await;
    fixture
        .patch(
            "compute/orders",
            json!({"accountRef": {"name": "elsewhere"}}),
        )
        .await;
    let message = fixture.reports("BindingConflict", "compute/orders").await;
    assert!(fixture.is_ready("compute/orders").await);
    let accounts = fixture.kubectl(&["get", "accounts"]).await;
    let here = fixture.platform.base_url();
    let right = accounts.lines().find(|line| line.contains(&here)).unwrap();
    let name = right.split_whitespace().next().unwrap();
    fixture.obeys(&message, &[("NAME", name)]).await;
    fixture.until_in_sync("compute/orders").await;

    fixture.apply(&compute("again", "br-main-42", "")).await;
    fixture.reports("ClaimedByAnother", "compute/again").await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    fixture.reports("PrimaryExists", "compute/again").await;
    fixture
        .patch("compute/again", json!({"existing": "Adopt"}))
        .await;
    fixture.until_ready("compute/again").await;

    let astray = compute("astray", "br-main-42", "").replace(PROJECT, "typo-123456");
    fixture
        .apply(&astray.replace("ReadWrite", "ReadOnly"))
        .await;
    fixture.reports("Refused", "compute/astray").await;
    fixture
        .patch("compute/astray", json!({"projectID": fixture.project}))
        .await;
    fixture.until_ready("compute/astray").await;
    let refusal = fixture
        .refusal("compute/astray", json!({"projectID": "typo-123456"}))
        .await;
    assert!(
        refusal.contains("create another Compute for another project"),
        "{refusal}"
    );
    other.stop().await;
}

#[tokio::test]
async fn an_account_and_its_keys_are_corrected_by_what_their_status_says() {
    let fixture = Fixture::bare("advice-accounts").await;
    let nowhere = format!("http://127.0.0.1:{}/api/v2", free_port().unwrap());
    let typo = account("prod", &nowhere, "").replace("org-cool-darkness-1", "org-typo");
    fixture.apply(&typo).await;
    fixture.reports("CredentialsMissing", "account/prod").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.reports("AccountNotReady", "compute/orders").await;
    fixture.secret("platform-api-key", ADMIN).await;
    let message = fixture.reports("PlatformUnreachable", "account/prod").await;
    let host = nowhere.trim_start_matches("http://").split('/').next();
    assert!(
        message.contains(host.unwrap()) && message.contains("is spec.baseURL right?"),
        "{message}"
    );
    let base_url = fixture.platform.base_url();
    fixture
        .patch(
            "account/prod",
            json!({"baseURL": base_url, "organizationID": null}),
        )
        .await;
    fixture.until_ready("account/prod").await;

    fixture
        .kubectl(&["create", "secret", "generic", "ci-key"])
        .await;
    fixture.apply(&key("ci", "")).await;
    fixture
        .reports("OrganizationMissing", "projectkey/ci")
        .await;
    fixture
        .patch(
            "account/prod",
            json!({"organizationID": "org-cool-darkness-1"}),
        )
        .await;
    fixture.until_ready("compute/orders").await;
    fixture.reports("SecretNotOurs", "projectkey/ci").await;
    fixture
        .patch(
            "projectkey/ci",
            json!({"secret": {"name": "ci-platform-key"}}),
        )
        .await;
    fixture.until_ready("projectkey/ci").await;
    let refusal = fixture
        .refusal("projectkey/ci", json!({"secret": {"name": "other"}}))
        .await;
    assert!(refusal.contains("create another ProjectKey"), "{refusal}");

    let in_use = |seen: &Value| seen["status"]["inUse"] == true;
    fixture.until("account/prod", "in use", in_use).await;
    let refusal = fixture
        .refusal("account/prod", json!({"baseURL": nowhere}))
        .await;
    assert!(refusal.contains("create another account"), "{refusal}");
    fixture.delete("account/prod").await;
    fixture.reports("InUse", "account/prod").await;
    fixture.delete_all("projectkeys").await;
    fixture.delete_all("computes").await;
    fixture.until_gone("account/prod").await;
}

#[tokio::test]
async fn an_account_whose_last_resource_is_gone_can_lead_elsewhere() {
    let fixture = Fixture::new("advice-unused").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    let in_use = |seen: &Value| seen["status"]["inUse"] == true;
    fixture.until("account/prod", "in use", in_use).await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    fixture
        .until("account/prod", "unused", |seen| !in_use(seen))
        .await;
    fixture
        .patch("account/prod", json!({"organizationID": "org-other-1"}))
        .await;
}
