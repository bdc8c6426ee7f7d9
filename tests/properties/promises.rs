//! The promises that hold after every pass, and those that hold once the run is at rest.

use std::time::Duration;

use dbplane::api::{Compute, Condition, ProjectKey};
use dbplane::controller::object::Managed;
use dbplane::decide::{identity, names};
use dbplane_simulator::world::Profile;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::history::{Event, compute, key};
use super::in_memory::Resource;
use super::in_memory::cluster::{NAMESPACE, Request, Target, full_name, place};
use super::in_memory::promises::{
    self, BoundCompute, LiveCompute, LiveKey, Maker, RecordedKey, World,
};
use super::ledger;
use super::process::Process;
use super::rotating::MOST_KEYS;
use super::run::Run;
use super::simulation::{REQUEST_TIMEOUT, Simulation};
use super::tenant::is_tenants;

/// Checks the promises that hold at any time.
pub fn unbroken(run: &Run) -> Result<(), String> {
    if let Some(violation) = run.simulation.lock().ledger.violations.first() {
        return Err(violation.clone());
    }
    too_many_deletions(run)?;
    run.made_on_both()?;
    run.at_each_platform(unbroken_here)
}

fn unbroken_here(run: &Run) -> Result<(), String> {
    let world = world(run);
    for resource in computes(run) {
        let most = 1 + run.late(&resource);
        if let Some(twice) = promises::made_twice(&world, &resource.1, most) {
            return Err(twice);
        }
    }
    if let Some(wrong) = promises::bound_wrongly(&world).or_else(|| run.is_robbed()) {
        return Err(wrong);
    }
    let live = promises::live_keys(&world);
    if live > MOST_KEYS + run.late_keys() && run.history.lists_keys() {
        return Err(format!("{live} keys are live: {:?}", world.keys));
    }
    let forgotten = promises::forgotten_keys(&world);
    match forgotten.len() > run.late_keys() {
        true => Err(format!("the keys {forgotten:?} are forgotten")),
        false => Ok(()),
    }
}

fn computes(run: &Run) -> impl Iterator<Item = Resource> {
    (0..run.history.computes.len()).map(compute)
}

impl Simulation {
    /// Called when a key is created: a ProjectKey whose Secret holds no key must not be Ready.
    pub fn note_creation(&mut self, actor: &Resource) {
        let Some(object) = self.cluster.get::<ProjectKey>(&actor.1) else {
            return;
        };
        let secret = self.cluster.secrets.get(&full_name(
            object.namespace().as_deref(),
            &object.spec.secret.name,
        ));
        let holds_key =
            secret.is_some_and(|secret| secret.annotations().contains_key(names::SECRET_KEY_ID));
        let ready =
            |condition: &Condition| condition.type_ == "Ready" && condition.status == "True";
        if self.acting.as_ref() == Some(actor)
            && !holds_key
            && conditions(object.as_ref()).iter().any(ready)
        {
            let violation = format!("{} has no key, and says Ready", actor.1);
            self.ledger.violations.push(violation);
        }
    }
}

impl Simulation {
    /// Checks that a resource causes no writes in another namespace.
    pub fn note_write(&mut self, request: &Request) {
        let Some(actor) = self
            .acting
            .as_ref()
            .filter(|actor| actor.0 != "ClusterAccount")
        else {
            return;
        };
        let target = match request.target() {
            Target::Object(resource) => &resource.1,
            Target::Secret(name) => name,
            Target::Namespace => return,
        };
        if place(target).0 != place(&actor.1).0 {
            let violation = format!(
                "{} {} has {target} written in another namespace",
                actor.0, actor.1
            );
            self.ledger.violations.push(violation);
        }
    }
}

/// Limits deletions of one process per minute. A request can take up to its timeout, so the window
/// is shorter by that.
fn too_many_deletions(run: &Run) -> Result<(), String> {
    let simulation = run.simulation.lock();
    let within = Duration::from_secs(60).saturating_sub(REQUEST_TIMEOUT);
    let (times, most) = (
        &simulation.ledger.deletions,
        run.history.deletes_per_minute as usize,
    );
    let crowded = times.iter().find(|first| {
        times
            .iter()
            .filter(|time| *time >= first && **time < **first + within)
            .count()
            > most
    });
    crowded.map_or(Ok(()), |first| {
        Err(format!(
            "more than {most} deletions within {within:?} from {first} on"
        ))
    })
}

