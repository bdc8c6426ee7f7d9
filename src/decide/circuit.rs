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
pub enum ServerAnswer {
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
    pub fn answered(&mut self, asked: bool, answer: ServerAnswer, now: Duration) {
        let ServerAnswer::Unavailable(retry_after) = answer else {
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
mod tests;
