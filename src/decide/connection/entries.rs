//! The entries of a connection Secret.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};

use super::CredentialsView;
use crate::api::{ComputeStatus, Connection};
use crate::decide::template::Filler;
use crate::domain::{Compute, ComputeId};

/// The port that the platform's computes serve.
const POSTGRES_PORT: &str = "5432";
/// Clients encrypt connections or fail.
const SSL_MODE: &str = "require";
/// RFC 3986 calls the excluded characters unreserved; they appear in a URI as they are.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Lets a client balance its connections among several computes, which are all equivalent.
const BALANCED: &str = "&target_session_attrs=any&load_balance_hosts=random";
/// The same for clients that try the hosts in order, and pass unknown parameters to the server as
/// settings.
const IN_TURN: &str = "&target_session_attrs=any";
/// The same for the JDBC driver.
const JDBC_BALANCED: &str = "&targetServerType=any&loadBalanceHosts=true";

/// A text that can be compared and is never printed.
#[derive(Clone, Debug)]
pub struct SecretText(SecretString);

impl SecretText {
    pub fn as_secret(&self) -> &SecretString {
        &self.0
    }

    fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    fn encoded(&self) -> String {
        utf8_percent_encode(self.expose(), ENCODED).to_string()
    }
}

impl Hash for SecretText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expose().hash(state);
    }
}

impl<T: Into<String>> From<T> for SecretText {
    fn from(text: T) -> Self {
        Self(SecretString::from(text.into()))
    }
}

impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for SecretText {}

/// The address of a compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub id: ComputeId,
    pub host: String,
    pub pooled_host: Option<String>,
}

impl Address {
    /// `None` if the platform shows no host yet.
    pub fn of(compute: &Compute) -> Option<Self> {
        let host = compute.host.clone()?;
        Some(Self {
            id: compute.id.clone(),
            host,
            pooled_host: compute.pooled_host.clone(),
        })
    }

    /// The address in the status of a Compute.
    pub fn seen(status: &ComputeStatus) -> Option<Self> {
        let (id, host) = status.compute_id.clone().zip(status.host.clone())?;
        Some(Self {
            id,
            host,
            pooled_host: status.pooled_host.clone(),
        })
    }
}

/// The target of a client: one compute, or any of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    addresses: Vec<Address>,
    shared: bool,
}

impl From<Address> for Target {
    fn from(address: Address) -> Self {
        Self {
            addresses: vec![address],
            shared: false,
        }
    }
}

impl Target {
    pub fn any_of(addresses: Vec<Address>) -> Self {
        Self {
            addresses,
            shared: true,
        }
    }

    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// The computes without a pooler in the platform's answer.
    pub fn without_pooler(&self) -> impl Iterator<Item = &str> {
        self.addresses
            .iter()
            .filter(|address| address.pooled_host.is_none())
            .map(|address| address.id.as_str())
    }

    fn direct(&self) -> Vec<&str> {
        self.addresses
            .iter()
            .map(|address| address.host.as_str())
            .collect()
    }

    /// The hosts for clients, with poolers if `pooled`.
    fn hosts(&self, pooled: bool) -> Vec<&str> {
        self.addresses
            .iter()
            .map(|address| match &address.pooled_host {
                Some(pooled_host) if pooled => pooled_host.as_str(),
                _ => &address.host,
            })
            .collect()
    }

    /// The poolers, if the platform shows one for each compute.
    fn poolers(&self) -> Option<Vec<&str>> {
        self.addresses
            .iter()
            .map(|address| address.pooled_host.as_deref())
            .collect()
    }
}

/// A comma-separated list; `None` if it is empty.
fn list(items: &[&str]) -> Option<SecretText> {
    (!items.is_empty()).then(|| items.join(",").into())
}

/// The hosts of a URI with their ports; `None` if there are none.
fn ports(hosts: &[&str]) -> Option<String> {
    let hosts: Vec<String> = hosts
        .iter()
        .map(|host| format!("{host}:{POSTGRES_PORT}"))
        .collect();
    (!hosts.is_empty()).then(|| hosts.join(","))
}

pub(super) type SecretEntries = BTreeMap<String, Option<SecretText>>;

pub(super) fn names(
    entries: &SecretEntries,
    wanted: fn(&Option<SecretText>) -> bool,
) -> impl Iterator<Item = &str> {
    entries
        .iter()
        .filter(move |(_, text)| wanted(text))
        .map(|(name, _)| name.as_str())
}

/// All declared entries. An entry without a text must not be in the Secret, because it would be
/// from other credentials.
pub(super) fn entries(
    declared: &Connection,
    credentials: &CredentialsView,
    target: &Target,
) -> SecretEntries {
    let mut entries = SecretEntries::new();
    add_fixed(&mut entries, declared);
    add_addresses(&mut entries, declared, target);
    if declared.credentials_from.is_some() {
        let login = Login {
            credentials,
            database: declared.database.as_deref(),
        };
        add_login(&mut entries, &login);
        if declared.database.is_some() {
            add_uris(&mut entries, &login, declared, target);
        }
    }
    let templates = filled_templates(declared, &entries);
    entries.extend(templates);
    entries
}

