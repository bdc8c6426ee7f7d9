//! A second platform with the same ids for organization, project and branches. Others have computes
//! and keys there, with the same ids as ours. The accounts and resources switch to it and back.

mod moves;

use std::collections::BTreeMap;

use dbplane::api::{Compute, Known, ProjectKey};

use dbplane_simulator::world::World;
use dbplane_simulator::world::message::{Method, Request};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::accounts::CREDENTIAL;
use super::faults::faults;
use super::history::{self, Access, Chapter, Event, History, account, computes, profile};
use super::in_memory::Resource;
use super::in_memory::promises::words;
use super::simulation::{BASE_URL, Simulation};
use super::{config, holds};

const OTHER_URL: &str = "https://elsewhere.example/api/v2";
/// Suffix of the other platform's tokens. Both platforms issue the same tokens otherwise.
const MARK: &str = "-of-elsewhere";
const OTHER_CREDENTIAL: &str = "platform-api-key-elsewhere";

/// A switch to the other platform, or back.
#[derive(Clone, Copy, Debug)]
pub enum Move {
    /// The account that the resources refer to, edited or recreated.
    Account { recreated: bool },
    /// The same in the middle of passes: after the process has read its state `after` times. `what`
    /// starts these passes.
    AccountDuring { what: During, after: u8 },
    /// The account reference of one resource.
    Resource { key: bool },
}

/// The change that starts the passes.
#[derive(Clone, Copy, Debug)]
pub enum During {
    NewKey,
    KeyDeletion,
    Restart,
    Resize,
    NewCompute,
}

impl During {
    fn kind(self) -> &'static str {
        match self {
            Self::NewKey | Self::KeyDeletion => "ProjectKey",
            Self::Restart | Self::Resize | Self::NewCompute => "Compute",
        }
    }
}

/// The Compute is either restored from a backup or deleted, never both. If it is deleted before its
/// status has the record, a compute can remain that its account does not show.
pub fn chapters() -> impl Strategy<Value = Vec<Chapter>> {
    let restored = Just(Event::Rebuild).boxed();
    let deleted = prop_oneof![
        Just(Event::Delete(0)),
        any::<bool>().prop_map(|backup| Event::Reapply(0, backup)),
    ];
    prop_oneof![away(event(restored)), away(event(deleted.boxed()))]
}

/// The switch may last longer than the interval between key checks.
fn away(event: BoxedStrategy<Event>) -> impl Strategy<Value = Vec<Chapter>> {
    let seconds = prop_oneof![2 => 0..10_u16, 2 => 0..150_u16, 1 => 600..900_u16];
    prop::collection::vec(
        (event, seconds).prop_map(|(event, seconds)| Chapter { event, seconds }),
        2..8,
    )
}

fn event(either: BoxedStrategy<Event>) -> BoxedStrategy<Event> {
    let during = prop_oneof![
        2 => Just(During::NewKey),
        2 => Just(During::KeyDeletion),
        1 => Just(During::Restart),
        1 => Just(During::Resize),
        2 => Just(During::NewCompute),
    ];
    let moved = prop_oneof![
        2 => any::<bool>().prop_map(|recreated| Move::Account { recreated }),
        6 => (during, 0..25_u8).prop_map(|(what, after)| Move::AccountDuring { what, after }),
        2 => any::<bool>().prop_map(|key| Move::Resource { key }),
    ];
    prop_oneof![
        6 => moved.prop_map(Event::Moved),
        1 => Just(Event::Kill),
        2 => either,
        1 => Just(Event::AccountDeleted),
        1 => Just(Event::CredentialExchanged),
        1 => (0..3_u8).prop_map(|size| Event::Resize(0, size)),
        1 => (0..3_u8).prop_map(|token| Event::Restart(0, token)),
        1 => Just(Event::Stripped(0)),
        1 => Just(Event::ComputeRemoved(0)),
        3 => history::event_of_keys(),
        3 => (0..4_u8).prop_map(Event::KeyRequested),
        2 => Just(Event::KeyDeleted),
    ]
    .boxed()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    First,
    Other,
}

impl Platform {
    /// The platform that serves a URL.
    pub fn at(url: &str) -> Self {
        if url.starts_with(OTHER_URL) {
            Self::Other
        } else {
            Self::First
        }
    }

    fn url(self) -> &'static str {
        if self == Self::Other {
            OTHER_URL
        } else {
            BASE_URL
        }
    }

    /// The token as the simulation issued it.
    pub fn received(self, token: &str) -> &str {
        if self == Self::Other {
            token.trim_end_matches(MARK)
        } else {
            token
        }
    }

    /// The name by which a snare matches the request.
    pub fn named(self, request: &str) -> String {
        if self == Self::Other {
            format!("elsewhere {request}")
        } else {
            request.to_owned()
        }
    }
}

/// Adds the platform's suffix to a token in the answer.
pub fn marked(platform: Platform, body: Vec<u8>) -> Vec<u8> {
    match serde_json::from_slice::<Value>(&body) {
        Ok(mut value) if platform == Platform::Other && value["key"].is_string() => {
            value["key"] = json!(format!("{}{MARK}", value["key"].as_str().unwrap()));
            serde_json::to_vec(&value).unwrap()
        }
        _ => body,
    }
}

/// The inactive platform: its world, and the resources for which the operator created computes and
/// keys there.
#[derive(Debug)]
pub struct Other {
    platform: Platform,
    pub world: World,
    computes: BTreeMap<String, Resource>,
    keys: BTreeMap<i64, Resource>,
}

