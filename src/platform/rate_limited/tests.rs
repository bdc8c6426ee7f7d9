use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::domain::{Role, Settings};
use crate::platform::fake::{Fake, Notes, broken, unauthorized};
use crate::platform::{NoMeter, Rate};

static P: LazyLock<ProjectId> = LazyLock::new(|| "p".into());
static O: LazyLock<OrganizationId> = LazyLock::new(|| "o".into());

fn new_compute() -> NewCompute {
    NewCompute {
        branch_id: "br-a".into(),
        role: Role::Replica,
        name: None,
        settings: Settings::default(),
    }
}

fn in_doubt() -> Fault {
    let Fault::Unauthorized { message } = unauthorized() else {
        unreachable!()
    };
    Fault::KeyInDoubt { message }
}

#[tokio::test(start_paused = true)]
async fn after_a_401_nothing_is_asked() {
    let fake = Fake::of([]);
    let rate_limited = fake.rate_limited();
    let mut gate = rate_limited.watch_gate();
    fake.fail(unauthorized());
    assert!(rate_limited.list_projects().await.is_err());
    assert!(gate.has_changed().unwrap() && gate.borrow_and_update().is_some());
    fake.fail(None);
    let asked = fake.count();
    assert_eq!(rate_limited.list_computes(&P).await, Err(in_doubt()));
    assert_eq!(
        rate_limited.create_compute(&P, &new_compute()).await,
        Err(in_doubt())
    );
    assert!(rate_limited.create_key(&O, "n", &P).await.is_err());
    assert_eq!(
        rate_limited
            .probe_key(&SecretString::from("other"), &P)
            .await,
        Err(in_doubt())
    );
    assert!(rate_limited.list_keys(&O).await.is_err());
    assert_eq!(
        rate_limited
            .admit(Priority::Poll, &Party::default())
            .await
            .list_computes(&P)
            .await,
        Err(in_doubt())
    );
    assert_eq!(fake.count(), asked);
    assert_eq!(rate_limited.suspended(), Some(in_doubt()));
    assert!(!gate.has_changed().unwrap());
    rate_limited.refused();
    assert!(gate.has_changed().unwrap());
    assert_eq!(rate_limited.list_computes(&P).await, Err(unauthorized()));
    assert_eq!(fake.count(), asked);
}

