//! The rate budget of one account: how many requests dbplane may send to the platform, and in which
//! order.
//!
//! Changes go first, then reads that a decision waits for, then regular polls, then early polls.
//! Within each class, namespaces take turns. Reads and polls may each use only a share, so a change
//! can be sent at once even under a full load of reads. A request that was overtaken often enough
//! is next, so a long run of changes does not block the reads that show their result. An early poll
//! never becomes urgent.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::organizations::Organization;
use super::rate::{Rate, at_least_one};
use super::turns::{Party, Turns};

/// A random number from 0 (included) to 1 (excluded).
pub type Jitter = fn() -> f64;

/// Percentage of the budget that reads may use.
const READ_SHARE: u32 = 80;
/// Percentage of the budget that polls may use.
const POLL_SHARE: u32 = 50;
/// How often a request of each priority may be overtaken before it competes as an equal.
const PATIENCE: [u32; PRIORITIES] = [0, 10, 10, u32::MAX];
/// Key creates per second. Platforms limit them more than any other request.
const KEYS_A_SECOND: u32 = 2;
/// The pause after a first 429 without Retry-After. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The purpose of a request, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A change.
    Change,
    /// A read that a caller waits for.
    FreshRead,
    /// A regular read that looks for changes.
    Poll,
    /// A poll before its regular time, because a change is expected.
    EarlyPoll,
}

const PRIORITIES: usize = 4;

impl Priority {
    const ALL: [Self; PRIORITIES] = [Self::Change, Self::FreshRead, Self::Poll, Self::EarlyPoll];

    /// A name from a closed set, for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::FreshRead => "fresh_read",
            Self::Poll => "poll",
            Self::EarlyPoll => "early_poll",
        }
    }
}

/// The current state of a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetFigures {
    /// Limit of requests in any minute.
    pub requests_per_minute: u32,
    /// Requests that may be sent at once; none during a pause.
    pub left: u32,
    /// Time until the end of the pause.
    pub pause: Duration,
    pub waits: Vec<WaitFigures>,
}

/// Requests of one priority that wait or have waited for the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitFigures {
    pub priority: Priority,
    pub waiting: u32,
    /// Total waiting time of all requests.
    pub waited: Duration,
}

/// tokio's clock, so that waiting and counting agree even if a test moves the time.
#[derive(Clone, Copy, Debug)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, TokioClock, StateInformationMiddleware>;

fn limiter(quota: Quota, clock: TokioClock) -> Limiter {
    RateLimiter::direct_with_clock(quota, clock).with_middleware()
}

/// The rate budget of one account, shared by everything that calls the platform for it.
pub struct Budget {
    /// One limiter per priority. A request must pass the limiter of its own priority and those of
    /// all more urgent ones.
    shares: [Limiter; PRIORITIES],
    keys: Limiter,
    key_lane: Turns,
    lanes: [Turns; PRIORITIES],
    state: Mutex<BudgetState>,
    changed: Notify,
    jitter: Jitter,
    rate: Rate,
    /// The organization whose shared budget also limits these requests.
    organization: OnceLock<Arc<Organization>>,
    unlimited: bool,
}

#[derive(Debug, Default)]
struct BudgetState {
    waiting: [u32; PRIORITIES],
    /// Total waiting time of all requests until `counted`.
    waited: [Duration; PRIORITIES],
    counted: Option<Instant>,
    /// The burst that was left after the last granted request, and the time of that request.
    left: Option<(Instant, u32)>,
    overtaken: [u32; PRIORITIES],
    paused_until: Option<Instant>,
    /// Consecutive pauses without a success in between.
    pauses: u32,
}

impl BudgetState {
    fn count_waits(&mut self) {
        let now = Instant::now();
        let since = self.counted.replace(now).unwrap_or(now);
        for (waited, waiting) in self.waited.iter_mut().zip(self.waiting) {
            *waited += (now - since) * waiting;
        }
    }

    fn left(&self, of: Quota) -> u32 {
        let most = of.burst_size().get();
        let Some((at, left)) = self.left else {
            return most;
        };
        let regained = at.elapsed().as_nanos() / of.replenish_interval().as_nanos().max(1);
        u32::try_from(regained).map_or(most, |regained| left.saturating_add(regained).min(most))
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("state", &*self.state())
            .finish_non_exhaustive()
    }
}

impl Budget {
    pub fn new(rate: Rate) -> Self {
        Self::with_jitter(rate, rand::random)
    }

    /// A full budget. `jitter` shortens its pauses by a random part.
    pub fn with_jitter(rate: Rate, jitter: Jitter) -> Self {
        let clock = TokioClock(Instant::now());
        let keys = Quota::per_second(at_least_one(KEYS_A_SECOND));
        Self {
            shares: [100, READ_SHARE, POLL_SHARE, 100]
                .map(|percent| limiter(rate.share(percent), clock)),
            keys: limiter(keys, clock),
            key_lane: Turns::default(),
            lanes: Default::default(),
            state: Mutex::default(),
            changed: Notify::new(),
            jitter,
            rate,
            organization: OnceLock::new(),
            unlimited: false,
        }
    }

    /// A budget without limits, for simulated time, in which waiting is not possible.
    pub fn unlimited() -> Self {
        Self {
            unlimited: true,
            ..Self::with_jitter(Rate::default(), || 0.0)
        }
    }