/// All objects except those of the hostile tenant.
fn world(run: &Run) -> World {
    let simulation = run.simulation.lock();
    let made_by = |made_for: Option<&Resource>| match made_for {
        Some(resource) => Maker::Operator(Some(resource.1.clone())),
        None => Maker::SomebodyElse,
    };
    let ledger = &simulation.ledger;
    let is_theirs = |made_for: Option<&Resource>| made_for.is_some_and(is_tenants);
    let computes = simulation.world.console_computes(None).into_iter();
    let computes = computes.filter(|compute| !is_theirs(ledger.computes.get(&compute.id)));
    let keys = simulation
        .world
        .console_keys()
        .into_iter()
        .filter(|key| !key.revoked);
    let keys = keys.filter(|key| !is_theirs(ledger.keys.get(&key.id)));
    let is_own = |namespace: Option<String>| namespace.as_deref() == Some(NAMESPACE);
    let objects = simulation
        .cluster
        .all::<Compute>()
        .into_iter()
        .filter(|object| is_own(object.namespace()));
    let objects = objects
        .map(BoundCompute::from)
        .filter(|it| simulation.is_here(it.identity.platform()));
    let project_keys = simulation
        .cluster
        .all::<ProjectKey>()
        .into_iter()
        .filter(|object| is_own(object.namespace()));
    let project_keys = project_keys
        .map(RecordedKey::from)
        .filter(|it| simulation.is_here(it.identity.platform()));
    let of_key = |secret: &Secret| secret.annotations().get(names::SECRET_KEY_ID)?.parse().ok();
    let recorded = |secret: &Secret| {
        let text = secret.annotations().get(names::SECRET_KEY)?;
        Some(
            serde_json::from_str::<serde_json::Value>(text).ok()?["name"]
                .as_str()?
                .to_owned(),
        )
    };
    let secrets = || {
        simulation
            .cluster
            .secrets
            .iter()
            .filter(|(name, _)| place(name).0 == NAMESPACE)
    };
    let unsaved = run.process.iter().flat_map(Process::unsaved_keys);
    World {
        computes: computes
            .map(|compute| LiveCompute {
                made_by: made_by(simulation.ledger.computes.get(&compute.id)),
                id: compute.id,
                late: false,
            })
            .collect(),
        keys: keys
            .map(|key| LiveKey {
                made_by: made_by(simulation.ledger.keys.get(&key.id)),
                id: key.id,
                name: key.name,
            })
            .collect(),
        resources: objects.collect(),
        project_keys: project_keys.collect(),
        key_secrets: secrets()
            .map(|(name, secret)| (name.clone(), of_key(secret)))
            .collect(),
        known_keys: secrets()
            .filter_map(|(_, secret)| recorded(secret))
            .chain(unsaved)
            .collect(),
        keys_left: simulation.ledger.keys_left.clone(),
        strays: simulation.ledger.strays.clone(),
    }
}

/// The conditions of all resources, for error messages.
pub fn conditions_of_all(run: &Run) -> Vec<String> {
    let simulation = run.simulation.lock();
    let computes = simulation.cluster.all::<Compute>();
    let computes = computes
        .iter()
        .map(|object| (object.name_any(), conditions(object.as_ref())));
    let keys = simulation.cluster.all::<ProjectKey>();
    let keys = keys
        .iter()
        .map(|object| (object.name_any(), conditions(object.as_ref())));
    let text = |condition: &Condition| {
        format!(
            "{} {}: {}",
            condition.type_, condition.reason, condition.message
        )
    };
    computes
        .chain(keys)
        .map(|(name, conditions)| {
            format!(
                "{name}: {:?}",
                conditions.iter().map(text).collect::<Vec<_>>()
            )
        })
        .collect()
}

fn conditions<K: Managed>(object: &K) -> Vec<Condition> {
    let conditions = serde_json::to_value(object).unwrap()["status"]["conditions"].take();
    serde_json::from_value(conditions).unwrap_or_default()
}

fn reason<K: Managed>(object: &K, type_: &str) -> String {
    conditions(object)
        .into_iter()
        .find(|condition| condition.type_ == type_)
        .map_or_else(String::new, |found| found.reason)
}

/// Checks the promises that hold at rest.
pub fn kept(run: &Run) -> Result<(), String> {
    unbroken(run)?;
    run.at_each_platform(kept_here)
}

fn kept_here(run: &Run) -> Result<(), String> {
    let world = world(run);
    for resource in &world.resources {
        let kept = compute_kept(run, &world, resource);
        kept.map_err(|error| explained(&error, resource.object.as_ref()))?;
    }
    for resource in &world.project_keys {
        let kept = key_kept(run, &world, resource);
        kept.map_err(|error| explained(&error, resource.object.as_ref()))?;
    }
    for resource in computes(run) {
        nothing_left(run, &world, &resource)?;
    }
    let gone = world.project_keys.is_empty();
    match gone && promises::live_keys(&world) > run.late_keys() && run.history.lists_keys() {
        true => Err(format!("keys outlive their resource: {:?}", world.keys)),
        false => Ok(()),
    }
}

fn explained<K: Managed>(error: &str, object: &K) -> String {
    format!("{}: {error}: {:#?}", object.name_any(), conditions(object))
}

