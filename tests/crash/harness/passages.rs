//! The log of the requests that passed the proxy, and conclusions from it about the processes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

/// The purpose of a request, as far as the promises need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    CreatesCompute,
    CreatesKey,
    /// Idempotent.
    ChangesCompute,
    RestartsCompute,
    /// Any other change on the platform.
    ChangesPlatform,
    WritesSecret,
    WritesProjectKey,
    WritesCompute,
    ReadsLease,
    WritesLease,
    Other,
}

#[derive(Clone, Debug)]
pub struct Passage {
    /// A log line.
    pub line: String,
    /// The number of the process that sent it.
    pub process: usize,
    pub purpose: Purpose,
    /// A hash, equal for identical requests.
    pub asks: u64,
    /// The operator survives but never gets the result.
    pub withheld: bool,
    pub status: Option<u16>,
    pub at: Instant,
}

#[derive(Clone, Debug, Default)]
pub struct Passages {
    all: Vec<Passage>,
    /// Number of requests in the log when each process started.
    begun: BTreeMap<usize, usize>,
    /// The last signal to each process, and the number of requests at that time.
    signals: BTreeMap<usize, (Signal, usize)>,
}

impl Passage {
    fn was_carried_out(&self) -> bool {
        self.status
            .is_some_and(|status| matches!(status, 200..=203))
    }
}

impl Passages {
    /// Appends a request and returns its index.
    pub fn add(&mut self, passage: Passage) -> usize {
        self.all.push(passage);
        self.all.len() - 1
    }

    pub fn note(&mut self, place: usize, text: &str) {
        self.all[place].line.push_str(text);
    }

    pub fn purpose(&self, place: usize) -> Purpose {
        self.all[place].purpose
    }

    pub fn withheld(&mut self, place: usize) {
        self.all[place].withheld = true;
    }

    pub fn answered(&mut self, place: usize, status: u16) {
        self.note(place, &format!(" -> {status}"));
        self.all[place].status = Some(status);
    }

    pub fn signalled(&mut self, process: usize, signal: Signal) {
        self.signals.insert(process, (signal, self.all.len()));
    }

    pub fn begins(&mut self, process: usize) {
        self.begun.insert(process, self.all.len());
    }

    pub fn lines(&self) -> Vec<String> {
        self.all
            .iter()
            .map(|passage| passage.line.clone())
            .collect()
    }

    fn of(&self, wanted: impl Fn(&Passage) -> bool) -> impl Iterator<Item = (usize, &Passage)> {
        self.all
            .iter()
            .enumerate()
            .filter(move |(_, passage)| wanted(passage))
    }

    /// Number of keys that were replaced without a request, but with cause.
    pub fn keys_replaced_with_cause(&self) -> usize {
        let created: Vec<_> = self
            .of(|it| it.purpose == Purpose::CreatesKey && it.was_carried_out())
            .collect();
        created
            .windows(2)
            .filter(|pair| self.may_replace(pair[0], pair[1]))
            .count()
    }

    /// True if the second of two keys may have been created because the first was lost. Either its
    /// answer was lost, or another process wrote the ProjectKey before the creator recorded the
    /// key. A process that started after the creator was killed or stopped sees the Secret, and
    /// replaces no key in it. A creator that was asked to end has saved its keys. Two concurrent
    /// processes without a lease may give up each other's keys.
    fn may_replace(&self, first: (usize, &Passage), second: (usize, &Passage)) -> bool {
        let (creator, between) = (first.1.process, &self.all[first.0..second.0]);
        if first.1.withheld {
            return true;
        }
        let written = |it: &Passage, purpose| it.purpose == purpose && it.was_carried_out();
        let saved = between
            .iter()
            .position(|it| it.process == creator && written(it, Purpose::WritesSecret));
        // The creator's status records the key only after its Secret is written.
        let records = |(place, it): &(usize, &Passage)| {
            let is_record = it.process != creator || saved.is_some_and(|saved| saved < *place);
            is_record && written(it, Purpose::WritesProjectKey)
        };
        let Some((place, next)) = between.iter().enumerate().find(records) else {
            return false;
        };
        let (other, saved) = (next.process, saved.is_some_and(|saved| saved < place));
        match self.signals.get(&creator) {
            _ if other == creator => false,
            Some((signal, at)) if self.begun.get(&other) >= Some(at) => {
                *signal != Signal::SIGTERM && !saved
            }
            _ => true,
        }
    }

