//! Checks the state after the next version has settled.

use std::collections::BTreeMap;

use dbplane::api::{Compute, ProjectKey};
use dbplane::decide::names::RECORD;
use dbplane::decide::record_of;
use serde_json::Value;

use super::calls::{Call, Platform, Seen, by_object};
use super::recording::Recording;
use super::states::{CONFLICT, Object, Says};

/// The cluster and platform that the previous version left, and their objects.
pub struct Before<'a> {
    pub recording: &'a Recording,
    pub objects: &'a [Object],
}

/// All deviations from the expected state. Input is the changes (method and path) that the platform
/// executed, and the current state.
pub fn differences(
    before: &Before,
    after: &Recording,
    changes: &[(String, String)],
) -> Vec<String> {
    let platforms = (
        Platform::of(&before.recording.world),
        Platform::of(&after.world),
    );
    let seen = Seen {
        before: &platforms.0,
        after: &platforms.1,
    };
    let calls = match by_object(changes, seen, before.objects) {
        Ok(calls) => calls,
        Err(error) => return vec![error],
    };
    let mut found = Vec::new();
    for object in before.objects {
        let made = calls.get(&object.name).cloned().unwrap_or_default();
        if made != object.state.calls {
            found.push(format!(
                "{}: {made:?} instead of {:?}",
                object.name, object.state.calls
            ));
        }
        let object = One {
            object,
            before: before.recording,
            after,
            platforms: (&platforms.0, &platforms.1),
        };
        found.extend(
            object
                .differences()
                .into_iter()
                .map(|what| format!("{}: {what}", object.object.name)),
        );
    }
    found.extend(changed_secrets(before, after));
    found
}

/// True if the object has this condition.
pub fn says(object: &Value, (kind, reason): Says) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == kind && condition["reason"] == reason)
}

/// The objects that changed, ignoring times. After a restart, a process checks unknown things again
/// and reports that meanwhile.
pub fn changed(before: &Recording, after: &Recording) -> Vec<String> {
    let mut found = Vec::new();
    for (kind, objects) in &after.objects {
        for object in objects {
            let name = object["metadata"]["name"].as_str().unwrap();
            let (was, is) = (
                before.get(kind, name).map(without_times),
                without_times(object),
            );
            if was.as_ref() != Some(&is) {
                let was = was.map(|was| was["status"].to_string());
                found.push(format!(
                    "{kind} {name}: {} was {}",
                    is["status"],
                    was.unwrap_or_default()
                ));
            }
        }
    }
    found
}

fn without_times(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = Value::Null;
    // Counts that are updated together with a time differ as well.
    for field in ["checkedAt", "organizationKeysAt", "organizationKeys"] {
        if let Some(status) = object["status"].as_object_mut() {
            status.remove(field);
        }
    }
    if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
        conditions
            .iter_mut()
            .for_each(|condition| condition["lastTransitionTime"] = Value::Null);
        // A condition that is removed and added again moves to the end.
        conditions.sort_by_key(|condition| condition["type"].to_string());
    }
    object
}

struct One<'a> {
    object: &'a Object,
    before: &'a Recording,
    after: &'a Recording,
    platforms: (&'a Platform, &'a Platform),
}

