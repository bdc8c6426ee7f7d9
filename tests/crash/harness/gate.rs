//! The gate of the proxy: numbers the requests, decides which ones fail, and logs all of them.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::modes::{Fault, Mode, Place, Side};
use super::passages::{Passage, Passages, Purpose};

/// How long the API server refuses writes in an outage.
const OUTAGE: Duration = Duration::from_secs(3);

/// Number of alike requests that are counted, in scenarios that repeat them while they wait.
const DIFFERENT: usize = 4;

#[derive(Debug)]
pub struct Gate {
    state: Mutex<State>,
    /// Number of alike requests that are counted.
    alike: usize,
}

#[derive(Debug, Default)]
struct State {
    armed: bool,
    counted: Vec<Counted>,
    /// Requests for the Lease. They depend on time, so they are counted separately.
    lease_requests: usize,
    /// In the order in which they are due.
    faults: VecDeque<Fault>,
    met: Vec<Met>,
    /// Number of processes started so far.
    processes: usize,
    victim: Option<Process>,
    down_until: Option<Instant>,
    last_write: Option<Instant>,
    passages: Passages,
    /// Number of requests by kind. Events to the same API path are alike.
    alike: BTreeMap<String, usize>,
    /// Tokens of keys in the platform's answers.
    tokens: Vec<String>,
    /// Purposes of the requests that created something twice.
    made_twice: Vec<Purpose>,
}

/// A process of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Starts at 1, in the order in which processes are started.
    pub number: usize,
    pub id: u32,
}

/// A request with a number.
#[derive(Clone, Debug)]
pub struct Counted {
    pub side: Side,
    pub write: bool,
    pub purpose: Purpose,
}

/// A request that met its fault.
#[derive(Clone, Debug)]
pub struct Met {
    pub mode: Mode,
    pub purpose: Purpose,
    /// The process that the fault hit.
    pub victim: Option<Process>,
}

/// The path of a request target, without the query.
pub fn path(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

/// The gate's decision about a request.
pub enum Verdict {
    Pass,
    Fail(Mode),
    /// The API server is down.
    Unavailable,
}

/// A request as the gate sees it.
pub struct Caller<'a> {
    /// The number of its process.
    pub process: usize,
    pub side: Side,
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    pub body: &'a [u8],
}

impl Caller<'_> {
    fn kind(&self) -> String {
        let path = path(self.target);
        let path = path
            .split_once("/events/")
            .map_or(path, |(before, _)| before);
        format!("{} {path}", self.method)
    }

    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// Watches are not counted: they stream, and their number of renewals depends on time.
    pub fn is_watch(&self) -> bool {
        self.side == Side::ApiServer && self.target.contains("watch=true")
    }

    /// Requests for the Lease depend on time.
    fn is_of_lease(&self) -> bool {
        matches!(self.purpose(), Purpose::ReadsLease | Purpose::WritesLease)
    }

    /// A hash of the request, equal for equal requests of any process.
    fn asks(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.method, self.target, self.body).hash(&mut hasher);
        hasher.finish()
    }

    fn counted(&self) -> Counted {
        Counted {
            side: self.side,
            write: self.is_write(),
            purpose: self.purpose(),
        }
    }

    fn purpose(&self) -> Purpose {
        let path = path(self.target);
        match self.side {
            Side::ApiServer if path.contains("/leases") && self.is_write() => Purpose::WritesLease,
            Side::ApiServer if path.contains("/leases") => Purpose::ReadsLease,
            Side::ApiServer
                if self.is_write()
                    && path.contains("/secrets")
                    && !self.target.contains("dryRun") =>
            {
                Purpose::WritesSecret
            }
            Side::ApiServer if self.is_write() && path.contains("/projectkeys/") => {
                Purpose::WritesProjectKey
            }
            Side::ApiServer if self.is_write() && path.contains("/computes/") => {
                Purpose::WritesCompute
            }
            Side::Platform if self.method == "POST" && path.ends_with("/api_keys") => {
                Purpose::CreatesKey
            }
            Side::Platform if self.method == "POST" && path.ends_with("/endpoints") => {
                Purpose::CreatesCompute
            }
            Side::Platform if self.method == "PATCH" && path.contains("/endpoints/") => {
                Purpose::ChangesCompute
            }
            Side::Platform if self.method == "POST" && path.ends_with("/restart") => {
                Purpose::RestartsCompute
            }
            Side::Platform if self.is_write() => Purpose::ChangesPlatform,
            Side::ApiServer | Side::Platform => Purpose::Other,
        }
    }
}

impl State {
    /// Assigns a number to the request; `None` if it is not counted.
    fn count(&mut self, caller: &Caller, most: usize) -> Option<Place> {
        if !self.armed || caller.is_watch() {
            return None;
        }
        if caller.is_of_lease() {
            self.lease_requests += 1;
            return Some(Place::Lease(self.lease_requests));
        }
        let times = self.alike.entry(caller.kind()).or_default();
        *times += 1;
        if *times > most {
            return None;
        }
        self.counted.push(caller.counted());
        Some(Place::Request(self.counted.len()))
    }

