//! Digests that show if a text has changed.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

/// A digest of a text. API keys are so random that it reveals nothing about them.
pub fn digest(text: &SecretString) -> String {
    Sha256::digest(text.expose_secret())
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn a_digest_does_not_show_the_text() {
    let (one, other) = (
        digest(&SecretString::from("canary")),
        digest(&SecretString::from("canaries")),
    );
    assert!(one.len() == 24 && !one.contains("canary"));
    assert_ne!(one, other);
}
