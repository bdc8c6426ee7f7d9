//! Creates a compute, or binds a resource to an existing one.

use jiff::Timestamp;

use super::{ComputeWork, bound_to};
use crate::api::{Compute, Known, Management};
use crate::cluster::{Event, resource_version};
use crate::controller::access;
use crate::controller::compute::{Computes, linked};
use crate::controller::environment::{Environment, StepError};
use crate::controller::labels;
use crate::controller::object::uid;
use crate::controller::pass::calls::{
    Recording, count_create, hold, in_time, is_refusal, not_recorded, record, recording,
};
use crate::controller::pass::outcome::conclude;
use crate::controller::state::Answer;
use crate::decide::Action;
use crate::decide::compute::{self, Holder, Reserved, ReservedPlace};
use crate::decide::identity::{
    Binding, ComputeIdentity, CreateIntent, Evidence, Origin, RestartRecord,
};
use crate::domain::{self, NewCompute};
use crate::platform::{Platform, PlatformClient};

impl<E: Environment> ComputeWork<'_, E> {
    /// Intent, call, binding: after a crash in between, a successor can find out the result.
    pub(super) async fn create(
        &self,
        intent: &CreateIntent,
        new: &NewCompute,
        restart: &RestartRecord,
        seen: Timestamp,
    ) -> Result<(), StepError> {
        let place = Reserved::Create {
            branch: intent.branch.clone(),
            type_: self.object.spec.type_,
        };
        let evidence = compute::turn(self.object.spec.type_, intent.evidence());
        if !self.reserve(intent.platform.as_ref(), place, evidence) {
            return Ok(());
        }
        let admitted = self
            .admitted_create(intent, seen)
            .await
            .inspect_err(|_| self.env.state().gave_up(uid(self.object)));
        let Some(platform) = admitted? else {
            return Ok(());
        };
        let intent = &CreateIntent {
            at: self.env.now(),
            ..intent.clone()
        };
        let intended = self.record_intent(intent).await?;
        let answer = platform
            .create_compute(&self.object.spec.project_id, new)
            .await;
        count_create(self.env, self.object, &answer);
        self.wrote();
        let (created, operations) = self.settle(Action::Create, answer)?;
        self.started(operations);
        if let (Ok(connection), true) = (self.connection(), new.name == created.name) {
            access::names_shown(self.env, self.object, &connection, created.support.names);
        }
        self.bind_created(intent, &intended, created, restart).await
    }

    async fn bind_created(
        &self,
        intent: &CreateIntent,
        intended: &Known<Compute>,
        created: domain::Compute,
        restart: &RestartRecord,
    ) -> Result<(), StepError> {
        let binding = Binding {
            id: created.id.clone(),
            project: self.object.spec.project_id.clone(),
            platform: intent.platform.clone(),
            branch: Some(intent.branch.clone()),
            origin: Origin::Created,
            at: intent.at,
        };
        self.env.state().compute_created(
            uid(self.object),
            Answer {
                at: intent.at,
                compute: created.clone(),
            },
        );
        let bound = recording(intended, |known| ComputeIdentity {
            made: intent.made_in(&known.made, &created),
            ..bound_to(&binding, restart, known)
        })?;
        let news = self.bind(intended, bound).await?;
        let text = format!(
            "Created compute {} on branch {}.",
            created.id, intent.branch
        );
        let event = match self.object.identity()?.binding {
            Some(before) => {
                let because = format!(
                    "Compute {} no longer exists. {text} Its host is another one.",
                    before.id
                );
                Event::warning("Recreated", because)
            }
            None => Event::once("Created", text),
        };
        self.done(labels::action(Action::Create), &created.id, &event, news)
            .await;
        Ok(())
    }

    async fn record_intent(&self, intent: &CreateIntent) -> Result<Known<Compute>, StepError> {
        let (held, first) = self.hold().await?;
        self.env
            .state()
            .call_recorded(uid(self.object), Action::Create, intent.at);
        let intended = |known| ComputeIdentity {
            intent: Some(intent.clone()),
            binding: None,
            ..known
        };
        let report = Some(&compute::creating());
        let recorded = record(
            self.env,
            &held,
            Recording {
                report,
                ..recording(&held, intended)?
            },
        )
        .await;
        self.answered(first, &recorded);
        let recorded = recorded.map_err(not_recorded(self.env, self.object, Action::Create))?;
        in_time(self.env, Action::Create, intent.at)?;
        Ok(recorded)
    }

    /// Prepares the resource for the write of a reservation, and adds the finalizer if it has to
    /// have one. Also returns whether no earlier write without an answer may contain the
    /// reservation.
    async fn hold(&self) -> Result<(Known<Compute>, bool), StepError> {
        let (state, uid) = (self.env.state(), uid(self.object));
        let first = state.recording(uid, resource_version(self.object));
        if self.object.spec.management == Management::Observe {
            return Ok((self.object.clone(), first));
        }
        let held = hold(self.env, self.object).await.inspect_err(|_| {
            if first {
                state.not_recorded(uid);
            }
        })?;
        state.recording(uid, resource_version(&held));
        Ok((held, first))
    }

    /// Settles a reservation after its write. Without an answer it may be written, so it stays
    /// until a version shows that. A refusal frees it, unless an earlier write had no answer.
    fn answered<T>(&self, first: bool, answer: &Result<T, kube::Error>) {
        let (state, uid) = (self.env.state(), uid(self.object));
        match answer {
            Ok(_) => state.recorded(uid),
            Err(error) if first && is_refusal(error) => state.not_recorded(uid),
            Err(_) => {}
        }
    }

    /// Binds the resource to an existing compute.
    pub(super) async fn link(
        &self,
        binding: &Binding,
        bound: impl FnOnce(ComputeIdentity) -> ComputeIdentity,
        restored: bool,
    ) -> Result<(), StepError> {
        if !self.reserve(
            binding.platform.as_ref(),
            Reserved::Compute(binding.id.clone()),
            Evidence::ByBaseline,
        ) {
            return Ok(());
        }
        let (held, first) = self.hold().await?;
        let news = self.bind(&held, recording(&held, bound)?).await;
        self.answered(first, &news);
        let news = news?;
        let text = if restored {
            format!("Found compute {} again.", binding.id)
        } else {
            linked(binding)
        };
        self.done(
            labels::LINK,
            &binding.id,
            &Event::once("Linked", text),
            news,
        )
        .await;
        Ok(())
    }

    async fn bind(
        &self,
        object: &Known<Compute>,
        bound: Recording<'_>,
    ) -> Result<Vec<Event>, kube::Error> {
        let news = conclude::<Computes, E>(self.env, object, bound).await?;
        self.env.state().compute_bound(uid(object));
        Ok(news)
    }

    /// Reserves what is about to be recorded. `false` if another resource was faster since the
    /// decision; the next pass sees which one.
    pub(super) fn reserve(
        &self,
        platform: Option<&String>,
        what: Reserved,
        evidence: Evidence,
    ) -> bool {
        let project = self.object.spec.project_id.clone();
        let place = ReservedPlace {
            platform: platform.cloned().unwrap_or_default(),
            project,
            what,
        };
        self.env.state().reserve(
            uid(self.object),
            place,
            Holder::of(&self.object.metadata),
            evidence,
        )
    }

    /// Like `admitted`, for a create. If the list with its baseline is too old by then, the place
    /// is kept for the next pass, which has a newer one.
    async fn admitted_create(
        &self,
        intent: &CreateIntent,
        seen: Timestamp,
    ) -> Result<Option<E::Client>, StepError> {
        let uid = uid(self.object);
        let is_current = |place| compute::is_current(intent, seen, place, self.env.now());
        let connection = self.connection_to(intent.platform.as_deref())?;
        let kept = self.env.state().take_place(uid);
        if kept.is_some() && is_current(kept) {
            return Ok(Some(self.platform(&connection).with_place()));
        }
        let place = self.admitted(&connection, Action::Create).await?;
        if is_current(None) {
            return Ok(place);
        }
        if place.is_some() {
            self.env
                .state()
                .keep_place(uid, self.env.now(), self.env.tick());
        }
        Ok(None)
    }
}
