//! Mutations: rules broken on purpose, to show that the checker notices.

mod annotations;

use dbplane::api::{Compute, ComputeStatus, Known, ProjectKey, ProjectKeyStatus};
use dbplane::controller::account::observe::account_entry;
use dbplane::controller::account::{Accounts, AnyAccount};
use dbplane::controller::environment::{
    Change, Environment, Kind, Observation, Relations, StepError,
};
use dbplane::controller::{Computes, ProjectKeys};
use dbplane::decide::account::{AccountFacts, AccountObserved, AccountStep};
use dbplane::decide::compute::{ComputeFacts, ComputeObserved, ComputeStep, SnapshotState};
use dbplane::decide::identity::{ComputeIdentity, LostKey};
use dbplane::decide::key::{KeyFacts, KeyObserved, KeyStep};
use dbplane::decide::memory::ExistenceAnswer;
use dbplane::decide::{Brake, Decision, Observed, Report};
use dbplane::domain::{Listed, NameSupport};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::time::Duration;

pub use annotations::as_if_its_own;

use super::replay::{decides_on, mutation, resolves, resolves_to_report};

/// A rule that is broken at the boundary between the shipped code and the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The baseline of a create is not remembered.
    IgnoreBaseline,
    /// A call without an answer counts as not made.
    UnknownIsNotDone,
    /// A missing compute or key proves at once that it was not created.
    SkipSettling,
    /// A reading counts as begun at its use, and may be older than our last write.
    TrustOldReadings,
    /// Patches apply to any version.
    SkipVersion,
    /// The claims of other resources are ignored.
    IgnoreClaims,
    /// Intents are not written.
    SkipIntent,
    /// A call is made however long ago it was recorded.
    NeverTooLate,
    /// Creates on one branch are not serialized.
    SkipSerialization,
    /// Any new compute counts as ours.
    IgnoreSettings,
    /// A failed list counts as empty.
    FailedListIsEmpty,
    /// A list without a compute proves that it does not exist.
    TrustLists,
    /// A resource is released although one of its creates is unresolved.
    ReleaseUnresolved,
    /// Keys are revoked without a check of their names.
    RevokeByIdAlone,
    /// A lost key is not recorded.
    ForgetLostKeys,
    /// A key whose secret never arrived is revoked before it is recorded as lost.
    RevokeUnrecorded,
    /// The end of a deletion is not awaited.
    ReleaseAtOnce,
    /// The name of a create is ignored, and so is the support of names.
    IgnoreMarks,
    /// A create without an answer is forgotten once it is repeated.
    ForgetUnanswered,
    /// Late results of creates without an answer are ignored.
    IgnoreStrays,
    /// Duplicates made by one create are ignored.
    IgnoreTwins,
    /// The brake never pauses a deletion.
    IgnoreBrake,
    /// A paused deletion does not stay paused.
    ForgetBrake,
    /// A key is written into its Secret whatever other processes have recorded since.
    WriteUnchecked,
    /// An account is released although resources need it.
    AbandonDependents,
    /// Neither a lost copy of a record nor a lost finalizer is restored.
    SkipRestore,
    /// An annotation counts like the status, even one copied from another resource.
    FollowAnnotations,
    /// A compute missing in a list is recreated as soon as the platform confirms its absence.
    RecreateAtOnce,
}

fn edit(observed: &mut ComputeObserved, change: impl FnOnce(&mut ComputeIdentity)) {
    if let Ok(identity) = &mut observed.identity {
        change(identity);
    }
}

