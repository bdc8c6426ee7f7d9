//! Handles a status that the API server refuses for its content: the previous status is written with a condition that says so.

use jiff::Timestamp;
use tracing::warn;

use super::super::environment::{Environment, Kind};
use super::super::object::{Status, uid};
use crate::cluster::{Cluster, Event, explained, resource_version};
use crate::decide::{Health, Reason, Report};
use crate::text::line;
use kube::Resource;
use kube::core::object::HasStatus;

/// The API server may quote the whole status.
const LONGEST_CAUSE: usize = 300;

/// Whether the API server would refuse the same status again, because it is too large or not admitted.
pub fn is_refused(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    // The API server passes etcd's own refusal on as a 500.
    let too_large = || ["too large", "larger than max"].iter().any(|words| status.message.contains(words));
    matches!(status.code, 400 | 413 | 422) || status.code == 500 && too_large()
}

/// Writes the previous status, with its record, and conditions that report the refusal.
///
/// # Errors
/// Where the API server could not be asked, or refuses this as well.
pub async fn tell<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    (report, error): (&Report, &kube::Error),
    now: Timestamp,
) -> Result<(), kube::Error> {
    let cause = explained(error);
    let message = format!(
        "The API server refuses the status that dbplane writes, so what stands here beside the conditions is older: {} \
         Change what it complains of. dbplane tries again with each change of the resource, and every 15 minutes.",
        line(&cause, LONGEST_CAUSE)
    );
    let told = report.clone().beside(Health::Stalled(Reason::StatusRefused, message.clone()));
    let mut status = object.status().cloned().unwrap_or_default();
    let generation = object.meta().generation.unwrap_or_default();
    *status.conditions_mut() = told.conditions(status.conditions(), generation, now);
    if object.status() == Some(&status) {
        return Ok(());
    }
    warn!(error = cause, "the status was refused");
    let written = env.cluster().apply_status(object, &status).await?;
    env.state().wrote_version(&uid(object), resource_version(&written));
    env.cluster().publish(object, &Event::warning(Reason::StatusRefused.as_str(), message)).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: u16, message: &str) -> kube::Error {
        let status = kube::core::Status { code, message: message.to_owned(), ..kube::core::Status::default() };
        kube::Error::Api(Box::new(status))
    }

    #[test]
    fn which_answers_would_come_again() {
        for (code, message, refused) in [
            (422, "status.host: Too long: may not be more than 253 bytes", true),
            (413, "Request entity too large: limit is 3145728", true),
            (400, "strict decoding error", true),
            (500, "etcdserver: request is too large", true),
            (500, "rpc error: trying to send message larger than max (2 vs. 1)", true),
            (500, "internal error", false),
            (403, "forbidden", false),
            (404, "not found", false),
            (409, "the object has been modified", false),
            (429, "too many requests", false),
        ] {
            assert_eq!(is_refused(&answered(code, message)), refused, "{code} {message}");
        }
    }
}
