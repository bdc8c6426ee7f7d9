//! Modes: the ways in which a chosen request can fail.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};

use super::gate::Counted;
use super::passages::Purpose;
use crate::support::Error;

/// How old a key has to be for a platform that refuses young ones.
pub const YOUTH: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    ApiServer,
    Platform,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Nothing,
    /// The operator is killed, and the request is never forwarded.
    KillBefore,
    /// The request is carried out, but the operator is killed before the answer returns.
    KillAfter,
    /// The request is carried out, and its connection is closed without an answer.
    Lost,
    /// The request is carried out, and half of the answer's body arrives.
    Cut,
    /// The request is not forwarded, and gets this answer.
    Instead(u16),
    /// The request is carried out, and gets this answer.
    After(u16),
    /// The request is not forwarded. A proxy in front of the platform answers with a page.
    Page(u16),
    /// The request is carried out, and the answer is a redirect.
    Redirected,
    /// The request is carried out twice, and the second answer arrives.
    Repeated,
    /// The request is carried out with a clock that is an hour fast, and is not answered.
    ClockOff,
    /// The request is carried out and not answered. The next lists have an unreadable entry.
    OddEntry,
    /// The request is carried out and not answered. Then the platform's times lack a zone for a
    /// while.
    WithoutZone,
    /// The request is carried out, and the platform refuses keys in the first seconds of their
    /// lives.
    YoungKey,
    /// The request is carried out while the operator is stopped. A second operator starts and does
    /// everything, then the first one continues.
    Frozen,
    /// The request is carried out, and the operator is asked to end.
    Term,
    /// The request is carried out, and then the API server refuses every write for some seconds.
    Outage,
    /// `Term` and `Outage` together.
    TermOutage,
    /// As in a rolling update: the request is carried out, and the operator is asked to end while
    /// another one waits for the lead.
    Rolled,
    /// Before the request is forwarded, all resources are replaced by their manifests, which have
    /// neither annotations nor finalizers.
    Replaced,
    /// Before the request is forwarded, all annotations of all resources are removed.
    Stripped,
}

impl Mode {
    /// Modes for every scenario in each run of the tests.
    pub const QUICK: [Self; 3] = [Self::KillBefore, Self::KillAfter, Self::Lost];
    pub const FEW: [Self; 6] = [
        Self::KillBefore,
        Self::KillAfter,
        Self::Lost,
        Self::Instead(503),
        Self::Frozen,
        Self::Term,
    ];
    pub const ALL: [Self; 23] = [
        Self::KillBefore,
        Self::KillAfter,
        Self::Lost,
        Self::Cut,
        Self::Instead(409),
        Self::Instead(423),
        Self::Instead(429),
        Self::Instead(500),
        Self::Instead(503),
        Self::After(500),
        Self::After(503),
        Self::Page(200),
        Self::Page(404),
        Self::Redirected,
        Self::Repeated,
        Self::ClockOff,
        Self::OddEntry,
        Self::WithoutZone,
        Self::YoungKey,
        Self::Frozen,
        Self::Term,
        Self::Outage,
        Self::TermOutage,
    ];

    /// Modes after which another process takes the lead.
    pub const SUCCESSIONS: [Self; 4] = [Self::KillAfter, Self::Frozen, Self::Term, Self::Rolled];
    /// Modes for requests for the Lease.
    pub const OF_THE_LEASE: [Self; 6] = [
        Self::KillAfter,
        Self::Lost,
        Self::Cut,
        Self::Instead(409),
        Self::Instead(500),
        Self::Frozen,
    ];

    /// Concurrent edits by users. They do not apply to resources that are being deleted.
    pub const REWRITES: [Self; 2] = [Self::Replaced, Self::Stripped];

    /// True if this mode applies to the request.
    pub fn suits(self, request: &Counted) -> bool {
        let Counted {
            side,
            write,
            purpose,
        } = *request;
        match self {
            Self::Nothing => false,
            Self::Instead(409) => side == Side::ApiServer && write,
            Self::Instead(423)
            | Self::Redirected
            | Self::ClockOff
            | Self::OddEntry
            | Self::WithoutZone => side == Side::Platform && write,
            Self::Repeated => matches!(purpose, Purpose::CreatesCompute | Purpose::CreatesKey),
            Self::YoungKey => purpose == Purpose::CreatesKey,
            Self::Page(_) => side == Side::Platform,
            // An outage refuses only writes, so one that begins at a read equals one that began at
            // the write before.
            Self::After(_) | Self::Outage | Self::TermOutage => write,
            _ => true,
        }
    }

