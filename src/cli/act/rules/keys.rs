//! The rules of commands on keys.

use super::{describe, helpful_commands, namespace};
use crate::api::Condition;
use crate::cli::called::program;
use crate::cli::resource::ObservedResource;
use crate::decide::key::MOST_REPLACED;
use crate::decide::{Attention, Reason};
use crate::text::quoted;

/// The reason why a key cannot be replaced now, with the command that helps.
pub fn no_rotation(key: &ObservedResource) -> Option<String> {
    let replaced = key.status["previousKeys"].as_array();
    let names = replaced.into_iter().flatten();
    let names: Vec<&str> = names.filter_map(|key| key["name"].as_str()).collect();
    if names.len() >= MOST_REPLACED {
        return Some(format!(
            "{} replaced keys are still valid. Wait until one is revoked, or revoke one in the platform's console, then run: {} revoked -n {} {key} --key {}",
            names.len(),
            program(),
            namespace(key),
            quoted(names[0])
        ));
    }
    let blocking = key.conditions.iter().find(|condition| blocks(condition))?;
    Some(cannot_rotate(key, &describe(blocking)))
}

/// True if a rotation waits for something else than the work in progress.
fn blocks(condition: &Condition) -> bool {
    let reason = Reason::of(&condition.reason);
    match condition.type_.as_str() {
        "Stalled" => condition.status == "True",
        "Ready" if condition.status != "True" => {
            reason == Some(Reason::AccountNotReady)
                || reason.is_some_and(|reason| reason.needs() == Attention::User)
        }
        _ => matches!(
            reason,
            Some(Reason::NewKeyRefused | Reason::RotationWaiting)
        ),
    }
}

/// The text about a rotation that does not happen now.
pub fn cannot_rotate(key: &ObservedResource, why: &str) -> String {
    let of_account = key
        .account()
        .filter(|_| why.starts_with(Reason::AccountNotReady.as_str()))
        .map(|(kind, name)| format!("{}/{name}", kind.to_lowercase()));
    let looks = || {
        let target = of_account.clone().unwrap_or_else(|| key.to_string());
        format!("{} status -n {} {target}", program(), namespace(key))
    };
    let help = helpful_commands(key).into_iter().next();
    let help = help.filter(|_| of_account.is_none()).unwrap_or_else(looks);
    format!("the key cannot be replaced now ({why}). This helps: {help}")
}

const ALL: &str = "all";

struct RevocableKey {
    name: String,
    id: String,
}

impl RevocableKey {
    fn is(&self, word: &str) -> bool {
        word == self.name || word == self.id
    }
}

/// The keys in the status that a user may have to revoke: lost keys come first.
fn revocable(resource: &ObservedResource) -> Vec<RevocableKey> {
    let mut keys = Vec::new();
    for list in ["lostKeys", "previousKeys"] {
        for key in resource.status[list].as_array().into_iter().flatten() {
            keys.push(RevocableKey {
                name: key["name"].as_str().unwrap_or_default().to_owned(),
                id: key["id"].to_string(),
            });
        }
    }
    if let Some(name) = resource.text("/keyName")
        && resource.is_deleting()
    {
        keys.push(RevocableKey {
            name: name.to_owned(),
            id: resource.status["keyID"].to_string(),
        });
    }
    keys
}

/// The names of the keys that the arguments refer to.
pub fn meant(resource: &ObservedResource, words: &[String]) -> Vec<String> {
    let lost = resource.status["lostKeys"].as_array().map_or(0, Vec::len);
    let known = revocable(resource);
    let by_all = if resource.is_deleting() {
        known.len()
    } else {
        lost
    };
    let says_all = words.iter().any(|word| word == ALL);
    let mut names = Vec::new();
    for (index, key) in known.into_iter().enumerate() {
        if (says_all && index < by_all) || words.iter().any(|word| key.is(word)) {
            names.push(key.name);
        }
    }
    names
}

pub fn no_revocation(resource: &ObservedResource, words: &[String]) -> Option<String> {
    let known = revocable(resource);
    if meant(resource, words).is_empty() && words.iter().any(|word| word == ALL) {
        return Some("no key of it has to be revoked by hand".to_owned());
    }
    let names = known
        .iter()
        .map(|key| key.name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let unknown = words
        .iter()
        .find(|word| *word != ALL && !known.iter().any(|key| key.is(word)));
    let others = if names.is_empty() {
        "there are none".to_owned()
    } else {
        format!("those are: {names}")
    };
    unknown.map(|word| format!("{word} is no key of it that has to be revoked by hand; {others}"))
}

/// A value of an annotation takes effect once. To repeat it, this writes another text with the same
/// meaning.
pub fn repeatable(text: String, before: Option<&str>) -> String {
    if before.map(str::trim) == Some(text.as_str()) {
        text + ","
    } else {
        text
    }
}