    /// Takes the next fault if this request meets it.
    fn fault(&mut self, caller: &Caller, place: Place) -> Option<Mode> {
        let fault = self.faults.front()?;
        let due = place.is_due(fault.at) && fault.mode.suits(&caller.counted());
        let mode = fault.mode;
        due.then(|| self.faults.pop_front())?;
        Some(mode)
    }
}

impl Gate {
    /// With `repeats`, further alike requests are not counted: their number varies too much between
    /// runs.
    pub fn new(repeats: bool) -> Self {
        Self {
            state: Mutex::default(),
            alike: if repeats { DIFFERENT } else { usize::MAX },
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to count requests. These faults become due one after the other.
    pub fn arm(&self, faults: &[Fault]) {
        let mut state = self.state();
        state.armed = true;
        state.faults = faults.iter().copied().collect();
        state.last_write = Some(Instant::now());
    }

    /// Drops the remaining faults. Returns how many were met.
    pub fn disarm(&self) -> usize {
        let mut state = self.state();
        state.faults.clear();
        state.met.len()
    }

    /// True if the next fault is at a request for the Lease. It needs no act, because a leader
    /// keeps renewing its Lease.
    pub fn awaits_lease_request(&self) -> bool {
        self.state()
            .faults
            .front()
            .is_some_and(|fault| matches!(fault.at, Place::Lease(_)))
    }

    /// Assigns the number of a process that is about to start.
    pub fn admit(&self) -> usize {
        let mut state = self.state();
        state.processes += 1;
        let number = state.processes;
        state.passages.begins(number);
        number
    }

    /// Sets the process that faults hit.
    pub fn aim(&self, process: Process) {
        self.state().victim = Some(process);
    }

    /// Handles the arrival of a request. Returns its index in the log and the decision.
    pub fn arrives(&self, caller: &Caller) -> (usize, Verdict) {
        let mut state = self.state();
        let (write, purpose) = (caller.is_write(), caller.purpose());
        if write && !caller.is_of_lease() {
            state.last_write = Some(Instant::now());
        }
        let counted = state.count(caller, self.alike);
        let number = counted.map_or_else(|| "-".to_owned(), |place| format!("#{place}"));
        let process = caller.process;
        let line = format!(
            "process {process} {number} {:?} {} {}",
            caller.side, caller.method, caller.target
        );
        let place = state.passages.add(Passage {
            line,
            process,
            purpose,
            asks: caller.asks(),
            withheld: false,
            status: None,
            at: Instant::now(),
        });
        let down = state.down_until.is_some_and(|until| Instant::now() < until);
        if down && write && caller.side == Side::ApiServer {
            state.passages.note(place, " [outage]");
            return (place, Verdict::Unavailable);
        }
        let Some(mode) = counted.and_then(|counted| state.fault(caller, counted)) else {
            return (place, Verdict::Pass);
        };
        let victim = state.victim;
        state.met.push(Met {
            mode,
            purpose,
            victim,
        });
        // A kill that hits another process also closes the sender's connection.
        let lives = victim.is_none_or(|victim| victim.number != process);
        if mode.withholds() || mode == Mode::KillAfter && lives {
            state.passages.withheld(place);
        }
        state.passages.note(place, &format!(" [{mode}]"));
        (place, Verdict::Fail(mode))
    }

    pub fn answered(&self, place: usize, status: u16) {
        self.state().passages.answered(place, status);
    }

    pub fn saw_token(&self, token: String) {
        self.state().tokens.push(token);
    }

    pub fn saw_made_twice(&self, place: usize) {
        let mut state = self.state();
        let purpose = state.passages.purpose(place);
        state.made_twice.push(purpose);
    }

    /// Number of requests with this purpose that created something twice.
    pub fn made_twice(&self, purpose: Purpose) -> usize {
        self.state()
            .made_twice
            .iter()
            .filter(|made| **made == purpose)
            .count()
    }

    pub fn begin_outage(&self) {
        self.state().down_until = Some(Instant::now() + OUTAGE);
    }

    pub fn signal(&self, signal: Signal) {
        let mut state = self.state();
        let Some(victim) = state.victim else { return };
        // The process may have exited by itself; that is detected and reported elsewhere.
        let _ = kill(Pid::from_raw(victim.id.cast_signed()), signal);
        state.passages.signalled(victim.number, signal);
    }

    /// True if the newest process has read the Lease.
    pub fn newest_waits(&self) -> bool {
        let state = self.state();
        state.passages.asks_for_lead(state.processes)
    }

    /// True if the newest process is the leader.
    pub fn newest_leads(&self) -> bool {
        let state = self.state();
        state.passages.leader() == Some(state.processes)
    }

    /// Records an act that may cause writes.
    pub fn touch(&self) {
        self.state().last_write = Some(Instant::now());
    }

    /// Time since the last write through the proxy. Renewals of the Lease do not count.
    pub fn quiet_for(&self) -> Duration {
        self.state()
            .last_write
            .map_or(Duration::MAX, |last| last.elapsed())
    }

    pub fn met(&self) -> Vec<Met> {
        self.state().met.clone()
    }

    pub fn counted(&self) -> Vec<Counted> {
        self.state().counted.clone()
    }

    pub fn passages(&self) -> Passages {
        self.state().passages.clone()
    }

    pub fn tokens(&self) -> Vec<String> {
        self.state().tokens.clone()
    }
}
