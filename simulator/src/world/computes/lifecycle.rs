//! Changes of computes over time: chains of operations, inactivity and availability checks.

use jiff::{SignedDuration, Timestamp};

use crate::world::computes::sizes::{Plan, Size};
use crate::world::model::{Action, Compute, Effect, Failing, Operation, Owner, State, Step};
use crate::world::{ComputeKey, Profile, World};

/// Retention of operation records.
const OPERATIONS_KEPT: SignedDuration = SignedDuration::from_hours(24 * 180);

/// Delay between a failure of an operation and its next try.
const TRIED_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// The next event that a compute causes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// Its first pending step.
    Step,
    /// Its inactivity period has passed.
    Inactive,
    /// The platform checks that it can start.
    Check,
}

impl Compute {
    /// The state after all pending steps.
    pub(in crate::world) fn target_state(&self) -> State {
        self.steps.iter().fold(self.state, |state, step| {
            step.effect.leads_to().unwrap_or(state)
        })
    }
}

impl World {
    /// Processes all events that are due at `now`. An earlier `now` changes nothing.
    pub fn advance_to(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        self.plan_stale();
        while let Some(key) = self.agenda.next_due(self.now) {
            self.step(&key);
            self.plan_stale();
        }
        // Other profiles have no expirations.
        if !self.profile.obeys() {
            self.expire_branches();
            self.plan_stale();
        }
    }

    fn plan_stale(&mut self) {
        if self.agenda.take_blank() {
            self.plan_all_again();
        }
        for key in self.agenda.take_stale() {
            let at = self
                .computes
                .get(&key)
                .and_then(|compute| self.next_event(compute))
                .map(|(at, _)| at);
            self.agenda.plan(key, at);
        }
    }

    /// The compute's next event, and its time.
    fn next_event(&self, compute: &Compute) -> Option<(Timestamp, Event)> {
        if let Some(step) = compute.steps.first() {
            return Some((step.at, Event::Step));
        }
        match compute.state {
            State::Active => {
                let since = compute.last_active.unwrap_or(compute.created_at);
                let due = since + self.inactivity_of(compute)?;
                Some((due.max(self.last_change(compute)), Event::Inactive))
            }
            State::Idle if self.profile.adds() && !compute.config.disabled => {
                let every = self.head.settings.availability_check_seconds?;
                let since = compute.suspended_at.unwrap_or(compute.created_at);
                let due = since + SignedDuration::from_secs(i64::from(every.max(1)));
                Some((due.max(self.last_change(compute)), Event::Check))
            }
            State::Idle | State::Init => None,
        }
    }

    /// The last change of anything that affects the compute's own events. They cannot be due
    /// earlier.
    fn last_change(&self, compute: &Compute) -> Timestamp {
        self.head
            .plans_changed_at
            .map_or(compute.updated_at, |at| at.max(compute.updated_at))
    }

    fn step(&mut self, key: &ComputeKey) {
        let Some((at, event)) = self
            .computes
            .get(key)
            .and_then(|compute| self.next_event(compute))
        else {
            return;
        };
        match event {
            Event::Step => self.take_step(key),
            Event::Inactive => {
                self.schedule(key, &[Action::SuspendCompute], at);
            }
            Event::Check => {
                self.schedule(key, &[Action::CheckAvailability], at);
            }
        }
    }

    fn take_step(&mut self, key: &ComputeKey) {
        let Some(compute) = self.compute_mut(key) else {
            return;
        };
        let step = compute.steps.remove(0);
        let was = compute.state;
        compute.updated_at = step.at;
        match step.effect {
            Effect::Started => {
                compute.state = State::Active;
                compute.last_active = Some(step.at);
                compute.started_at = Some(step.at);
            }
            Effect::Checked => {
                compute.state = State::Active;
                compute.started_at = Some(step.at);
            }
            Effect::Suspended => {
                compute.state = State::Idle;
                compute.suspended_at = Some(step.at);
                compute.interruptions += u64::from(was == State::Active);
            }
            Effect::Applied | Effect::GaveUp => {}
        }
        let ran = (was == State::Active && step.effect == Effect::Suspended)
            .then(|| work_done(compute, step.at));
        if let (Some(work), Some(project)) = (ran, self.projects.get_mut(&key.0)) {
            project.cpu_used_sec += work;
        }
    }