impl Simulation {
    /// Runs `act` with this platform as the active one.
    pub fn at<T>(&mut self, platform: Platform, act: impl FnOnce(&mut Self) -> T) -> T {
        let is_other = self
            .other
            .as_ref()
            .is_some_and(|other| other.platform == platform);
        if is_other {
            self.exchange();
        }
        let done = act(self);
        if is_other {
            self.exchange();
        }
        done
    }

    fn exchange(&mut self) {
        let here = self.here();
        let Some(other) = &mut self.other else { return };
        other.platform = here;
        std::mem::swap(&mut self.world, &mut other.world);
        std::mem::swap(&mut self.ledger.computes, &mut other.computes);
        std::mem::swap(&mut self.ledger.keys, &mut other.keys);
    }

    fn here(&self) -> Platform {
        match self.other.as_ref().map(|other| other.platform) {
            Some(Platform::First) => Platform::Other,
            Some(Platform::Other) | None => Platform::First,
        }
    }

    /// True if an object recorded with this platform is, or may be, on the active one.
    pub fn is_here(&self, platform: Option<&str>) -> bool {
        self.other.is_none() || platform.is_none_or(|url| url == self.here().url())
    }

    /// Checks a request: no platform may get another one's token or a request about a resource
    /// recorded on another one. Lists are exempt because they reveal nothing.
    pub fn note_sent(&mut self, platform: Platform, request: &Request, token: &str) {
        if token.ends_with(MARK) != (platform == Platform::Other) {
            self.ledger.violations.push(format!(
                "{platform:?} gets a token of another platform: {request:?}"
            ));
        }
        let Some(actor) = self.acting.clone() else {
            return;
        };
        if request.method == Method::Get
            && (actor.0 == "Compute" || request.path.ends_with("/api_keys"))
        {
            return;
        }
        let elsewhere = self
            .recorded_at(&actor)
            .into_iter()
            .find(|url| *url != platform.url());
        if let Some(url) = elsewhere {
            let what = format!("{:?} {}", request.method, request.path);
            self.ledger.violations.push(format!(
                "{platform:?} gets {what} for {}, which is at {url}",
                actor.1
            ));
        }
    }

    /// The account's spec for the platform that it does not refer to now.
    fn moved(&self, account: Access) -> Option<Value> {
        let leads_away =
            self.cluster.objects.get(&account.resource())?.value["spec"]["baseURL"] == OTHER_URL;
        Some(if leads_away {
            account.spec(BASE_URL, CREDENTIAL)
        } else {
            account.spec(OTHER_URL, OTHER_CREDENTIAL)
        })
    }

    /// Edits an account in the middle of a pass, if that is due. Returns the account and the
    /// resource of the pass.
    pub fn move_due(&mut self) -> Option<(Resource, Option<Resource>)> {
        let acting = self.acting.clone()?;
        let is_due = |(after, what, ..): &mut (u8, During, Resource, Value)| {
            if what.kind() != acting.0 {
                return false;
            }
            let is_due = *after == 0;
            *after = after.saturating_sub(1);
            is_due
        };
        let (.., account, spec) = self.move_soon.take_if(is_due)?;
        self.cluster.edit(&account, &json!({"spec": spec}));
        Some((account, Some(acting)))
    }

    /// The platforms on which a resource has, or has begun to create, something.
    fn recorded_at(&self, resource: &Resource) -> Vec<String> {
        let platforms = match resource.0 {
            "Compute" => self
                .cluster
                .get::<Known<Compute>>(&resource.1)
                .and_then(|object| {
                    let record = object.record().ok()?.identity_or_wish().clone();
                    let creates = record
                        .intent
                        .into_iter()
                        .chain(record.unanswered)
                        .filter_map(|create| create.platform);
                    Some(
                        creates
                            .chain(record.binding.and_then(|binding| binding.platform))
                            .collect(),
                    )
                }),
            "ProjectKey" => self
                .cluster
                .get::<Known<ProjectKey>>(&resource.1)
                .and_then(|object| {
                    let record = object.identity().ok()?;
                    let recorded = record
                        .records
                        .names()
                        .next()
                        .and(record.records.platform.clone());
                    Some(
                        recorded
                            .into_iter()
                            .chain(record.intent.and_then(|intent| intent.platform))
                            .collect(),
                    )
                }),
            _ => None,
        };
        platforms.unwrap_or_default()
    }

    /// Checks an event that reports keys as revoked: none of them may still be valid on any
    /// platform.
    pub fn note_event(&mut self, resource: &Resource, reason: &str, text: &str) {
        if !reason.starts_with("KeyRevoked")
            || text.ends_with("dbplane checks whether it was revoked.")
        {
            return;
        }
        let other = self
            .other
            .iter()
            .flat_map(|other| other.world.console_keys());
        let live = self
            .world
            .console_keys()
            .into_iter()
            .chain(other)
            .filter(|key| !key.revoked);
        // A repeated creation may have made two keys with one name, and the text then says which one.
        let is_other = |name: &str, id| {
            text.contains(&format!("{name} (")) && !text.contains(&format!("{name} ({id})"))
        };
        let live = live.filter(|key| !is_other(&key.name, key.id));
        let named: Vec<String> = live
            .map(|key| key.name)
            .filter(|name| words(text).any(|word| word == name))
            .collect();
        if !named.is_empty() {
            self.ledger.violations.push(format!(
                "{} says that {named:?} are revoked: {text}",
                resource.1
            ));
        }
    }
}

proptest! {
    #![proptest_config(config(20))]

    /// An object on one platform is neither changed through another one nor created there again.
    #[test]
    fn what_is_on_one_platform_is_left_alone_by_another(profile in profile(), account in account(), computes in computes(1), chapters in chapters(), faults in faults()) {
        holds(&History { profile, computes, key: true, chapters, faults, account, deletes_per_minute: 30 })?;
    }
}
