//! Changes to the account that the resources refer to, and confirmations of pending deletions.

use dbplane::decide::names;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::history::Access;
use super::in_memory::cluster::NAMESPACE;
use super::run::Run;
use super::simulation::BASE_URL;
use super::tenant::TENANT;

impl Access {
    pub fn spec(self, base_url: &str, secret: &str) -> Value {
        let mut spec = json!({
            "baseURL": base_url,
            "organizationID": "org",
            "apiKeySecretRef": {"name": secret, "key": "api-key"},
        });
        if self == Self::ClusterAccount {
            spec["apiKeySecretRef"]["namespace"] = json!(NAMESPACE);
            spec["namespaces"] = json!({"names": [NAMESPACE, TENANT]});
        }
        spec
    }
}

impl Run<'_> {
    /// Creates the account and its Secret unless they exist.
    pub fn set_up_account(&mut self) {
        let mut simulation = self.simulation.lock();
        let account = self.history.account.resource();
        if !simulation.cluster.secrets.contains_key(CREDENTIAL) {
            simulation
                .cluster
                .put_secret(CREDENTIAL, credential(&self.credential.1));
        }
        if simulation.cluster.objects.contains_key(&account) {
            return;
        }
        let now = simulation.now;
        simulation.cluster.create(
            &account,
            &self.history.account.spec(BASE_URL, CREDENTIAL),
            &json!({}),
            now,
        );
    }

    /// Repairs what only users can repair, so that the run can settle.
    pub fn repair(&mut self) {
        let usable = {
            let simulation = self.simulation.lock();
            simulation
                .world
                .console_keys()
                .iter()
                .any(|key| !key.revoked && key.name == self.credential.0)
        };
        if !usable {
            self.exchange_credential();
        }
        self.set_up_account();
        self.move_home();
        self.correct_all();
        self.admit(true);
        self.confirm();
    }

    pub fn exchange_credential(&mut self) {
        let name = format!(
            "admin-{}",
            self.simulation.lock().world.console_keys().len()
        );
        let token = {
            let mut simulation = self.simulation.lock();
            let now = simulation.now;
            simulation
                .world
                .console_create_personal_key("user-1", &name, now)
                .unwrap()
                .key
        };
        self.revoke_credentials();
        self.simulation
            .lock()
            .cluster
            .put_secret(CREDENTIAL, credential(&token));
        self.credential = (name, token);
    }

    pub fn revoke_credentials(&mut self) {
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        let current = simulation
            .world
            .console_keys()
            .into_iter()
            .find(|key| !key.revoked && key.name == self.credential.0);
        if let Some(key) = current {
            simulation.world.console_revoke_key(key.id, now).unwrap();
        }
    }

    pub fn admit(&mut self, admits: bool) {
        if self.history.account == Access::ClusterAccount {
            let names = if admits {
                json!([NAMESPACE, TENANT])
            } else {
                json!([])
            };
            let account = self.history.account.resource();
            self.simulation
                .lock()
                .cluster
                .edit(&account, &json!({"spec": {"namespaces": {"names": names}}}));
        }
    }

    pub fn confirm(&mut self) {
        let mut simulation = self.simulation.lock();
        for resource in simulation.cluster.resources() {
            let metadata = {
                let object = &simulation.cluster.objects[&resource].value;
                let conditions = object["status"]["conditions"].as_array();
                let paused = conditions
                    .is_some_and(|all| all.iter().any(|one| one["reason"] == "DeletionPaused"));
                paused
                    .then(|| json!({"annotations": {names::CONFIRM_DELETION: object["metadata"]["deletionTimestamp"]}}))
            };
            if let Some(metadata) = metadata {
                simulation
                    .cluster
                    .edit(&resource, &json!({"metadata": metadata}));
            }
        }
    }
}

/// Name of the Secret with the account's API key.
pub const CREDENTIAL: &str = "platform-api-key";

pub fn credential(token: &str) -> Secret {
    let data = std::collections::BTreeMap::from([(
        "api-key".to_owned(),
        ByteString(token.as_bytes().to_vec()),
    )]);
    Secret {
        data: Some(data),
        ..Secret::default()
    }
}
