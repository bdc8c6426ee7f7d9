//! Tests of leadership: by hand, and in random orders of reads, writes, lost answers and frozen
//! processes.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn held_by(holder: Option<&str>, version: &str) -> LeaseView {
    LeaseView {
        holder: holder.map(str::to_owned),
        duration: LEASE_DURATION,
        version: version.to_owned(),
    }
}

#[test]
fn a_lease_that_nobody_holds_is_taken_and_renewed() {
    let mut me = LeaseCandidate::new("me".to_owned());
    assert_eq!(me.next(secs(100)), LeaseStep::Read);
    me.read(None, secs(100));
    assert_eq!(
        me.next(secs(100)),
        LeaseStep::Write(None),
        "there is none: create it"
    );
    me.written(held_by(Some("me"), "1"), secs(100), secs(103));
    assert_eq!(
        me.leads_until(),
        Some(secs(110)),
        "counted from when it was sent"
    );
    assert_eq!(me.next(secs(104)), LeaseStep::Wait(secs(1)));
    assert_eq!(
        me.next(secs(105)),
        LeaseStep::Write(Some(held_by(Some("me"), "1")))
    );
    let mut other = LeaseCandidate::new("other".to_owned());
    other.read(Some(held_by(None, "2")), secs(7));
    assert_eq!(
        other.next(secs(7)),
        LeaseStep::Write(Some(held_by(None, "2"))),
        "it was released"
    );
}

#[test]
fn anothers_lease_is_taken_once_it_has_not_changed_for_its_whole_duration() {
    let mut me = LeaseCandidate::new("me".to_owned());
    me.read(Some(held_by(Some("other"), "1")), secs(100));
    assert_eq!(me.next(secs(100)), LeaseStep::Wait(RETRY_PERIOD));
    me.read(Some(held_by(Some("other"), "1")), secs(110));
    assert_eq!(me.next(secs(114)), LeaseStep::Read);
    assert_eq!(
        me.next(secs(115)),
        LeaseStep::Write(Some(held_by(Some("other"), "1")))
    );
    me.read(Some(held_by(Some("other"), "2")), secs(115));
    assert_eq!(me.next(secs(129)), LeaseStep::Read, "it was renewed");
    let longer = LeaseView {
        duration: secs(60),
        ..held_by(Some("other"), "3")
    };
    me.read(Some(longer.clone()), secs(130));
    assert_eq!(
        me.next(secs(189)),
        LeaseStep::Read,
        "its holder counts on a minute"
    );
    assert_eq!(me.next(secs(190)), LeaseStep::Write(Some(longer)));
}

#[test]
fn a_leader_without_answers_leads_no_longer_than_the_last_one_allows() {
    let mut me = LeaseCandidate::new("me".to_owned());
    me.read(None, secs(100));
    me.written(held_by(Some("me"), "1"), secs(100), secs(100));
    me.failed(secs(105));
    assert_eq!(
        (me.leads_until(), me.next(secs(105))),
        (Some(secs(110)), LeaseStep::Wait(RETRY_PERIOD))
    );
    me.changed();
    assert_eq!(
        me.next(secs(107)),
        LeaseStep::Read,
        "the renewal may have been carried out"
    );
    me.read(Some(held_by(Some("me"), "2")), secs(108));
    assert_eq!(
        me.leads_until(),
        Some(secs(110)),
        "when it was sent is not known"
    );
    assert_eq!(
        me.next(secs(108)),
        LeaseStep::Write(Some(held_by(Some("me"), "2")))
    );
    me.read(Some(held_by(Some("other"), "3")), secs(109));
    assert_eq!(me.leads_until(), None, "somebody has given it to another");
}

struct Participant {
    candidate: LeaseCandidate,
    /// The offset of its clock from the world's.
    offset: Duration,
    request: Option<Request>,
}

struct Request {
    step: LeaseStep,
    sent: Duration,
    /// The API server's answer, once it has carried the request out.
    answer: Option<Result<Option<LeaseView>, ()>>,
}

struct World {
    processes: Vec<Participant>,
    lease: Option<LeaseView>,
    versions: u32,
    /// Requests whose process no longer waits for the answer.
    late: VecDeque<(String, LeaseStep)>,
    now: Duration,
}

impl World {
    fn new() -> Self {
        let process = |place: u64| Participant {
            candidate: LeaseCandidate::new(format!("p{place}")),
            offset: secs(1_000 * place),
            request: None,
        };
        Self {
            processes: (0..3).map(process).collect(),
            lease: None,
            versions: 0,
            late: VecDeque::new(),
            now: secs(5),
        }
    }

    fn carry_out(&mut self, identity: &str, step: &LeaseStep) -> Result<Option<LeaseView>, ()> {
        let LeaseStep::Write(seen) = step else {
            return Ok(self.lease.clone());
        };
        if *seen != self.lease {
            return Err(());
        }
        self.versions += 1;
        self.lease = Some(held_by(Some(identity), &self.versions.to_string()));
        Ok(self.lease.clone())
    }

    /// One process continues; `lost` decides the fate of its request.
    fn go_on(&mut self, place: usize, lost: bool) {
        let now = self.now + self.processes[place].offset;
        let identity = self.processes[place].candidate.identity().to_owned();
        let Some(mut request) = self.processes[place].request.take() else {
            let step = self.processes[place].candidate.next(now);
            self.processes[place].request =
                (!matches!(step, LeaseStep::Wait(_))).then_some(Request {
                    step,
                    sent: now,
                    answer: None,
                });
            return;
        };
        match request.answer.take() {
            None if lost => {
                self.late.push_back((identity, request.step));
                self.processes[place].candidate.failed(now);
            }
            None => {
                let answer = self.carry_out(&identity, &request.step);
                self.processes[place].request = Some(Request {
                    answer: Some(answer),
                    ..request
                });
            }
            Some(_) if lost => self.processes[place].candidate.failed(now),
            Some(answer) => {
                let candidate = &mut self.processes[place].candidate;
                match (request.step, answer) {
                    (LeaseStep::Write(_), Ok(Some(lease))) => {
                        candidate.written(lease, request.sent, now)
                    }
                    (LeaseStep::Write(_), _) => candidate.changed(),
                    (_, answer) => candidate.read(answer.unwrap(), now),
                }
            }
        }
    }

    fn leaders(&self) -> Vec<&str> {
        let leads = |process: &&Participant| {
            process
                .candidate
                .leads_until()
                .is_some_and(|until| self.now + process.offset < until)
        };
        self.processes
            .iter()
            .filter(leads)
            .map(|process| process.candidate.identity())
            .collect()
    }
}

proptest! {
    #[test]
    fn no_two_lead_at_once_and_in_the_end_one_does(
        events in vec((0..4_usize, 0..8_u8, 0..6_000_u64), 0..300),
    ) {
        let mut world = World::new();
        for (place, kind, pause) in events {
            // Often nothing else happens for a while: processes are frozen, and answers are in
            // flight.
            world.now += Duration::from_millis(if kind < 4 { pause } else { pause / 50 });
            match world.processes.len() {
                count if place < count => world.go_on(place, kind == 0),
                _ => if let Some((identity, step)) = world.late.pop_front() {
                    let _ = world.carry_out(&identity, &step);
                }
            }
            prop_assert!(world.leaders().len() <= 1, "{:?} lead at {:?}", world.leaders(), world.now);
        }
        for _ in 0..600 {
            world.now += Duration::from_millis(100);
            (0..world.processes.len()).for_each(|place| world.go_on(place, false));
            prop_assert!(world.leaders().len() <= 1);
        }
        prop_assert_eq!(world.leaders().len(), 1);
    }
}