fn add(entries: &mut SecretEntries, name: &str, text: Option<SecretText>) {
    entries.insert(name.to_owned(), text);
}

fn add_fixed(entries: &mut SecretEntries, declared: &Connection) {
    add(entries, "type", Some("postgresql".into()));
    add(entries, "provider", Some("dbplane".into()));
    add(entries, "port", Some(POSTGRES_PORT.into()));
    add(entries, "sslmode", Some(SSL_MODE.into()));
    if let Some(database) = &declared.database {
        add(entries, "dbname", Some(database.as_str().into()));
        add(entries, "database", Some(database.as_str().into()));
    }
}

fn add_addresses(entries: &mut SecretEntries, declared: &Connection, target: &Target) {
    let ids: Vec<&str> = target
        .addresses
        .iter()
        .map(|address| address.id.as_str())
        .collect();
    add(entries, "host", list(&target.hosts(declared.pooled)));
    add(entries, "computeID", list(&ids));
    if let Some(poolers) = target.poolers().and_then(|poolers| list(&poolers)) {
        add(entries, "pooled-host", Some(poolers));
    }
    if declared.pooled {
        add(entries, "direct-host", list(&target.direct()));
    }
}

fn add_login(entries: &mut SecretEntries, login: &Login) {
    add(entries, "user", login.user());
    // The name in the Service Binding specification.
    add(entries, "username", login.user());
    add(entries, "password", login.password());
}

fn add_uris(entries: &mut SecretEntries, login: &Login, declared: &Connection, target: &Target) {
    let hosts = target.hosts(declared.pooled);
    let (balanced, jdbc_balanced) = if target.shared {
        (BALANCED, JDBC_BALANCED)
    } else {
        ("", "")
    };
    add(entries, "uri", login.uri(&hosts, balanced));
    add(entries, "jdbc-uri", login.jdbc_uri(&hosts, jdbc_balanced));
    if target.shared {
        add(entries, "plain-uri", login.uri(&hosts, IN_TURN));
    }
    if declared.pooled {
        add(entries, "direct-uri", login.uri(&target.direct(), balanced));
    }
}

fn filled_templates(declared: &Connection, entries: &SecretEntries) -> SecretEntries {
    let mut filler = Filler::default();
    let mut filled = SecretEntries::new();
    for (name, text) in &declared.template {
        filled.insert(name.clone(), from_template(&mut filler, text, entries));
    }
    filled
}

/// Fills in the placeholders; `None` if one of them has no text now.
fn from_template(filler: &mut Filler, text: &str, entries: &SecretEntries) -> Option<SecretText> {
    let lacking = Cell::new(false);
    let value = |name: &str| {
        let text = entries.get(name)?;
        lacking.set(lacking.get() || text.is_none());
        text.as_ref().map(SecretText::expose)
    };
    let filled = SecretText::from(filler.fill(text, value));
    (!lacking.get()).then_some(filled)
}

/// The parts of a URI.
struct Login<'a> {
    credentials: &'a CredentialsView,
    database: Option<&'a str>,
}

impl Login<'_> {
    fn user(&self) -> Option<SecretText> {
        Some(self.found()?.0.clone())
    }

    fn password(&self) -> Option<SecretText> {
        Some(self.found()?.1.clone())
    }

    fn found(&self) -> Option<(&SecretText, &SecretText)> {
        match self.credentials {
            CredentialsView::Found { user, password } => Some((user, password)),
            _ => None,
        }
    }

    /// The form of libpq and nearly every client.
    fn uri(&self, hosts: &[&str], more: &str) -> Option<SecretText> {
        let (user, password, database) = self.encoded()?;
        let hosts = ports(hosts)?;
        Some(
            format!("postgresql://{user}:{password}@{hosts}/{database}?sslmode={SSL_MODE}{more}")
                .into(),
        )
    }

    /// The form of the JDBC driver.
    fn jdbc_uri(&self, hosts: &[&str], more: &str) -> Option<SecretText> {
        let (user, password, database) = self.encoded()?;
        let hosts = ports(hosts)?;
        let address = format!("jdbc:postgresql://{hosts}/{database}");
        Some(format!("{address}?user={user}&password={password}&sslmode={SSL_MODE}{more}").into())
    }

    fn encoded(&self) -> Option<(String, String, String)> {
        let (user, password) = self.found()?;
        let database = utf8_percent_encode(self.database?, ENCODED).to_string();
        Some((user.encoded(), password.encoded(), database))
    }
}
