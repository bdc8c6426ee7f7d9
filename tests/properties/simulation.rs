//! The operator's surroundings: a clock, the simulator's world, a cluster, and scheduled faults.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use dbplane::api::{Compute, Known};
use dbplane::decide::names;
use dbplane_simulator::faults::FaultBoard;
use dbplane_simulator::world::World;
use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::world::message::{Method, Request, Response};
use futures::future::pending;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::elsewhere::{During, Other, Platform};
use super::faults::{Carried, Fault, Hit};
use super::history::History;
use super::in_memory::{Cluster, Resource};
use super::injector::{CREATE, CREATE_KEY, Injector};
use super::ledger::{Changed, Ledger, Maker};
use super::tenant::is_tenants;

pub const TOKEN: &str = "token-of-an-administrator";
pub const TOKEN_NAME: &str = "admin";
pub const PROJECT: &str = "p";
pub const BASE_URL: &str = "https://platform.example/api/v2";
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Duration of one effect.
const A_MOMENT: Duration = Duration::from_millis(20);

/// A project with at least two branches, and all that the history uses.
pub fn world(history: &History, seed: u64, now: Timestamp) -> World {
    let last = history
        .computes
        .iter()
        .map(|declared| declared.branch)
        .max()
        .unwrap_or_default()
        .max(1);
    let branches: Vec<String> = (0..=last)
        .map(|branch| format!("{{id: b{branch}}}"))
        .collect();
    let text = format!(
        "
settings: {{rate_limit: {{enabled: false}}}}
users: [{{id: user-1}}]
organizations: [{{id: org, plan: scale, members: [{{user: user-1, role: admin}}]}}]
projects: [{{id: p, owner: org, branches: [{}]}}]
keys:
  - {{type: personal, owner: user-1, name: admin, token: token-of-an-administrator}}
",
        branches.join(", ")
    );
    World::new(
        &WorldFile::parse(&text).unwrap(),
        history.profile,
        seed,
        now,
    )
    .unwrap()
}

/// A request whose sender no longer waits for the answer.
#[derive(Debug)]
struct OnTheWay {
    sent: Timestamp,
    arrives: Timestamp,
    platform: Platform,
    request: Request,
    maker: Option<Maker>,
}

#[derive(Debug)]
pub struct Simulation {
    pub now: Timestamp,
    pub world: World,
    /// The inactive platform, once there is one.
    pub other: Option<Other>,
    /// Edits this account after the process has read its state this many times.
    pub move_soon: Option<(u8, During, Resource, Value)>,
    pub cluster: Cluster,
    pub ledger: Ledger,
    /// The resource of the current pass.
    pub acting: Option<Resource>,
    on_the_way: Vec<OnTheWay>,
    faults: Vec<Hit>,
    pub injector: Injector,
    pub deviations: FaultBoard,
    /// The current process has to die.
    pub dead: bool,
    /// Number of effects: requests to the platform and to the cluster.
    pub effects: u64,
    /// How far the platform's clock is ahead of the operator's.
    pub ahead: SignedDuration,
}

#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Simulation>>);

impl Shared {
    pub fn new(history: &History) -> Self {
        let mut faults = history.faults.clone();
        let now: Timestamp = "2026-01-05T08:00:00Z".parse().unwrap();
        let world = world(history, 7, now);
        faults.reverse();
        Self::with(now, world, Cluster::default(), faults)
    }

    /// `faults` are in reverse order: the last one hits first.
    pub fn with(now: Timestamp, world: World, cluster: Cluster, faults: Vec<Hit>) -> Self {
        Self(Arc::new(Mutex::new(Simulation {
            now,
            world,
            other: None,
            move_soon: None,
            cluster,
            ledger: Ledger::default(),
            acting: None,
            on_the_way: Vec::new(),
            faults,
            injector: Injector::default(),
            deviations: FaultBoard::default(),
            dead: false,
            effects: 0,
            ahead: SignedDuration::ZERO,
        })))
    }

    pub fn lock(&self) -> MutexGuard<'_, Simulation> {
        self.0.lock().unwrap()
    }

    /// Carries out an effect that the process waits for, unless a fault hits it. Where the process
    /// dies, the future stays pending.
    pub async fn effect<T>(
        &self,
        name: impl FnOnce() -> String + Send,
        carry: impl FnOnce(&mut Simulation) -> T + Send,
        post: impl FnOnce(&mut Simulation, Duration) + Send,
    ) -> Result<T, Fault> {
        let outcome = self.lock().outcome(name, carry, post);
        match outcome {
            Some(outcome) => outcome,
            None => pending().await,
        }
    }
}

