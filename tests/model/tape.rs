//! The shipped steps, one effect at a time. What a step is doing cannot be copied, but a step is a function of the answers
//! that it was given: to go on, it is run again from its beginning with the answers so far, up to the next effect.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dbplane::api::{AccountRef, Compute, ProjectKey};
use dbplane::cluster::{MetadataPatch, Note, Owner, SecretContent, SecretState};
use dbplane::controller::{
    Creating, Hands, Managed, Place, StepError, Trace, Traces, Unsaved, UnsavedKey, Usable, perform_compute,
    perform_key,
};
use dbplane::decide::compute::ComputeStep;
use dbplane::decide::key::{KeyObserved, KeyStep};
use dbplane::platform::{Fault, KeyEntry, Tick};
use futures::future::poll_fn;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::core::{ObjectMeta, Status};
use secrecy::ExposeSecret;

use super::bound::{TICK, compute_spec, key_spec, limits};
use super::mutation::Mutation;
use super::remote::Remote;
use super::state::Print;

/// Something that others can see, or whose answer depends on them.
#[derive(Clone, Debug, Hash)]
pub enum Effect {
    /// Of which object, and the merge patch.
    Patch(usize, String),
    ReadSecret,
    CreateSecret,
    /// Annotations, labels and data.
    WriteSecret(Box<[std::collections::BTreeMap<String, String>; 3]>),
    CreateCompute {
        name: Option<String>,
    },
    DeleteCompute(u8),
    CreateKey(String),
    RevokeKey(u8),
    ListKeys,
    ProbeKey(String),
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Answer {
    Meta(Print<ObjectMeta>),
    Cluster(u16),
    Secret(Option<Box<Secret>>),
    Done,
    Made(u8),
    Keys(Vec<KeyEntry>),
    Fault(Fault),
}

/// The step that is being performed.
#[derive(Clone, Debug)]
pub enum Step {
    Compute(ComputeStep),
    Key(KeyStep, Box<KeyObserved>),
}

/// A step under way.
#[derive(Clone, Debug)]
pub struct Flight {
    pub meta: Print<ObjectMeta>,
    pub step: Step,
    pub trace: Trace,
    pub unsaved: Option<UnsavedKey>,
    /// Who had begun a create when the step began.
    pub creating: Vec<usize>,
    /// What the clock said and what was answered, in their order.
    pub tape: Vec<Entry>,
    pub pending: Option<Pending>,
    pub mutation: Option<Mutation>,
}

/// What a step waits for, and since when.
#[derive(Clone, Debug)]
pub struct Pending {
    pub effect: Effect,
    pub since: u8,
    /// It is carried out, and this is the answer, which is under way.
    pub came: Option<Answer>,
}

#[derive(Clone, Debug)]
pub enum Entry {
    Now(Timestamp),
    Answer(Answer),
}

/// How far a step has come.
pub struct Progress {
    pub trace: Trace,
    pub unsaved: Option<UnsavedKey>,
    pub begun: bool,
    pub tape: Vec<Entry>,
    pub wrote: bool,
    pub reached: Reached,
}

pub enum Reached {
    Effect(Effect),
    End(Result<(), StepError>),
}

struct Replay {
    index: usize,
    traces: Traces,
    unsaved: Unsaved,
    creating: Creating,
    mutation: Option<Mutation>,
    tape: Arc<Mutex<Tape>>,
}

#[derive(Debug)]
pub struct Tape {
    entries: Vec<Entry>,
    position: usize,
    now: Timestamp,
    pending: Option<Effect>,
    wrote_at: Option<usize>,
}

impl Flight {
    /// Runs the step from its beginning up to the first effect that has no answer yet.
    pub fn run(&self, index: usize, now: Timestamp) -> Progress {
        let tape =
            Arc::new(Mutex::new(Tape { entries: self.tape.clone(), position: 0, now, pending: None, wrote_at: None }));
        let uid = self.meta.uid.clone().unwrap();
        let replay = Replay {
            index,
            traces: Traces::default(),
            unsaved: Unsaved::default(),
            creating: Creating::default(),
            mutation: self.mutation,
            tape: tape.clone(),
        };
        replay.traces.update(&uid, |trace| *trace = self.trace.clone());
        if let Some(unsaved) = &self.unsaved {
            replay.unsaved.keep(&uid, unsaved.clone());
        }
        for other in self.creating.iter().filter(|_| self.mutation != Some(Mutation::SkipSerialization)) {
            drop(replay.creating.begin(&format!("{other:08}-uid"), place()));
        }
        let reached = replay.poll(self);
        let replayed = self.tape.len();
        let tape = tape.lock().unwrap();
        let reached = match reached {
            Poll::Ready(result) => Reached::End(result),
            Poll::Pending => Reached::Effect(tape.pending.clone().unwrap()),
        };
        Progress {
            trace: replay.traces.get(&uid),
            unsaved: replay.unsaved.get(&uid),
            begun: replay.creating.has(&uid),
            tape: tape.entries.clone(),
            wrote: tape.wrote_at.is_some_and(|position| position + 1 >= replayed),
            reached,
        }
    }
}

impl Replay {
    fn poll(&self, flight: &Flight) -> Poll<Result<(), StepError>> {
        let mut context = Context::from_waker(Waker::noop());
        match &flight.step {
            Step::Compute(step) => {
                let object = compute(flight.meta.clone_inner());
                pin!(perform_compute(self, &object, step)).poll(&mut context)
            }
            Step::Key(step, observed) => {
                let object = key(flight.meta.clone_inner());
                pin!(perform_key(self, &object, observed, step)).poll(&mut context)
            }
        }
    }
}

pub fn compute(metadata: ObjectMeta) -> Compute {
    Compute { metadata, spec: compute_spec(), status: None }
}

pub fn key(metadata: ObjectMeta) -> ProjectKey {
    ProjectKey { metadata, spec: key_spec(), status: None }
}

pub fn place() -> Place {
    Place { platform: "https://platform".into(), project: "p-1".into(), branch: "br-1".into() }
}

impl Tape {
    fn next(&mut self) -> Option<Answer> {
        let Some(Entry::Answer(answer)) = self.entries.get(self.position) else { return None };
        self.position += 1;
        Some(answer.clone())
    }
}

/// The answer to an effect, once there is one.
pub async fn effect(tape: &Mutex<Tape>, effect: Effect) -> Answer {
    poll_fn(|_| {
        let mut tape = tape.lock().unwrap();
        match tape.next() {
            Some(answer) => Poll::Ready(answer),
            None => {
                tape.pending = Some(effect.clone());
                Poll::Pending
            }
        }
    })
    .await
}

fn refused(code: u16) -> kube::Error {
    kube::Error::Api(Box::new(Status { code, message: "the model says no".into(), ..Status::default() }))
}

impl Hands for Replay {
    type Platform = Remote;

