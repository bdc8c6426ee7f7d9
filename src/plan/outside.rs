//! The reads of a plan: Secrets and namespaces of the cluster, and the platforms of accounts.
//! Nothing is written.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, Client};
use secrecy::SecretString;

use crate::api::PlatformAccess;
use crate::platform::{
    Budget, ConnectError, Endpoint, HttpOptions, HttpPlatform, NoMeter, Platform, Rate,
    RateLimited, Reach, ReadsOnly,
};

/// Offers reads only.
#[async_trait]
pub trait Outside: Debug + Send + Sync {
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, kube::Error>;

    async fn is_namespace_terminating(&self, name: &str) -> Result<bool, kube::Error>;

    /// A client that only sends reads.
    fn connect(
        &self,
        access: &PlatformAccess,
        key: &SecretString,
    ) -> Result<Arc<dyn Platform>, ConnectError>;
}

/// The cluster of a kubeconfig, and platforms over the network.
pub struct Network {
    pub client: Client,
    pub reach: Reach,
    pub request_timeout: Duration,
}

impl Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("reach", &self.reach)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Outside for Network {
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, kube::Error> {
        Api::namespaced(self.client.clone(), namespace)
            .get_opt(name)
            .await
    }

    async fn is_namespace_terminating(&self, name: &str) -> Result<bool, kube::Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = namespaces.get_metadata_opt(name).await?;
        Ok(found.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()))
    }

    fn connect(
        &self,
        access: &PlatformAccess,
        key: &SecretString,
    ) -> Result<Arc<dyn Platform>, ConnectError> {
        let endpoint = Endpoint {
            base_url: access.base_url.clone(),
            organization_id: access.organization_id.clone(),
            reach: self.reach.clone(),
        };
        let options = HttpOptions {
            request_timeout: self.request_timeout,
            ..HttpOptions::default()
        };
        let reads = Arc::new(ReadsOnly::new(&endpoint, &options)?);
        let standard = Rate::default();
        // The operator uses the same account at the same time, so the plan keeps to its rate limit,
        // too.
        let budget = Arc::new(Budget::new(access.rate_limit.map_or(standard, |limit| {
            Rate {
                requests_per_minute: limit.requests_per_minute,
                burst: limit.burst.unwrap_or(standard.burst),
            }
        })));
        let platform =
            HttpPlatform::over(reads, endpoint, key, &options)?.sharing(Arc::clone(&budget));
        Ok(Arc::new(RateLimited::new(
            Arc::new(platform),
            budget,
            Arc::new(NoMeter),
        )))
    }
}
