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

/// Groups the executed changes (method and path) by object. A change without an object is an error.
pub fn by_object(
    changes: &[(String, String)],
    (before, after): (&Platform, &Platform),
    objects: &[Object],
) -> Result<BTreeMap<String, Vec<Call>>, String> {
    let on_branch = |branch: &str| {
        objects
            .iter()
            .find(|object| branch == object.branch() || branch == object.other_branch())
    };
    let of_key = |name: &str| objects.iter().find(|object| is_of(name, &object.name));
    let mut calls: BTreeMap<String, Vec<Call>> = BTreeMap::new();
    let mut note = |object: Option<&Object>, call: Call, what: &str| match object {
        Some(object) => {
            calls.entry(object.name.clone()).or_default().push(call);
            Ok(())
        }
        None => Err(format!("{call:?} for nobody: {what}")),
    };
    let (mut created, mut keys) = (0, 0);
    for (method, path) in changes {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let whose = |id: &str| {
            before
                .computes
                .get(id)
                .or_else(|| after.computes.get(id))
                .and_then(|on| on_branch(on))
        };
        match (method.as_str(), segments.as_slice()) {
            ("POST", ["projects", _, "endpoints"]) => created += 1,
            ("POST", ["organizations", _, "api_keys"]) => keys += 1,
            ("POST", ["projects", _, "endpoints", id, "restart"]) => {
                note(whose(id), Call::Restart, path)?
            }
            ("PATCH", ["projects", _, "endpoints", id]) => {
                note(whose(id), Call::ChangeCompute, path)?
            }
            ("DELETE", ["projects", _, "endpoints", id]) => {
                note(whose(id), Call::DeleteCompute, path)?
            }
            ("DELETE", ["organizations", _, "api_keys", id]) => {
                let name = id
                    .parse()
                    .ok()
                    .and_then(|id: i64| after.keys.get(&id))
                    .map(|(name, _)| name.clone());
                note(name.as_deref().and_then(of_key), Call::RevokeKey, path)?;
            }
            _ => return Err(format!("a call that no state has: {method} {path}")),
        }
    }
    // The path of a create does not name its object, so its result shows the owner. No result is
    // deleted again in these tests.
    let new: Vec<_> = after
        .computes
        .iter()
        .filter(|(id, _)| !before.computes.contains_key(*id))
        .collect();
    for (id, branch) in &new {
        note(on_branch(branch), Call::CreateCompute, id)?;
    }
    let new_keys: Vec<_> = after
        .keys
        .iter()
        .filter(|(id, _)| !before.keys.contains_key(id))
        .collect();
    for (_, (name, _)) in &new_keys {
        note(of_key(name), Call::CreateKey, name)?;
    }
    if (created, keys) != (new.len(), new_keys.len()) {
        let (new, new_keys) = (new.len(), new_keys.len());
        return Err(format!(
            "{created} creates for {new} new computes, {keys} for {new_keys} new keys"
        ));
    }
    calls.values_mut().for_each(|calls| calls.sort());
    Ok(calls)
}
