//! The circuit breaker for requests to the API server. While the server is unavailable, one request
//! at a time probes it, and the others wait. All times are those of one process's clock.

use std::time::Duration;

/// The pause between two probes if the API server names none. Also the pause before a pass is
/// repeated that could not reach it.
pub const PROBE_PAUSE: Duration = Duration::from_secs(1);
/// An unanswered probe delays the next one for no longer than this.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);
/// API servers ask for seconds (Retry-After). A longer value than a minute comes from a proxy
/// before them.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The availability of the API server for one class of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Circuit {
    #[default]
    Available,
    /// The next probe may be sent at `next_probe`.
    Unavailable { next_probe: Duration },
}

/// The permission for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Pass,
    /// Send it as a probe.
    Probe,
    /// Ask again at that time.
    Wait(Duration),
}

/// The evidence in an answer, or in a missing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Served,
    /// The API server is overloaded or unreachable; it may name a pause.
    Unavailable(Option<Duration>),
}

/// Returns true for a status that says nothing about the requested object: 429, or a proxy that
/// does not reach the API server.
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

    /// Applies an answer or its absence. `asked`: the request was a probe. Success of an older
    /// request says nothing about the present.
    pub fn answered(&mut self, asked: bool, answer: Answer, now: Duration) {
        let Answer::Unavailable(retry_after) = answer else {
            if asked {
                *self = Self::Available;
            }
            return;
        };
        let pause = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        let next_probe = match self {
            // The failure may concern only this connection, so the next request probes at once.
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
        Circuit::Unavailable {
            next_probe: after(seconds),
        }
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
        let asked = [
            circuit.admit(NOW),
            circuit.admit(NOW),
            circuit.admit(after(1)),
            circuit.admit(after(2)),
        ];
        let wait = Admission::Wait(after(2));
        assert_eq!(
            asked,
            [Admission::Probe, wait, wait, Admission::Probe],
            "no answer holds up the next for 2 s"
        );
    }

    #[test]
    fn what_an_answer_shows() {
        let retry_after = |seconds| Answer::Unavailable(Some(Duration::from_secs(seconds)));
        let silent = Answer::Unavailable(None);
        for (what, before, asked, answer, left) in [
            (
                "served",
                Circuit::Available,
                false,
                Answer::Served,
                Circuit::Available,
            ),
            (
                "the first: the next asks at once",
                Circuit::Available,
                false,
                silent,
                unavailable(0),
            ),
            (
                "the first names a pause",
                Circuit::Available,
                false,
                retry_after(4),
                unavailable(4),
            ),
            (
                "still unavailable",
                unavailable(2),
                true,
                silent,
                unavailable(1),
            ),
            (
                "a pause of 0 s is none",
                unavailable(2),
                true,
                retry_after(0),
                unavailable(1),
            ),
            (
                "a pause is obeyed",
                unavailable(2),
                true,
                retry_after(4),
                unavailable(4),
            ),
            (
                "a pause is bounded",
                unavailable(2),
                true,
                retry_after(86_400),
                unavailable(60),
            ),
            (
                "it is back",
                unavailable(2),
                true,
                Answer::Served,
                Circuit::Available,
            ),
            (
                "sent before, and served",
                unavailable(2),
                false,
                Answer::Served,
                unavailable(2),
            ),
            (
                "sent before, and not served",
                unavailable(2),
                false,
                silent,
                unavailable(2),
            ),
            (
                "sent before, with a pause",
                unavailable(2),
                false,
                retry_after(4),
                unavailable(4),
            ),
        ] {
            let mut circuit = before;
            circuit.answered(asked, answer, NOW);
            assert_eq!(circuit, left, "{what}");
        }
    }

    #[test]
    fn which_statuses_say_nothing_of_what_was_asked_for() {
        let unavailable: Vec<u16> = (100..600)
            .filter(|status| is_unavailable(*status))
            .collect();
        assert_eq!(unavailable, [429, 502, 503, 504]);
    }
}