    /// Number of compute changes that a process made after it was stopped, although another one had
    /// made the same change since. Without a lease, a process may act on what it observed before
    /// the stop.
    pub fn changes_repeated_after_a_stop(&self) -> usize {
        let change = |it: &Passage| it.purpose == Purpose::ChangesCompute && it.was_carried_out();
        let was_made = |place: usize, repeated: &Passage| {
            let Some((Signal::SIGSTOP, stopped)) = self.signals.get(&repeated.process) else {
                return false;
            };
            let since = self.all.get(*stopped..place).unwrap_or_default();
            let mut same = since
                .iter()
                .filter(|it| change(it) && it.asks == repeated.asks)
                .peekable();
            same.peek().is_some() && same.all(|it| it.process != repeated.process)
        };
        self.of(change)
            .filter(|(place, repeated)| was_made(*place, repeated))
            .count()
    }

    /// True if a restart was carried out and its answer lost: on its way, or with a process that was
    /// killed or stopped before it recorded the answer, or was asked to end while the API server
    /// refused that record.
    pub fn lost_answer_to_restart(&self) -> bool {
        let is_lost_with_process = |place: usize, process: usize| {
            let Some((signal, until)) = self.signals.get(&process) else {
                return false;
            };
            let asked_to_end = *signal == Signal::SIGTERM;
            let until = if asked_to_end { self.all.len() } else { *until };
            let between = self.all.get(place..until).unwrap_or_default();
            let mut records = between
                .iter()
                .filter(|it| it.process == process && it.purpose == Purpose::WritesCompute)
                .peekable();
            (records.peek().is_some() || !asked_to_end) && !records.any(Passage::was_carried_out)
        };
        self.of(|it| it.purpose == Purpose::RestartsCompute && it.was_carried_out())
            .any(|(place, restart)| {
                restart.withheld || is_lost_with_process(place, restart.process)
            })
    }

    /// The process with the last write of the Lease.
    pub fn leader(&self) -> Option<usize> {
        let is_write = |it: &Passage| it.purpose == Purpose::WritesLease && it.was_carried_out();
        self.of(is_write).last().map(|(_, write)| write.process)
    }

    pub fn asks_for_lead(&self, process: usize) -> bool {
        self.of(|it| it.purpose == Purpose::ReadsLease && it.process == process)
            .next()
            .is_some()
    }

    /// Time without a leader: from the last Lease write of a process that was asked to end, to the
    /// first one of its successor.
    pub fn without_leader(&self) -> Option<Duration> {
        let asked = self
            .signals
            .iter()
            .find(|(_, (signal, _))| *signal == Signal::SIGTERM);
        let (former, (_, end)) = asked?;
        let is_write = |it: &Passage| it.purpose == Purpose::WritesLease && it.was_carried_out();
        let last = self
            .of(|it| is_write(it) && it.process == *former)
            .last()?
            .1;
        let next = self
            .of(|it| is_write(it) && it.process > *former)
            .find(|(place, _)| place >= end)?
            .1;
        Some(next.at.saturating_duration_since(last.at))
    }

