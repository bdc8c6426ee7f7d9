//! Asks the platform which keys there are, and whether it accepts one.

use secrecy::SecretString;

use super::{KeyWork, organization};
use crate::cluster::{Owner, SecretState, secrets};
use crate::controller::access;
use crate::controller::environment::{Environment, StepError};
use crate::controller::key::listing::{interest, is_not_offered};
use crate::controller::key::secret;
use crate::controller::key::turn::turn_to_ask;
use crate::controller::pass::calls::failed;
use crate::controller::state::SharedConnection;
use crate::decide::Action;
use crate::decide::key::{Probe, SecretContents};
use crate::domain::Fault;
use crate::platform::Platform;

impl<E: Environment> KeyWork<'_, E> {
    pub(super) async fn list(&self) -> Result<(), StepError> {
        let connection = access::connection(self.env, self.object, Action::ListKeys)?;
        organization(&connection, Action::ListKeys)?;
        let interest = interest(
            self.object,
            &self.object.identity()?,
            &self.env.settings().cluster,
        );
        let latest = self.env.read_keys(self.object, &connection, interest).await;
        match latest.fault {
            Some(fault) if !is_not_offered(&fault) => return Err(failed(Action::ListKeys)(fault)),
            None if latest.snapshot.is_none() => {
                let message = "the list was not read".to_owned();
                return Err(failed(Action::ListKeys)(Fault::Transport { message }));
            }
            _ => {}
        }
        self.env
            .state()
            .action_succeeded(self.object.uid(), Action::ListKeys);
        Ok(())
    }

    pub(super) async fn probe(&self) -> Result<(), StepError> {
        let now = self.env.now();
        if let Some(postponed) = turn_to_ask(self.env, self.object, &self.object.identity()?, now) {
            self.env.state().key_probed(self.object.uid(), postponed);
            return Ok(());
        }
        let project = &self.object.spec.project_id;
        let probe = match self.current_secret().await? {
            None => Probe::NotAsked(Some(now)),
            Some((connection, value)) => {
                match self.platform(&connection).probe_key(&value, project).await {
                    Err(Fault::Unauthorized { .. }) => self
                        .env
                        .state()
                        .resource(self.object.uid())
                        .key
                        .probe
                        .unwrap_or(Probe::NotAsked(None))
                        .refused(now),
                    Ok(()) => Probe::Accepted(now),
                    // Any other fault says nothing about the key.
                    Err(_) => Probe::NotAsked(Some(now)),
                }
            }
        };
        self.env.state().key_probed(self.object.uid(), probe);
        Ok(())
    }

    /// The secret of the key in use, from memory or from its Secret.
    async fn current_secret(
        &self,
    ) -> Result<Option<(SharedConnection<E::Client>, SecretString)>, StepError> {
        let Ok(connection) = self.connection(Action::TryKey) else {
            return Ok(None);
        };
        let records = self.object.identity()?.records;
        let Some(current) = &records.current else {
            return Ok(None);
        };
        let unsaved = self.env.state().unsaved_key(self.object.uid());
        if let Some(unsaved) = unsaved.filter(|unsaved| unsaved.key.id == current.id) {
            return Ok(Some((connection, unsaved.secret)));
        }
        let state = secrets::state(
            self.env.cluster(),
            &Owner::of(self.object),
            &self.object.spec.secret.name,
        )
        .await?;
        let SecretState::Ours(found) = state else {
            return Ok(None);
        };
        let spec = &self.object.spec;
        Ok(
            match secret::secret_contents(spec, &found, &records, &connection.access.base_url) {
                (SecretContents::Key { key, .. }, Some(value)) if key.id == current.id => {
                    Some((connection, value))
                }
                _ => None,
            },
        )
    }
}
