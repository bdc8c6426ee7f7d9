//! Generates names of resources: valid, readable, unique for each compute, and the same at each
//! import.

use std::collections::{BTreeMap, BTreeSet};

use super::{FoundCompute, FoundKey};
use crate::decide::names::{Mark, digest};
use crate::domain::{ComputeId, Role};

/// Maximum length of a name that is also valid as a label value.
const LONGEST: usize = 63;
/// Leaves room for the digest that distinguishes computes with the same name.
const LONGEST_READABLE: usize = 46;
/// Length of a digest that usually distinguishes two computes.
const SHORTEST_DIGEST: usize = 6;

/// A name for each compute, by its ID. If several computes would get the same name, the oldest one
/// gets it. A younger compute never takes the name of an older one.
pub fn assign(computes: &[FoundCompute], taken: &BTreeSet<String>) -> BTreeMap<ComputeId, String> {
    let mut ordered: Vec<&FoundCompute> = computes.iter().collect();
    // A compute without a creation time counts as the oldest.
    ordered.sort_by_key(|found| (found.created_at, &found.project, &found.id));
    let mut used = taken.clone();
    let mut names = BTreeMap::new();
    for found in ordered {
        let digest = digest(&format!("{}/{}", found.project, found.id));
        let name = numbered(readable(found), &digest)
            .find(|name| !used.contains(name))
            .unwrap_or_else(|| found.id.to_string());
        used.insert(name.clone());
        names.insert(found.id.clone(), name);
    }
    names
}

/// A name for each of these keys, in the same order.
pub fn of_keys(keys: &[FoundKey]) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut names = Vec::new();
    for key in keys {
        let plain = plain(&key.name, LONGEST_READABLE);
        let readable = if plain.is_empty() {
            "key".to_owned()
        } else {
            plain
        };
        let digest = digest(&format!(
            "{}/{}",
            key.project,
            key.address.as_deref().unwrap_or(&key.id)
        ));
        let name = numbered(readable, &digest)
            .find(|name| !used.contains(name))
            .unwrap_or_else(|| digest.clone());
        used.insert(name.clone());
        names.push(name);
    }
    names
}

/// The readable name, and then the same with increasing parts of the digest.
fn numbered(readable: String, digest: &str) -> impl Iterator<Item = String> {
    let longer: Vec<String> = (SHORTEST_DIGEST..=digest.len())
        .map(|length| format!("{readable}-{}", &digest[..length]))
        .collect();
    std::iter::once(readable).chain(longer)
}

fn readable(found: &FoundCompute) -> String {
    let named = found
        .name
        .as_deref()
        .map(chosen)
        .map(|name| plain(name, LONGEST_READABLE));
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| {
        let role = match found.role {
            Role::Primary => "primary",
            Role::Replica => "replica",
        };
        let branch = plain(&found.branch, LONGEST_READABLE - role.len() - 1);
        format!("{branch}-{role}")
            .trim_start_matches('-')
            .to_owned()
    })
}

/// The part of a name that the user chose, if dbplane generated the name.
fn chosen(name: &str) -> &str {
    Mark::of(name).map_or(name, |mark| mark.chosen)
}

/// The text as a valid name: lower-case letters, digits, and - between them.
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
