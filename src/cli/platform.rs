//! The platform that a command reads, and the key for it, from the command line or from an account
//! in the cluster. Only reads are sent.

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use secrecy::SecretString;

use super::common::{KeyError, read_key};
use crate::api::{Account, AccountKind, AccountRef, ClusterAccount, PlatformAccess};
use crate::cluster::explained;
use crate::domain::{Fault, OrganizationId};
use crate::leadership::Leadership;
use crate::platform::{
    Connect, ConnectError, ConnectOptions, Endpoint, HttpOptions, NoMeter, OverHttp,
    PlatformClient, PlatformPattern, Rate, RateLimited, Reach, ReadsOnly,
};

/// The platform, if the command line names it instead of an account.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PlatformArgs {
    /// Base URL of the platform's API, ending with the version segment:
    /// https://platform.example/api/v2
    #[arg(long, value_name = "URL", requires = "api_key")]
    pub base_url: Option<String>,
    /// File with the API key, or - for standard input
    #[arg(long, value_name = "FILE|-", requires = "base_url")]
    pub api_key: Option<PathBuf>,
    /// The platform's identifier of the organization
    #[arg(long, value_name = "ID", requires = "base_url")]
    pub organization: Option<OrganizationId>,
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// The platforms that a command may call.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ReachArgs {
    /// --allowed-platforms of the operator: only these are called, and one whose host is written in
    /// full may have a private address
    #[arg(
        long,
        env = "DBPLANE_ALLOWED_PLATFORMS",
        value_name = "URLS",
        value_delimiter = ','
    )]
    allowed_platforms: Vec<PlatformPattern>,
    /// For tests on loopback only: allow http and addresses of this machine
    #[arg(long, env = "DBPLANE_ALLOW_INSECURE_PLATFORM")]
    allow_insecure_platform: bool,
}

impl ReachArgs {
    pub fn reach(&self) -> Reach {
        Reach {
            platforms: self.allowed_platforms.clone(),
            insecure: self.allow_insecure_platform,
            ..Reach::default()
        }
    }
}

/// The reason why no platform can be read.
#[derive(Debug, thiserror::Error)]
pub enum PlatformError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("cannot call the platform: {0}")]
    Connect(#[from] ConnectError),
    #[error("cannot read {what}: {}", explained(.cause))]
    Cluster { what: String, cause: kube::Error },
    #[error("Secret {namespace}/{name} has no entry {key}, which {account} names for its API key")]
    NoEntry {
        namespace: String,
        name: String,
        key: String,
        account: String,
    },
}

/// The endpoint of a platform, and the key for it.
#[derive(Debug)]
pub struct Credentials {
    pub endpoint: Endpoint,
    key: SecretString,
}

/// A client that only reads, and keeps the answers.
#[derive(Debug)]
pub struct PlatformReader {
    pub platform: RateLimited,
    pub reads: Arc<ReadsOnly>,
}

/// `NAME`, `Account/NAME` or `ClusterAccount/NAME`.
///
/// # Errors
/// If the kind is another one.
pub fn account_ref(text: &str) -> Result<AccountRef, String> {
    let (kind, name) = match text.split_once('/') {
        None => (AccountKind::Account, text),
        Some((kind, name)) if kind.eq_ignore_ascii_case("account") => (AccountKind::Account, name),
        Some((kind, name)) if kind.eq_ignore_ascii_case("clusteraccount") => {
            (AccountKind::ClusterAccount, name)
        }
        Some((kind, _)) => {
            return Err(format!(
                "{kind} is no kind of account; write Account/NAME or ClusterAccount/NAME"
            ));
        }
    };
    match name {
        "" => Err("the name is missing".to_owned()),
        name => Ok(AccountRef {
            name: name.to_owned(),
            kind,
        }),
    }
}

impl PlatformArgs {
    /// The platform of the command line, or `None` if it names none.
    ///
    /// # Errors
    /// If the key cannot be read.
    pub fn given(&self) -> Result<Option<Credentials>, PlatformError> {
        let Some((base_url, api_key)) = self.base_url.clone().zip(self.api_key.as_ref()) else {
            return Ok(None);
        };
        let mut endpoint = self.endpoint(base_url, self.organization.clone());
        if endpoint.reach.platforms.is_empty() {
            // The user named this platform, so it is allowed.
            endpoint
                .reach
                .platforms
                .extend(PlatformPattern::of(&endpoint.base_url));
        }
        Ok(Some(Credentials {
            endpoint,
            key: read_key(api_key)?,
        }))
    }