    /// Waits until one request may be sent. If the caller stops waiting, only the limiters that it
    /// has already passed have counted the request.
    pub async fn acquire(&self, priority: Priority, party: &Party) {
        if self.unlimited {
            return;
        }
        let _place = WaitingRequest::take(self, priority as usize);
        self.granted(priority, party).await;
        if let Some(organization) = self.organization.get() {
            let shared = organization.budget();
            let _place = WaitingRequest::take(&shared, priority as usize);
            shared.granted(priority, party).await;
        }
    }

    /// From now on, requests also count against the budget of the organization.
    pub(super) fn join(&self, organization: Arc<Organization>) {
        // Later calls have no effect: an account has one organization.
        let _ = self.organization.set(organization);
    }

    pub(super) fn has_joined(&self) -> bool {
        self.organization.get().is_some()
    }

    async fn granted(&self, priority: Priority, party: &Party) {
        let lane = priority as usize;
        let _turn = self.lanes[lane].take(party).await;
        let mut share = lane;
        loop {
            let changed = self.changed.notified();
            match self.attempt(lane, &mut share) {
                SlotState::Granted => return,
                SlotState::At(instant) => tokio::select! {
                    () = sleep_until(instant) => {}
                    () = changed => {}
                },
                SlotState::AfterOthers => changed.await,
            }
        }
    }

    /// Waits until one key may be created.
    pub async fn acquire_key_creation(&self, party: &Party) {
        if self.unlimited {
            return;
        }
        {
            let _turn = self.key_lane.take(party).await;
            while let Err(refused) = self.keys.check() {
                tokio::time::sleep(refused.wait_time_from(self.keys.clock().now())).await;
            }
        }
        self.acquire(Priority::Change, party).await;
    }

    /// The platform asked for fewer requests: nothing is sent for `retry_after`. Without it, the
    /// pause doubles each time from 1 s to 60 s, minus a random part of up to half.
    pub fn throttled(&self, retry_after: Option<Duration>) {
        if self.unlimited {
            return;
        }
        let now = Instant::now();
        let mut state = self.state();
        // Requests that were in progress together are rejected together. They count as one.
        if state.paused_until.is_none_or(|until| until <= now) {
            state.pauses = state.pauses.saturating_add(1);
        }
        let pause = retry_after.unwrap_or_else(|| {
            let doubled = FIRST_PAUSE.saturating_mul(1 << (state.pauses.saturating_sub(1)).min(6));
            doubled
                .min(LONGEST_PAUSE)
                .mul_f64(1.0 - (self.jitter)() / 2.0)
        });
        let until = now + pause;
        state.paused_until = Some(
            state
                .paused_until
                .map_or(until, |earlier| earlier.max(until)),
        );
    }

    /// The platform carried out a request, so the next pause is short again.
    pub fn succeeded(&self) {
        let mut state = self.state();
        if state.paused_until.is_none() {
            state.pauses = 0;
        }
    }

    /// The remaining pause, if there is one.
    pub fn pause(&self) -> Option<Duration> {
        let until = self.state().paused_until?;
        until
            .checked_duration_since(Instant::now())
            .filter(|pause| !pause.is_zero())
    }

    pub fn figures(&self) -> BudgetFigures {
        let pause = self.pause();
        let mut state = self.state();
        state.count_waits();
        let waits = Priority::ALL.map(|priority| WaitFigures {
            priority,
            waiting: state.waiting[priority as usize],
            waited: state.waited[priority as usize],
        });
        BudgetFigures {
            requests_per_minute: self.rate.requests_per_minute,
            left: if pause.is_some() {
                0
            } else {
                state.left(self.rate.share(100))
            },
            pause: pause.unwrap_or_default(),
            waits: waits.to_vec(),
        }
    }

    fn attempt(&self, lane: usize, share: &mut usize) -> SlotState {
        let mut state = self.state();
        if let Some(until) = state.paused_until {
            if Instant::now() < until {
                return SlotState::At(until);
            }
            state.paused_until = None;
            self.drain();
            state.left = Some((Instant::now(), 0));
        }
        let outranked = state.waiting[..lane].iter().any(|waiting| *waiting > 0);
        if outranked && state.overtaken[lane] < PATIENCE[lane] {
            return SlotState::AfterOthers;
        }
        loop {
            let limiter = &self.shares[*share];
            let granted = match limiter.check() {
                Ok(granted) => granted,
                Err(refused) => {
                    return SlotState::At(
                        Instant::now() + refused.wait_time_from(limiter.clock().now()),
                    );
                }
            };
            if *share == 0 {
                state.left = Some((Instant::now(), granted.remaining_burst_capacity()));
                break;
            }
            *share -= 1;
        }
        state.overtaken[lane] = 0;
        for lower in lane + 1..PRIORITIES {
            if state.waiting[lower] > 0 {
                state.overtaken[lower] = state.overtaken[lower].saturating_add(1);
            }
        }
        SlotState::Granted
    }

    /// After a pause, requests are sent at the steady rate, without a saved-up burst.
    fn drain(&self) {
        for share in &self.shares {
            while share.check().is_ok() {}
        }
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum SlotState {
    Granted,
    At(Instant),
    AfterOthers,
}

/// A place among the waiting requests. Dropping it gives it up, also if the caller stops waiting.
struct WaitingRequest<'a>(&'a Budget, usize);

impl<'a> WaitingRequest<'a> {
    fn take(budget: &'a Budget, lane: usize) -> Self {
        let mut state = budget.state();
        state.count_waits();
        state.waiting[lane] += 1;
        Self(budget, lane)
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        {
            let mut state = self.0.state();
            state.count_waits();
            state.waiting[self.1] -= 1;
        }
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
