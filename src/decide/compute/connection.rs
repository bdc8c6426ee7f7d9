//! The connection Secret: what a client needs to connect.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};

use super::super::names::{MANAGED_BY, SECRET_SHAPE, shape};
use super::super::template::filled;
use super::super::{Action, Decision, Reason, Report, Sync};
use super::{Case, Choice, ComputeStep};
use crate::api::{Connection, CredentialsFrom, Management};
use crate::domain::Compute;

/// The port that the platform's computes serve.
const POSTGRES_PORT: &str = "5432";
/// Connections are encrypted, or not made.
const SSL_MODE: &str = "require";
/// What is written as it is in a URI: RFC 3986 calls it unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A Secret that dbplane may have to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretView {
    /// None is declared.
    NotWanted,
    /// It does not exist.
    Absent,
    /// It exists and belongs to something else, which the text names.
    Foreign(String),
    /// It is this resource's, with this content.
    Ours(ConnectionSecret),
}

/// The user and the password that a Compute declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialsView {
    /// None are declared, or nothing is to be written.
    NotWanted,
    /// Their Secret does not exist.
    NoSecret,
    /// dbplane itself writes their Secret.
    Managed,
    /// Their Secret lacks this key, or has no text there.
    NoText(String),
    Found {
        user: SecretText,
        password: SecretText,
    },
}

/// A text that is compared and never printed.
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

/// What stands in a connection Secret, or is to be written there.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ConnectionSecret {
    pub data: BTreeMap<String, SecretText>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// Without what others write into labels and annotations, which may be anything.
impl fmt::Debug for ConnectionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSecret").field("entries", &self.data.keys()).finish_non_exhaustive()
    }
}

impl ConnectionSecret {
    fn of(connection: &Connection, data: BTreeMap<String, SecretText>) -> Self {
        let mut labels = connection.labels.clone();
        labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
        let mut annotations = connection.annotations.clone();
        let names = [data.keys().collect(), labels.keys().collect(), annotations.keys().collect()];
        annotations.insert(SECRET_SHAPE.to_owned(), shape(names));
        Self { data, labels, annotations }
    }

    /// Whether all of `other` is in it.
    fn holds(&self, other: &Self) -> bool {
        fn all<T: PartialEq>(stands: &BTreeMap<String, T>, wanted: &BTreeMap<String, T>) -> bool {
            wanted.iter().all(|(name, value)| stands.get(name) == Some(value))
        }
        all(&self.data, &other.data) && all(&self.labels, &other.labels) && all(&self.annotations, &other.annotations)
    }
}

/// Where a compute is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub id: String,
    pub host: String,
    pub pooled_host: Option<String>,
}

impl Address {
    /// `None` where the platform shows no host yet.
    fn of(compute: &Compute) -> Option<Self> {
        let host = compute.host.clone()?;
        Some(Self { id: compute.id.clone(), host, pooled_host: compute.pooled_host.clone() })
    }
}

/// While the platform cannot be asked, the Secret follows what does not come from there: the compute is where it was seen last.
pub(super) fn meanwhile(case: &Case, report: Report) -> Choice {
    let bound = case.identity.binding.as_ref().filter(|_| case.spec.management == Management::Full);
    let seen = case.observed.last_seen.as_ref();
    let seen = seen.filter(|seen| bound.is_some_and(|binding| binding.id == seen.id));
    let choice = seen.and_then(|address| written(case, address, &report));
    match choice {
        Some(choice) if choice.step.is_some() => choice,
        Some(choice) => Decision::rest(report).no_later(choice.wake),
        None => Decision::rest(report),
    }
}

/// Writes the connection Secret where one is declared and differs.
pub(super) fn connection(case: &Case, compute: &Compute, report: &Report) -> Option<Choice> {
    written(case, &Address::of(compute)?, report)
}

fn written(case: &Case, address: &Address, report: &Report) -> Option<Choice> {
    let declared = case.spec.connection.as_ref()?;
    let name = &declared.secret_name;
    let entries = entries(declared, &case.observed.credentials, address);
    let without: BTreeSet<String> = names(&entries, Option::is_none).map(str::to_owned).collect();
    let data = entries.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
    let secret = ConnectionSecret::of(declared, data);
    match &case.observed.secret {
        SecretView::NotWanted => None,
        SecretView::Foreign(owner) => Some(Decision::rest(Report::stalled(
            Reason::SecretNotOurs,
            format!(
                "Secret {name} exists and is {owner}. dbplane does not change it. Delete it, or choose another spec.connection.secretName."
            ),
        ))),
        SecretView::Ours(present)
            if present.holds(&secret) && without.iter().all(|name| !present.data.contains_key(name)) =>
        {
            None
        }
        SecretView::Absent | SecretView::Ours(_) => {
            let step = ComputeStep::WriteConnection { secret: Box::new(secret), without };
            Some(case.act(Action::WriteSecret, step, report.clone()))
        }
    }
}

