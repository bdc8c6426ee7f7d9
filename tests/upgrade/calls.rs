//! The changes on the platform, grouped by the object that caused them.

use std::collections::BTreeMap;

use dbplane_simulator::world::World;

use super::states::Object;

/// A change on the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    CreateCompute,
    ChangeCompute,
    Restart,
    DeleteCompute,
    CreateKey,
    RevokeKey,
}

/// The computes and keys of the platform.
#[derive(Clone, Debug, Default)]
pub struct Platform {
    /// The branch of each compute.
    pub computes: BTreeMap<String, String>,
    /// The name of each key of the project, and whether it is valid.
    pub keys: BTreeMap<i64, (String, bool)>,
}

impl Platform {
    pub fn of(world: &World) -> Self {
        let computes = world
            .console_computes(None)
            .into_iter()
            .map(|line| (line.id, line.branch_id))
            .collect();
        let keys = world
            .console_keys()
            .into_iter()
            .filter(|key| key.kind == "project");
        Self {
            computes,
            keys: keys.map(|key| (key.id, (key.name, !key.revoked))).collect(),
        }
    }

    pub fn keys_of(&self, object: &str) -> Vec<i64> {
        let own = self
            .keys
            .iter()
            .filter(|(_, (name, valid))| *valid && is_of(name, object));
        own.map(|(id, _)| *id).collect()
    }

    pub fn computes_on(&self, branch: &str) -> Vec<&String> {
        self.computes
            .iter()
            .filter(|(_, on)| *on == branch)
            .map(|(id, _)| id)
            .collect()
    }
}

/// The name of a key begins with the name of its object.
fn is_of(key: &str, object: &str) -> bool {
    key.strip_prefix(object)
        .is_some_and(|rest| rest.starts_with('-'))
}

/// The platform before and after the changes.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub before: &'a Platform,
    pub after: &'a Platform,
}

/// Groups the executed changes (method and path) by object. A change without an object is an error.
pub fn by_object(
    changes: &[(String, String)],
    seen: Seen<'_>,
    objects: &[Object],
) -> Result<BTreeMap<String, Vec<Call>>, String> {
    let mut grouped = Grouped {
        seen,
        objects,
        calls: BTreeMap::new(),
        computes: 0,
        keys: 0,
    };
    for (method, path) in changes {
        grouped.add(method, path)?;
    }
    grouped.add_created()?;
    let mut calls = grouped.calls;
    calls.values_mut().for_each(|calls| calls.sort());
    Ok(calls)
}

struct Grouped<'a> {
    seen: Seen<'a>,
    objects: &'a [Object],
    calls: BTreeMap<String, Vec<Call>>,
    /// Number of creates of computes and of keys.
    computes: usize,
    keys: usize,
}

impl<'a> Grouped<'a> {
    fn add(&mut self, method: &str, path: &str) -> Result<(), String> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (method, segments.as_slice()) {
            ("POST", ["projects", _, "endpoints"]) => self.computes += 1,
            ("POST", ["organizations", _, "api_keys"]) => self.keys += 1,
            ("POST", ["projects", _, "endpoints", id, "restart"]) => {
                self.note(self.owner_of_compute(id), Call::Restart, path)?;
            }
            ("PATCH", ["projects", _, "endpoints", id]) => {
                self.note(self.owner_of_compute(id), Call::ChangeCompute, path)?;
            }
            ("DELETE", ["projects", _, "endpoints", id]) => {
                self.note(self.owner_of_compute(id), Call::DeleteCompute, path)?;
            }
            ("DELETE", ["organizations", _, "api_keys", id]) => {
                self.note(self.owner_of_key(id), Call::RevokeKey, path)?;
            }
            _ => return Err(format!("a call that no state has: {method} {path}")),
        }
        Ok(())
    }

    /// The path of a create does not name its object, so its result shows the owner. No result is
    /// deleted again in these tests.
    fn add_created(&mut self) -> Result<(), String> {
        let Seen { before, after } = self.seen;
        let mut new_computes = 0;
        for (id, branch) in &after.computes {
            if !before.computes.contains_key(id) {
                self.note(self.on_branch(branch), Call::CreateCompute, id)?;
                new_computes += 1;
            }
        }
        let mut new_keys = 0;
        for (id, (name, _)) in &after.keys {
            if !before.keys.contains_key(id) {
                self.note(self.with_key(name), Call::CreateKey, name)?;
                new_keys += 1;
            }
        }
        if (self.computes, self.keys) == (new_computes, new_keys) {
            return Ok(());
        }
        Err(format!(
            "{} creates for {new_computes} new computes, {} for {new_keys} new keys",
            self.computes, self.keys
        ))
    }

    fn note(&mut self, object: Option<&Object>, call: Call, what: &str) -> Result<(), String> {
        let object = object.ok_or_else(|| format!("{call:?} for nobody: {what}"))?;
        let calls = self.calls.entry(object.name.clone()).or_default();
        calls.push(call);
        Ok(())
    }

    fn owner_of_compute(&self, id: &str) -> Option<&'a Object> {
        let Seen { before, after } = self.seen;
        let branch = before.computes.get(id).or_else(|| after.computes.get(id))?;
        self.on_branch(branch)
    }

    fn owner_of_key(&self, id: &str) -> Option<&'a Object> {
        let id: i64 = id.parse().ok()?;
        let (name, _) = self.seen.after.keys.get(&id)?;
        self.with_key(name)
    }

    fn on_branch(&self, branch: &str) -> Option<&'a Object> {
        let mut objects = self.objects.iter();
        objects.find(|object| branch == object.branch() || branch == object.other_branch())
    }

    fn with_key(&self, name: &str) -> Option<&'a Object> {
        let mut objects = self.objects.iter();
        objects.find(|object| is_of(name, &object.name))
    }
}