fn compute_kept(run: &Run, world: &World, resource: &BoundCompute) -> Result<(), String> {
    let object = resource.object.as_ref();
    let reason = reason(object, "Ready");
    if identity::of_compute(object).is_err() {
        return match reason.as_str() {
            "BindingConflict" => Ok(()),
            _ => Err("its record is not its own, and nobody reports it".to_owned()),
        };
    }
    if run.person_asked(object, &reason)
        || run.waits_for_account(object, &reason)
        || run.asks_about_a_repeated_create(object)
    {
        return Ok(());
    }
    if object.metadata.deletion_timestamp.is_some() {
        return Err("its deletion does not end".to_owned());
    }
    match promises::without_compute(world, resource) {
        Some(short) => Err(short),
        None if reason == "Available" => connection_kept(run, object),
        None => Err("it is not ready".to_owned()),
    }
}

/// The connection Secret has the host of the compute, and the current password or none, even after
/// a crash between two writes.
fn connection_kept(run: &Run, object: &Compute) -> Result<(), String> {
    let simulation = run.simulation.lock();
    let entry = |secret: &str, name: &str| {
        let data = simulation
            .cluster
            .secrets
            .get(secret)?
            .data
            .as_ref()?
            .get(name)?;
        Some(String::from_utf8(data.0.clone()).unwrap())
    };
    let Some(connection) = &object.spec.connection else {
        return Ok(());
    };
    let host = object
        .status
        .as_ref()
        .and_then(|status| status.host.clone());
    let password = connection
        .credentials_from
        .as_ref()
        .and_then(|from| entry(&from.name, &from.password_key));
    let uri = password.as_ref().zip(host.as_ref());
    let uri = uri.map(|(password, host)| {
        format!("postgresql://app:{password}@{host}:5432/shop?sslmode=require")
    });
    let wrong = [("host", host), ("password", password), ("uri", uri)]
        .into_iter()
        .find(|(name, wanted)| entry(&connection.secret_name, name) != *wanted);
    wrong.map_or(Ok(()), |(name, _)| {
        Err(format!(
            "the entry {name} of its connection Secret is not right"
        ))
    })
}

fn key_kept(run: &Run, world: &World, resource: &RecordedKey) -> Result<(), String> {
    let object = resource.object.as_ref();
    let reason = reason(object, "Ready");
    if !run.history.lists_keys() && reason == "RevocationUnsupported" {
        return Ok(());
    }
    if reason == "SecretNotOurs" && is_empty_and_unowned(&run.simulation.lock())
        || run.waits_for_account(object, &reason)
    {
        return Ok(());
    }
    if object.metadata.deletion_timestamp.is_some() {
        return Err("its deletion does not end".to_owned());
    }
    if let Some(short) = promises::without_key(world, resource) {
        return Err(short);
    }
    match promises::live_keys(world) > 1 + run.late_keys() && run.history.lists_keys() {
        true => Err(format!("more than one key is live: {:?}", world.keys)),
        false => Ok(()),
    }
}

/// True if the Secret was restored without its owner, from a backup older than its key. Its owner
/// cannot be determined then.
fn is_empty_and_unowned(simulation: &Simulation) -> bool {
    let found = simulation.cluster.secrets.get("ci");
    found.is_some_and(|secret| secret.data.is_none() && secret.owner_references().is_empty())
}

/// A compute created for a resource is bound to it, or a condition asks a user to decide about it.
fn nothing_left(run: &Run, world: &World, resource: &Resource) -> Result<(), String> {
    let object = world
        .resources
        .iter()
        .map(|it| it.object.as_ref())
        .find(|object| object.name_any() == resource.1);
    let invalid = |object: &Compute| identity::of_compute(object).is_err();
    if object
        .is_some_and(|object| invalid(object) || run.person_asked(object, &reason(object, "Ready")))
    {
        return Ok(());
    }
    let asking = |condition: &Condition| {
        ["StrayCompute", "AmbiguousCreate", "PrimaryExists"].contains(&condition.reason.as_str())
    };
    let asked: String = object
        .iter()
        .flat_map(|object| conditions(*object))
        .filter(asking)
        .map(|it| it.message + "\n")
        .collect();
    let of = Maker::Operator(Some(resource.1.clone()));
    let left = promises::forgotten_computes(world)
        .into_iter()
        .filter(|compute| compute.made_by == of);
    let forgotten: Vec<_> = left
        .filter(|compute| !promises::words(&asked).any(|word| word == compute.id))
        .collect();
    // A compute that arrives after its resource is gone stays unnoticed: a recreated resource does
    // not know of it.
    let uid = object.and_then(|object| object.uid());
    let unnoticed = run.late_for(resource, |maker| Some(maker) != uid.as_deref());
    match forgotten.len() > unnoticed + run.repeated_unread(resource, uid.as_deref()) {
        true => Err(format!(
            "{forgotten:?} were created for {} and are left: {asked}",
            resource.1
        )),
        false => Ok(()),
    }
}

