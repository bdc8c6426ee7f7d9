//! Spaces out the probes that check whether the platform still accepts a key. The keys of a
//! namespace take turns, so that many keys leave budget for everything else.

use std::time::Duration;

use jiff::Timestamp;

use super::{ProcessState, ResourceState};
use crate::api::Uid;
use crate::controller::object::AccountName;
use crate::decide::later;

impl<P> ProcessState<P> {
    /// When the key of a resource may be probed: now, or `spacing` after the previous turn of its
    /// namespace and account. A turn that was given is kept until it is taken.
    pub fn turn_to_ask(
        &self,
        uid: &Uid,
        of: &(AccountName, String),
        spacing: Duration,
        now: Timestamp,
    ) -> Timestamp {
        self.with(|contents| {
            contents.resources.change(uid, |ResourceState { key, .. }| {
                let turn = key.turn.take().unwrap_or_else(|| {
                    let free = contents.turns.get(of).copied().unwrap_or(now).max(now);
                    contents.turns.insert(of.clone(), later(free, spacing));
                    free
                });
                key.turn = Some(turn).filter(|turn| *turn > now);
                turn.max(now)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::AccountKind;

    const SPACING: Duration = Duration::from_secs(2);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn of(name: &str, namespace: &str) -> (AccountName, String) {
        (
            AccountName {
                kind: AccountKind::ClusterAccount,
                namespace: None,
                name: name.to_owned(),
            },
            namespace.to_owned(),
        )
    }

    #[test]
    fn one_after_the_other_and_each_account_and_namespace_by_itself() {
        let state = ProcessState::<()>::default();
        let turn = |uid: &Uid, name: &str, now| {
            let (name, namespace) = name.split_once('/').unwrap_or((name, "shop"));
            state.turn_to_ask(uid, &of(name, namespace), SPACING, at(now))
        };
        for (uid, name, now, expected) in [
            ("one", "prod", 10, 10),
            ("two", "prod", 10, 12),
            ("three", "prod", 10, 14),
            ("four", "test", 10, 10),
            ("six", "prod/bank", 10, 10),
            // It has its turn already.
            ("two", "prod", 11, 12),
            ("two", "prod", 12, 12),
            // It was taken.
            ("two", "prod", 12, 16),
            // A key that comes late takes no other key's turn.
            ("three", "prod", 30, 30),
            ("one", "prod", 30, 30),
            ("five", "prod", 30, 32),
        ] {
            assert_eq!(turn(&uid.into(), name, now), at(expected), "{uid} at {now}");
        }
    }
}
