//! The circuit breaker for requests to the API server: while it is unavailable, one request at a time asks whether it is back, and the
//! others wait. All times are those of one process's clock.

use std::time::Duration;

/// The pause between two requests that ask, where the API server names none, and before a pass that it could not be asked in is made again.
pub const PROBE_PAUSE: Duration = Duration::from_secs(1);
/// A request that asks and is not answered holds up the next one for no longer than this.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);
/// API servers ask for seconds (Retry-After). What asks for more than a minute is something in front of them.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Whether the API server serves requests of one sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Circuit {
    #[default]
    Available,
    /// The next request that asks may be made then.
    Unavailable { next_probe: Duration },
}

/// What a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Pass,
    /// Be made, and ask whether the API server is back.
    Probe,
    /// Ask again then.
    Wait(Duration),
}

/// What an answer shows, or that none came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Served,
    /// The API server is overloaded, or is not there; it may say for how long.
    Unavailable(Option<Duration>),
}

/// Whether an answer with this status says nothing of what was asked for: too many requests, or what is in front of the API server does not
/// reach it.
pub fn is_unavailable(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

impl Circuit {
    pub fn admit(&mut self, now: Duration) -> Admission {
        match self {
            Self::Available => Admission::Pass,
            Self::Unavailable { next_probe } if now < *next_probe => Admission::Wait(*next_probe),
            Self::Unavailable { next_probe } => {
                *next_probe = now.saturating_add(PROBE_PATIENCE);
                Admission::Probe
            }
        }
    }

    /// A request was answered, or was not; `asked` where it was admitted to ask. One that was sent before says nothing of now when it is served.
    pub fn answered(&mut self, asked: bool, answer: Answer, now: Duration) {
        let Answer::Unavailable(retry_after) = answer else {
            if asked {
                *self = Self::Available;
            }
            return;
        };
        let pause = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        let next_probe = match self {
            // It may have been this connection alone: the next request asks at once.
            Self::Available => now.saturating_add(pause),
            Self::Unavailable { .. } if asked => now.saturating_add(pause.max(PROBE_PAUSE)),
            Self::Unavailable { next_probe } => now.saturating_add(pause).max(*next_probe),
        };
        *self = Self::Unavailable { next_probe };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1000);

    fn after(seconds: u64) -> Duration {
        NOW + Duration::from_secs(seconds)
    }

    fn unavailable(seconds: u64) -> Circuit {
        Circuit::Unavailable { next_probe: after(seconds) }
    }

    #[test]
    fn one_request_at_a_time_asks_and_the_others_wait() {
        for (circuit, admitted, left) in [
            (Circuit::Available, Admission::Pass, Circuit::Available),
            (unavailable(1), Admission::Wait(after(1)), unavailable(1)),
            (unavailable(0), Admission::Probe, unavailable(2)),
        ] {
            let mut now = circuit;
            assert_eq!((now.admit(NOW), now), (admitted, left), "{circuit:?}");
        }
        let mut circuit = unavailable(0);
        let asked = [circuit.admit(NOW), circuit.admit(NOW), circuit.admit(after(1)), circuit.admit(after(2))];
        let wait = Admission::Wait(after(2));
        assert_eq!(asked, [Admission::Probe, wait, wait, Admission::Probe], "no answer holds up the next for 2 s");
    }

    #[test]
    fn what_an_answer_shows() {
        let retry_after = |seconds| Answer::Unavailable(Some(Duration::from_secs(seconds)));
        let silent = Answer::Unavailable(None);
        for (what, before, asked, answer, left) in [
            ("served", Circuit::Available, false, Answer::Served, Circuit::Available),
            ("the first: the next asks at once", Circuit::Available, false, silent, unavailable(0)),
            ("the first names a pause", Circuit::Available, false, retry_after(4), unavailable(4)),
            ("still unavailable", unavailable(2), true, silent, unavailable(1)),
            ("a pause of 0 s is none", unavailable(2), true, retry_after(0), unavailable(1)),
            ("a pause is obeyed", unavailable(2), true, retry_after(4), unavailable(4)),
            ("a pause is bounded", unavailable(2), true, retry_after(86_400), unavailable(60)),
            ("it is back", unavailable(2), true, Answer::Served, Circuit::Available),
            ("sent before, and served", unavailable(2), false, Answer::Served, unavailable(2)),
            ("sent before, and not served", unavailable(2), false, silent, unavailable(2)),
            ("sent before, with a pause", unavailable(2), false, retry_after(4), unavailable(4)),
        ] {
            let mut circuit = before;
            circuit.answered(asked, answer, NOW);
            assert_eq!(circuit, left, "{what}");
        }
    }

    #[test]
    fn which_statuses_say_nothing_of_what_was_asked_for() {
        let unavailable: Vec<u16> = (100..600).filter(|status| is_unavailable(*status)).collect();
        assert_eq!(unavailable, [429, 502, 503, 504]);
    }
}
