//! Claims: keys that belong to another ProjectKey. Records show a key twice where an older backup brings back a resource that has handed
//! it over since.

use std::collections::{BTreeMap, BTreeSet};

use super::super::hand_over::precedence;
use super::super::identity::{self, ProjectKeyIdentity, Record, object_key};
use crate::api::{ObjectMeta, ProjectKey};

/// The keys that the others have taken over, by their names, and who has. `unreadable` are those whose spec cannot be read.
pub fn claims<'a>(
    mine: &ProjectKey,
    others: impl IntoIterator<Item = &'a ProjectKey>,
    unreadable: impl IntoIterator<Item = &'a ObjectMeta>,
) -> BTreeMap<String, String> {
    let known = identity::of_key(mine).unwrap_or_default().identity;
    let own: BTreeSet<&str> = known.names().collect();
    let me = (precedence(&mine.metadata, &known.hand_over), object_key(&mine.metadata));
    let readable = others.into_iter().map(|other| (&other.metadata, identity::of_key(other).unwrap_or_default()));
    let unreadable = unreadable.into_iter().map(|meta| (meta, identity::of_unreadable(meta).unwrap_or_default()));
    let mut claims = BTreeMap::new();
    for (meta, Record { identity: theirs, .. }) in readable.chain(unreadable) {
        let (hand_over, is_mine) = (&theirs.hand_over, meta.uid == mine.metadata.uid);
        if is_mine || hand_over.predecessor.is_none() || !hand_over.is_claimed_from(me.1) {
            continue;
        }
        let by = format!("ProjectKey {}", object_key(meta));
        // Only what both have recorded may be this one's.
        let comes_first = precedence(meta, hand_over) < me.0;
        let claimed = ProjectKeyIdentity::names(&theirs).filter(|name| comes_first || !own.contains(name));
        claims.extend(claimed.map(|name| (name.to_owned(), by.clone())));
    }
    claims
}

/// Whether a resource may claim something. Of all others [`claims`] needs nothing.
pub fn may_claim(other: &ProjectKey) -> bool {
    identity::of_key(other).is_ok_and(|record| record.identity.hand_over.predecessor.is_some())
}