impl One<'_> {
    fn differences(&self) -> Vec<String> {
        let Object { state, name, .. } = self.object;
        let found = [self.ends(), self.record(), self.computes(), self.keys()];
        let mut found: Vec<String> = found.into_iter().flatten().collect();
        let (before, after) = (
            self.before.get(state.kind, name),
            self.after.get(state.kind, name),
        );
        if let (Some(before), Some(after)) = (before, after)
            && before["metadata"]["uid"] != after["metadata"]["uid"]
        {
            found.push("it is another object".to_owned());
        }
        found
    }

    fn ends(&self) -> Option<String> {
        let Object { state, name, .. } = self.object;
        match (state.ends, self.after.get(state.kind, name)) {
            (None, None) => None,
            (Some(says_so), Some(object)) if says(object, says_so) => None,
            (ends, object) => {
                let conditions = object.map(|object| object["status"]["conditions"].to_string());
                Some(format!(
                    "{} instead of {ends:?}",
                    conditions.unwrap_or_else(|| "gone".to_owned())
                ))
            }
        }
    }

    /// The record must be readable and equal in both places. Without a reason it must not be
    /// written again.
    fn record(&self) -> Option<String> {
        let Object { state, name, .. } = self.object;
        let object = self.after.get(state.kind, name)?;
        let understood = match state.kind {
            "Compute" => record_of::<Compute>(&serde_json::from_value(object.clone()).unwrap())
                .map(|it| it.is_annotated),
            "ProjectKey" => {
                record_of::<ProjectKey>(&serde_json::from_value(object.clone()).unwrap())
                    .map(|it| it.is_annotated)
            }
            _ => return None,
        };
        let is_annotated = match understood {
            Ok(is_annotated) => is_annotated,
            Err(_) if state.ends == Some(CONFLICT) => return None,
            Err(flaw) => return Some(format!("its record is not understood: {flaw:?}")),
        };
        if !is_annotated {
            return Some("its record differs between annotation and status".to_owned());
        }
        let record = |object: &Value| {
            (
                object["metadata"]["annotations"][RECORD].clone(),
                object["status"]["record"].clone(),
            )
        };
        let before = record(self.before.get(state.kind, name)?);
        // The record of a ProjectKey is rewritten once, because the platform is added.
        let is_whole = state.kind == "Compute" && state.recorded.is_some();
        let rewritten = is_whole && state.calls.is_empty() && before != record(object);
        rewritten.then(|| "its record was written again without a cause".to_owned())
    }

    /// The computes from before, plus created and minus deleted ones, must exist.
    fn computes(&self) -> Option<String> {
        let count = |call: Call| {
            self.object
                .state
                .calls
                .iter()
                .filter(|made| **made == call)
                .count()
        };
        let on_branches = |platform: &Platform| {
            let branches = [self.object.branch(), self.object.other_branch()];
            branches
                .iter()
                .map(|branch| platform.computes_on(branch).len())
                .sum::<usize>()
        };
        let wanted =
            on_branches(self.platforms.0) + count(Call::CreateCompute) - count(Call::DeleteCompute);
        let there = on_branches(self.platforms.1);
        if there != wanted {
            return Some(format!("{there} computes instead of {wanted}"));
        }
        let object = self.after.get(self.object.state.kind, &self.object.name)?;
        let id = object["status"]["computeID"].as_str()?;
        let ready = says(object, ("Ready", "Available"));
        (ready && !self.platforms.1.computes.contains_key(id))
            .then(|| format!("{id} does not exist"))
    }

    /// The keys from before, plus created and minus revoked ones, must be valid.
    fn keys(&self) -> Option<String> {
        let Object { state, name, .. } = self.object;
        let count = |call: Call| state.calls.iter().filter(|made| **made == call).count();
        let before = self.platforms.0.keys_of(name).len();
        let wanted = before + count(Call::CreateKey) - count(Call::RevokeKey);
        let there = self.platforms.1.keys_of(name);
        if there.len() != wanted {
            return Some(format!("{} keys instead of {wanted}", there.len()));
        }
        let object = self.after.get(state.kind, name)?;
        let id = object["status"]["keyID"].as_i64()?;
        let ready = says(object, ("Ready", "Available"));
        let valid = self
            .platforms
            .1
            .keys
            .get(&id)
            .is_some_and(|(_, valid)| *valid);
        (ready && !valid).then(|| format!("its key {id} is not valid"))
    }
}

/// Secrets with changed content although their object got no new key.
fn changed_secrets(before: &Before, after: &Recording) -> Vec<String> {
    let content = |recording: &Recording| -> BTreeMap<String, Value> {
        let secrets = recording.objects["Secret"].iter();
        secrets
            .map(|secret| {
                (
                    secret["metadata"]["name"].as_str().unwrap().to_owned(),
                    secret["data"].clone(),
                )
            })
            .collect()
    };
    let makes_key = |secret: &str| {
        let of = before
            .objects
            .iter()
            .find(|object| object.name == secret || secret == format!("to-{}", object.name));
        of.is_some_and(|object| object.state.recorded.is_none())
    };
    let now = content(after);
    let changed = content(before.recording)
        .into_iter()
        .filter(|(name, data)| now.get(name) != Some(data));
    changed
        .filter(|(name, _)| !makes_key(name))
        .map(|(name, _)| format!("Secret {name} was changed"))
        .collect()
}
