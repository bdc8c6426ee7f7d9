//! Transport to the simulated platforms.

use async_trait::async_trait;
use axum::http;
use dbplane::platform::{Transport, Unanswered};
use dbplane_simulator::world::Profile;
use dbplane_simulator::world::message::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::elsewhere::{Platform, marked};
use crate::faults::Fault;
use crate::simulation::{Shared, Simulation};

/// Larger than the client accepts for any list.
const HUGE: usize = 9 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Wire(pub Shared);

#[async_trait]
impl Transport for Wire {
    async fn carry(&self, request: reqwest::Request) -> Result<reqwest::Response, Unanswered> {
        let platform = Platform::at(request.url().as_str());
        let arrived = {
            let mut simulation = self.0.lock();
            let (sent, token) = (translated(&request, simulation.now), bearer(&request));
            simulation.note_sent(platform, &sent, token);
            sent.bearer(platform.received(token))
        };
        let now = |simulation: &mut Simulation| {
            let actor = simulation.acting.clone();
            simulation.at(platform, |simulation| {
                simulation.carry(&arrived, actor.as_ref())
            })
        };
        let answer = |status: u16, body: Vec<u8>| {
            let answer = http::Response::builder().status(status).body(body).unwrap();
            Ok(reqwest::Response::from(answer))
        };
        let late =
            |simulation: &mut Simulation, after| simulation.post(platform, arrived.clone(), after);
        let name = || platform.named(&format!("{:?} {}", arrived.method, arrived.path));
        match self.0.effect(name, now, late).await {
            Ok(response) => answer(
                response.status,
                marked(platform, shifted(response.body, self.0.lock().ahead)),
            ),
            Err(Fault::Refused(status)) => {
                answer(status, refusal(self.0.lock().world.profile(), status))
            }
            Err(Fault::Page(status) | Fault::PageAfter(status)) => {
                answer(status, b"<html>Log in</html>".to_vec())
            }
            Err(Fault::Redirected) => answer(302, Vec::new()),
            Err(Fault::Cut) => answer(201, b"{".to_vec()),
            Err(Fault::Huge) => answer(200, vec![b' '; HUGE]),
            Err(Fault::Unreachable) => Err(Unanswered {
                sent: false,
                message: "no connection".into(),
            }),
            Err(fault) => Err(Unanswered {
                sent: true,
                message: format!("{fault:?}"),
            }),
        }
    }
}

/// The specification shows no bodies of errors. The minimal platform writes plain text or nothing.
fn refusal(profile: Profile, status: u16) -> Vec<u8> {
    match (profile, status % 2) {
        (Profile::Minimal, 0) => b"no".to_vec(),
        (Profile::Minimal, _) => Vec::new(),
        _ => br#"{"message": "no"}"#.to_vec(),
    }
}

/// The answer of a platform whose clock is ahead by this much.
fn shifted(body: Vec<u8>, ahead: SignedDuration) -> Vec<u8> {
    match serde_json::from_slice(&body) {
        Ok(mut value) if !ahead.is_zero() => {
            shift(&mut value, ahead);
            serde_json::to_vec(&value).unwrap()
        }
        _ => body,
    }
}

fn shift(value: &mut Value, ahead: SignedDuration) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|field| shift(field, ahead)),
        Value::Array(items) => items.iter_mut().for_each(|item| shift(item, ahead)),
        Value::String(text) => {
            if let Ok(time) = text.parse::<Timestamp>() {
                *text = (time + ahead).to_string();
            }
        }
        _ => {}
    }
}

pub fn translated(request: &reqwest::Request, now: Timestamp) -> Request {
    let path = request
        .url()
        .path()
        .trim_start_matches("/api/v2")
        .to_owned();
    let mut arrived = Request::new(Method::parse(request.method().as_str()), path, now);
    arrived.query = request.url().query().unwrap_or_default().to_owned();
    arrived = arrived.bearer(bearer(request));
    arrived.body = request
        .body()
        .and_then(|body| body.as_bytes())
        .unwrap_or_default()
        .to_vec();
    arrived
}

fn bearer(request: &reqwest::Request) -> &str {
    request
        .headers()
        .get("authorization")
        .unwrap()
        .to_str()
        .unwrap()
        .trim_start_matches("Bearer ")
}
