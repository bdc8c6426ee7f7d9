//! Applies an ordered fault to a request: to the work that it starts, and to the answer.

use jiff::{SignedDuration, Timestamp};

use super::faults::{Fault, FaultKind};
use super::odd;
use super::rewritten::{with_normalized_settings, without_zones};
use super::world::World;
use super::world::message::{Request, Response};

/// Handles the request and applies the fault. Faults of the connection change neither work nor
/// answer.
pub fn respond(
    world: &mut World,
    request: &Request,
    now: Timestamp,
    fault: Option<&Fault>,
) -> Response {
    let Some(fault) = fault else {
        return world.respond(request, now);
    };
    match fault.kind {
        FaultKind::Repeat => {
            world.respond(request, now);
            world.respond(request, now)
        }
        FaultKind::ClockOff => {
            let clock_off = SignedDuration::from_secs(fault.seconds);
            world.respond(
                &Request {
                    clock_off,
                    ..request.clone()
                },
                now,
            )
        }
        // A server that has not learned of a new key yet answers as if the key were unknown.
        FaultKind::YoungKey => world.respond(&request.clone().bearer("unknown"), now),
        _ => rewritten(world.respond(request, now), fault),
    }
}

fn rewritten(answer: Response, fault: &Fault) -> Response {
    let Ok(mut body) = serde_json::from_slice(&answer.body) else {
        return answer;
    };
    match fault.kind {
        FaultKind::TimesWithoutZone => without_zones(&mut body),
        FaultKind::NormalizedSettings => with_normalized_settings(&mut body),
        FaultKind::OddEntry => odd::with_odd_entry(&mut body, fault),
        FaultKind::State => odd::with_state(&mut body, fault),
        _ => return answer,
    }
    Response {
        body: body.to_string().into_bytes(),
        ..answer
    }
}
