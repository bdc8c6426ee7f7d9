//! Names that dbplane writes: finalizer, annotations, labels, and the unique names of keys and computes.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::seal::ObjectKey;

/// On a resource until its platform object is deleted, or is to be kept.
pub const FINALIZER: &str = "dbplane.dev/finalizer";
/// On the Secret with an account's API key while resources of the account need it.
pub const CREDENTIAL_FINALIZER: &str = "dbplane.dev/credentials-in-use";

/// The finalizers of an account and of the Secret with its API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountFinalizers {
    pub account: String,
    pub credential: String,
}

impl AccountFinalizers {
    /// Those of an operator that knows all resources of an account.
    pub fn whole() -> Self {
        Self { account: FINALIZER.to_owned(), credential: CREDENTIAL_FINALIZER.to_owned() }
    }

    /// Those of an operator that watches these namespaces alone, on an account of all namespaces: others have their own.
    pub fn confined_to(namespaces: &[String]) -> Self {
        let names: BTreeSet<&String> = namespaces.iter().collect();
        let digest = digest(&names.into_iter().map(|name| format!("{name}\n")).collect::<String>());
        let suffix = &digest[..8];
        let Self { account, credential } = Self::whole();
        Self { account: format!("{account}-{suffix}"), credential: format!("{credential}-{suffix}") }
    }
}

/// Whether a finalizer of a Secret is one of an account in use: of this operator, or of one that watches other namespaces.
pub fn is_for_credentials(finalizer: &str) -> bool {
    is_or_is_confined(finalizer, CREDENTIAL_FINALIZER)
}

/// Whether a finalizer is one of dbplane, whichever operator has set it.
pub fn is_finalizer(finalizer: &str) -> bool {
    is_or_is_confined(finalizer, FINALIZER) || is_for_credentials(finalizer)
}

/// Whether it is this one, or that of an operator that watches certain namespaces.
fn is_or_is_confined(finalizer: &str, own: &str) -> bool {
    finalizer.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Who writes, in server-side apply and in events.
pub const FIELD_MANAGER: &str = "dbplane";
/// The Lease of whoever leads, in the operator's namespace.
pub const LEASE: &str = "dbplane";

/// `"true"` stops every write for the resource.
pub const PAUSED: &str = "dbplane.dev/paused";
/// Any change of its value restarts the compute once, as spec.restartToken does; removing it does not.
pub const RESTART: &str = "dbplane.dev/restart";
/// Any new value replaces the key of a ProjectKey once; removing it does not. The status shows the last value for which that was done.
pub const ROTATE: &str = "dbplane.dev/rotate";
/// Any new value: the platform is looked at anew, and what it has refused is tried again. The status shows the last value for which
/// that was done.
pub const RECONCILE: &str = "dbplane.dev/reconcile-requested-at";
/// Keys that people have revoked themselves: names or numbers separated by commas, or `all`. What it says counts once.
pub const REVOKED_KEYS: &str = "dbplane.dev/revoked-keys";
/// Computes that no create of the resource has created, as people have found out: identifiers separated by commas.
pub const NOT_CREATED: &str = "dbplane.dev/not-created";

/// So much of an annotation that names several things counts.
const MOST_LISTED: usize = 256;

/// What an annotation names that people write: words, separated by commas.
pub fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').take(MOST_LISTED).map(str::trim).filter(|word| !word.is_empty())
}

/// A time (RFC 3339): confirms a deletion that was requested until then, where the brake on mass deletion has paused it.
pub const CONFIRM_DELETION: &str = "dbplane.dev/confirm-deletion";

/// The record of a resource: its intents, and what it is bound to. The status has a copy.
pub const RECORD: &str = "dbplane.dev/record";

/// On a Secret: the identifier of the key in it.
pub const SECRET_KEY_ID: &str = "dbplane.dev/key-id";
/// On a Secret: the record of the key in it.
pub const SECRET_KEY: &str = "dbplane.dev/key";
/// On a Secret: which entry holds the key before, and which key that is.
pub const SECRET_PREVIOUS: &str = "dbplane.dev/previous-key";
/// On a Secret: a digest of the key that dbplane wrote, which shows whether it was altered by hand.
pub const SECRET_DIGEST: &str = "dbplane.dev/digest";
/// On a Secret: a digest of the names of its parts that dbplane wrote, which shows whether one is no longer declared.
pub const SECRET_SHAPE: &str = "dbplane.dev/shape";
/// On a Secret: the kind and the name of the resource that it was made for.
pub const SECRET_OF: &str = "dbplane.dev/secret-of";
/// On a Secret: who manages it.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "dbplane");

/// The most of a key's name that people choose.
const LONGEST_READABLE: usize = 32;
/// The longest name that the platform takes for a key or a compute.
const LONGEST_NAME: usize = 64;

/// The longest name of an object in Kubernetes.
const LONGEST_OBJECT: usize = 253;

/// The identity of a cluster, part of every unique name: with it clusters that manage one organization recognize their own
/// keys and computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterId(String);

const CLUSTER_LENGTH: usize = 6;
/// Of the number drawn for an attempt, in hexadecimal.
const DRAW_LENGTH: usize = 8;
/// Of the digest of a resource's namespace and name.
const DIGEST_LENGTH: usize = 13;
/// Crockford's base 32: no two of its digits look alike.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl ClusterId {
    /// The identity of the cluster whose namespace kube-system has this UID.
    pub fn of_uid(uid: &str) -> Option<Self> {
        uid.get(..CLUSTER_LENGTH)?.parse().ok()
    }

    /// One that nobody knows: no UID begins so.
    pub fn unknown() -> Self {
        Self("z".repeat(CLUSTER_LENGTH))
    }

    /// Whether this cluster issued a unique name.
    pub fn issued(&self, name: &str) -> bool {
        Mark::of(name).is_some_and(|mark| mark.cluster == self.0)
    }
}

