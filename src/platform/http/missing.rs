//! Decides what "not found" means: an object is missing, or the platform lacks the call.

use reqwest::Method;

use super::HttpPlatform;
use super::exchange::Call;
use super::wire::ChangeBody;
use crate::domain::{
    ComputeChange, ComputeId, Fault, Form, KeyId, OrganizationId, ProjectId, Shown,
};
use crate::platform::Platform;

impl HttpPlatform {
    /// True if the compute exists, according to answers in the platform's form.
    pub(super) async fn shows_compute(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
    ) -> Result<bool, Fault> {
        let segments: [&str; 4] = ["projects", project, "endpoints", compute];
        match self.exchange.send(Call::get(&segments)).await {
            Ok(body) => {
                let answer = self
                    .answer(&body?, project)
                    .map_err(|error| self.undecodable(error))?;
                if answer.compute.is_none() {
                    return Err(self.exchange.unreadable("endpoint", "missing"));
                }
                Ok(true)
            }
            // Either the compute or this call is missing: not every platform has the call.
            Err(
                Fault::NotFound { .. }
                | Fault::Unsupported { .. }
                | Fault::Gateway {
                    status: 404 | 405, ..
                },
            ) => {
                self.further_request().await;
                self.accepts_change(project, compute).await
            }
            Err(fault) => Err(fault),
        }
    }

    /// Sends a change that names no attribute, so it changes nothing. Every platform has this call.
    async fn accepts_change(
        &self,
        project: &ProjectId,
        compute: &ComputeId,
    ) -> Result<bool, Fault> {
        let segments: [&str; 4] = ["projects", project, "endpoints", compute];
        let nothing = ComputeChange::default();
        match self
            .change(Method::PATCH, &segments, &ChangeBody::from(&nothing))
            .await
        {
            Ok(Ok(body)) => self.of_the_platform(&body).map(|()| true),
            // A lost body does not change the result.
            Ok(Err(_)) => Ok(true),
            Err(Fault::NotFound { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Interprets a 404 on a revocation: either the key or the call is missing. If keys cannot be
    /// listed, this stays unknown, and the key must not count as revoked.
    pub(super) async fn explain_missing(
        &self,
        organization: &OrganizationId,
        id: KeyId,
        missing: Fault,
    ) -> Fault {
        match (self.is_listed(organization, id).await, missing) {
            (Ok(true), Fault::NotFound { message }) => Fault::Unsupported {
                status: 404,
                message,
            },
            (Ok(true), missing) => missing,
            (Ok(false), missing) => Fault::NotFound {
                message: missing.to_string(),
            },
            (Err(fault), _) => fault,
        }
    }

    pub(super) async fn is_listed(
        &self,
        organization: &OrganizationId,
        id: KeyId,
    ) -> Result<bool, Fault> {
        self.further_request().await;
        match self
            .list_keys(organization)
            .await?
            .find(Some(&id.to_string()), |key| key.id == id)
        {
            Shown::Entry(_) => Ok(true),
            Shown::Absent => Ok(false),
            Shown::Unclear(entry) => Err(self.exchange.unreadable(
                "the list of keys",
                &format!("an entry that may be key {id}: {entry}"),
            )),
        }
    }
}

/// True for a 404 or 405 in plain text, as some platforms and gateways send. It counts as the
/// platform's if it repeats after the platform answered another request in its own form.
pub(super) fn is_plain_missing<T>(answered: &Result<T, Fault>) -> bool {
    matches!(answered, Err(Fault::Gateway { status, form: Form::Text, .. }) if is_missing(*status))
}

pub(super) fn is_missing(status: u16) -> bool {
    matches!(status, 404 | 405)
}

/// For lists that exist everywhere, even if empty: a 404 means that the call is missing.
pub(super) fn missing_call(fault: Fault) -> Fault {
    match fault {
        Fault::NotFound { message } => Fault::Unsupported {
            status: 404,
            message,
        },
        fault => fault,
    }
}