    fn now(&self) -> Timestamp {
        let mut tape = self.tape.lock().unwrap();
        if let Some(Entry::Now(time)) = tape.entries.get(tape.position) {
            let time = *time;
            tape.position += 1;
            return time;
        }
        let now = tape.now;
        tape.entries.push(Entry::Now(now));
        tape.position += 1;
        now
    }

    fn slack(&self) -> Duration {
        if self.mutation == Some(Mutation::NeverTooLate) { Duration::from_secs(86_400) } else { limits().settle - TICK }
    }

    fn tick(&self) -> Tick {
        let mut tape = self.tape.lock().unwrap();
        tape.wrote_at = Some(tape.position.saturating_sub(1));
        Tick::default()
    }

    fn traces(&self) -> &Traces {
        &self.traces
    }

    fn unsaved(&self) -> &Unsaved {
        &self.unsaved
    }

    fn creating(&self) -> &Creating {
        &self.creating
    }

    fn account<K: Managed>(&self, _: &AccountRef, _: &K) -> Option<Usable<Remote>> {
        Some(Usable {
            platform: Remote(self.tape.clone(), self.mutation),
            base_url: "https://platform".into(),
            organization: Some("org".into()),
        })
    }

    fn base_url<K: Managed>(&self, _: &AccountRef, _: &K) -> String {
        "https://platform".into()
    }

    async fn admit_change(&self, platform: &Remote) -> Result<Option<Remote>, Fault> {
        Ok(Some(platform.clone()))
    }

    async fn admit_key_creation(&self, platform: &Remote) -> Result<Option<Remote>, Fault> {
        Ok(Some(platform.clone()))
    }

    async fn patch<K: Managed>(&self, object: &K, links: &MetadataPatch) -> Result<K, kube::Error> {
        match effect(&self.tape, Effect::Patch(self.index, links.patch(object).to_string())).await {
            Answer::Meta(meta) => {
                let mut object = object.clone();
                *object.meta_mut() = meta.clone_inner();
                Ok(object)
            }
            Answer::Cluster(code) => Err(refused(code)),
            other => unreachable!("{other:?}"),
        }
    }

    async fn note<K: Managed>(&self, _: &K, _: &Note) {}

    async fn secret(&self, owner: &Owner, _: &str) -> Result<SecretState, kube::Error> {
        debug_assert_eq!(owner.uid, format!("{:08}-uid", self.index));
        match effect(&self.tape, Effect::ReadSecret).await {
            Answer::Secret(None) => Ok(SecretState::Absent),
            Answer::Secret(Some(secret)) => Ok(SecretState::Ours(secret)),
            Answer::Cluster(code) => Err(refused(code)),
            other => unreachable!("{other:?}"),
        }
    }

    async fn create_secret(&self, _: &Owner, _: &str) -> Result<(), kube::Error> {
        match effect(&self.tape, Effect::CreateSecret).await {
            Answer::Done => Ok(()),
            Answer::Cluster(code) => Err(refused(code)),
            other => unreachable!("{other:?}"),
        }
    }

    async fn write_secret(
        &self,
        _: &Owner,
        _: &str,
        _: Option<&str>,
        content: &SecretContent,
    ) -> Result<Secret, kube::Error> {
        let data = content.data.iter().map(|(entry, text)| (entry.clone(), text.expose_secret().to_owned())).collect();
        let parts = Box::new([content.annotations.clone(), content.labels.clone(), data]);
        match effect(&self.tape, Effect::WriteSecret(parts)).await {
            Answer::Secret(Some(secret)) => Ok(*secret),
            Answer::Cluster(code) => Err(refused(code)),
            other => unreachable!("{other:?}"),
        }
    }

    async fn adopt_secret(&self, _: &Owner, name: &str, _: &str) -> Result<(), kube::Error> {
        unreachable!("Secret {name} is from no backup")
    }

    async fn dry_run_secret(&self, _: &Owner, _: &str, _: &SecretContent) -> Result<(), kube::Error> {
        Ok(())
    }

    fn unwatch(&self, _: &Compute) {}

    fn account_may_go<K: Managed>(&self, _: &AccountRef, _: &K) {}
}
