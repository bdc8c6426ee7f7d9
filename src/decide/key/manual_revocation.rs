//! Keys that a user has to revoke: dbplane cannot revoke them, or must not.

use std::collections::{BTreeMap, BTreeSet};

use super::outcome::{keys, without_all};
use super::{KeyCase, KeyDecision, KeyStep};
use crate::decide::identity::{Acknowledged, KeyRecords};
use crate::decide::names::{Mark, REVOKED_KEYS, digest, listed};
use crate::decide::{Decision, Reason, Report};
use crate::domain::KeyId;
use crate::text::quoted;

/// The reason and the message about such keys, with instructions.
pub(super) fn to_revoke_by_hand<'a>(
    case: &KeyCase,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<(Reason, String)> {
    let all: Vec<&str> = names.into_iter().collect();
    let (here, elsewhere): (Vec<&str>, Vec<&str>) = all.iter().partition(|name| case.issued(name));
    let reason = match (here.is_empty(), elsewhere.is_empty()) {
        (true, true) => return None,
        (true, false) => Reason::KeyOfAnotherCluster,
        (false, _) => Reason::RevocationUnsupported,
    };
    let mut texts = Vec::new();
    if !here.is_empty() {
        texts.push(format!(
            "dbplane cannot revoke these keys. Revoke them in the platform's console: {}.",
            here.join(", ")
        ));
    }
    let mut clusters: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
    for name in elsewhere {
        clusters
            .entry(Mark::of(name).map(|mark| mark.cluster))
            .or_default()
            .push(name);
    }
    let own = case.observed.cluster.to_string();
    texts.extend(
        clusters
            .into_iter()
            .map(|(cluster, names)| not_issued_here(&own, cluster, &names.join(", "))),
    );
    let object_key = case.observed.meta.object_key();
    let annotate = format!(
        "kubectl -n {} annotate projectkey {}",
        object_key.namespace, object_key.name
    );
    let names = all.join(",");
    // A name from an annotation may be any text.
    let assigned = quoted(&format!("{REVOKED_KEYS}={names}"));
    texts.push(format!(
        "Once they are revoked, or to keep them valid: {annotate} --overwrite {assigned}."
    ));
    if is_acknowledged(case) && said(case) == Some(&names) {
        texts.push(format!(
            "The annotation says so since before they were lost. Remove it first: {annotate} {REVOKED_KEYS}-."
        ));
    }
    Some((reason, texts.join(" ")))
}

fn not_issued_here(own: &str, cluster: Option<&str>, names: &str) -> String {
    match cluster {
        Some(cluster) if cluster == own => {
            format!(
                "Not named for this resource, so that another one may use them, and therefore not revoked: {names}."
            )
        }
        Some(cluster) => format!(
            "Created in cluster {cluster}, which may still use them, and therefore not revoked here: {names}. \
             If this cluster replaces that one, run the operator with --cluster-id {cluster}."
        ),
        None => format!("Not named as dbplane names keys, and therefore not revoked: {names}."),
    }
}

/// Drops the keys that a user has revoked from the records. The key in use is checked instead,
/// unless the resource is being deleted. An annotation counts once: if it stays, it does not cover
/// a key that is lost later.
pub(super) fn acknowledged(case: &KeyCase) -> Option<KeyDecision> {
    let known = &case.identity.records;
    let report = Report::progressing(
        Reason::Updating,
        "Keys that were revoked by hand are being removed from the records.",
    );
    let Some(text) = said(case) else {
        // The annotation was removed, so the same value may be set again.
        let records = KeyRecords {
            acknowledged: None,
            ..known.clone()
        };
        let news = known.acknowledged.is_some() && !case.observed.meta.deleting;
        return news.then(|| {
            Decision::act(
                KeyStep::Record {
                    records,
                    event: None,
                },
                report,
            )
        });
    };
    if is_acknowledged(case) {
        return None;
    }
    let (mut forgotten, mut unknown) = (BTreeSet::new(), Vec::new());
    for word in listed(text).collect::<BTreeSet<_>>() {
        let meant = meant(case, word);
        if meant.is_empty() && word != ALL {
            unknown.push(word);
        }
        forgotten.extend(meant);
    }
    let mut records = without_all(known, &forgotten);
    let forgotten: Vec<&str> = forgotten.into_iter().collect();
    let list = if forgotten.is_empty() {
        "none".to_owned()
    } else {
        forgotten.join(", ")
    };
    let mut event =
        format!("Considered revoked, because of the annotation {REVOKED_KEYS}: {list}.");
    if !unknown.is_empty() {
        event.push_str(&format!(
            " These do not name a key that has to be revoked by hand: {}.",
            unknown.join(", ")
        ));
    }
    let keys = forgotten.into_iter().map(str::to_owned).collect();
    records.acknowledged = Some(Acknowledged {
        annotation: digest(text),
        keys,
    });
    Some(Decision::act(
        KeyStep::Acknowledge { records, event },
        report,
    ))
}

/// The annotation, if it is not empty.
fn said<'a>(case: &'a KeyCase) -> Option<&'a str> {
    case.observed
        .revoked
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// Returns true if this value of the annotation has been handled.
fn is_acknowledged(case: &KeyCase) -> bool {
    let known = case.identity.records.acknowledged.as_ref();
    said(case)
        .zip(known)
        .is_some_and(|(text, known)| known.annotation == digest(text))
}

const ALL: &str = "all";

/// The names of the keys that a word of the annotation denotes.
fn meant<'a>(case: &'a KeyCase, word: &str) -> Vec<&'a str> {
    let records = &case.identity.records;
    let deleting = case.observed.meta.deleting;
    if word == ALL && !deleting {
        // A replaced key is in use until the end of its overlap.
        return records.lost.iter().map(|key| key.name.as_str()).collect();
    }
    let number = word.parse().ok().map(KeyId);
    let in_use = records.current.as_ref().map(|key| key.name.as_str());
    keys(records)
        .filter(|key| {
            let is_named = key.name == word || key.id.is_some() && key.id == number;
            word == ALL || is_named && (deleting || in_use != Some(key.name))
        })
        .map(|key| key.name)
        .collect()
}
