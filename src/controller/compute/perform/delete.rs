//! Deletes computes.

use super::ComputeWork;
use crate::cluster::Event;
use crate::controller::environment::{Environment, StepError};
use crate::controller::labels;
use crate::controller::object::uid;
use crate::decide::Action;
use crate::decide::compute::Reserved;
use crate::decide::identity::Evidence;
use crate::domain::{ComputeId, Fault};
use crate::platform::Platform;

impl<E: Environment> ComputeWork<'_, E> {
    /// The next list shows whether the compute is gone.
    pub(super) async fn delete(&self, id: &ComputeId, evidence: String) -> Result<(), StepError> {
        let connection = self.connection()?;
        let answer = self
            .platform(&connection)
            .delete_compute(&self.object.spec.project_id, id)
            .await;
        self.wrote();
        if answer.as_ref().map_or_else(Fault::is_missing, |()| true) {
            self.env
                .state()
                .compute_deleted(uid(self.object), id, self.env.now());
        }
        let answer = answer.or_else(|fault| {
            if matches!(fault, Fault::NotFound { .. }) {
                Ok(())
            } else {
                Err(fault)
            }
        });
        self.settle(Action::Delete, answer)?;
        self.done(
            labels::action(Action::Delete),
            id,
            &Event::once("Deleted", evidence),
            Vec::new(),
        )
        .await;
        Ok(())
    }

    /// Reserves the compute first, so that no resource is bound to it meanwhile.
    pub(super) async fn delete_twin(&self, id: &ComputeId) -> Result<(), StepError> {
        let platform = self.env.settings().platform(&*self.connection()?);
        if !self.reserve(
            Some(&platform),
            Reserved::Compute(id.clone()),
            Evidence::ByBaseline,
        ) {
            return Ok(());
        }
        let evidence = format!(
            "Deleted compute {id}, which a create of this resource had made besides, and nobody used."
        );
        let deleted = self.delete(id, evidence).await;
        self.env.state().gave_up(uid(self.object));
        deleted
    }
}