    /// The platform and the key of an account, read with the user's rights.
    ///
    /// # Errors
    /// If the account or its Secret cannot be read.
    pub async fn of_account(
        &self,
        client: &Client,
        account: &AccountRef,
        namespace: &str,
    ) -> Result<Credentials, PlatformError> {
        let AccountRef { name, kind } = account;
        let (access, secret) = match kind {
            AccountKind::Account => {
                let label = format!("Account {namespace}/{name}");
                let found = Api::<Account>::namespaced(client.clone(), namespace)
                    .get(name)
                    .await;
                let spec = found.map_err(unreadable(&label))?.spec;
                let reference = spec.api_key_secret_ref;
                let secret = SecretEntry {
                    account: label,
                    namespace: namespace.to_owned(),
                    name: reference.name,
                    key: reference.key,
                };
                (spec.platform, secret)
            }
            AccountKind::ClusterAccount => {
                let label = format!("ClusterAccount {name}");
                let found = Api::<ClusterAccount>::all(client.clone()).get(name).await;
                let spec = found.map_err(unreadable(&label))?.spec;
                let reference = spec.api_key_secret_ref;
                let secret = SecretEntry {
                    account: label,
                    namespace: reference.namespace,
                    name: reference.name,
                    key: reference.key,
                };
                (spec.platform, secret)
            }
        };
        let key = secret.read(client).await?;
        let PlatformAccess {
            base_url,
            organization_id,
            ..
        } = access;
        Ok(Credentials {
            endpoint: self.endpoint(base_url, organization_id),
            key,
        })
    }

    fn endpoint(&self, base_url: String, organization_id: Option<OrganizationId>) -> Endpoint {
        Endpoint {
            base_url,
            organization_id,
            reach: self.reach.reach(),
        }
    }
}

/// The entry of a Secret that has an account's key.
struct SecretEntry {
    /// The account, for messages.
    account: String,
    namespace: String,
    name: String,
    key: String,
}

impl SecretEntry {
    async fn read(self, client: &Client) -> Result<SecretString, PlatformError> {
        let Self {
            account,
            namespace,
            name,
            key,
        } = self;
        let what = format!("Secret {namespace}/{name}, which {account} names for its API key");
        let secret = Api::<Secret>::namespaced(client.clone(), &namespace)
            .get(&name)
            .await
            .map_err(unreadable(&what))?;
        let entry = secret
            .data
            .unwrap_or_default()
            .remove(&key)
            .and_then(|bytes| String::from_utf8(bytes.0).ok());
        match entry {
            Some(text) => Ok(SecretString::from(text.trim())),
            None => Err(PlatformError::NoEntry {
                namespace,
                name,
                key,
                account,
            }),
        }
    }
}

fn unreadable(what: &str) -> impl FnOnce(kube::Error) -> PlatformError {
    let what = what.to_owned();
    move |cause| PlatformError::Cluster { what, cause }
}

/// A quarter of an account's default rate: an operator with the same key needs the rest.
const RATE: Rate = Rate {
    requests_per_minute: 150,
    burst: 20,
};

impl Credentials {
    /// A client of this platform.
    ///
    /// # Errors
    /// If the base URL or the key is unusable. Nothing is sent.
    pub fn reader(&self) -> Result<PlatformReader, ConnectError> {
        self.reader_of(self.endpoint.clone())
    }

    /// A client whose requests name no organization.
    ///
    /// # Errors
    /// As [`Credentials::reader`].
    pub fn reader_without_organization(&self) -> Result<PlatformReader, ConnectError> {
        self.reader_of(Endpoint {
            organization_id: None,
            ..self.endpoint.clone()
        })
    }

    fn reader_of(&self, endpoint: Endpoint) -> Result<PlatformReader, ConnectError> {
        let options = HttpOptions::default();
        let reads = Arc::new(ReadsOnly::new(&endpoint, &options)?);
        let over = OverHttp {
            transport: Some(reads.clone()),
            ..OverHttp::default()
        };
        let request_timeout = options.request_timeout;
        let leadership = Leadership::default();
        let access = ConnectOptions {
            endpoint,
            request_timeout,
            rate: RATE,
            leadership,
            room: Arc::default(),
        };
        // The command reports the answer to each read, so a closed gate must not suppress any.
        let platform = over
            .connect(&access, &self.key, Arc::new(NoMeter))?
            .probing();
        Ok(PlatformReader { platform, reads })
    }
}

/// Attempts for a read that the platform rate-limits.
const ATTEMPTS: usize = 5;

/// Reads, and retries while the platform limits the rate. The client waits as long as the platform
/// says.
///
/// # Errors
/// The error of the last attempt.
pub async fn retrying<T>(read: impl AsyncFn() -> Result<T, Fault>) -> Result<T, Fault> {
    for _ in 1..ATTEMPTS {
        match read().await {
            Err(Fault::Throttled { .. }) => {}
            outcome => return outcome,
        }
    }
    read().await
}