impl FromStr for ClusterId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if is_cluster(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("write {CLUSTER_LENGTH} digits or lowercase letters, as in the names of keys"))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_cluster(text: &str) -> bool {
    text.len() == CLUSTER_LENGTH && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
}

/// What a unique name shows: the cluster that issued it, and for which resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark<'a> {
    pub cluster: &'a str,
    /// What people chose.
    pub chosen: &'a str,
    owner: NameOwner<'a>,
}

/// How a unique name shows the resource that it was issued for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameOwner<'a> {
    /// A digest of its namespace and name: no resource of another namespace can have it.
    Digest(&'a str),
    /// The beginning of its UID, in names that earlier versions issued. It is too short to prove anything.
    Uid(&'a str),
}

impl<'a> Mark<'a> {
    /// `None` for a name that does not have this form.
    pub fn of(name: &'a str) -> Option<Self> {
        let mut parts = name.rsplitn(4, '-');
        let (draw, owner, cluster, chosen) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |part: &str| part.len() == DRAW_LENGTH && part.bytes().all(|b| b.is_ascii_hexdigit());
        let is_digest = owner.len() == DIGEST_LENGTH && owner.bytes().all(|b| DIGITS.contains(&b));
        let owner = match owner {
            owner if is_digest => NameOwner::Digest(owner),
            owner if is_hex(owner) => NameOwner::Uid(owner),
            _ => return None,
        };
        (is_hex(draw) && is_cluster(cluster) && !chosen.is_empty()).then_some(Self { cluster, chosen, owner })
    }

    /// Whether the name was issued for the resource of this namespace and name. A resource that is restored from a backup keeps
    /// its names.
    pub fn is_for(&self, object_key: ObjectKey) -> bool {
        self.owner == NameOwner::Digest(&owner_digest(object_key))
    }

    /// Whether an earlier version issued the name: it does not show the namespace.
    pub fn is_of_earlier_version(&self) -> bool {
        matches!(self.owner, NameOwner::Uid(_))
    }
}

/// The unique name of one attempt to create a key or a compute: what people chose, the cluster, a digest of the resource's
/// namespace and name, and a number drawn for this attempt.
pub fn unique(readable: &str, cluster: &ClusterId, object_key: ObjectKey, draw: u32) -> String {
    let tail = format!("-{cluster}-{}-{draw:08x}", owner_digest(object_key));
    let room = LONGEST_NAME - tail.len();
    let head: String = readable.chars().take(room).collect();
    format!("{head}{tail}")
}

/// 65 bits of a digest of a namespace and a name, in the digits of [`DIGITS`].
fn owner_digest(object_key: ObjectKey) -> String {
    let digest = Sha256::digest(format!("dbplane.dev/name-owner\n{object_key}"));
    let bits = digest.iter().take(16).fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
    let digit = |place: usize| char::from(DIGITS[(bits >> (123 - 5 * place)) as usize % DIGITS.len()]);
    (0..DIGEST_LENGTH).map(digit).collect()
}

/// A resource's name as a part of a unique name: where it is too long, its beginning and a digest.
pub fn shortened(name: &str) -> String {
    cut(name, LONGEST_READABLE, 8)
}

/// The name of an object that belongs to another one: the other's name and a tail, or where that is too long, the beginning of the
/// other's name, a digest of it, and the tail.
pub fn derived(name: &str, tail: &str) -> String {
    format!("{}{tail}", fitted(name, LONGEST_OBJECT.saturating_sub(tail.len())))
}

/// A name, or where it is longer than that, its beginning and a digest.
pub fn fitted(name: &str, longest: usize) -> String {
    cut(name, longest, 16)
}

fn cut(name: &str, longest: usize, digits: usize) -> String {
    if name.len() <= longest {
        return name.to_owned();
    }
    let digest = &digest(name)[..digits];
    let head: String = name.chars().take(longest.saturating_sub(digest.len() + 1)).collect();
    format!("{}-{digest}", head.trim_end_matches(['-', '.']))
}

/// Whether a name belongs to any attempt for this resource.
pub fn is_attempt(name: &str, readable: &str, cluster: &ClusterId, object_key: ObjectKey) -> bool {
    let beginning = attempts(readable, cluster, object_key);
    let length = beginning.len() + DRAW_LENGTH;
    Mark::of(name).is_some() && name.len() == length && name.starts_with(&beginning)
}

/// How the names of all attempts for a resource begin.
pub fn attempts(readable: &str, cluster: &ClusterId, object_key: ObjectKey) -> String {
    let mut name = unique(readable, cluster, object_key, 0);
    name.truncate(name.len() - DRAW_LENGTH);
    name
}

/// Tells one text from another.
pub fn digest(text: &str) -> String {
    hex(text, 8)
}

fn hex(text: &str, bytes: usize) -> String {
    Sha256::digest(text).iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

/// A digest of the names of the entries, labels and annotations that are written to a Secret: it differs once the spec no
/// longer names something that still stands.
pub fn shape(names: [Vec<&String>; 3]) -> String {
    hex(&serde_json::to_string(&names).unwrap_or_default(), 12)
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
