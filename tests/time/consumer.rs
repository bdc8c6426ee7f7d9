//! An application that uses a project key from its Secret.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use tokio::task::JoinHandle;

use super::lab::{Lab, NAMESPACE, PROJECT, now};
use super::support::{PATIENCE, wait_until};

/// Runs until it is dropped.
pub struct Consumer {
    uses: Arc<AtomicUsize>,
    refusals: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Consumer {
    /// Reads the Secret in intervals of the lab's time, and uses the key continuously.
    pub fn start(lab: &Lab, secret: &'static str, every: Duration) -> Self {
        let (uses, refusals) = (
            Arc::<AtomicUsize>::default(),
            Arc::<Mutex<Vec<String>>>::default(),
        );
        let (used, refused) = (Arc::clone(&uses), Arc::clone(&refusals));
        let secrets: Api<Secret> = Api::namespaced(lab.client(), NAMESPACE);
        let url = format!("{}/projects/{PROJECT}/endpoints", lab.platform.base_url());
        let client = reqwest::Client::new();
        let task = tokio::spawn(async move {
            let mut read = None;
            loop {
                if read.as_ref().is_none_or(|(at, _)| *at + every <= now()) {
                    let found = secrets.get(secret).await.unwrap().data.unwrap();
                    read = Some((
                        now(),
                        String::from_utf8(found["api-key"].0.clone()).unwrap(),
                    ));
                }
                let (_, token) = read.as_ref().unwrap();
                let answer = client.get(&url).bearer_auth(token).send().await;
                match answer.map(|answer| answer.status().as_u16()) {
                    Ok(200) => {}
                    other => refused
                        .lock()
                        .unwrap()
                        .push(format!("{other:?} at {}", now())),
                }
                used.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self {
            uses,
            refusals,
            task,
        }
    }

    /// Waits for a complete request that started after this call.
    pub async fn uses_it(&self) {
        let wanted = self.uses.load(Ordering::SeqCst) + 2;
        let used = async || self.uses.load(Ordering::SeqCst) >= wanted;
        wait_until("the consumer to use its key", PATIENCE, used)
            .await
            .unwrap();
    }

    /// The refusals by the platform.
    pub fn refusals(&self) -> Vec<String> {
        self.refusals.lock().unwrap().clone()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