impl Simulation {
    fn outcome<T>(
        &mut self,
        name: impl FnOnce() -> String,
        carry: impl FnOnce(&mut Self) -> T,
        post: impl FnOnce(&mut Self, Duration),
    ) -> Option<Result<T, Fault>> {
        if self.dead {
            return None;
        }
        self.advance(A_MOMENT);
        self.effects += 1;
        let name = if self.injector.is_empty() && !self.repeats_next() {
            String::new()
        } else {
            name()
        };
        let injected = if self.injector.is_empty() {
            None
        } else {
            self.injected(&name)
        };
        let Some(fault) = injected.or_else(|| self.next_fault(&name)) else {
            return Some(Ok(carry(self)));
        };
        if let Fault::Deviates(deviation) = fault {
            self.deviate(deviation);
            return Some(Ok(carry(self)));
        }
        if fault == Fault::Repeated {
            post(self, Duration::ZERO);
            if let Some(first) = self.on_the_way.pop() {
                let maker = first.maker.clone();
                let creates = self.arrive(first);
                if creates {
                    self.ledger.repeated.extend(maker);
                }
            }
            return Some(Ok(carry(self)));
        }
        match fault.carried() {
            Carried::Never => {}
            Carried::Now => drop(carry(self)),
            Carried::Late(after) => post(self, Duration::from_secs(after.into())),
        }
        if matches!(fault, Fault::Dies(_)) {
            self.dead = true;
            return None;
        }
        if matches!(fault, Fault::Silence(_)) {
            self.advance(REQUEST_TIMEOUT);
        }
        Some(Err(fault))
    }

    fn repeats_next(&self) -> bool {
        self.faults
            .last()
            .is_some_and(|hit| hit.fault == Fault::Repeated)
    }

    /// `Repeated` waits for the next create.
    fn next_fault(&mut self, name: &str) -> Option<Fault> {
        if self.repeats_next() && ![CREATE, CREATE_KEY].contains(&name) {
            return None;
        }
        let next = self.faults.last_mut()?;
        if next.after > 0 && next.fault != Fault::Repeated {
            next.after -= 1;
            return None;
        }
        self.faults.pop().map(|hit| hit.fault)
    }

    /// Stops all faults. Pending requests still arrive.
    pub fn stop_faults(&mut self) {
        self.faults.clear();
        self.deviations.clear();
        self.injector = Injector::default();
    }

    pub fn advance(&mut self, by: Duration) {
        let until = self.now + by;
        while let Some(position) = self.due(until) {
            let arriving = self.on_the_way.remove(position);
            self.now = self.now.max(arriving.arrives);
            let is_late = arriving.arrives >= arriving.sent + REQUEST_TIMEOUT;
            let maker = arriving.maker.clone();
            let creates = self.arrive(arriving);
            if creates && is_late {
                self.ledger.late.extend(maker);
            }
        }
        self.now = until;
        self.world.advance_to(until);
        if let Some(other) = &mut self.other {
            other.world.advance_to(until);
        }
    }

    /// Carries out a request on the way. Returns true if it creates something.
    fn arrive(
        &mut self,
        OnTheWay {
            platform,
            request,
            maker,
            ..
        }: OnTheWay,
    ) -> bool {
        let actor = maker.as_ref().map(|maker| &maker.resource);
        let response = self.at(platform, |simulation| simulation.carry(&request, actor));
        request.method == Method::Post && (200..300).contains(&response.status)
    }

    fn due(&self, until: Timestamp) -> Option<usize> {
        let due = self
            .on_the_way
            .iter()
            .enumerate()
            .filter(|(_, it)| it.arrives <= until);
        due.min_by_key(|(_, it)| it.arrives)
            .map(|(position, _)| position)
    }

    pub fn post(&mut self, platform: Platform, request: Request, after: Duration) {
        let sent = self.now;
        let maker = self.acting.clone().and_then(|resource| {
            let uid = self.cluster.objects.get(&resource)?.uid().to_owned();
            let body = String::from_utf8_lossy(&request.body);
            let is_marked = ["\"name\":", "\"key_name\":"]
                .iter()
                .any(|field| body.contains(field));
            Some(Maker {
                resource,
                uid,
                is_marked,
            })
        });
        self.on_the_way.push(OnTheWay {
            sent,
            arrives: sent + after,
            platform,
            request,
            maker,
        });
    }

