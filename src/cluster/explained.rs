//! Turns errors of the API server's client into messages for users.

use std::error::Error;

/// The API server's answer, or the reason why there is none. It includes all causes, because kube's
/// own text has only the first. It leaves out the parts of an answer that do not help users.
pub fn explained(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        next = error.source();
        match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) if !status.message.is_empty() => {
                return text + &status.message;
            }
            Some(kube::Error::Api(status)) => {
                return format!("{text}{} {}", status.code, status.reason);
            }
            // Its text repeats its cause.
            Some(kube::Error::Service(_)) => continue,
            _ => {}
        }
        let own = error.to_string();
        match next.map(ToString::to_string) {
            None => text += &own,
            Some(cause) => match own.strip_suffix(&cause) {
                Some(rest) => text += rest,
                None => text.extend([&own, ": "]),
            },
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use kube::core::Status;
    use kube::runtime::watcher;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct FailedConnect(#[source] io::Error);

    fn unreachable() -> kube::Error {
        kube::Error::Service(Box::new(FailedConnect(io::Error::new(
            io::ErrorKind::ConnectionRefused,
            "Connection refused",
        ))))
    }

    fn answered(message: &str) -> kube::Error {
        let status = Status {
            code: 403,
            message: message.to_owned(),
            reason: "Forbidden".into(),
            ..Status::default()
        };
        kube::Error::Api(Box::new(status))
    }

    #[test]
    fn the_causes_are_told_and_nothing_is_told_twice() {
        let forbidden = "secrets is forbidden: User cannot list";
        for (error, expected) in [
            (
                Box::new(unreachable()) as Box<dyn Error>,
                "client error (Connect): Connection refused",
            ),
            (
                Box::new(watcher::Error::WatchStartFailed(unreachable())),
                "failed to start watching object: client error (Connect): Connection refused",
            ),
            (Box::new(answered(forbidden)), forbidden),
            (Box::new(answered("")), "403 Forbidden"),
            (
                Box::new(watcher::Error::InitialListFailed(answered(forbidden))),
                "failed to perform initial object list: secrets is forbidden: User cannot list",
            ),
        ] {
            assert_eq!(explained(error.as_ref()), expected);
        }
    }
}
