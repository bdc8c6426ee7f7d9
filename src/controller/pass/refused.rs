//! Reports what the API server refuses each time: in the status as far as that can be written, and
//! as an event.

use kube::Resource;
use kube::core::object::HasStatus;
use tracing::warn;

use crate::api::Condition;
use crate::cluster::{Cluster, Event, explained, is_unavailable, resource_version};
use crate::controller::environment::{Environment, Kind};
use crate::controller::object::{Status, uid};
use crate::decide::refuser::Refuser;
use crate::decide::{Health, Reason, Report, Wake};
use crate::text::{line, sentence};

/// The API server may quote the whole status.
const LONGEST_CAUSE: usize = 300;

/// True if the API server would refuse the same status again: it is too large or not admitted.
pub fn is_refused(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    // The API server passes on etcd's own refusal as a 500.
    let too_large = || {
        ["too large", "larger than max"]
            .iter()
            .any(|words| status.message.contains(words))
    };
    matches!(status.code, 400 | 403 | 413 | 422) || status.code == 500 && too_large()
}

/// True if the request itself was refused: the API server was available, the object exists, and
/// there was no conflict.
pub fn is_request_refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if !matches!(status.code, 404 | 409))
        && !is_unavailable(error)
}

/// The component that refuses, and its message.
pub fn refusal_of(error: &kube::Error) -> (Refuser, String) {
    let cause = explained(error);
    (
        Refuser::of(&cause),
        line(&cause, LONGEST_CAUSE).into_owned(),
    )
}

/// Writes the previous status with conditions that report the refusal. Returns when to try again.
///
/// # Errors
/// If the API server was unavailable, or refuses this as well.
pub async fn report_refused_status<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    report: &Report,
    error: &kube::Error,
) -> Result<Wake, kube::Error> {
    let (now, (refuser, cause)) = (env.now(), refusal_of(error));
    let message = format!(
        "{} refuses the status that dbplane writes, so what stands here beside the conditions is older: {cause} \
         Change what it complains of. dbplane tries again with each change of the resource, and every 15 minutes.",
        sentence(&refuser.to_string())
    );
    let with_refusal = report
        .clone()
        .beside(Health::Stalled(Reason::StatusRefused, message.clone()));
    let generation = object.meta().generation.unwrap_or_default();
    let before = object.status().map(Status::conditions).unwrap_or_default();
    let conditions = with_refusal.conditions(before, generation, now);
    write_conditions::<K, E>(env, object, conditions, Reason::StatusRefused, message).await
}

/// Reports that passes over an object repeatedly end with this error.
pub async fn report_refused_request<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    error: &kube::Error,
) {
    if !is_request_refused(error) || !env.state().is_hindered(uid(object)) {
        return;
    }
    let (now, (refuser, cause)) = (env.now(), refusal_of(error));
    let message = format!(
        "Nothing more is done for this resource, because {refuser} refuses what dbplane asks of the API server: {cause} \
         Change what it complains of. dbplane tries again with each change of the resource, and every minute."
    );
    let generation = object.meta().generation.unwrap_or_default();
    let before = object.status().map(Status::conditions).unwrap_or_default();
    let conditions = Report::hindered(before, Reason::RequestRefused, &message, generation, now);
    // The pass itself has ended with an error already, and is retried.
    let _ =
        write_conditions::<K, E>(env, object, conditions, Reason::RequestRefused, message).await;
}

/// Writes these conditions into the previous status, and publishes an event, even if the write is
/// refused. A refusal may have another text each time, and each status write causes a pass.
/// Therefore a changed text is reported at most once a minute. Returns when to report it.
async fn write_conditions<K: Kind, E: Environment>(
    env: &E,
    object: &K::Object,
    conditions: Vec<Condition>,
    reason: Reason,
    message: String,
) -> Result<Wake, kube::Error> {
    let (uid, now) = (uid(object), env.now());
    let mut status = object.status().cloned().unwrap_or_default();
    *status.conditions_mut() = conditions;
    status.observed_first(object.meta().generation);
    if object.status() == Some(&status) {
        return Ok(Wake::OnChange);
    }
    let again = env.state().tells_again(uid, now);
    let before = object.status().map(Status::conditions).unwrap_or_default();
    if let (Some(until), true) = (again, in_short(before) == in_short(status.conditions())) {
        return Ok(Wake::At(until));
    }
    warn!(
        reason = reason.as_str(),
        error = message,
        "the API server refuses something"
    );
    let written = env.cluster().apply_status(object, &status).await;
    if written
        .as_ref()
        .is_err_and(|error| !is_request_refused(error))
    {
        return written.map(|_| Wake::OnChange);
    }
    if let Ok(written) = &written {
        env.state().wrote_version(uid, resource_version(written));
    }
    if written.is_ok() || again.is_none() {
        env.state().told_of_refusal(uid, now);
        env.cluster()
            .publish(object, &Event::warning(reason.as_str(), message))
            .await;
    }
    written.map(|_| Wake::OnChange)
}

/// Conditions without their messages.
fn in_short(conditions: &[Condition]) -> Vec<[&str; 3]> {
    conditions
        .iter()
        .map(|it| [it.type_.as_str(), &it.status, &it.reason])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: u16, message: &str) -> kube::Error {
        let status = kube::core::Status {
            code,
            message: message.to_owned(),
            ..kube::core::Status::default()
        };
        kube::Error::Api(Box::new(status))
    }

    #[test]
    fn which_answers_would_come_again() {
        for (code, message, refused) in [
            (
                422,
                "status.host: Too long: may not be more than 253 bytes",
                true,
            ),
            (413, "Request entity too large: limit is 3145728", true),
            (400, "strict decoding error", true),
            (500, "etcdserver: request is too large", true),
            (
                500,
                "rpc error: trying to send message larger than max (2 vs. 1)",
                true,
            ),
            (500, "internal error", false),
            (403, "forbidden", true),
            (404, "not found", false),
            (409, "the object has been modified", false),
            (429, "too many requests", false),
        ] {
            assert_eq!(
                is_refused(&answered(code, message)),
                refused,
                "{code} {message}"
            );
        }
    }

    #[test]
    fn which_answers_refuse_the_request_itself() {
        let refusals: Vec<u16> = (400..600)
            .filter(|code| is_request_refused(&answered(*code, "no")))
            .collect();
        for (code, refused) in [
            (400, true),
            (403, true),
            (413, true),
            (422, true),
            (500, true),
        ] {
            assert_eq!(refusals.contains(&code), refused, "{code}");
        }
        for code in [404, 409, 429, 502, 503, 504] {
            assert!(!refusals.contains(&code), "{code}");
        }
        assert!(!is_request_refused(
            &kube::Error::LinesCodecMaxLineLengthExceeded
        ));
    }

    #[test]
    fn the_refusal_is_quoted_on_one_line_of_bounded_length() {
        let (refuser, cause) = refusal_of(&answered(
            403,
            &format!("exceeded quota: few, \u{1b}[2J\n{}", "x".repeat(10_000)),
        ));
        assert_eq!(refuser, Refuser::Quota("few".to_owned()));
        assert!(
            cause.len() <= LONGEST_CAUSE && !cause.chars().any(char::is_control),
            "{cause}"
        );
    }
}
