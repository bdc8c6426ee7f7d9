//! The requests that passed the proxy, and what they show of the processes that made them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

/// What a request is for, as far as the promises are about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    CreatesCompute,
    CreatesKey,
    /// Is the same however often it is made.
    ChangesCompute,
    RestartsCompute,
    /// Any other change on the platform.
    ChangesPlatform,
    WritesSecret,
    WritesProjectKey,
    ReadsLease,
    WritesLease,
    Other,
}

#[derive(Clone, Debug)]
pub struct Passage {
    /// For people.
    pub line: String,
    /// The number of the process that sent it.
    pub process: usize,
    pub purpose: Purpose,
    /// Equal for requests that are equal to the letter.
    pub asks: u64,
    /// The operator lives and never learns what came of it.
    pub withheld: bool,
    pub status: Option<u16>,
    pub at: Instant,
}

#[derive(Clone, Debug, Default)]
pub struct Passages {
    all: Vec<Passage>,
    /// How many requests there were when each process began.
    begun: BTreeMap<usize, usize>,
    /// The last signal that each process got, and how many requests there were then.
    signals: BTreeMap<usize, (Signal, usize)>,
}

impl Passage {
    fn was_carried_out(&self) -> bool {
        self.status.is_some_and(|status| matches!(status, 200..=203))
    }
}