    /// The first change on the platform by a process whose successor had already made one.
    pub fn change_of_a_former_leader(&self) -> Option<String> {
        use Purpose::{
            ChangesCompute, ChangesPlatform, CreatesCompute, CreatesKey, RestartsCompute,
        };
        let changes = [
            CreatesCompute,
            CreatesKey,
            ChangesCompute,
            RestartsCompute,
            ChangesPlatform,
        ];
        let is_change = |it: &Passage| changes.contains(&it.purpose);
        let mut leader = 0;
        for (_, change) in self.of(is_change) {
            if change.process < leader {
                return Some(format!(
                    "not from process {leader}, which has changed something before: {}",
                    change.line
                ));
            }
            leader = change.process;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each step is a letter and the number of the process. K: a key is created. L: the same, but
    /// its answer is withheld. S: its Secret is written. P: the ProjectKey is written. C, D: a
    /// compute is changed in one way or another. R, Q: it is restarted, Q without an answer. W, V: the
    /// Compute is written, V refused. B: the process begins. X, Z, T: it is killed, stopped or asked
    /// to end.
    fn passages(course: &str) -> Passages {
        let mut passages = Passages::default();
        for step in course.split(' ') {
            let (what, number) = step.split_at(1);
            let process = number.parse().unwrap();
            let purpose = match what {
                "K" | "L" => Purpose::CreatesKey,
                "S" => Purpose::WritesSecret,
                "P" => Purpose::WritesProjectKey,
                "R" | "Q" => Purpose::RestartsCompute,
                "W" | "V" => Purpose::WritesCompute,
                "C" | "D" => Purpose::ChangesCompute,
                "B" => {
                    passages.begins(process);
                    continue;
                }
                "X" => {
                    passages.signalled(process, Signal::SIGKILL);
                    continue;
                }
                "Z" => {
                    passages.signalled(process, Signal::SIGSTOP);
                    continue;
                }
                _ => {
                    passages.signalled(process, Signal::SIGTERM);
                    continue;
                }
            };
            let (line, withheld) = (step.to_owned(), matches!(what, "L" | "Q"));
            let asks = u64::from(what == "D");
            let status = Some(if what == "V" { 503 } else { 200 });
            passages.add(Passage {
                line,
                process,
                purpose,
                asks,
                withheld,
                status,
                at: Instant::now(),
            });
        }
        passages
    }

    #[test]
    fn a_key_may_replace_only_a_lost_one() {
        for (course, with_cause) in [
            ("B1 P1 K1 S1 P1", 0),
            ("B1 P1 L1 P1 K1 S1 P1", 1),
            ("B1 P1 K1 P1 K1 S1 P1", 0),
            // The next process finds the key, but its secret is lost.
            ("B1 P1 K1 X1 B2 P2 K2 S2 P2", 1),
            ("B1 P1 K1 X1 B2 P2 K2 X2 B3 P3 K3 S3 P3", 2),
            // The key could not be saved.
            ("B1 P1 K1 P1 Z1 B2 P2 K2 S2 P2", 1),
            // The key is in its Secret.
            ("B1 P1 K1 S1 X1 B2 P2 K2 S2 P2", 0),
            ("B1 P1 K1 T1 B2 P2 K2 S2 P2", 0),
            // Two processes side by side.
            ("B1 B2 P1 K1 P2 S1 P2 K2 S2 P2", 1),
            ("B1 B2 P1 K1 P2 P1 K1 S1 P1", 1),
            ("B1 B2 P1 K1 S1 P1 P2 K2 S2 P2", 0),
        ] {
            assert_eq!(
                passages(course).keys_replaced_with_cause(),
                with_cause,
                "{course}"
            );
        }
    }

    #[test]
    fn an_unrecorded_answer_to_a_restart_is_lost_with_its_process() {
        for (course, lost) in [
            ("B1 W1 R1 W1", false),
            ("B1 W1 Q1 W1", true),
            ("B1 W1 R1 X1 B2 W2", true),
            ("B1 W1 R1 Z1 B2 W2 W1", true),
            ("B1 W1 R1 W1 X1 B2 W2", false),
            ("B1 W1 X1 B2 R2 W2", false),
            // A process that is asked to end records what it knows.
            ("B1 W1 R1 T1 W1 B2", false),
            ("B1 W1 R1 T1 V1 W1 B2 W2", false),
            ("B1 W1 R1 T1 B2 W2", false),
            ("B1 W1 R1 T1 V1 B2 W2", true),
        ] {
            assert_eq!(passages(course).lost_answer_to_restart(), lost, "{course}");
        }
    }

    #[test]
    fn a_stopped_process_may_repeat_calls_of_its_successor() {
        for (course, repeated) in [
            ("B1 C1", 0),
            ("B1 Z1 B2 C2 C1", 1),
            ("B1 Z1 B2 C2 C1 C1", 1),
            // A different change, a repeated change of the same process, and a change from before
            // the stop.
            ("B1 Z1 B2 C2 D1", 0),
            ("B1 Z1 B2 C2 C2", 0),
            ("B1 B2 C2 Z1 C1", 0),
            // No process was stopped.
            ("B1 B2 C2 C1", 0),
        ] {
            assert_eq!(
                passages(course).changes_repeated_after_a_stop(),
                repeated,
                "{course}"
            );
        }
    }

    #[test]
    fn a_former_leader_changes_nothing() {
        for (course, found) in [("K1 K2", false), ("K1 K2 K1", true), ("K2 K2 K3", false)] {
            assert_eq!(
                passages(course).change_of_a_former_leader().is_some(),
                found,
                "{course}"
            );
        }
    }
}
