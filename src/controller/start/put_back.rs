//! Detects that storage is rolled back while the operator runs: the stored version of an object is
//! then older than one seen before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::{Resource, ResourceExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::api::Uid;
use crate::cluster::{Cluster, Event, explained, resource_version};
use crate::controller::environment::{Kind, KindVisitor, Kinds};
use crate::controller::live::Live;
use crate::controller::object::uid;
use crate::controller::registry::AllKinds;
use crate::decide::put_back::{Doubt, Lasting, PATIENCE, RestoreVerdict, StoredVersion};

/// The reason of the event.
const STORAGE_PUT_BACK: &str = "StoragePutBack";
/// This is reported once, even if another object shows it a little later.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// Checks the `doubted` objects in storage, one at a time. Forgets what a rollback of storage has
/// invalidated.
pub async fn notice(env: Arc<Live>, mut doubted: UnboundedReceiver<Uid>, stop: CancellationToken) {
    let (mut lasting, mut uids) = (Lasting::default(), BTreeSet::new());
    let mut told: Option<Instant> = None;
    while stop.run_until_cancelled(sleep(PATIENCE)).await.is_some() {
        while let Ok(uid) = doubted.try_recv() {
            uids.insert(uid);
        }
        let mut questions = questions(&env, &uids);
        uids = questions.keys().cloned().collect();
        let doubts = questions
            .iter()
            .map(|(uid, question)| (uid.clone(), question.doubt))
            .collect();
        let Some((uid, lasted)) = lasting.next(doubts) else {
            continue;
        };
        let Some(question) = questions.remove(&uid) else {
            continue;
        };
        drop(questions);
        let news = told.is_none_or(|told| told.elapsed() >= TOLD_FOR);
        match (question.ask)(env.clone(), lasted, news).await {
            RestoreVerdict::Wait => continue,
            RestoreVerdict::ListAgain => {}
            RestoreVerdict::PutBack => {
                env.state.storage_put_back();
                told = Some(Instant::now());
            }
        }
        env.list_again.send_replace(());
        lasting = Lasting::default();
    }
}

/// The arguments are how long the doubt has lasted, and whether to report a rollback.
type Ask = dyn FnOnce(Arc<Live>, Duration, bool) -> BoxFuture<'static, RestoreVerdict> + Send;

/// An object that may be checked in storage.
struct Question {
    doubt: Doubt,
    ask: Box<Ask>,
}

/// The given objects that are still in doubt.
fn questions(env: &Live, uids: &BTreeSet<Uid>) -> BTreeMap<Uid, Question> {
    let mut found = Doubted {
        env,
        uids,
        questions: BTreeMap::new(),
    };
    if !uids.is_empty() {
        AllKinds::each(&mut found);
    }
    found.questions
}

struct Doubted<'a> {
    env: &'a Live,
    uids: &'a BTreeSet<Uid>,
    questions: BTreeMap<Uid, Question>,
}

impl KindVisitor for Doubted<'_> {
    fn visit<K: Kind>(&mut self) {
        for object in self.env.stores.all::<K::Object>() {
            let uid = uid(object.as_ref()).clone();
            let doubt = self
                .env
                .state
                .doubt(&uid, resource_version(object.as_ref()));
            if let Some(doubt) = doubt
                && self.uids.contains(&uid)
            {
                let ask =
                    move |env, lasted, news| ask::<K>(env, object, doubt, lasted, news).boxed();
                self.questions.insert(
                    uid,
                    Question {
                        doubt,
                        ask: Box::new(ask),
                    },
                );
            }
        }
    }
}

/// Checks the object in storage. Reports a rollback, unless that was done a short time ago.
async fn ask<K: Kind>(
    env: Arc<Live>,
    object: Arc<K::Object>,
    doubt: Doubt,
    lasted: Duration,
    news: bool,
) -> RestoreVerdict {
    let (kind, namespace, name) = (K::Object::kind(&()), object.namespace(), object.name_any());
    let stored = match env.cluster.stored_version(object.as_ref()).await {
        Ok(version) => version.map_or(StoredVersion::Gone, StoredVersion::Version),
        Err(error) => {
            debug!(%kind, namespace, name, error = explained(&error), "the API server does not say which version it has stored");
            StoredVersion::NotRead
        }
    };
    let verdict = doubt.settled(stored, lasted);
    debug!(%kind, namespace, name, "the cache may not show what is stored: {doubt:?}, {stored:?}, {verdict:?}");
    if let (RestoreVerdict::PutBack, Doubt::Behind(known), StoredVersion::Version(stored), true) =
        (verdict, doubt, stored, news)
    {
        let text = format!(
            "The API server's storage was put back to an earlier state while dbplane runs: this resource was at version {known}, and is at \
             version {stored} now. dbplane lists all resources again and goes on with what is stored. What it still knows to be recorded is \
             written again."
        );
        warn!(%kind, namespace, name, event = STORAGE_PUT_BACK, "{text}");
        env.cluster
            .publish(object.as_ref(), &Event::warning(STORAGE_PUT_BACK, text))
            .await;
    }
    verdict
}
