//! Keys that people have to deal with: those that dbplane cannot revoke, and those that it must not.

use std::collections::BTreeMap;

use super::super::identity::KeyRecords;
use super::super::names::{Mark, REVOKED_KEYS};
use super::super::{Decision, Reason, Report};
use super::outcome::{keys, without};
use super::{Case, Choice, KeyStep};

/// What to tell of such keys, and how a person settles it.
pub(super) fn left<'a>(case: &Case, names: impl IntoIterator<Item = &'a str>) -> Option<(Reason, String)> {
    let all: Vec<&str> = names.into_iter().collect();
    let (here, elsewhere): (Vec<&str>, Vec<&str>) = all.iter().partition(|name| case.observed.cluster.gave(name));
    let reason = match (here.is_empty(), elsewhere.is_empty()) {
        (true, true) => return None,
        (true, false) => Reason::KeyOfAnotherCluster,
        (false, _) => Reason::RevocationUnsupported,
    };
    let mut told = Vec::new();
    if !here.is_empty() {
        told.push(format!("Revoke in the platform's console, since dbplane cannot: {}.", here.join(", ")));
    }
    let mut clusters: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
    for name in elsewhere {
        clusters.entry(Mark::of(name).map(|mark| mark.cluster)).or_default().push(name);
    }
    told.extend(clusters.into_iter().map(|(cluster, names)| of_another_cluster(cluster, &names.join(", "))));
    let object_key = case.observed.meta.object_key();
    told.push(format!(
        "Once they are revoked, or to leave them as they are: kubectl -n {} annotate projectkey {} '{REVOKED_KEYS}={}'.",
        object_key.namespace,
        object_key.name,
        all.join(",")
    ));
    Some((reason, told.join(" ")))
}

fn of_another_cluster(cluster: Option<&str>, names: &str) -> String {
    match cluster {
        Some(cluster) => format!(
            "Created in cluster {cluster}, which may still use it, and so left alone here: {names}. \
             If this cluster takes the place of that one, run the operator with --cluster-id {cluster}."
        ),
        None => format!("Not named as dbplane names keys, and so left alone: {names}."),
    }
}

/// What people say that they have revoked is forgotten. The key in use is asked itself, unless it is to go anyway.
pub(super) fn acknowledged(case: &Case) -> Option<Choice> {
    let text = case.observed.revoked.as_deref()?;
    let known = &case.identity.records;
    let (mut records, mut forgotten, mut unknown) = (known.clone(), Vec::new(), Vec::new());
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let meant: Vec<&str> = keys(known).filter(|key| means(case, word, *key)).map(|(_, name)| name).collect();
        if meant.is_empty() && word != ALL {
            unknown.push(word);
        }
        for name in meant {
            records = without(&records, name);
            forgotten.push(name);
        }
    }
    let list = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let mut event = format!("Taken as revoked, as {REVOKED_KEYS} says: {}.", list(&forgotten));
    if !unknown.is_empty() {
        event.push_str(&format!(" No key to be revoked by hand: {}.", unknown.join(", ")));
    }
    let report = Report::progressing(Reason::Updating, "Keys that were revoked by hand are being forgotten.");
    Some(Decision::act(KeyStep::Acknowledge { records, event }, report))
}

const ALL: &str = "all";

fn means(case: &Case, word: &str, (id, name): (Option<i64>, &str)) -> bool {
    let KeyRecords { current, lost, .. } = &case.identity.records;
    let deleting = case.observed.meta.deleting;
    if word == ALL {
        // A predecessor that stays for the overlap is in use.
        return deleting || lost.iter().any(|key| key.name == name);
    }
    let in_use = current.as_ref().is_some_and(|key| key.name == name);
    (deleting || !in_use) && (word == name || id.is_some_and(|id| word == id.to_string()))
}
