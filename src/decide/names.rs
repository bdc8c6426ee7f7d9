//! Names that dbplane writes: finalizer, annotations, labels, and the unique names of keys and
//! computes.

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
    /// For an operator that knows all resources of an account.
    pub fn whole() -> Self {
        Self {
            account: FINALIZER.to_owned(),
            credential: CREDENTIAL_FINALIZER.to_owned(),
        }
    }

    /// For an operator that watches only these namespaces, on an account of all namespaces. Other
    /// operators have finalizers of their own.
    pub fn confined_to(namespaces: &[String]) -> Self {
        let names: BTreeSet<&String> = namespaces.iter().collect();
        let digest = digest(
            &names
                .into_iter()
                .map(|name| format!("{name}\n"))
                .collect::<String>(),
        );
        let suffix = &digest[..8];
        let Self {
            account,
            credential,
        } = Self::whole();
        Self {
            account: format!("{account}-{suffix}"),
            credential: format!("{credential}-{suffix}"),
        }
    }
}

/// Returns true for the finalizer of a Secret in use by an account, of this operator or of one for
/// other namespaces.
pub fn is_for_credentials(finalizer: &str) -> bool {
    is_or_is_confined(finalizer, CREDENTIAL_FINALIZER)
}

/// Returns true for a finalizer of dbplane, set by any operator.
pub fn is_finalizer(finalizer: &str) -> bool {
    is_or_is_confined(finalizer, FINALIZER) || is_for_credentials(finalizer)
}

/// Returns true for `own`, or for its variant of an operator that watches certain namespaces.
fn is_or_is_confined(finalizer: &str, own: &str) -> bool {
    finalizer
        .strip_prefix(own)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The field manager of server-side apply, and the reporter of events.
pub const FIELD_MANAGER: &str = "dbplane";
/// The name of the leader's Lease, in the operator's namespace.
pub const LEASE: &str = "dbplane";

/// `"true"` stops every write for the resource.
pub const PAUSED: &str = "dbplane.dev/paused";
/// A new value restarts the compute once, as spec.restartToken does. Removing it does not.
pub const RESTART: &str = "dbplane.dev/restart";
/// A new value replaces the key of a ProjectKey once. Removing it does not. The status shows the
/// last value that was carried out.
pub const ROTATE: &str = "dbplane.dev/rotate";
/// A new value re-reads the platform and retries refused changes. The status shows the last value
/// that was carried out.
pub const RECONCILE: &str = "dbplane.dev/reconcile-requested-at";
/// Keys that a user has revoked: names or numbers separated by commas, or `all`. Each value counts
/// once.
pub const REVOKED_KEYS: &str = "dbplane.dev/revoked-keys";
/// Computes that are not the result of any create of the resource, as a user has confirmed:
/// identifiers separated by commas.
pub const NOT_CREATED: &str = "dbplane.dev/not-created";

/// At most this many entries of a comma-separated annotation count.
const MOST_LISTED: usize = 256;

/// The words of a comma-separated annotation that users write.
pub fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .take(MOST_LISTED)
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

/// A time (RFC 3339). It confirms deletions requested until then that the brake on mass deletion
/// has paused.
pub const CONFIRM_DELETION: &str = "dbplane.dev/confirm-deletion";

/// The copy of a resource's record: its intents and its binding. The record itself is in the
/// status.
pub const RECORD: &str = "dbplane.dev/record";

/// On a Secret: the identifier of the key in it.
pub const SECRET_KEY_ID: &str = "dbplane.dev/key-id";
/// On a Secret: the record of the key in it.
pub const SECRET_KEY: &str = "dbplane.dev/key";
/// On a Secret: the entry of the previous key, and which key that is.
pub const SECRET_PREVIOUS: &str = "dbplane.dev/previous-key";
/// On a Secret: a digest of the key that dbplane wrote, which shows a manual change.
pub const SECRET_DIGEST: &str = "dbplane.dev/digest";
/// On a Secret: a digest of the names of its parts that dbplane wrote, which shows that one is no
/// longer declared.
pub const SECRET_SHAPE: &str = "dbplane.dev/shape";
/// On a Secret: the kind and the name of the resource that it was made for.
pub const SECRET_OF: &str = "dbplane.dev/secret-of";
/// On a Secret: the program that manages it.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "dbplane");

/// The maximum length of the part of a key's name that users choose.
const LONGEST_READABLE: usize = 32;
/// The maximum length of a name on the platform, for a key or a compute.
const LONGEST_NAME: usize = 64;

/// The maximum length of an object name in Kubernetes.
const LONGEST_OBJECT: usize = 253;

/// The identity of a cluster, part of every unique name. By it, clusters that share one
/// organization recognize their own keys and computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterId(String);

const CLUSTER_LENGTH: usize = 6;
/// The length of an attempt's random number, in hexadecimal digits.
const DRAW_LENGTH: usize = 8;
/// The length of the digest of a resource's namespace and name.
const DIGEST_LENGTH: usize = 13;
/// Crockford's base 32: no two of its digits look alike.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl ClusterId {
    /// The identity of a cluster: the beginning of the UID of its namespace kube-system.
    pub fn of_uid(uid: &str) -> Option<Self> {
        uid.get(..CLUSTER_LENGTH)?.parse().ok()
    }

    /// A placeholder. No UID begins like this.
    pub fn unknown() -> Self {
        Self("z".repeat(CLUSTER_LENGTH))
    }

    /// Returns true if this cluster issued a unique name.
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
        Err(format!(
            "write {CLUSTER_LENGTH} digits or lowercase letters, as in the names of keys"
        ))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_cluster(text: &str) -> bool {
    text.len() == CLUSTER_LENGTH
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
}

/// The parts of a unique name that identify the issuing cluster and the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark<'a> {
    pub cluster: &'a str,
    /// The part that users choose.
    pub chosen: &'a str,
    owner: NameOwner<'a>,
}