    /// Starts a chain of operations at `at`: the first one runs, the others wait. It cancels
    /// operations in progress.
    pub(in crate::world) fn schedule(
        &mut self,
        key: &ComputeKey,
        actions: &[Action],
        at: Timestamp,
    ) -> Vec<Operation> {
        self.cancel_steps(key, at);
        self.chain(key, actions, at, at)
    }

    /// Appends operations to those in progress.
    pub(in crate::world) fn append(
        &mut self,
        key: &ComputeKey,
        actions: &[Action],
        at: Timestamp,
    ) -> Vec<Operation> {
        let from = self
            .computes
            .get(key)
            .and_then(|compute| compute.steps.last())
            .map_or(at, |step| step.at);
        self.chain(key, actions, at, from)
    }

    fn chain(
        &mut self,
        key: &ComputeKey,
        actions: &[Action],
        created_at: Timestamp,
        from: Timestamp,
    ) -> Vec<Operation> {
        let Some(compute) = self.computes.get(key) else {
            return Vec::new();
        };
        let branch_id = compute.config.branch_id.clone();
        let mut at = from;
        let mut made = Vec::new();
        let mut given_up = None;
        for action in actions {
            let number = self.head.next_operation;
            self.head.next_operation += 1;
            let starts_at = at;
            let mut steps = Vec::new();
            for (effect, milliseconds) in self.effects_of(*action) {
                at += SignedDuration::from_millis(i64::from(milliseconds.max(1)));
                steps.push(Step {
                    at,
                    effect,
                    operation: number,
                });
            }
            let failing = self.failing(*action, starts_at, at);
            if let Some(last) = failing
                .as_ref()
                .and_then(|failing| failing.at.last().copied())
            {
                at = last;
                steps = vec![Step {
                    at,
                    effect: Effect::GaveUp,
                    operation: number,
                }];
            }
            if given_up.is_some() {
                steps.clear();
            }
            let operation = Operation {
                id: self.head.generator.uuid(),
                number,
                project_id: key.0.clone(),
                branch_id: branch_id.clone(),
                endpoint_id: key.1.clone(),
                action: *action,
                created_at,
                starts_at,
                ends_at: at,
                cancelled_at: given_up,
                failing: failing.clone(),
            };
            given_up = given_up.or(failing.map(|_| at));
            if let Some(compute) = self.compute_mut(key) {
                compute.steps.extend(steps);
            }
            self.record(operation.clone());
            made.push(operation);
        }
        made
    }

    /// The ordered failure of an operation that runs from `start` to `end`, if there is one.
    fn failing(&mut self, action: Action, start: Timestamp, end: Timestamp) -> Option<Failing> {
        let order = self
            .failures
            .iter_mut()
            .find(|order| order.action == action && order.operations > 0)?;
        order.operations -= 1;
        let (tries, error) = (order.tries.max(1), order.error.clone());
        let one = end.duration_since(start) + TRIED_AGAIN_AFTER;
        Some(Failing {
            at: (0..tries)
                .map(|before| end + one * i32::try_from(before).unwrap_or(i32::MAX))
                .collect(),
            error,
        })
    }

    /// The effects of an operation on its compute, and the milliseconds that each part takes.
    fn effects_of(&self, action: Action) -> Vec<(Effect, u32)> {
        let settings = &self.head.settings;
        match action {
            Action::StartCompute => vec![(Effect::Started, settings.start_ms)],
            Action::SuspendCompute => vec![(Effect::Suspended, settings.suspend_ms)],
            Action::ApplyConfig => vec![(Effect::Applied, settings.apply_ms)],
            Action::CheckAvailability => {
                vec![
                    (Effect::Checked, settings.start_ms),
                    (Effect::Suspended, settings.suspend_ms),
                ]
            }
        }
    }

