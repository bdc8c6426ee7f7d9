//! Finds out who refused a request to the API server, from the error message.

use std::fmt;

use crate::text::line;

const LONGEST_NAME: usize = 100;

type Refused = fn(String) -> Refuser;

/// The text before a refuser's name, and the character after it.
const NAMED: [(&str, char, Refused); 4] = [
    ("admission webhook \"", '"', Refuser::Webhook),
    ("failed calling webhook \"", '"', Refuser::Webhook),
    ("AdmissionPolicy '", '\'', Refuser::Policy),
    ("exceeded quota: ", ',', Refuser::Quota),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refuser {
    Webhook(String),
    Policy(String),
    Quota(String),
    /// The message names nobody else.
    ApiServer,
}

impl Refuser {
    /// Parses the message of the API server.
    pub fn of(message: &str) -> Self {
        let found = NAMED.iter().find_map(|(before, end, who)| {
            let (name, _) = message.split_once(before)?.1.split_once(*end)?;
            Some(who(line(name, LONGEST_NAME).into_owned()))
        });
        found.unwrap_or(Self::ApiServer)
    }
}

impl fmt::Display for Refuser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook(name) => write!(f, "admission webhook {name}"),
            Self::Policy(name) => write!(f, "admission policy {name}"),
            Self::Quota(name) => write!(f, "quota {name}"),
            Self::ApiServer => f.write_str("the API server"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refuses_is_named() {
        for (message, who) in [
            (
                "admission webhook \"guard.example.com\" denied the request: no",
                "admission webhook guard.example.com",
            ),
            (
                "Internal error occurred: failed calling webhook \"guard.example.com\": failed to call webhook: Post \
                 \"https://guard.example.svc:443/?timeout=10s\": dial tcp 10.0.0.1:443: connect: connection refused",
                "admission webhook guard.example.com",
            ),
            (
                "computes.dbplane.dev \"orders\" is forbidden: ValidatingAdmissionPolicy 'no-finalizers' with binding 'all' denied request: no",
                "admission policy no-finalizers",
            ),
            (
                "secrets \"ci-key\" is forbidden: exceeded quota: few, requested: secrets=1, used: secrets=3, limited: secrets=3",
                "quota few",
            ),
            (
                "computes.dbplane.dev \"orders\" is forbidden: User \"system:serviceaccount:dbplane-system:dbplane\" cannot patch resource",
                "the API server",
            ),
            (
                "Compute.dbplane.dev \"orders\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes",
                "the API server",
            ),
            ("admission webhook \"without an end", "the API server"),
            ("", "the API server"),
        ] {
            assert_eq!(Refuser::of(message).to_string(), who, "{message}");
        }
        let forged = format!(
            "admission webhook \"a\nb{}\" denied the request",
            "c".repeat(1000)
        );
        let named = Refuser::of(&forged).to_string();
        assert!(
            named.starts_with("admission webhook a bc") && named.len() <= LONGEST_NAME + 20,
            "{named}"
        );
    }
}
