//! What passes the proxy: a number for each request, those that go wrong, and a log of all.

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

/// How many requests that are alike have a number, where they are repeated for as long as something else takes.
const DIFFERENT: usize = 4;

#[derive(Debug)]
pub struct Gate {
    state: Mutex<State>,
    /// How many requests that are alike have a number.
    alike: usize,
}

#[derive(Debug, Default)]
struct State {
    armed: bool,
    counted: Vec<Counted>,
    /// Requests for the Lease, which come by time and are counted apart.
    lease_requests: usize,
    /// In the order in which they are waited for.
    faults: VecDeque<Fault>,
    met: Vec<Met>,
    /// How many processes were started.
    processes: usize,
    victim: Option<Process>,
    down_until: Option<Instant>,
    last_write: Option<Instant>,
    passages: Passages,
    /// How often each was made: what differs between events is left out.
    alike: BTreeMap<String, usize>,
    /// The keys' secrets that the platform has answered with.
    tokens: Vec<String>,
    /// What requests were for that made something twice.
    made_twice: Vec<Purpose>,
}

/// An operator's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// From 1 on, in the order in which they were started.
    pub number: usize,
    pub id: u32,
}

/// A request that has a number.
#[derive(Clone, Debug)]
pub struct Counted {
    pub side: Side,
    pub write: bool,
    pub purpose: Purpose,
}

/// The request that went wrong.
#[derive(Clone, Debug)]
pub struct Met {
    pub mode: Mode,
    pub purpose: Purpose,
    /// The process that it hit.
    pub victim: Option<Process>,
}

/// What is asked for, without the query.
pub fn path(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

/// What is to be done with a request.
pub enum Verdict {
    Pass,
    Fail(Mode),
    /// The API server is down.
    Unavailable,
}

/// What the gate has to know of a request.
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
        let path = path.split_once("/events/").map_or(path, |(before, _)| before);
        format!("{} {path}", self.method)
    }

    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// Watches stream, and how often they are renewed is nothing of the scenario's.
    pub fn is_watch(&self) -> bool {
        self.side == Side::ApiServer && self.target.contains("watch=true")
    }

    /// Those come by time.
    fn is_of_lease(&self) -> bool {
        matches!(self.purpose(), Purpose::ReadsLease | Purpose::WritesLease)
    }

    /// The same for the same request, whoever makes it.
    fn asks(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.method, self.target, self.body).hash(&mut hasher);
        hasher.finish()
    }

    fn counted(&self) -> Counted {
        Counted { side: self.side, write: self.is_write(), purpose: self.purpose() }
    }

    fn purpose(&self) -> Purpose {
        let path = path(self.target);
        match self.side {
            Side::ApiServer if path.contains("/leases") && self.is_write() => Purpose::WritesLease,
            Side::ApiServer if path.contains("/leases") => Purpose::ReadsLease,
            Side::ApiServer if self.is_write() && path.contains("/secrets") && !self.target.contains("dryRun") => {
                Purpose::WritesSecret
            }
            Side::ApiServer if self.is_write() && path.contains("/projectkeys/") => Purpose::WritesProjectKey,
            Side::Platform if self.method == "POST" && path.ends_with("/api_keys") => Purpose::CreatesKey,
            Side::Platform if self.method == "POST" && path.ends_with("/endpoints") => Purpose::CreatesCompute,
            Side::Platform if self.method == "PATCH" && path.contains("/endpoints/") => Purpose::ChangesCompute,
            Side::Platform if self.method == "POST" && path.ends_with("/restart") => Purpose::RestartsCompute,
            Side::Platform if self.is_write() => Purpose::ChangesPlatform,
            Side::ApiServer | Side::Platform => Purpose::Other,
        }
    }
}

impl State {
    /// Gives the request its number; `None` where it has none.
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

    /// The fault that this request meets.
    fn fault(&mut self, caller: &Caller, place: Place) -> Option<Mode> {
        let fault = self.faults.front()?;
        let due = place.is_due(fault.at) && fault.mode.suits(&caller.counted());
        let mode = fault.mode;
        due.then(|| self.faults.pop_front())?;
        Some(mode)
    }
}

impl Gate {
    /// With `repeats`, mere repetitions have no number: how many there are differs too much from time to time.
    pub fn new(repeats: bool) -> Self {
        Self { state: Mutex::default(), alike: if repeats { DIFFERENT } else { usize::MAX } }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on requests are counted, and these faults are waited for, one after the other.
    pub fn arm(&self, faults: &[Fault]) {
        let mut state = self.state();
        state.armed = true;
        state.faults = faults.iter().copied().collect();
        state.last_write = Some(Instant::now());
    }

    /// Faults that were not met by now are not met any more. How many were.
    pub fn disarm(&self) -> usize {
        let mut state = self.state();
        state.faults.clear();
        state.met.len()
    }

    /// Whether a fault is waited for that comes by itself: a leader goes on renewing its Lease.
    pub fn awaits_lease_request(&self) -> bool {
        self.state().faults.front().is_some_and(|fault| matches!(fault.at, Place::Lease(_)))
    }

    /// The number of a process that is about to be started.
    pub fn admit(&self) -> usize {
        let mut state = self.state();
        state.processes += 1;
        let number = state.processes;
        state.passages.begins(number);
        number
    }

    /// The process that faults hit.
    pub fn aim(&self, process: Process) {
        self.state().victim = Some(process);
    }

    /// A request arrives; its place in the log, and what to do with it.
    pub fn arrives(&self, caller: &Caller) -> (usize, Verdict) {
        let mut state = self.state();
        let (write, purpose) = (caller.is_write(), caller.purpose());
        if write && !caller.is_of_lease() {
            state.last_write = Some(Instant::now());
        }
        let counted = state.count(caller, self.alike);
        let number = counted.map_or_else(|| "-".to_owned(), |place| format!("#{place}"));
        let process = caller.process;
        let line = format!("process {process} {number} {:?} {} {}", caller.side, caller.method, caller.target);
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
        state.met.push(Met { mode, purpose, victim });
        // A kill that hits another process closes the sender's connection as well.
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

    /// How often a request of this purpose made something twice.
    pub fn made_twice(&self, purpose: Purpose) -> usize {
        self.state().made_twice.iter().filter(|made| **made == purpose).count()
    }

    pub fn begin_outage(&self) {
        self.state().down_until = Some(Instant::now() + OUTAGE);
    }

    pub fn signal(&self, signal: Signal) {
        let mut state = self.state();
        let Some(victim) = state.victim else { return };
        // It may have ended by itself, which is found out and reported elsewhere.
        let _ = kill(Pid::from_raw(victim.id.cast_signed()), signal);
        state.passages.signalled(victim.number, signal);
    }

    /// Whether the process that was started last has asked who leads.
    pub fn newest_waits(&self) -> bool {
        let state = self.state();
        state.passages.asks_for_lead(state.processes)
    }

    /// Whether the process that was started last has the lead.
    pub fn newest_leads(&self) -> bool {
        let state = self.state();
        state.passages.leader() == Some(state.processes)
    }

    /// Something happened that writes may follow.
    pub fn touch(&self) {
        self.state().last_write = Some(Instant::now());
    }

    /// How long nothing was written through the proxy; a renewed Lease is no write.
    pub fn quiet_for(&self) -> Duration {
        self.state().last_write.map_or(Duration::MAX, |last| last.elapsed())
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
