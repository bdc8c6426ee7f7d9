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
mod tests;