impl Passages {
    /// Its place.
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
        self.all.iter().map(|passage| passage.line.clone()).collect()
    }

    fn of(&self, wanted: impl Fn(&Passage) -> bool) -> impl Iterator<Item = (usize, &Passage)> {
        self.all.iter().enumerate().filter(move |(_, passage)| wanted(passage))
    }

    /// How many keys were replaced although nobody asked for it, and with cause.
    pub fn keys_replaced_with_cause(&self) -> usize {
        let created: Vec<_> = self.of(|it| it.purpose == Purpose::CreatesKey && it.was_carried_out()).collect();
        created.windows(2).filter(|pair| self.may_replace(pair[0], pair[1])).count()
    }

    /// Whether the second of two keys may have been created because the first was lost: where its answer was, or where another
    /// process has written the ProjectKey before the creator recorded the key. If that process was there only when the creator
    /// was killed or stopped, it can see the Secret, and replaces no key that is in it. If the creator was asked to end, it has
    /// saved its keys. Two that work side by side without a lease may give up each other's.
    fn may_replace(&self, first: (usize, &Passage), second: (usize, &Passage)) -> bool {
        let (creator, between) = (first.1.process, &self.all[first.0..second.0]);
        if first.1.withheld {
            return true;
        }
        let written = |it: &Passage, purpose| it.purpose == purpose && it.was_carried_out();
        let saved = between.iter().position(|it| it.process == creator && written(it, Purpose::WritesSecret));
        // Before its Secret is written, the creator's status does not record the key.
        let records = |(place, it): &(usize, &Passage)| {
            let is_record = it.process != creator || saved.is_some_and(|saved| saved < *place);
            is_record && written(it, Purpose::WritesProjectKey)
        };
        let Some((place, next)) = between.iter().enumerate().find(records) else { return false };
        let (other, saved) = (next.process, saved.is_some_and(|saved| saved < place));
        match self.signals.get(&creator) {
            _ if other == creator => false,
            Some((signal, at)) if self.begun.get(&other) >= Some(at) => *signal != Signal::SIGTERM && !saved,
            _ => true,
        }
    }

    /// How many changes of computes a process has made that was stopped meanwhile, and that another one had made just so since then.
    /// What it saw before it was stopped it may act on after that, where no lease says that its time has run out.
    pub fn changes_repeated_after_a_stop(&self) -> usize {
        let change = |it: &Passage| it.purpose == Purpose::ChangesCompute && it.was_carried_out();
        let was_made = |place: usize, repeated: &Passage| {
            let Some((Signal::SIGSTOP, stopped)) = self.signals.get(&repeated.process) else { return false };
            let since = self.all.get(*stopped..place).unwrap_or_default();
            let mut same = since.iter().filter(|it| change(it) && it.asks == repeated.asks).peekable();
            same.peek().is_some() && same.all(|it| it.process != repeated.process)
        };
        self.of(change).filter(|(place, repeated)| was_made(*place, repeated)).count()
    }

    /// The process that has written the Lease last.
    pub fn leader(&self) -> Option<usize> {
        let is_write = |it: &Passage| it.purpose == Purpose::WritesLease && it.was_carried_out();
        self.of(is_write).last().map(|(_, write)| write.process)
    }

    pub fn asks_for_lead(&self, process: usize) -> bool {
        self.of(|it| it.purpose == Purpose::ReadsLease && it.process == process).next().is_some()
    }

    /// From the last time that a process wrote the Lease which was then asked to end, to the first time that its successor did.
    pub fn without_leader(&self) -> Option<Duration> {
        let asked = self.signals.iter().find(|(_, (signal, _))| *signal == Signal::SIGTERM);
        let (former, (_, end)) = asked?;
        let is_write = |it: &Passage| it.purpose == Purpose::WritesLease && it.was_carried_out();
        let last = self.of(|it| is_write(it) && it.process == *former).last()?.1;
        let next = self.of(|it| is_write(it) && it.process > *former).find(|(place, _)| place >= end)?.1;
        Some(next.at.saturating_duration_since(last.at))
    }

    /// The first change on the platform by a process whose successor has made one before.
    pub fn change_of_a_former_leader(&self) -> Option<String> {
        use Purpose::{ChangesCompute, ChangesPlatform, CreatesCompute, CreatesKey, RestartsCompute};
        let changes = [CreatesCompute, CreatesKey, ChangesCompute, RestartsCompute, ChangesPlatform];
        let is_change = |it: &Passage| changes.contains(&it.purpose);
        let mut leader = 0;
        for (_, change) in self.of(is_change) {
            if change.process < leader {
                return Some(format!("not from process {leader}, which has changed something before: {}", change.line));
            }
            leader = change.process;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A letter for what was carried out, and a number for who asked for it: a key is created (K), its answer is withheld (L),
    /// its Secret is written (S), the ProjectKey is written (P), a compute is changed in one way (C) or another (D), the
    /// process begins (B), is killed (X), stopped (Z) or asked to end (T).
    fn passages(course: &str) -> Passages {
        let mut passages = Passages::default();
        for step in course.split(' ') {
            let (what, number) = step.split_at(1);
            let process = number.parse().unwrap();
            let purpose = match what {
                "K" | "L" => Purpose::CreatesKey,
                "S" => Purpose::WritesSecret,
                "P" => Purpose::WritesProjectKey,
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
            let (line, withheld) = (step.to_owned(), what == "L");
            let asks = u64::from(what == "D");
            passages.add(Passage { line, process, purpose, asks, withheld, status: Some(200), at: Instant::now() });
        }
        passages
    }

    #[test]
    fn a_key_may_replace_one_that_was_lost_and_no_other() {
        for (course, with_cause) in [
            ("B1 P1 K1 S1 P1", 0),
            ("B1 P1 L1 P1 K1 S1 P1", 1),
            ("B1 P1 K1 P1 K1 S1 P1", 0),
            // The next process finds it, and nobody has its secret.
            ("B1 P1 K1 X1 B2 P2 K2 S2 P2", 1),
            ("B1 P1 K1 X1 B2 P2 K2 X2 B3 P3 K3 S3 P3", 2),
            // It could not be saved.
            ("B1 P1 K1 P1 Z1 B2 P2 K2 S2 P2", 1),
            // It is in its Secret.
            ("B1 P1 K1 S1 X1 B2 P2 K2 S2 P2", 0),
            ("B1 P1 K1 T1 B2 P2 K2 S2 P2", 0),
            // Two side by side.
            ("B1 B2 P1 K1 P2 S1 P2 K2 S2 P2", 1),
            ("B1 B2 P1 K1 P2 P1 K1 S1 P1", 1),
            ("B1 B2 P1 K1 S1 P1 P2 K2 S2 P2", 0),
        ] {
            assert_eq!(passages(course).keys_replaced_with_cause(), with_cause, "{course}");
        }
    }

    #[test]
    fn who_was_stopped_may_repeat_what_another_one_has_done_since() {
        for (course, repeated) in [
            ("B1 C1", 0),
            ("B1 Z1 B2 C2 C1", 1),
            ("B1 Z1 B2 C2 C1 C1", 1),
            // Another change, the same one by the same process, and one from before it was stopped.
            ("B1 Z1 B2 C2 D1", 0),
            ("B1 Z1 B2 C2 C2", 0),
            ("B1 B2 C2 Z1 C1", 0),
            // Nobody was stopped.
            ("B1 B2 C2 C1", 0),
        ] {
            assert_eq!(passages(course).changes_repeated_after_a_stop(), repeated, "{course}");
        }
    }

    #[test]
    fn who_led_before_changes_nothing_any_more() {
        for (course, found) in [("K1 K2", false), ("K1 K2 K1", true), ("K2 K2 K3", false)] {
            assert_eq!(passages(course).change_of_a_former_leader().is_some(), found, "{course}");
        }
    }
}
