//! Checks that the account is for the platform and the organization of the keys.

use super::outcome::{NamedKey, keys, unclear};
use super::{KeyCase, KeyDecision, KeyListing, KeyStep};
use crate::decide::{AccountView, Action, Decision, Health, Reason, Report};
use crate::domain::OrganizationId;

impl KeyCase<'_> {
    pub(super) fn organization(&self) -> Option<&OrganizationId> {
        match &self.observed.account {
            AccountView::Usable { organization } => organization.as_ref(),
            _ => None,
        }
    }

    /// Stops if the account is not known to be for the platform and the organization of the keys.
    /// Others do not list the keys, so all of them would seem revoked. A request with a key would
    /// also disclose it.
    pub(super) fn wrong_account(&self) -> Option<KeyDecision> {
        self.identity.names().next()?;
        let here = self.observed.platform.as_deref()?;
        match self.identity.platform() {
            Some(platform) if platform != here => {
                Some(Decision::rest(self.other_platform(platform, here)))
            }
            Some(_) => self.other_organization().map(Decision::rest),
            None => self
                .other_organization()
                .map(Decision::rest)
                .or_else(|| Some(self.find_platform(here))),
        }
    }

    /// Earlier versions did not record the platform. It is the one that lists a key under the
    /// recorded number and name.
    fn find_platform(&self, here: &str) -> KeyDecision {
        let KeyListing::Read { keys: listed, .. } = &self.observed.listing else {
            let report = self.unknown_platform();
            return match self.observed.listing {
                KeyListing::NotRead => self.act(Action::ListKeys, KeyStep::ListKeys, report),
                _ => Decision::rest(report),
            };
        };
        let mut recorded = keys(&self.identity.records);
        let shown = listed.shown();
        let is_listed = |known: NamedKey<'_>| {
            shown
                .iter()
                .any(|key| Some(key.id) == known.id && key.name == known.name)
        };
        let intended = self
            .identity
            .intent
            .as_ref()
            .map(|intent| intent.name.as_str());
        if recorded.any(is_listed) || shown.iter().any(|key| Some(key.name.as_str()) == intended) {
            let step = KeyStep::RecordIdentity {
                identity: Box::new(self.identity.clone().with_platform(here)),
            };
            let message = "The platform of the keys is being recorded.";
            return Decision::act(step, Report::progressing(Reason::Updating, message));
        }
        match listed.unreadable().hiding(None) {
            Some(entry) => Decision::rest(unclear(
                entry,
                "whether the platform lists the keys of this resource",
            )),
            None => Decision::rest(self.unknown_platform()),
        }
    }

    fn unknown_platform(&self) -> Report {
        let names: Vec<&str> = self.identity.names().collect();
        Report::stalled(
            Reason::BindingConflict,
            format!(
                "An earlier version recorded these keys without their platform, and {} does not list them: {}. dbplane sends nothing about \
                 them to a platform that may be another one. Set spec.accountRef to an account whose platform lists them. Where no platform \
                 lists keys, create another ProjectKey, and delete this one with spec.deletion: Orphan.",
                self.spec.account_ref.name,
                names.join(", ")
            ),
        )
    }

    fn other_platform(&self, theirs: &str, here: &str) -> Report {
        let (account, meta) = (&self.spec.account_ref.name, &self.observed.meta);
        meta.unlooked(Health::Stalled(
            Reason::BindingConflict,
            format!(
                "The keys of this resource are on the platform at {theirs}, but {account} is for {here}. Set spec.accountRef to an account \
                 for {theirs}. For a key of the other platform, create another ProjectKey. {}",
                meta.other_account("projectkey")
            ),
        ))
    }

    fn other_organization(&self) -> Option<Report> {
        let (theirs, found) = (self.identity.organization()?, self.organization()?);
        let meta = &self.observed.meta;
        (theirs != found).then(|| {
            meta.unlooked(Health::Stalled(
                Reason::BindingConflict,
                format!(
                    "The keys of this resource belong to organization {theirs}, but {} belongs to {found}. Set spec.accountRef to an account \
                     of {theirs}. For a key of another organization, create another ProjectKey. {}",
                    self.spec.account_ref.name,
                    meta.other_account("projectkey")
                ),
            ))
        })
    }

    pub(super) fn no_organization(&self) -> Report {
        Report::stalled(
            Reason::OrganizationMissing,
            format!(
                "{} has no organizationID, which is needed to create and revoke keys. Set it there.",
                self.spec.account_ref.name
            ),
        )
    }
}