impl Mutation {
    pub fn observing_compute(self, observed: &mut ComputeObserved, now: Timestamp) {
        match self {
            Self::SkipSettling => observed.limits.settle = Duration::ZERO,
            Self::IgnoreClaims => observed.claims = Default::default(),
            Self::SkipSerialization => observed.claims.creating = None,
            Self::IgnoreBaseline => {
                if let Ok(identity) = &mut observed.identity
                    && let Some(intent) = &mut identity.intent
                {
                    intent.baseline.iter_mut().for_each(BTreeSet::clear);
                }
            }
            Self::ReleaseUnresolved if observed.meta.deleting => {
                edit(observed, |identity| identity.intent = None)
            }
            Self::ReleaseAtOnce if observed.meta.deleting && observed.memory.deleted.is_none() => {
                edit(observed, |identity| identity.binding = None)
            }
            Self::TrustOldReadings => {
                if let SnapshotState::Taken { at, .. } = &mut observed.snapshot {
                    *at = now;
                }
            }
            Self::IgnoreSettings => {
                if let SnapshotState::Taken { computes, .. } = &mut observed.snapshot {
                    computes
                        .shown_mut()
                        .iter_mut()
                        .for_each(|compute| compute.settings.passwordless_access = Some(true));
                }
            }
            Self::IgnoreMarks => {
                observed.name_support = NameSupport::Unseen;
                if let SnapshotState::Taken { computes, .. } = &mut observed.snapshot {
                    computes
                        .shown_mut()
                        .iter_mut()
                        .for_each(|compute| compute.name = None);
                }
            }
            Self::IgnoreStrays => edit(observed, |identity| identity.unanswered.clear()),
            Self::IgnoreTwins => edit(observed, |identity| identity.made.clear()),
            Self::SkipRestore => {
                observed.meta.record_lost = false;
                observed.meta.has_finalizer = true;
            }
            Self::ForgetBrake => observed.meta.brake = Brake::Free,
            Self::TrustLists => trust_list(observed, now),
            Self::RecreateAtOnce if is_missing(observed) => observed.limits.settle = Duration::ZERO,
            Self::FailedListIsEmpty => {
                if let SnapshotState::Failed(_) = &observed.snapshot {
                    observed.snapshot = SnapshotState::Taken {
                        at: now,
                        computes: Listed::default(),
                    };
                }
            }
            _ => {}
        }
    }

    pub fn observing_key(self, observed: &mut KeyObserved) {
        match self {
            Self::SkipSettling => observed.limits.settle = Duration::ZERO,
            Self::ReleaseUnresolved if observed.meta.deleting => {
                if let Ok(identity) = &mut observed.identity {
                    identity.intent = None;
                }
            }
            _ => {}
        }
    }

    pub fn choosing_compute(self, step: &mut ComputeStep) {
        if self == Self::ForgetUnanswered
            && let ComputeStep::DropIntent { unanswered } | ComputeStep::Bind { unanswered, .. } =
                step
        {
            unanswered.clear();
        }
    }

    pub fn observing_account(self, observed: &mut AccountObserved) {
        if self == Self::AbandonDependents {
            observed.blocking.clear();
        }
    }

    pub fn choosing_key(self, step: &mut KeyStep) {
        let KeyStep::Record { records, .. } = step else {
            return;
        };
        match (self, records.lost.last()) {
            (Self::ForgetLostKeys, _) => records.lost.clear(),
            (
                Self::RevokeUnrecorded,
                Some(LostKey {
                    id: Some(id), name, ..
                }),
            ) => {
                let (id, name) = (*id, name.clone());
                records.lost.pop();
                *step = KeyStep::Revoke {
                    id,
                    name,
                    records: records.clone(),
                    in_use: None,
                };
            }
            _ => {}
        }
    }
}

/// A compute missing in the list counts as nonexistent and deleted.
fn trust_list(observed: &mut ComputeObserved, now: Timestamp) {
    observed.memory.asked = Some(ExistenceAnswer {
        at: now,
        exists: false,
    });
    if is_missing(observed)
        && let Ok(ComputeIdentity {
            binding: Some(binding),
            ..
        }) = &observed.identity
    {
        observed.memory.deleted = Some((binding.id.clone(), now));
    }
}

/// True if the list lacks the compute that the resource is bound to.
fn is_missing(observed: &ComputeObserved) -> bool {
    let id = observed
        .identity
        .as_ref()
        .ok()
        .and_then(|identity| Some(&identity.binding.as_ref()?.id));
    let (Some(id), SnapshotState::Taken { computes, .. }) = (id, &observed.snapshot) else {
        return false;
    };
    computes.shown().iter().all(|compute| compute.id != *id)
}