    /// Carries out a request of the operator, made for `actor`, and updates the ledger.
    pub fn carry(&mut self, request: &Request, actor: Option<&Resource>) -> Response {
        let segments: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let existed = self.live(&segments);
        let response = self.answered(request);
        let call = (format!("{:?}", request.method), actor.map(|actor| actor.0));
        *self.ledger.calls.entry(call).or_default() += 1;
        self.ledger.note_read(request.method, &segments, actor);
        if request.method == Method::Get || !(200..300).contains(&response.status) {
            return response;
        }
        self.ledger.writes.push(format!(
            "{:?} {} for {actor:?}",
            request.method, request.path
        ));
        self.ledger.changes.push(Changed {
            at: self.now,
            actor: actor.cloned(),
            request: request.clone(),
        });
        let Some(actor) = actor else { return response };
        match (request.method, segments.as_slice()) {
            (Method::Post, ["projects", _, "endpoints"]) => {
                let id = response.value()["endpoint"]["id"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                self.ledger.computes.insert(id, actor.clone());
            }
            (Method::Delete, ["projects", _, "endpoints", id]) if existed => {
                self.count_deletion(actor);
                self.ledger.touched(id, actor);
            }
            (_, ["projects", _, "endpoints", id, ..]) if existed => {
                self.ledger.touched(id, actor);
                if segments.last() == Some(&"restart") && self.acting.as_ref() == Some(actor) {
                    self.restarted(actor);
                }
            }
            (Method::Post, ["organizations", _, "api_keys"]) => {
                self.note_creation(actor);
                let key = response.value();
                self.ledger
                    .keys
                    .insert(key["id"].as_i64().unwrap(), actor.clone());
                self.ledger
                    .tokens
                    .insert(key["key"].as_str().unwrap().to_owned(), actor.clone());
            }
            (Method::Delete, ["organizations", _, "api_keys", id]) => {
                self.count_deletion(actor);
                self.ledger.revoked(id, actor);
                self.note_revocation_in_use(id, actor);
            }
            _ => {}
        }
        response
    }

    /// Checks that each restart is carried out once, however often it is tried.
    fn restarted(&mut self, actor: &Resource) {
        let Some(object) = self.cluster.get::<Known<Compute>>(&actor.1) else {
            return;
        };
        let Some(record) = object.identity().ok().and_then(|identity| identity.restart) else {
            return;
        };
        let (time, uid) = (
            record.maintained.map(|maintained| maintained.time),
            &object.metadata.uid,
        );
        let asked = self
            .ledger
            .restarts_asked
            .get(&(actor.clone(), record.token.clone()));
        let what = format!(
            "{} {uid:?} for {:?} {:?} {time:?} {asked:?}",
            actor.1, record.token, record.annotation
        );
        if !self.ledger.restarts.insert(what.clone()) {
            self.ledger
                .violations
                .push(format!("restarted twice: {what}"));
        }
    }

    fn count_deletion(&mut self, actor: &Resource) {
        let counts = self.cluster.objects.get(actor).is_some_and(|object| {
            let confirmed = &object.value["metadata"]["annotations"][names::CONFIRM_DELETION];
            object.is_deleting() && !confirmed.is_string() && !is_tenants(actor)
        });
        if counts {
            self.ledger.deletions.push(self.now);
        }
    }

    fn live(&self, segments: &[&str]) -> bool {
        let ["projects", _, "endpoints", id, ..] = segments else {
            return true;
        };
        self.world
            .console_computes(None)
            .iter()
            .any(|compute| compute.id == *id)
    }

    /// Live computes created for a resource.
    pub fn made_for(&self, resource: &Resource) -> Vec<String> {
        let live = self
            .world
            .console_computes(None)
            .into_iter()
            .map(|compute| compute.id);
        live.filter(|id| self.ledger.computes.get(id) == Some(resource))
            .collect()
    }

    /// Live keys created for a resource: number and name.
    pub fn keys_of(&self, resource: &Resource) -> Vec<(i64, String)> {
        let live = self
            .world
            .console_keys()
            .into_iter()
            .filter(|key| !key.revoked);
        live.filter(|key| self.ledger.keys.get(&key.id) == Some(resource))
            .map(|key| (key.id, key.name))
            .collect()
    }
}