/// The part of a unique name that identifies its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameOwner<'a> {
    /// A digest of its namespace and name: no resource of another namespace can have it.
    Digest(&'a str),
    /// The beginning of its UID, in names of earlier versions. It is too short to prove anything.
    Uid(&'a str),
}

impl<'a> Mark<'a> {
    /// `None` for a name that does not have this form.
    pub fn of(name: &'a str) -> Option<Self> {
        let mut parts = name.rsplitn(4, '-');
        let (random, owner, cluster, chosen) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex =
            |part: &str| part.len() == DRAW_LENGTH && part.bytes().all(|b| b.is_ascii_hexdigit());
        let is_digest = owner.len() == DIGEST_LENGTH && owner.bytes().all(|b| DIGITS.contains(&b));
        let owner = match owner {
            owner if is_digest => NameOwner::Digest(owner),
            owner if is_hex(owner) => NameOwner::Uid(owner),
            _ => return None,
        };
        (is_hex(random) && is_cluster(cluster) && !chosen.is_empty()).then_some(Self {
            cluster,
            chosen,
            owner,
        })
    }

    /// Returns true if the name was issued for the resource of this namespace and name. A resource
    /// restored from a backup keeps its names.
    pub fn is_for(&self, object_key: ObjectKey) -> bool {
        self.owner == NameOwner::Digest(&owner_digest(object_key))
    }

    /// Returns true for a name of an earlier version, which does not show the namespace.
    pub fn is_of_earlier_version(&self) -> bool {
        matches!(self.owner, NameOwner::Uid(_))
    }
}

/// The unique name of one attempt to create a key or a compute. Its parts: the readable part, the
/// cluster, a digest of the resource's namespace and name, and the attempt's random number.
pub fn unique(readable: &str, cluster: &ClusterId, object_key: ObjectKey, random: u32) -> String {
    let tail = format!("-{cluster}-{}-{random:08x}", owner_digest(object_key));
    let room = LONGEST_NAME - tail.len();
    let head: String = readable.chars().take(room).collect();
    format!("{head}{tail}")
}

/// 65 bits of a digest of a namespace and a name, in the digits of [`DIGITS`].
fn owner_digest(object_key: ObjectKey) -> String {
    let digest = Sha256::digest(format!("dbplane.dev/name-owner\n{object_key}"));
    let bits = digest
        .iter()
        .take(16)
        .fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
    let digit =
        |place: usize| char::from(DIGITS[(bits >> (123 - 5 * place)) as usize % DIGITS.len()]);
    (0..DIGEST_LENGTH).map(digit).collect()
}

/// Shortens a resource's name for a unique name: its beginning and a digest if it is too long.
pub fn shortened(name: &str) -> String {
    cut(name, LONGEST_READABLE, 8)
}

/// The name of a dependent object: the owner's name and a tail. An owner's name that is too long is
/// cut, and gets a digest before the tail.
pub fn derived(name: &str, tail: &str) -> String {
    format!(
        "{}{tail}",
        fitted(name, LONGEST_OBJECT.saturating_sub(tail.len()))
    )
}

/// Cuts a name that is longer than `longest` to its beginning and a digest.
pub fn fitted(name: &str, longest: usize) -> String {
    cut(name, longest, 16)
}

fn cut(name: &str, longest: usize, digits: usize) -> String {
    if name.len() <= longest {
        return name.to_owned();
    }
    let digest = &digest(name)[..digits];
    let head: String = name
        .chars()
        .take(longest.saturating_sub(digest.len() + 1))
        .collect();
    format!("{}-{digest}", head.trim_end_matches(['-', '.']))
}

/// Returns true if a name belongs to any attempt for this resource.
pub fn is_attempt(name: &str, readable: &str, cluster: &ClusterId, object_key: ObjectKey) -> bool {
    let beginning = attempts(readable, cluster, object_key);
    let length = beginning.len() + DRAW_LENGTH;
    Mark::of(name).is_some() && name.len() == length && name.starts_with(&beginning)
}

/// The common beginning of the names of all attempts for a resource.
pub fn attempts(readable: &str, cluster: &ClusterId, object_key: ObjectKey) -> String {
    let mut name = unique(readable, cluster, object_key, 0);
    name.truncate(name.len() - DRAW_LENGTH);
    name
}

/// A short digest, to compare texts.
pub fn digest(text: &str) -> String {
    hex(text, 8)
}

fn hex(text: &str, bytes: usize) -> String {
    Sha256::digest(text)
        .iter()
        .take(bytes)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A digest of the names of the entries, labels and annotations of a Secret. It changes when the
/// spec no longer declares one that is still there.
pub fn shape(names: [Vec<&String>; 3]) -> String {
    hex(&serde_json::to_string(&names).unwrap_or_default(), 12)
}

#[cfg(test)]
mod tests;