/// A shipped kind, except that a rule is broken in its decision.
macro_rules! mutated {
    ($name:ident, $kind:ty, $object:ty, $facts:ty, $step:ty, $status:ty, $decide:ident) => {
        #[derive(Debug)]
        pub struct $name;

        impl Kind for $name {
            type Object = $object;
            type Facts = $facts;
            type Step = $step;
            const USES_ACCOUNT: bool = <$kind as Kind>::USES_ACCOUNT;

            async fn observe<E: Environment>(
                env: &E,
                object: &$object,
                now: Timestamp,
            ) -> Result<Observation<$facts, E::Client>, kube::Error> {
                let mut observation = <$kind>::observe(env, object, now).await?;
                if mutation() == Some(Mutation::SkipRestore) {
                    observation.observed.meta.record_lost = false;
                }
                Ok(observation)
            }

            fn decide(
                object: &$object,
                observed: &Observed<$facts>,
                now: Timestamp,
            ) -> Decision<$step> {
                decides_on(observed, now);
                $decide(object, observed, now)
            }

            async fn perform<E: Environment>(
                env: &E,
                object: &$object,
                step: &$step,
            ) -> Result<(), StepError> {
                resolves(step);
                <$kind>::perform(env, object, step).await
            }

            fn status(
                report: &Report,
                object: &$object,
                observed: &Observed<$facts>,
                now: Timestamp,
            ) -> $status {
                let status = <$kind>::status(report, object, observed, now);
                let meta = &observed.meta;
                let copied = (meta.record_lost, meta.deleting, meta.paused);
                resolves_to_report(&status, (status.record.as_deref(), copied));
                status
            }

            fn change<'a>(object: &$object, step: &'a $step) -> Change<'a> {
                match <$kind>::change(object, step) {
                    // The model has no other writers that undo repairs.
                    Change::Repair(_) => Change::Other,
                    _ if mutation() == Some(Mutation::IgnoreBrake) => Change::Other,
                    change => change,
                }
            }

            fn relations(object: &$object) -> Relations<'_> {
                Relations {
                    account: <$kind>::relations(object).account,
                    ..Relations::default()
                }
            }

            fn on_deleted<E: Environment>(env: &E, object: &$object) {
                <$kind>::on_deleted(env, object);
            }
        }
    };
}

mutated!(
    MutatedComputes,
    Computes,
    Known<Compute>,
    ComputeFacts,
    ComputeStep,
    ComputeStatus,
    decide_compute
);
mutated!(
    MutatedKeys,
    ProjectKeys,
    Known<ProjectKey>,
    KeyFacts,
    KeyStep,
    ProjectKeyStatus,
    decide_key
);

fn decide_compute(
    object: &Known<Compute>,
    observed: &ComputeObserved,
    now: Timestamp,
) -> Decision<ComputeStep> {
    let Some(mutation) = mutation() else {
        return Computes::decide(object, observed, now);
    };
    let mut observed = observed.clone();
    mutation.observing_compute(&mut observed, now);
    let mut decision = Computes::decide(object, &observed, now);
    decision
        .step
        .iter_mut()
        .for_each(|step| mutation.choosing_compute(step));
    decision
}

fn decide_key(
    object: &Known<ProjectKey>,
    observed: &KeyObserved,
    now: Timestamp,
) -> Decision<KeyStep> {
    let Some(mutation) = mutation() else {
        return ProjectKeys::decide(object, observed, now);
    };
    let mut observed = observed.clone();
    mutation.observing_key(&mut observed);
    let mut decision = ProjectKeys::decide(object, &observed, now);
    decision
        .step
        .iter_mut()
        .for_each(|step| mutation.choosing_key(step));
    decision
}

/// The same for the kind of accounts `A`.
#[derive(Debug)]
pub struct MutatedAccounts<A>(PhantomData<fn() -> A>);

impl<A: AnyAccount> Kind for MutatedAccounts<A> {
    type Object = A;
    type Facts = AccountFacts;
    type Step = AccountStep;
    const IS_ACCOUNT: bool = true;

    async fn observe<E: Environment>(
        env: &E,
        object: &A,
        now: Timestamp,
    ) -> Result<Observation<AccountFacts, E::Client>, kube::Error> {
        let mut observation = Accounts::<A>::observe(env, object, now).await?;
        if let Some(mutation) = mutation() {
            mutation.observing_account(&mut observation.observed);
            let account = observation.effects.account.take();
            observation.effects.account = account.map(|(name, entry)| {
                let entry = account_entry(entry.connection, &observation.observed);
                (name, entry)
            });
        }
        Ok(observation)
    }

    fn decide(object: &A, observed: &AccountObserved, now: Timestamp) -> Decision<AccountStep> {
        decides_on(&(&observed.meta, &observed.facts), now);
        Accounts::<A>::decide(object, observed, now)
    }

    async fn perform<E: Environment>(
        env: &E,
        object: &A,
        step: &AccountStep,
    ) -> Result<(), StepError> {
        resolves(step);
        Accounts::<A>::perform(env, object, step).await
    }

    fn status(
        report: &Report,
        object: &A,
        observed: &AccountObserved,
        now: Timestamp,
    ) -> dbplane::api::AccountStatus {
        let status = Accounts::<A>::status(report, object, observed, now);
        resolves_to_report(&status, (None, ()));
        status
    }

    fn relations(object: &A) -> Relations<'_> {
        Accounts::<A>::relations(object)
    }

    fn on_deleted<E: Environment>(env: &E, object: &A) {
        Accounts::<A>::on_deleted(env, object);
    }
}
