//! Names that dbplane writes: finalizer, annotations, labels, and the unique names of keys and computes.

/// Holds a resource until its platform object has been dealt with.
pub const FINALIZER: &str = "dbplane.dev/finalizer";
/// Holds the Secret with an account's API key while resources of the account need it.
pub const CREDENTIAL_FINALIZER: &str = "dbplane.dev/credentials-in-use";
/// Who writes, in server-side apply and in events.
pub const FIELD_MANAGER: &str = "dbplane";

/// `"true"` stops every write for the resource.
pub const PAUSED: &str = "dbplane.dev/paused";
/// Any change of its value restarts the compute once, as spec.restartToken does; taking it away does not.
pub const RESTART: &str = "dbplane.dev/restart";

/// `"true"` confirms a deletion that the brake on mass deletion holds.
pub const CONFIRM_DELETION: &str = "dbplane.dev/confirm-deletion";

/// The binding of a Compute to its compute.
pub const BINDING: &str = "dbplane.dev/compute";
/// The intent to create a compute.
pub const CREATE_INTENT: &str = "dbplane.dev/create-intent";
/// Creates that were never answered and that no reading has shown: what they bring forth late is recognized.
pub const UNANSWERED_CREATES: &str = "dbplane.dev/unanswered-creates";
/// The restart that was asked for last.
pub const RESTART_RECORD: &str = "dbplane.dev/restart-record";
/// The keys of a ProjectKey.
pub const KEYS: &str = "dbplane.dev/keys";
/// The intent to create a key.
pub const KEY_INTENT: &str = "dbplane.dev/key-intent";

/// On a Secret: the identifier of the key it holds.
pub const SECRET_KEY_ID: &str = "dbplane.dev/key-id";
/// On a Secret: the record of the key it holds.
pub const SECRET_KEY: &str = "dbplane.dev/key";
/// On a Secret: a digest of the key that dbplane wrote, which tells one that was altered by hand.
pub const SECRET_DIGEST: &str = "dbplane.dev/digest";
/// On a Secret: a digest of the names of its parts that dbplane wrote, which tells when one is no longer declared.
pub const SECRET_SHAPE: &str = "dbplane.dev/shape";
/// On a Secret: who manages it.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "dbplane");

/// The longest name that the platform takes for a key or a compute.
const LONGEST_NAME: usize = 64;

/// The unique name of one attempt to create a key: what people chose, the resource's UID and a number drawn for this attempt.
pub fn key_name(chosen: &str, uid: &str, draw: u32) -> String {
    unique(chosen, uid, draw)
}

/// The unique name of one attempt to create a compute.
pub fn compute_name(resource: &str, uid: &str, draw: u32) -> String {
    unique(resource, uid, draw)
}

fn unique(readable: &str, uid: &str, draw: u32) -> String {
    let tail = format!("-{}-{draw:08x}", &uid.chars().filter(|c| *c != '-').take(8).collect::<String>());
    let room = LONGEST_NAME - tail.len();
    let head: String = readable.chars().take(room).collect();
    format!("{head}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_for_each_attempt_and_never_too_long() {
        let uid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
        assert_eq!(key_name("ci", uid, 255), "ci-0a1b2c3d-000000ff");
        assert_ne!(key_name("ci", uid, 1), key_name("ci", uid, 2));
        assert_eq!(key_name(&"x".repeat(200), uid, 1).len(), 64);
    }
}