    /// True if the operator's process ends.
    pub fn ends(self) -> bool {
        matches!(
            self,
            Self::KillBefore | Self::KillAfter | Self::Term | Self::TermOutage
        )
    }

    /// True if the request is carried out and the operator survives, but never gets the result.
    pub fn withholds(self) -> bool {
        matches!(
            self,
            Self::Lost
                | Self::Cut
                | Self::After(_)
                | Self::Redirected
                | Self::ClockOff
                | Self::OddEntry
                | Self::WithoutZone
        )
    }

    /// The fault of the simulated platform with which this mode starts, for a request with this
    /// method.
    pub fn order(self, method: &str) -> Option<Value> {
        Some(match self {
            Self::ClockOff => json!({"kind": "clock_off", "method": method, "seconds": 3600}),
            Self::OddEntry => {
                json!({"kind": "odd_entry", "method": "GET", "field": "id", "times": 3})
            }
            Self::WithoutZone => json!({"kind": "times_without_zone", "times": 20}),
            Self::YoungKey => {
                json!({"kind": "young_key", "seconds": YOUTH.as_secs(), "times": 100})
            }
            _ => return None,
        })
    }

    fn words(self) -> Option<&'static str> {
        Some(match self {
            Self::Nothing => "none",
            Self::KillBefore => "kill-before",
            Self::KillAfter => "kill-after",
            Self::Lost => "lost",
            Self::Cut => "cut",
            Self::Frozen => "frozen",
            Self::Term => "term",
            Self::Outage => "outage",
            Self::TermOutage => "term-outage",
            Self::Rolled => "rolled",
            Self::Redirected => "redirected",
            Self::Repeated => "repeated",
            Self::ClockOff => "clock-off",
            Self::OddEntry => "odd-entry",
            Self::WithoutZone => "without-zone",
            Self::YoungKey => "young-key",
            Self::Replaced => "replaced",
            Self::Stripped => "stripped",
            Self::Instead(_) | Self::After(_) | Self::Page(_) => return None,
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.words()) {
            (Self::Instead(status), _) => write!(f, "{status}"),
            (Self::After(status), _) => write!(f, "after-{status}"),
            (Self::Page(status), _) => write!(f, "page-{status}"),
            (_, words) => f.write_str(words.unwrap_or_default()),
        }
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let known = [
            Self::ALL.as_slice(),
            &Self::REWRITES,
            &[Self::Nothing, Self::Rolled],
        ]
        .concat();
        let found = known.iter().copied().find(|mode| mode.to_string() == text);
        let all = || {
            known
                .iter()
                .map(Self::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        found.ok_or_else(|| {
            Error::new(format!(
                "there is no way to fail called {text:?}; there are {}",
                all()
            ))
        })
    }
}

/// Which points are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A subset small enough for every run of the tests. A read has no effect, so killing before it
    /// equals killing after it.
    Quick,
    /// All single faults, and a sample of pairs with this seed.
    Whole(u64),
    /// Only the sample of pairs with this seed.
    Pairs(u64),
}

/// The number of a request, counted from the act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Request(usize),
    /// Requests for the Lease are counted separately, because they depend on time.
    Lease(usize),
}

impl Place {
    /// True if a fault at `wanted` is due at a request with this place.
    pub fn is_due(self, wanted: Self) -> bool {
        match (self, wanted) {
            (Self::Request(number), Self::Request(wanted))
            | (Self::Lease(number), Self::Lease(wanted)) => number >= wanted,
            (Self::Request(_), Self::Lease(_)) | (Self::Lease(_), Self::Request(_)) => false,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(number) => write!(f, "{number}"),
            Self::Lease(number) => write!(f, "lease-{number}"),
        }
    }
}

impl FromStr for Place {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (digits, of): (&str, fn(usize) -> Self) = match text.strip_prefix("lease-") {
            Some(digits) => (digits, Self::Lease),
            None => (text, Self::Request),
        };
        digits
            .parse()
            .map(of)
            .map_err(Error::while_doing(format!("reading the number {text:?}")))
    }
}

/// A mode and the request at which it applies. For `Nothing`, the number only distinguishes several
/// runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub mode: Mode,
    pub at: Place,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.mode, self.at)
    }
}

impl FromStr for Fault {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let Some((mode, at)) = text.split_once(':') else {
            return Err(Error::new(format!(
                "{text:?} is not mode:number, for instance kill-after:7"
            )));
        };
        Ok(Self {
            mode: mode.parse()?,
            at: at.parse()?,
        })
    }
}
