//! Faults of a run and the time at which they hit.

use proptest::prelude::*;

use super::deviations::{Deviation, deviations};

/// A fault that hits after `after` undisturbed effects.
#[derive(Clone, Debug)]
pub struct Hit {
    pub after: u16,
    pub fault: Fault,
}

/// A fault of one effect, that is, of a call that the operator waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process dies while it waits.
    Dies(Carried),
    /// No answer arrives.
    Silence(Carried),
    /// The request is carried out, but the answer is cut off.
    Cut,
    /// Answered with this status instead of being carried out.
    Refused(u16),
    /// A proxy in front of the platform answers with a page and this status. The request is not
    /// carried out.
    Page(u16),
    /// The same, but the request is carried out before.
    PageAfter(u16),
    /// The request is carried out, and the answer is a redirect.
    Redirected,
    /// No connection can be made.
    Unreachable,
    /// An admission policy of the API server denies the request.
    Denied,
    /// The request is carried out, and the answer exceeds every size limit.
    Huge,
    /// The request is carried out twice, and the second answer arrives.
    Repeated,
    /// The platform deviates from this request on, which is carried out.
    Deviates(Deviation),
}

/// If and when a request without an answer is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    Never,
    Now,
    /// This many seconds later.
    Late(u16),
}

impl Fault {
    pub fn carried(&self) -> Carried {
        match self {
            Self::Dies(carried) | Self::Silence(carried) => *carried,
            Self::Cut
            | Self::PageAfter(_)
            | Self::Redirected
            | Self::Huge
            | Self::Repeated
            | Self::Deviates(_) => Carried::Now,
            Self::Refused(_) | Self::Page(_) | Self::Unreachable | Self::Denied => Carried::Never,
        }
    }
}

/// Seconds after which a request was carried out or never will be.
const TIMEOUT: u16 = 30;

/// Faults whose delayed requests arrive before the request timeout, within the settle time.
pub fn faults() -> impl Strategy<Value = Vec<Hit>> {
    let fault = prop_oneof![
        4 => carried(1..TIMEOUT).prop_map(Fault::Dies),
        4 => carried(1..TIMEOUT).prop_map(Fault::Silence),
        1 => Just(Fault::Cut),
        2 => prop::sample::select(&[403_u16, 404, 409, 422, 423, 429, 500, 503][..]).prop_map(Fault::Refused),
        1 => prop::sample::select(&[200_u16, 403, 404, 502][..]).prop_map(Fault::Page),
        1 => prop::sample::select(&[200_u16, 403, 404, 502][..]).prop_map(Fault::PageAfter),
        1 => Just(Fault::Redirected),
        1 => deviations().prop_map(Fault::Deviates),
        1 => Just(Fault::Unreachable),
    ];
    schedule(fault)
}

/// Faults including requests that may arrive after the request timeout, or twice.
pub fn late_faults() -> impl Strategy<Value = Vec<Hit>> {
    let fault = prop_oneof![
        2 => carried(1..900).prop_map(Fault::Dies),
        2 => carried(1..900).prop_map(Fault::Silence),
        1 => Just(Fault::Refused(500)),
        1 => Just(Fault::Repeated),
    ];
    schedule(fault)
}

fn carried(late: std::ops::Range<u16>) -> impl Strategy<Value = Carried> {
    prop_oneof![
        Just(Carried::Never),
        Just(Carried::Now),
        late.prop_map(Carried::Late)
    ]
}

fn schedule(fault: impl Strategy<Value = Fault>) -> impl Strategy<Value = Vec<Hit>> {
    let after = prop_oneof![3 => 0..6_u16, 1 => 0..40_u16];
    prop::collection::vec(
        (after, fault).prop_map(|(after, fault)| Hit { after, fault }),
        0..8,
    )
}
