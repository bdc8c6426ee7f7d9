//! The connection Secret of all replicas.

use super::{SetCase, SetDecision, SetStep};
use crate::decide::connection::{Declared, SecretDue, SecretView, Target};
use crate::decide::{Action, Decision, Report, Sync};

impl SetCase<'_> {
    /// Writes the Secret if one is declared and differs.
    pub(super) fn connection(&self, report: &Report) -> Option<SetDecision> {
        let declared = self.declared()?;
        let target = self.target();
        // Without a host, clients have nothing to connect to yet.
        let begun = matches!(
            self.observed.secret,
            SecretView::Ours(_) | SecretView::Foreign(_)
        );
        if !begun
            && self
                .replicas
                .iter()
                .all(|replica| replica.address().is_none())
        {
            return None;
        }
        match declared.due(&target)? {
            SecretDue::Foreign(report) => Some(Decision::rest(report)),
            SecretDue::Write { secret, without } => Some(match self.backoff(Action::WriteSecret) {
                // The set is not usable while its Secret does not lead to the replicas.
                Some(backoff) => Decision::wait(Report::of(backoff.health), backoff.until),
                None => Decision::act(SetStep::WriteConnection { secret, without }, report.clone()),
            }),
        }
    }

    /// The declared parts of the Secret that cannot be written.
    pub(super) fn incomplete(&self) -> Option<Sync> {
        self.declared()?.incomplete(&self.target())
    }

    fn declared(&self) -> Option<Declared<'_>> {
        let (credentials, secret) = (&self.observed.credentials, &self.observed.secret);
        self.spec.connection.as_ref().map(|connection| Declared {
            connection,
            credentials,
            secret,
        })
    }

    fn target(&self) -> Target {
        Target::any_of(
            self.replicas
                .iter()
                .filter_map(|replica| replica.address())
                .collect(),
        )
    }
}
