//! The organization that the keys belong to.

use super::super::{AccountView, Reason, Report};
use super::Case;

impl Case<'_> {
    pub(super) fn organization(&self) -> Option<&str> {
        match &self.observed.account {
            AccountView::Usable { organization } => organization.as_deref(),
            _ => None,
        }
    }

    /// The account is now one of another organization. That one does not list the keys, so all of them would seem revoked.
    pub(super) fn wrong_organization(&self) -> Option<Report> {
        let (theirs, found) = (self.identity.organization()?, self.organization()?);
        (theirs != found).then(|| {
            Report::stalled(
                Reason::BindingConflict,
                format!(
                    "The keys of this resource belong to organization {theirs}, but {} belongs to {found}. Set spec.accountRef to an account \
                     of {theirs}. For a key of another organization, create another ProjectKey.",
                    self.spec.account_ref.name
                ),
            )
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
