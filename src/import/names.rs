//! Names of resources: valid, the same at each import, one for each compute, and such that people recognize it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Found, Key};
use crate::decide::names::{Mark, digest};
use crate::domain::Role;

/// The longest name of an object that may also be a label.
const LONGEST: usize = 63;
/// Room for what tells one compute from another of the same name.
const LONGEST_READABLE: usize = 46;
/// How much of a digest tells two computes apart, mostly.
const SHORTEST_DIGEST: usize = 6;

/// A name for each compute, by its id. Of several that would have the same, the oldest gets it: a younger compute never takes the name
/// of an older one.
pub fn assign(computes: &[Found], taken: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut ordered: Vec<&Found> = computes.iter().collect();
    // One without a time is a very old one.
    ordered.sort_by_key(|found| (found.created_at, &found.project, &found.id));
    let mut used = taken.clone();
    let mut names = BTreeMap::new();
    for found in ordered {
        let digest = digest(&format!("{}/{}", found.project, found.id));
        let name =
            numbered(readable(found), &digest).find(|name| !used.contains(name)).unwrap_or_else(|| found.id.clone());
        used.insert(name.clone());
        names.insert(found.id.clone(), name);
    }
    names
}

/// A name for each of these keys, in their order.
pub fn of_keys(keys: &[Key]) -> Vec<String> {
    let mut used = BTreeSet::new();
    let name = |key: &Key| {
        let plain = plain(&key.name, LONGEST_READABLE);
        let readable = if plain.is_empty() { "key".to_owned() } else { plain };
        let digest = digest(&format!("{}/{}", key.project, key.address.as_deref().unwrap_or(&key.id)));
        let name = numbered(readable, &digest).find(|name| !used.contains(name)).unwrap_or_else(|| digest.clone());
        used.insert(name.clone());
        name
    };
    keys.iter().map(name).collect()
}

/// The readable name, and then with more and more of the digest.
fn numbered(readable: String, digest: &str) -> impl Iterator<Item = String> {
    let longer: Vec<String> =
        (SHORTEST_DIGEST..=digest.len()).map(|length| format!("{readable}-{}", &digest[..length])).collect();
    std::iter::once(readable).chain(longer)
}

fn readable(found: &Found) -> String {
    let named = found.name.as_deref().map(chosen).map(|name| plain(name, LONGEST_READABLE));
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| {
        let role = match found.role {
            Role::Primary => "primary",
            Role::Replica => "replica",
        };
        let branch = plain(&found.branch, LONGEST_READABLE - role.len() - 1);
        format!("{branch}-{role}").trim_start_matches('-').to_owned()
    })
}

/// What people chose of a name that dbplane gave.
fn chosen(name: &str) -> &str {
    Mark::of(name).map_or(name, |mark| mark.chosen)
}

/// As much of a text as can be a name: small letters, digits, and - between them.
pub fn plain(text: &str, longest: usize) -> String {
    let mut plain = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' => plain.push(c),
            _ if plain.is_empty() || plain.ends_with('-') => {}
            _ => plain.push('-'),
        }
    }
    plain.truncate(longest.min(LONGEST));
    plain.trim_end_matches('-').to_owned()
}