#[tokio::test(start_paused = true)]
async fn a_probe_passes_the_closed_gate_and_opens_it() {
    let fake = Fake::of([]);
    let rate_limited = fake.rate_limited();
    fake.fail(unauthorized());
    assert!(rate_limited.list_projects().await.is_err());
    for (fault, opens) in [
        (Some(unauthorized()), false),
        (Some(broken()), false),
        (
            Some(Fault::Transport {
                message: String::new(),
            }),
            false,
        ),
        (
            Some(Fault::Unsupported {
                status: 405,
                message: String::new(),
            }),
            false,
        ),
        (
            Some(Fault::Forbidden {
                status: 404,
                message: String::new(),
            }),
            true,
        ),
        (None, true),
    ] {
        let mut gate = rate_limited.watch_gate();
        fake.fail(fault.clone());
        let _ = rate_limited.probing().list_projects().await;
        assert_eq!(rate_limited.suspended().is_none(), opens, "{fault:?}");
        assert_eq!(gate.has_changed().unwrap(), opens, "{fault:?}");
        gate.mark_unchanged();
        fake.fail(unauthorized());
        let _ = rate_limited.list_projects().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_probe_of_another_key_neither_closes_the_gate_nor_is_answered_by_it() {
    let fake = Fake::of([]);
    let rate_limited = fake.rate_limited();
    let other = SecretString::from("other");
    fake.fail_only("probe_key", unauthorized());
    assert_eq!(
        rate_limited.probe_key(&other, &P).await,
        Err(unauthorized())
    );
    assert_eq!(rate_limited.suspended(), None);
    fake.fail_only("list_projects", unauthorized());
    assert!(rate_limited.list_projects().await.is_err());
    rate_limited.refused();
    fake.fail(None);
    assert_eq!(
        rate_limited.probe_key(&other, &P).await,
        Ok(()),
        "the gate's 401 would pass for a proof of revocation"
    );
    assert!(rate_limited.suspended().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_refuses_every_key_proves_no_revocation() {
    let other = SecretString::from("other");
    let fake = Fake::of([]);
    let rate_limited = fake.rate_limited();
    fake.fail(unauthorized());
    assert!(matches!(
        rate_limited.probe_key(&other, &P).await,
        Err(Fault::Unknown { .. })
    ));
    assert_eq!(fake.calls(), ["probe_key", "list_computes"]);
    assert!(
        rate_limited.suspended().is_some(),
        "it was the account's own call that was refused"
    );
    rate_limited.refused();
    assert!(
        matches!(
            rate_limited.probe_key(&other, &P).await,
            Err(Fault::Unknown { .. })
        ),
        "through the closed gate too"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waited_while_the_gate_closed_is_not_made() {
    let fake = Fake::of([]);
    let rate_limited = fake.within(Rate {
        requests_per_minute: 60,
        burst: 1,
    });
    rate_limited.list_projects().await.unwrap();
    let new = new_compute();
    let (change, read, key, ()) = tokio::join!(
        rate_limited.create_compute(&P, &new),
        rate_limited.list_computes(&P),
        rate_limited.create_key(&O, "n", &P),
        async {
            tokio::task::yield_now().await;
            let _ = rate_limited
                .shared
                .gate
                .record(Err::<(), _>(unauthorized()), false);
        }
    );
    assert_eq!((change, read), (Err(in_doubt()), Err(in_doubt())));
    assert_eq!(key.err(), Some(in_doubt()));
    assert_eq!(fake.calls(), ["list_projects"]);
}

#[tokio::test(start_paused = true)]
async fn everyone_obeys_a_429() {
    let fake = Fake::of([]);
    let rate_limited = fake.rate_limited();
    fake.fail(Fault::Throttled {
        status: 429,
        retry_after: Some(Duration::from_secs(4)),
    });
    assert!(rate_limited.list_projects().await.is_err());
    fake.fail(None);
    let start = Instant::now();
    let (read, change, probe) = (
        rate_limited.at(Priority::Poll),
        Arc::clone(&rate_limited),
        SecretString::from("other"),
    );
    let (key, new) = (Arc::clone(&rate_limited), new_compute());
    let (a, b, c, d) = tokio::join!(
        read.list_computes(&P),
        change.create_compute(&P, &new),
        rate_limited.probe_key(&probe, &P),
        key.create_key(&O, "n", &P),
    );
    assert!(a.is_ok() && b.is_ok() && c.is_ok() && d.is_ok());
    let gaps = fake.gaps();
    assert!(gaps[0] >= 4.0, "{gaps:?}");
    assert!(start.elapsed() < Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn a_change_fails_during_a_long_pause_and_a_read_waits() {
    let fake = Fake::of([]);
    let rate_limited = fake.rate_limited();
    fake.fail(Fault::Throttled {
        status: 429,
        retry_after: Some(Duration::from_secs(3600)),
    });
    assert!(rate_limited.list_projects().await.is_err());
    fake.fail(None);
    let hour = Fault::Throttled {
        status: 429,
        retry_after: Some(Duration::from_secs(3600)),
    };
    assert_eq!(
        rate_limited.create_compute(&P, &new_compute()).await,
        Err(hour.clone())
    );
    assert_eq!(
        rate_limited.create_key(&O, "n", &P).await.err(),
        Some(hour.clone())
    );
    assert_eq!(rate_limited.admit_change().await.err(), Some(hour));
    assert_eq!(fake.calls(), ["list_projects"], "nothing was sent");
    assert!(rate_limited.list_computes(&P).await.is_ok());
    assert!(fake.gaps()[0] >= 3600.0);
}

#[tokio::test(start_paused = true)]
async fn a_503_to_a_change_pauses_the_account_as_well() {
    let fake = Fake::of([]);
    let rate_limited = fake.rate_limited();
    fake.fail(Fault::Server {
        status: 503,
        message: String::new(),
    });
    assert!(
        rate_limited
            .create_compute(&P, &new_compute())
            .await
            .is_err()
    );
    assert_eq!(rate_limited.budget().pause(), Some(Duration::from_secs(1)));
}

#[tokio::test(start_paused = true)]
async fn the_meter_counts_requests_and_not_waiting() {
    let fake = Fake::of([]);
    *fake.delay.lock().unwrap() = Duration::from_millis(250);
    let notes = Arc::new(Notes::default());
    let budget = Arc::new(Budget::new(Rate {
        requests_per_minute: 60,
        burst: 1,
    }));
    let rate_limited = RateLimited::new(
        Arc::clone(&fake) as Arc<dyn Platform>,
        budget,
        Arc::clone(&notes) as Arc<dyn Meter>,
    );
    rate_limited.list_projects().await.unwrap();
    rate_limited
        .restart_compute(&P, &"ep-a".into())
        .await
        .unwrap();
    fake.fail(unauthorized());
    let _ = rate_limited.revoke_key(&O, KeyId(1)).await;
    let _ = rate_limited.revoke_key(&O, KeyId(1)).await;
    let notes = notes.0.lock().unwrap();
    assert_eq!(
        *notes,
        [
            ("list_projects", "ok", 0.25),
            ("restart_compute", "ok", 0.25),
            ("revoke_key", "unauthorized", 0.25)
        ]
    );
    NoMeter.call("any", "ok", 0.0);
}

#[tokio::test(start_paused = true)]
async fn keys_are_created_two_a_second() {
    let fake = Fake::of([]);
    let rate_limited = fake.rate_limited();
    for _ in 0..4 {
        rate_limited.create_key(&O, "n", &P).await.unwrap();
    }
    let gaps = fake.gaps();
    assert!(gaps[0] < 0.01 && gaps[1] > 0.4 && gaps[2] > 0.4, "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn views_are_of_one_platform() {
    let fake = Fake::of([]);
    let rate_limited = fake.rate_limited();
    assert!(
        rate_limited.is_same(&rate_limited.at(Priority::Poll))
            && rate_limited.is_same(&rate_limited.probing())
    );
    assert!(!rate_limited.is_same(&fake.rate_limited()));
}

#[tokio::test(start_paused = true)]
async fn without_the_lead_no_change_is_sent() {
    let fake = Fake::of([]);
    let leadership = Leadership::elected();
    let rate_limited = fake
        .rate_limited()
        .as_ref()
        .clone()
        .while_leading(leadership.clone());
    let admitted = rate_limited.admit_change().await.unwrap();
    let refused =
        |fault: &Fault| matches!(fault, Fault::Transport { message } if message.contains("leader"));
    for changing in [&rate_limited, &admitted] {
        assert!(
            changing
                .create_compute(&P, &new_compute())
                .await
                .is_err_and(|fault| refused(&fault))
        );
        assert!(
            changing
                .create_key(&O, "n", &P)
                .await
                .is_err_and(|fault| refused(&fault))
        );
        assert!(
            changing
                .delete_compute(&P, &"ep-1".into())
                .await
                .is_err_and(|fault| refused(&fault))
        );
        assert!(
            changing
                .revoke_key(&O, KeyId(1))
                .await
                .is_err_and(|fault| refused(&fault))
        );
    }
    assert_eq!(fake.count(), 0);
    rate_limited.list_computes(&P).await.unwrap();
    leadership.extend(crate::clock::since_boot() + Duration::from_secs(60));
    admitted.create_compute(&P, &new_compute()).await.unwrap();
    leadership.extend(crate::clock::since_boot());
    let read = rate_limited.list_computes(&P);
    futures::pin_mut!(read);
    assert!(
        futures::poll!(&mut read).is_pending(),
        "another process may lead and use the same rate limit"
    );
    leadership.extend(crate::clock::since_boot() + Duration::from_secs(60));
    read.await.unwrap();
    leadership.lose();
    rate_limited.list_computes(&P).await.unwrap();
}
