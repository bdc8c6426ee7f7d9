//! The connection Secret: the parameters for clients of one compute, or of any of several.

mod entries;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use self::entries::{Address, SecretText, Target};
use self::entries::{entries, names};
use super::names::{MANAGED_BY, SECRET_SHAPE, shape};
use super::{Reason, Report, Sync};
use crate::api::{Connection, CredentialsFrom};

/// The observed state of a Secret that dbplane may have to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretView {
    NotWanted,
    Absent,
    /// It belongs to something else, which the text names.
    Foreign(String),
    /// It belongs to this resource and has this content.
    Ours(ConnectionSecret),
}

/// The user and the password that a Compute declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialsView {
    /// None are declared, or no Secret is to be written.
    NotWanted,
    NoSecret,
    /// dbplane itself writes their Secret.
    Managed,
    /// Their Secret lacks this key, or its value is not a text of at most 4096 bytes.
    NoText(String),
    Found {
        user: SecretText,
        password: SecretText,
    },
}

/// The content of a connection Secret, observed or to be written.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct ConnectionSecret {
    pub data: BTreeMap<String, SecretText>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// Omits labels and annotations: other programs can write anything into them.
impl fmt::Debug for ConnectionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSecret")
            .field("entries", &self.data.keys())
            .finish_non_exhaustive()
    }
}

impl ConnectionSecret {
    fn of(connection: &Connection, data: BTreeMap<String, SecretText>) -> Self {
        let mut labels = connection.labels.clone();
        labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
        let mut annotations = connection.annotations.clone();
        let names = [
            data.keys().collect(),
            labels.keys().collect(),
            annotations.keys().collect(),
        ];
        annotations.insert(SECRET_SHAPE.to_owned(), shape(names));
        Self {
            data,
            labels,
            annotations,
        }
    }

    /// Returns true if all of `other` is in it.
    fn holds(&self, other: &Self) -> bool {
        fn all<T: PartialEq>(stands: &BTreeMap<String, T>, wanted: &BTreeMap<String, T>) -> bool {
            wanted
                .iter()
                .all(|(name, value)| stands.get(name) == Some(value))
        }
        all(&self.data, &other.data)
            && all(&self.labels, &other.labels)
            && all(&self.annotations, &other.annotations)
    }
}

/// The declared connection Secret, and the observed one.
#[derive(Clone, Copy, Debug)]
pub struct Declared<'a> {
    pub connection: &'a Connection,
    pub credentials: &'a CredentialsView,
    pub secret: &'a SecretView,
}

/// The action on a connection Secret.
#[derive(Clone, Debug)]
pub enum SecretDue {
    Foreign(Report),
    /// Write the Secret. The entries in `without` must not be in it.
    Write {
        secret: Box<ConnectionSecret>,
        without: BTreeSet<String>,
    },
}

impl Declared<'_> {
    /// The action; `None` if the Secret is up to date.
    pub fn due(&self, target: &Target) -> Option<SecretDue> {
        let entries = entries(self.connection, self.credentials, target);
        let without: BTreeSet<String> = names(&entries, Option::is_none)
            .map(str::to_owned)
            .collect();
        let data = entries
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
            .collect();
        let secret = ConnectionSecret::of(self.connection, data);
        match self.secret {
            SecretView::NotWanted => None,
            SecretView::Foreign(owner) => Some(SecretDue::Foreign(Report::stalled(
                Reason::SecretNotOurs,
                format!(
                    "Secret {} exists and is {owner}. dbplane does not change it. Delete it, or choose another \
                     spec.connection.secretName.",
                    self.connection.secret_name
                ),
            ))),
            SecretView::Ours(present)
                if present.holds(&secret)
                    && without.iter().all(|name| !present.data.contains_key(name)) =>
            {
                None
            }
            SecretView::Absent | SecretView::Ours(_) => Some(SecretDue::Write {
                secret: Box::new(secret),
                without,
            }),
        }
    }

    /// A message about declared parts that cannot be written. Clients can connect without them.
    pub fn incomplete(&self, target: &Target) -> Option<Sync> {
        let entries = entries(self.connection, self.credentials, target);
        let Connection {
            secret_name: name,
            credentials_from,
            ..
        } = self.connection;
        let lacking = credentials_from
            .as_ref()
            .and_then(|from| obstacle(from, self.credentials))
            .map(|obstacle| {
                let without = names(&entries, Option::is_none)
                    .collect::<Vec<_>>()
                    .join(", ");
                format!("Secret {name} is without {without}: {obstacle}")
            });
        let direct: Vec<&str> = target.without_pooler().collect();
        let unpooled = (self.connection.pooled && !direct.is_empty()).then(|| {
            let (computes, which) =
                (direct.join(", "), if target.is_shared() { "those computes themselves" } else { "the compute itself" });
            format!(
                "The platform shows no pooled host of compute {computes}, so that host and uri in Secret {name} lead to {which}. If they are \
                 to, set spec.connection.pooled to false."
            )
        });
        let problems: Vec<String> = lacking.into_iter().chain(unpooled).collect();
        (!problems.is_empty())
            .then(|| Sync::OutOfSync(Reason::ConnectionIncomplete, problems.join(" ")))
    }
}

/// Why there are no credentials, and what to do.
fn obstacle(from: &CredentialsFrom, credentials: &CredentialsView) -> Option<String> {
    let CredentialsFrom {
        name,
        username_key,
        password_key,
    } = from;
    match credentials {
        CredentialsView::NotWanted | CredentialsView::Found { .. } => None,
        CredentialsView::NoSecret => Some(format!(
            "Secret {name} does not exist. Create it with the user under {username_key} and the password under {password_key}."
        )),
        CredentialsView::Managed => Some(format!(
            "dbplane writes Secret {name} itself. Name the Secret that the user and the password come from in \
             spec.connection.credentialsFrom."
        )),
        CredentialsView::NoText(key) => {
            let what = if key == username_key {
                "user"
            } else {
                "password"
            };
            Some(format!(
                "Secret {name} has no text under {key}, or one of more than 4096 bytes. Put the {what} there."
            ))
        }
    }
}
