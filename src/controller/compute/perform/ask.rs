//! Questions to the platform that change nothing.

use tracing::warn;

use super::ComputeWork;
use crate::controller::compute::operations::shown;
use crate::controller::environment::{Environment, StepError};
use crate::controller::object::uid;
use crate::controller::pass::calls::failed;
use crate::decide::Action;
use crate::decide::memory::ExistenceAnswer;
use crate::domain::{ComputeId, Fault};
use crate::platform::Platform;

impl<E: Environment> ComputeWork<'_, E> {
    pub(super) async fn ask(&self, id: &ComputeId) -> Result<(), StepError> {
        let connection = self.connection()?;
        let answer = self
            .platform(&connection)
            .has_compute(&self.object.spec.project_id, id)
            .await;
        let exists = answer.map_err(failed(Action::Ask))?;
        self.env.state().compute_asked(
            uid(self.object),
            ExistenceAnswer {
                at: self.env.now(),
                exists,
            },
        );
        Ok(())
    }

    pub(super) async fn ask_operations(&self, id: &ComputeId) -> Result<(), StepError> {
        let connection = self.connection()?;
        let listed = match self
            .platform(&connection)
            .list_operations(&self.object.spec.project_id, id)
            .await
        {
            Ok(listed) => {
                let (operations, unreadable) = listed.into_parts();
                if !unreadable.is_empty() {
                    warn!(list = "operations", entries = %unreadable, "entries of a list cannot be read");
                }
                Some(shown(operations))
            }
            Err(Fault::Unsupported { .. }) => None,
            Err(fault) => return Err(failed(Action::AskOperations)(fault)),
        };
        self.env
            .state()
            .operations_asked(uid(self.object), listed.as_deref(), self.env.now());
        Ok(())
    }
}