    fn cancel_steps(&mut self, key: &ComputeKey, at: Timestamp) {
        let Some(compute) = self.compute_mut(key) else {
            return;
        };
        for step in std::mem::take(&mut compute.steps) {
            if let Some(operation) = self.operations.get_mut(&(key.0.clone(), step.operation)) {
                operation.cancelled_at = Some(at);
            }
        }
    }

    fn record(&mut self, operation: Operation) {
        let oldest = self
            .now
            .checked_sub(OPERATIONS_KEPT)
            .unwrap_or(Timestamp::MIN);
        let project = operation.project_id.clone();
        let first = (project.clone(), 0)..(project.clone(), operation.number);
        let expired = self
            .operations
            .range(first)
            .next()
            .filter(|(_, first)| first.created_at < oldest);
        if let Some(key) = expired.map(|(key, _)| key.clone()) {
            self.operations.remove(&key);
        }
        self.operations
            .insert((project, operation.number), operation);
    }

    /// Removes the records of a project's operations from this number on, as if they had never been
    /// requested.
    pub(in crate::world) fn forget_operations(&mut self, project_id: &str, first: u64) {
        let since = (project_id.to_owned(), first)..=(project_id.to_owned(), u64::MAX);
        let forgotten: Vec<_> = self
            .operations
            .range(since)
            .map(|(key, _)| key.clone())
            .collect();
        for key in forgotten {
            self.operations.remove(&key);
        }
    }

    /// Mutable access to a compute. Every change must use it, so that the compute's events are
    /// planned again.
    pub(in crate::world) fn compute_mut(&mut self, key: &ComputeKey) -> Option<&mut Compute> {
        self.agenda.stale(key);
        self.computes.get_mut(key)
    }

    /// Plans all computes again after a change of a plan or of a project's owner.
    pub(in crate::world) fn plans_changed(&mut self) {
        self.head.plans_changed_at = Some(self.now);
        self.head_touched = true;
        self.plan_all_again();
    }

    fn plan_all_again(&mut self) {
        for (key, _) in self.computes.iter() {
            self.agenda.stale(key);
        }
    }

    /// The inactivity after which the compute is suspended; `None` is never.
    fn inactivity_of(&self, compute: &Compute) -> Option<SignedDuration> {
        let project = self.projects.get(&compute.project_id);
        let plan = project.map_or(Plan::Scale, |project| self.plan_of(&project.owner));
        let own = match (self.profile, plan) {
            (Profile::Public, Plan::Free) => 0,
            _ => compute.config.suspend_timeout_seconds,
        };
        let default = project.map_or(0, |project| project.defaults.suspend_timeout_seconds);
        match (self.profile, if own == 0 { default } else { own }) {
            (_, ..0) => None,
            (Profile::Public, _) if compute.config.range.max > Size::LARGEST_AUTOSCALED => None,
            (_, 0) => Some(self.head.settings.inactivity()),
            (_, seconds) => Some(SignedDuration::from_secs(seconds)),
        }
    }

    /// The plan of the owner.
    pub(in crate::world) fn plan_of(&self, owner: &Owner) -> Plan {
        let plan = match owner {
            Owner::User(id) => self.head.users.get(id).map(|user| user.plan),
            Owner::Organization(id) => self
                .head
                .organizations
                .get(id)
                .map(|organization| organization.plan),
        };
        plan.unwrap_or(Plan::Free)
    }
}

/// Compute seconds since the start, weighted by size.
pub(in crate::world) fn work_done(compute: &Compute, until: Timestamp) -> u64 {
    let seconds = until.as_second() - compute.started_at.unwrap_or(until).as_second();
    u64::try_from(seconds).unwrap_or_default() * u64::from(compute.current_size.quarters()) / 4
}
