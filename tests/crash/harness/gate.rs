//! What passes the proxy: a number for each request, the one that goes wrong, and a log of all.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::modes::{Fault, Mode, Side};

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
    fault: Option<Fault>,
    met: Option<Met>,
    victim: Option<Pid>,
    generation: u32,
    down_until: Option<Instant>,
    last_write: Option<Instant>,
    log: Vec<String>,
    /// How often each was made: what differs between events is left out.
    alike: BTreeMap<String, usize>,
    /// The keys' secrets that the platform has answered with.
    tokens: Vec<String>,
}

/// A request that has a number.
#[derive(Clone, Debug)]
pub struct Counted {
    pub side: Side,
    pub write: bool,
}

/// The request that went wrong.
#[derive(Clone, Debug)]
pub struct Met {
    pub mode: Mode,
    pub side: Side,
    pub request: String,
}

/// What is asked for, without the query.
pub fn path(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

impl Met {
    pub fn creates_key(&self) -> bool {
        self.side == Side::Platform && self.request.starts_with("POST ") && path(&self.request).ends_with("/api_keys")
    }
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
    pub side: Side,
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
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
}

impl Gate {
    /// With `repeats`, mere repetitions have no number: how many there are differs too much from time to time.
    pub fn new(repeats: bool) -> Self {
        Self { state: Mutex::default(), alike: if repeats { DIFFERENT } else { usize::MAX } }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on requests are counted, and this fault is waited for.
    pub fn arm(&self, fault: Fault) {
        let mut state = self.state();
        state.armed = true;
        state.fault = Some(fault);
        state.last_write = Some(Instant::now());
    }

    /// A fault that was not met by now is not met any more. Whether one was.
    pub fn disarm(&self) -> bool {
        let mut state = self.state();
        state.fault = None;
        state.met.is_some()
    }

    /// The process that the fault hits.
    pub fn aim(&self, process: u32) {
        let mut state = self.state();
        state.victim = Some(Pid::from_raw(process.cast_signed()));
        state.generation += 1;
    }

    /// A request arrives; its place in the log, and what to do with it.
    pub fn arrives(&self, caller: &Caller) -> (usize, Verdict) {
        let mut state = self.state();
        let write = caller.is_write();
        if write {
            state.last_write = Some(Instant::now());
        }
        let counts = state.armed && !caller.is_watch() && {
            let times = state.alike.entry(caller.kind()).or_default();
            *times += 1;
            *times <= self.alike
        };
        if counts {
            state.counted.push(Counted { side: caller.side, write });
        }
        let number = if counts { format!("#{}", state.counted.len()) } else { "-".to_owned() };
        let line =
            format!("process {} {number} {:?} {} {}", state.generation, caller.side, caller.method, caller.target);
        state.log.push(line);
        let place = state.log.len() - 1;
        let down = state.down_until.is_some_and(|until| Instant::now() < until);
        if down && write && caller.side == Side::ApiServer {
            state.log[place].push_str(" [outage]");
            return (place, Verdict::Unavailable);
        }
        let due = state
            .fault
            .filter(|fault| counts && state.counted.len() >= fault.at && fault.mode.suits(caller.side, write));
        let Some(Fault { mode, .. }) = due else { return (place, Verdict::Pass) };
        state.fault = None;
        let request = format!("{} {}", caller.method, caller.target);
        state.met = Some(Met { mode, side: caller.side, request });
        state.log[place].push_str(&format!(" [{mode}]"));
        (place, Verdict::Fail(mode))
    }

    pub fn answered(&self, place: usize, status: u16) {
        self.state().log[place].push_str(&format!(" -> {status}"));
    }

    pub fn saw_token(&self, token: String) {
        self.state().tokens.push(token);
    }

    pub fn begin_outage(&self) {
        self.state().down_until = Some(Instant::now() + OUTAGE);
    }

    pub fn signal(&self, signal: Signal) {
        if let Some(victim) = self.state().victim {
            // It may have ended by itself, which is found out and reported elsewhere.
            let _ = kill(victim, signal);
        }
    }

    /// Something happened that writes may follow.
    pub fn touch(&self) {
        self.state().last_write = Some(Instant::now());
    }

    /// How long nothing was written through the proxy.
    pub fn quiet_for(&self) -> Duration {
        self.state().last_write.map_or(Duration::MAX, |last| last.elapsed())
    }

    pub fn met(&self) -> Option<Met> {
        self.state().met.clone()
    }

    pub fn counted(&self) -> Vec<Counted> {
        self.state().counted.clone()
    }

    pub fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    pub fn tokens(&self) -> Vec<String> {
        self.state().tokens.clone()
    }
}
