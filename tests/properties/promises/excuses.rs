//! The loose ends of a run: late and repeated creates, and decisions that users have to make.

use dbplane::api::{Compute, Condition, Known};
use dbplane::controller::object::Managed;
use dbplane_simulator::world::Profile;
use kube::ResourceExt;

use super::conditions;
use crate::history::{Event, key};
use crate::in_memory::Resource;
use crate::ledger;
use crate::run::Run;

impl Run<'_> {
    pub(super) fn late_keys(&self) -> usize {
        self.late(&key())
    }

    /// Number of creates for the resource that arrived after the request timeout, or twice. A
    /// late key is found when its resource is deleted.
    pub(super) fn late(&self, resource: &Resource) -> usize {
        let simulation = self.simulation.lock();
        let all = simulation
            .ledger
            .late
            .iter()
            .chain(&simulation.ledger.repeated);
        all.filter(|maker| maker.resource == *resource).count()
    }

    /// True if a create without a mark was repeated, and a condition asks the user about a compute
    /// that it has made: as the branch's primary, or as one of several. Or if the Compute waits for
    /// one of which this is true.
    pub(super) fn asks_about_a_repeated_create(&self, object: &Known<Compute>) -> bool {
        let others = self.simulation.lock().cluster.all::<Known<Compute>>();
        let waits_for = |other: &Known<Compute>| {
            let text = format!(
                "Waiting for Compute shop/{}, whose create",
                other.name_any()
            );
            conditions(object)
                .iter()
                .any(|condition| condition.message.starts_with(&text))
        };
        self.asks_about_its_repeated_create(object)
            || others
                .iter()
                .any(|other| waits_for(other) && self.asks_about_its_repeated_create(other))
    }

    fn asks_about_its_repeated_create(&self, object: &Known<Compute>) -> bool {
        let (simulation, name) = (self.simulation.lock(), object.name_any());
        let mut repeated = simulation
            .ledger
            .repeated
            .iter()
            .filter(|maker| !maker.is_marked);
        let own = repeated.find(|it| it.resource.1 == name);
        let mut made = own
            .map(|own| simulation.made_for(&own.resource))
            .unwrap_or_default()
            .into_iter();
        let asks = |it: &Condition, id: &str| {
            ["PrimaryExists", "AmbiguousCreate"].contains(&it.reason.as_str())
                && it.message.contains(id)
        };
        made.any(|id| {
            conditions(object)
                .iter()
                .any(|condition| asks(condition, &id))
        })
    }

    /// The same, only for objects with this name and a matching UID. A repeated create is found by
    /// its mark, if it has one and the platform shows names.
    pub(super) fn late_for(&self, resource: &Resource, wanted: impl Fn(&str) -> bool) -> usize {
        let simulation = self.simulation.lock();
        let shows_names = self.history.profile != Profile::Minimal;
        let repeated = simulation
            .ledger
            .repeated
            .iter()
            .filter(|maker| !(shows_names && maker.is_marked));
        let all = simulation.ledger.late.iter().chain(repeated);
        all.filter(|maker| maker.resource == *resource && wanted(&maker.uid))
            .count()
    }

    /// Number of repeated creates of this very resource that had no mark, if the account could not be
    /// read for a while: what such a create has made besides is looked for in the first minutes only.
    pub(super) fn repeated_unread(&self, resource: &Resource, uid: Option<&str>) -> usize {
        let closes = |event: &Event| {
            matches!(
                event,
                Event::CredentialExchanged
                    | Event::CredentialRevoked
                    | Event::CredentialSecretDeleted
                    | Event::AccountDeleted
                    | Event::Admits(_)
            )
        };
        let is_own =
            |maker: &&ledger::Maker| maker.resource == *resource && uid == Some(maker.uid.as_str());
        let simulation = self.simulation.lock();
        let repeated = simulation
            .ledger
            .repeated
            .iter()
            .filter(|maker| !maker.is_marked)
            .filter(is_own)
            .count();
        if self
            .history
            .chapters
            .iter()
            .any(|chapter| closes(&chapter.event))
        {
            repeated
        } else {
            0
        }
    }

    /// An account that is being deleted accepts no new resources. A resource with nothing on the
    /// platform waits until the account is gone, which happens once the other resources are gone.
    pub(super) fn waits_for_account<K: Managed>(&self, object: &K, reason: &str) -> bool {
        let simulation = self.simulation.lock();
        let account = simulation
            .cluster
            .objects
            .get(&self.history.account.resource());
        reason == "AccountNotReady"
            && account.is_some_and(|account| account.is_deleting())
            && !object.meta_observed().has_finalizer
    }

    /// True if the evidence is ambiguous, so that a user has to decide.
    pub(super) fn person_asked(&self, object: &Known<Compute>, reason: &str) -> bool {
        let branch: u8 = object
            .spec
            .branch_id
            .trim_start_matches('b')
            .parse()
            .unwrap();
        let primary = object.spec.type_ == dbplane::api::ComputeType::ReadWrite;
        let foreign = |primary| self.foreign.contains(&(branch, primary));
        match reason {
            "AmbiguousCreate" if self.has_no_evidence_of_creates() => true,
            "AmbiguousCreate" | "PrimaryExists" => foreign(primary),
            // A copy declares the same primary until a user deletes it. The tenant may also have
            // been bound first.
            "ClaimedByAnother" => primary && (self.copied || self.is_preceded(object)),
            // It waits for another Compute of the branch that needs a decision.
            "Creating" | "ConfirmingCreate" => {
                conditions(object)
                    .iter()
                    .any(|condition| condition.message.contains("comes first"))
                    && (foreign(true) || foreign(false))
            }
            _ => false,
        }
    }
}