/// Reports what is declared of the connection Secret and cannot be written. The compute serves all the same.
pub(super) fn incomplete(case: &Case, compute: &Compute, report: &Report) -> Option<Choice> {
    let declared = case.spec.connection.as_ref()?;
    let credentials = &case.observed.credentials;
    let entries = entries(declared, credentials, &Address::of(compute)?);
    let lacking = declared.credentials_from.as_ref().and_then(|from| obstacle(from, credentials)).map(|obstacle| {
        let without = names(&entries, Option::is_none).collect::<Vec<_>>().join(", ");
        format!("Secret {} is without {without}: {obstacle}", declared.secret_name)
    });
    let unpooled = (declared.pooled && compute.pooled_host.is_none()).then(|| {
        format!(
            "The platform shows no pooled host of compute {}, so that host and uri in Secret {} lead to the compute itself. If they are to, \
             set spec.connection.pooled to false.",
            compute.id, declared.secret_name
        )
    });
    let problems: Vec<String> = lacking.into_iter().chain(unpooled).collect();
    let sync = Sync::OutOfSync(Reason::ConnectionIncomplete, problems.join(" "));
    (!problems.is_empty()).then(|| Decision::rest(report.clone().with_sync(sync)))
}

/// Why there are no credentials, and what to do.
fn obstacle(from: &CredentialsFrom, credentials: &CredentialsView) -> Option<String> {
    let CredentialsFrom { name, username_key, password_key } = from;
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
            let what = if key == username_key { "user" } else { "password" };
            Some(format!("Secret {name} has no text under {key}. Put the {what} there."))
        }
    }
}

type Entries = BTreeMap<String, Option<SecretText>>;

fn names(entries: &Entries, wanted: fn(&Option<SecretText>) -> bool) -> impl Iterator<Item = &str> {
    entries.iter().filter(move |(_, text)| wanted(text)).map(|(name, _)| name.as_str())
}

/// Every entry that is declared. One that has no text now must not stand in the Secret either: it would be of other credentials.
fn entries(declared: &Connection, credentials: &CredentialsView, address: &Address) -> Entries {
    let direct = address.host.as_str();
    let host = address.pooled_host.as_deref().filter(|_| declared.pooled).unwrap_or(direct);
    let database = declared.database.as_deref();
    let login = Login { credentials, database };
    let mut entries: Entries = [
        ("type", "postgresql"),
        ("provider", "dbplane"),
        ("host", host),
        ("port", POSTGRES_PORT),
        ("sslmode", SSL_MODE),
        ("computeID", &address.id),
    ]
    .into_iter()
    .chain(address.pooled_host.as_deref().map(|host| ("pooled-host", host)))
    .chain(declared.pooled.then_some(("direct-host", direct)))
    .chain(database.into_iter().flat_map(|name| [("dbname", name), ("database", name)]))
    .map(|(name, text)| (name.to_owned(), Some(text.into())))
    .collect();
    if declared.credentials_from.is_some() {
        let of_login = [
            ("user", login.user()),
            // What the Service Binding specification calls it.
            ("username", login.user()),
            ("password", login.password()),
        ];
        entries.extend(of_login.map(|(name, text)| (name.to_owned(), text)));
    }
    if declared.credentials_from.is_some() && database.is_some() {
        let direct = declared.pooled.then(|| ("direct-uri", login.uri(direct)));
        let uris = [("uri", login.uri(host)), ("jdbc-uri", login.jdbc_uri(host))].into_iter().chain(direct);
        entries.extend(uris.map(|(name, text)| (name.to_owned(), text)));
    }
    let templates: Entries =
        declared.template.iter().map(|(name, text)| (name.clone(), from_template(text, &entries))).collect();
    entries.extend(templates);
    entries
}

/// The text with its placeholders replaced; `None` where one of them has no text now.
fn from_template(text: &str, entries: &Entries) -> Option<SecretText> {
    let lacking = Cell::new(false);
    let value = |name: &str| {
        let text = entries.get(name)?;
        lacking.set(lacking.get() || text.is_none());
        text.as_ref().map(SecretText::expose)
    };
    let filled = SecretText::from(filled(text, value));
    (!lacking.get()).then_some(filled)
}

/// What goes into a URI.
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

    /// As libpq reads it, and with it nearly every client.
    fn uri(&self, host: &str) -> Option<SecretText> {
        let (user, password, database) = self.encoded()?;
        let uri = format!("postgresql://{user}:{password}@{host}:{POSTGRES_PORT}/{database}?sslmode={SSL_MODE}");
        Some(uri.into())
    }

    /// As the JDBC driver reads it.
    fn jdbc_uri(&self, host: &str) -> Option<SecretText> {
        let (user, password, database) = self.encoded()?;
        let address = format!("jdbc:postgresql://{host}:{POSTGRES_PORT}/{database}");
        Some(format!("{address}?user={user}&password={password}&sslmode={SSL_MODE}").into())
    }

    fn encoded(&self) -> Option<(String, String, String)> {
        let (user, password) = self.found()?;
        let database = utf8_percent_encode(self.database?, ENCODED).to_string();
        Some((user.encoded(), password.encoded(), database))
    }
}