impl Run<'_> {
    fn late_keys(&self) -> usize {
        self.late(&key())
    }

    /// Number of creates for the resource that arrived after the request timeout, or twice. A
    /// late key is found when its resource is deleted.
    fn late(&self, resource: &Resource) -> usize {
        let simulation = self.simulation.lock();
        let all = simulation
            .ledger
            .late
            .iter()
            .chain(&simulation.ledger.repeated);
        all.filter(|maker| maker.resource == *resource).count()
    }

    /// True if a create without a mark was repeated, and a condition asks the user about a compute
    /// that it has made: as the branch's primary, or as one of several.
    fn asks_about_a_repeated_create(&self, object: &Compute) -> bool {
        let (simulation, name) = (self.simulation.lock(), object.name_any());
        let mut repeated = simulation
            .ledger
            .repeated
            .iter()
            .filter(|maker| !maker.is_marked);
        let own = repeated.find(|it| it.resource.1 == name);
        let mut made = own
            .map(|own| simulation.made_for(&own.resource))
            .unwrap_or_default()
            .into_iter();
        let asks = |it: &Condition, id: &str| {
            ["PrimaryExists", "AmbiguousCreate"].contains(&it.reason.as_str())
                && it.message.contains(id)
        };
        made.any(|id| {
            conditions(object)
                .iter()
                .any(|condition| asks(condition, &id))
        })
    }

    /// The same, only for objects with this name and a matching UID. A repeated create is found by
    /// its mark, if it has one and the platform shows names.
    fn late_for(&self, resource: &Resource, wanted: impl Fn(&str) -> bool) -> usize {
        let simulation = self.simulation.lock();
        let shows_names = self.history.profile != Profile::Minimal;
        let repeated = simulation
            .ledger
            .repeated
            .iter()
            .filter(|maker| !(shows_names && maker.is_marked));
        let all = simulation.ledger.late.iter().chain(repeated);
        all.filter(|maker| maker.resource == *resource && wanted(&maker.uid))
            .count()
    }

    /// Number of repeated creates of this very resource that had no mark, if the account could not be
    /// read for a while: what such a create has made besides is looked for in the first minutes only.
    fn repeated_unread(&self, resource: &Resource, uid: Option<&str>) -> usize {
        let closes = |event: &Event| {
            matches!(
                event,
                Event::CredentialExchanged
                    | Event::CredentialRevoked
                    | Event::CredentialSecretDeleted
                    | Event::AccountDeleted
                    | Event::Admits(_)
            )
        };
        let is_own =
            |maker: &&ledger::Maker| maker.resource == *resource && uid == Some(maker.uid.as_str());
        let simulation = self.simulation.lock();
        let repeated = simulation
            .ledger
            .repeated
            .iter()
            .filter(|maker| !maker.is_marked)
            .filter(is_own)
            .count();
        if self
            .history
            .chapters
            .iter()
            .any(|chapter| closes(&chapter.event))
        {
            repeated
        } else {
            0
        }
    }

    /// An account that is being deleted accepts no new resources. A resource with nothing on the
    /// platform waits until the account is gone, which happens once the other resources are gone.
    fn waits_for_account<K: Managed>(&self, object: &K, reason: &str) -> bool {
        let simulation = self.simulation.lock();
        let account = simulation
            .cluster
            .objects
            .get(&self.history.account.resource());
        reason == "AccountNotReady"
            && account.is_some_and(|account| account.is_deleting())
            && !object.meta_observed().has_finalizer
    }

    /// True if the evidence is ambiguous, so that a user has to decide.
    fn person_asked(&self, object: &Compute, reason: &str) -> bool {
        let branch: u8 = object
            .spec
            .branch_id
            .trim_start_matches('b')
            .parse()
            .unwrap();
        let primary = object.spec.type_ == dbplane::api::ComputeType::ReadWrite;
        let foreign = |primary| self.foreign.contains(&(branch, primary));
        match reason {
            "AmbiguousCreate" if self.has_no_evidence_of_creates() => true,
            "AmbiguousCreate" | "PrimaryExists" => foreign(primary),
            // A copy declares the same primary until a user deletes it. The tenant may also have
            // been bound first.
            "ClaimedByAnother" => primary && (self.copied || self.is_preceded(object)),
            // It waits for another Compute of the branch that needs a decision.
            "Creating" | "ConfirmingCreate" => {
                conditions(object)
                    .iter()
                    .any(|condition| condition.message.contains("comes first"))
                    && (foreign(true) || foreign(false))
            }
            _ => false,
        }
    }
}
