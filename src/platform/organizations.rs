//! The budget that accounts of one organization share. Two accounts share it only if the same
//! platform accepted both keys in a request whose path names the organization. An `organizationID`
//! in the spec proves nothing, because anyone can copy it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::connect::normalized;
use super::{Budget, Rate};
use crate::domain::OrganizationId;

/// The organizations that the platform has accepted accounts for. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Organizations(Arc<Mutex<HashMap<OrganizationKey, Weak<Organization>>>>);

/// A platform and the identifier of one of its organizations.
type OrganizationKey = (String, OrganizationId);

/// One organization. Its budget is the greater of the default and the highest limit of its
/// accounts. Each account also keeps to its own limit.
#[derive(Debug)]
pub struct Organization(Mutex<(Rate, Arc<Budget>)>);

impl Organization {
    fn new(rate: Rate) -> Self {
        Self(Mutex::new((rate, Arc::new(Budget::new(rate)))))
    }

    /// The budget that all its accounts share.
    pub fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    fn allow(&self, rate: Rate) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let greatest = known.0.or_greater(rate);
        if greatest != known.0 {
            *known = (greatest, Arc::new(Budget::new(greatest)));
        }
    }
}

/// An account that may belong to an organization, which is not proven yet.
#[derive(Debug)]
pub struct OrganizationClaim {
    organizations: Organizations,
    place: OrganizationKey,
    rate: Rate,
}

impl Organizations {
    pub fn candidate(
        &self,
        base_url: &str,
        organization: &OrganizationId,
        rate: Rate,
    ) -> OrganizationClaim {
        let platform = normalized(base_url);
        let place = (
            platform.trim_end_matches('/').to_owned(),
            organization.clone(),
        );
        OrganizationClaim {
            organizations: self.clone(),
            place,
            rate,
        }
    }
}

impl OrganizationClaim {
    /// Call this after the platform accepted the account's key for `organization`. Returns the
    /// shared organization if it is the one in the account's spec.
    pub fn accepted_for(&self, organization: &OrganizationId) -> Option<Arc<Organization>> {
        if *organization != self.place.1 {
            return None;
        }
        let mut known = self
            .organizations
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, organization| organization.strong_count() > 0);
        let found = known.get(&self.place).and_then(Weak::upgrade);
        let organization = found.unwrap_or_else(|| Arc::new(Organization::new(Rate::default())));
        organization.allow(self.rate);
        known.insert(self.place.clone(), Arc::downgrade(&organization));
        Some(organization)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::domain::Fault;
    use crate::platform::fake::Fake;
    use crate::platform::{NoMeter, Platform, PlatformClient, RateLimited};

    const URL: &str = "https://platform.example/api/v2";
    const FULL: Rate = Rate {
        requests_per_minute: 600,
        burst: 20,
    };

    /// An account in its own namespace.
    fn account(
        all: &Organizations,
        fake: &Arc<Fake>,
        url: &str,
        organization: &str,
        rate: Rate,
    ) -> RateLimited {
        let budget = Arc::new(Budget::with_jitter(rate, || 0.0));
        let client = RateLimited::new(
            Arc::clone(fake) as Arc<dyn Platform>,
            budget,
            Arc::new(NoMeter),
        );
        client
            .of_organization(all.candidate(url, &organization.into(), rate))
            .for_namespace(organization)
    }

    /// The time that `count` requests of an account take.
    async fn time_for(client: &RateLimited, count: usize) -> Duration {
        let start = Instant::now();
        for _ in 0..count {
            client.list_projects().await.unwrap();
        }
        start.elapsed()
    }

    /// The time that a previously quiet account needs for ten requests while another one sends as
    /// many as possible.
    async fn beside_a_busy_one(quiet: RateLimited, busy: RateLimited) -> Duration {
        tokio::time::sleep(Duration::from_secs(120)).await;
        let sending: Vec<_> = (0..500)
            .map(|_| {
                let busy = busy.clone();
                tokio::spawn(async move { busy.list_projects().await })
            })
            .collect();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let took = time_for(&quiet, 10).await;
        sending.into_iter().for_each(|request| request.abort());
        took
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_share_what_their_organization_may_send_once_both_were_accepted_for_it() {
        let second = Duration::from_secs(1);
        for (other, url, expected_shared) in [
            ("org", URL, true),
            ("org", "HTTPS://Platform.Example:443/api/v2/", true),
            ("another", URL, false),
            ("org", "https://tenant.example/api/v2", false),
        ] {
            let (all, fake) = (Organizations::default(), Fake::of([]));
            let quiet = account(&all, &fake, URL, "org", FULL);
            let busy = account(&all, &fake, url, other, FULL).for_namespace("evil");
            quiet.list_keys(&"org".into()).await.unwrap();
            busy.list_keys(&other.into()).await.unwrap();
            let took = beside_a_busy_one(quiet, busy).await;
            // Half of the reads' share, because namespaces take turns.
            assert_eq!(took > second, expected_shared, "{other} {url}: {took:?}");
            assert!(took < 4 * second, "{other} {url}: {took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_copied_organization_shares_nothing() {
        let (all, mine, theirs) = (Organizations::default(), Fake::of([]), Fake::of([]));
        let quiet = account(&all, &mine, URL, "org", FULL);
        let busy = account(&all, &theirs, URL, "org", FULL).for_namespace("evil");
        quiet.list_keys(&"org".into()).await.unwrap();
        theirs.fail_only(
            "list_keys",
            Fault::NotFound {
                message: "no such organization".to_owned(),
            },
        );
        assert!(busy.list_keys(&"org".into()).await.is_err());
        // Acceptance for another organization proves nothing about this one.
        theirs.fail(None);
        busy.list_keys(&"their-own".into()).await.unwrap();
        busy.list_projects().await.unwrap();
        let took = beside_a_busy_one(quiet, busy).await;
        assert_eq!(took, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_of_one_account_and_its_pauses_are_its_own() {
        let (all, mine, theirs) = (Organizations::default(), Fake::of([]), Fake::of([]));
        let more = Rate {
            requests_per_minute: 6000,
            burst: 100,
        };
        let one = Rate {
            requests_per_minute: 1,
            burst: 1,
        };
        let slow = account(&all, &theirs, URL, "org", one);
        let fast = account(&all, &mine, URL, "org", more);
        slow.list_keys(&"org".into()).await.unwrap();
        fast.list_keys(&"org".into()).await.unwrap();
        theirs.fail(Fault::Throttled {
            status: 429,
            retry_after: Some(Duration::from_secs(3600)),
        });
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert!(slow.list_projects().await.is_err());
        assert!(slow.budget().pause().is_some());
        let took = time_for(&fast, 500).await;
        assert!(took < Duration::from_secs(8), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_organization_goes_with_its_last_account() {
        let (all, fake) = (Organizations::default(), Fake::of([]));
        let client = account(&all, &fake, URL, "org", FULL);
        client.list_keys(&"org".into()).await.unwrap();
        drop(client);
        account(&all, &fake, URL, "another", FULL)
            .list_keys(&"another".into())
            .await
            .unwrap();
        let known: Vec<OrganizationId> = all
            .0
            .lock()
            .unwrap()
            .keys()
            .map(|(_, organization)| organization.clone())
            .collect();
        assert_eq!(known, ["another"]);
    }
}
