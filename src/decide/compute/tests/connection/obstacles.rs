//! A connection Secret that cannot be written, or not completely.

use super::*;

#[test]
fn it_waits_for_a_host() {
    let given = whole(CredentialsView::NoSecret);
    given
        .seeing([with(compute("ep-1"), |compute| compute.host = None)])
        .rest()
        .in_sync();
}

/// The platform cannot be read, and the compute was seen before.
fn unseen(given: GivenCompute) -> GivenCompute {
    given.observing(|observed| {
        observed.snapshot = SnapshotState::Failed(lost());
        let pooled_host = Some("ep-1-pooler.postgres.example".into());
        observed.last_seen = Some(Address {
            id: "ep-1".into(),
            host: "ep-1.postgres.example".into(),
            pooled_host,
        });
    })
}

#[test]
fn it_follows_the_credentials_also_while_the_platform_cannot_be_asked() {
    let seen = whole(found()).seeing([pooled(compute("ep-1"))]);
    let (secret, _) = written(&seen);
    let unchanged = unseen(stands(whole(found()), secret.clone()));
    unchanged.rest().unknown(Reason::PlatformUnreachable);
    let changed = unchanged.observing(|observed| {
        observed.credentials = CredentialsView::Found {
            user: "app".into(),
            password: "next".into(),
        };
    });
    let (next, _) = written(&changed);
    assert_eq!(
        data(&next)["uri"],
        "postgresql://app:next@ep-1.postgres.example:5432/shop?sslmode=require"
    );
    assert_eq!(data(&next)["pooled-host"], "ep-1-pooler.postgres.example");
    let missing = changed
        .clone()
        .observing(|observed| observed.credentials = CredentialsView::NoSecret);
    assert!(written(&missing).1.contains("password"));
    let obstacle = AccountView::Missing {
        name: "Account prod".into(),
    };
    let obstructed = changed
        .clone()
        .observing(|observed| observed.account = obstacle);
    assert_eq!(written(&obstructed).0, next);

    // The address is of another compute, or nothing is to be written, or the Secret is foreign.
    let other = changed
        .clone()
        .binding(|binding| binding.id = "ep-2".into());
    let observed = changed.clone().declaring(json!({"management": "Observe"}));
    let foreign = changed
        .clone()
        .observing(|observed| observed.secret = SecretView::Foreign("not dbplane's".into()));
    for given in [other, observed, foreign] {
        given.rest().unknown(Reason::PlatformUnreachable);
    }
    let refused = changed.remembering(|memory| {
        memory.failed(
            Action::WriteSecret,
            crate::decide::memory::ActionProblem::Secret("quota".into()),
            3,
            NOW,
        );
    });
    let reported = refused.rest();
    reported.unknown(Reason::PlatformUnreachable);
    reported.until(at(1));
}

#[test]
fn one_of_another_owner_is_not_written_and_delays_nothing_else() {
    let given =
        alone().observing(|observed| observed.secret = SecretView::Foreign("not dbplane's".into()));
    given.rest().stalled(
        Reason::SecretNotOurs,
        &["orders-db", "not dbplane's", "spec.connection.secretName"],
    );
    let drifted = given.clone().declaring(json!({"size": {"fixed": 4}}));
    assert!(matches!(drifted.step(), ComputeStep::Change { .. }));
    assert!(matches!(
        given.declaring(json!({"restartToken": "now"})).step(),
        ComputeStep::Restart { .. }
    ));
}

#[test]
fn an_incomplete_one_hides_nothing_that_waits() {
    let given = whole(CredentialsView::NoSecret);
    let (secret, _) = written(&given);
    let given = stands(given, secret)
        .declaring(json!({"size": {"fixed": 4}, "disruption": {"policy": "WhenIdle"}}));
    given
        .rest()
        .out_of_sync(Reason::WaitingForDisruption, &["size is 1"]);
    assert!(given.decide().report.unwrap().waiting.is_some());
    // The start deadline still applies while the compute starts.
    let starting = with(compute("ep-1"), |compute| {
        compute.current_state = ComputeState::Init
    });
    let reported = given
        .declaring(json!({"size": null}))
        .binding(|binding| binding.at = at(-10))
        .seeing([starting])
        .rest();
    reported.progressing(Reason::Starting);
    reported.until(at(590));
}

#[test]
fn one_that_cannot_be_written_is_reported_and_tried_again() {
    let given = alone().remembering(|memory| {
        let problem = crate::decide::memory::ActionProblem::Secret(
            "Secret orders-db could not be written: quota".into(),
        );
        memory.failed(Action::WriteSecret, problem, 3, NOW);
    });
    let reported = given.rest();
    reported.stalled(Reason::SecretNotWritten, &["orders-db", "quota"]);
    reported.until(at(1));
    assert!(matches!(
        given.after(1).step(),
        ComputeStep::WriteConnection { .. }
    ));
}
