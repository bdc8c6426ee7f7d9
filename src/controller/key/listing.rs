//! Extracts from the list of an organization's keys what concerns one ProjectKey. One list serves
//! all of them.

use std::time::Duration;

use jiff::Timestamp;

use crate::api::{Known, ProjectKey};
use crate::controller::access::{self, Access};
use crate::controller::environment::Environment;
use crate::controller::object::AccountName;
use crate::controller::state::KeyState;
use crate::decide::identity::{ProjectKeyIdentity, object_key};
use crate::decide::names::ClusterId;
use crate::decide::{AccountView, key, key::KeyListing, later};
use crate::domain::{self, Fault};
use crate::platform::{Interest, KeyFilter, KeyInterest, Keys, LatestKeys, Listing, Tick};

/// How long after its end a list proves that a key is missing.
const RECENT: Duration = Duration::from_secs(30);
/// How long the answer is valid that the platform offers no call to revoke keys.
const NOT_OFFERED_LIFETIME: Duration = Duration::from_secs(120);

/// The latest list of the organization's keys, and which of them concern the resource.
#[derive(Debug, Default)]
pub struct ListedKeys {
    latest: LatestKeys,
    filter: KeyFilter,
}

/// The input of a decision.
pub(super) struct RelevantKeys {
    /// The list, while it proves what is missing.
    pub listing: KeyListing,
    /// Like `listing`, also if keys cannot be revoked.
    pub listed: KeyListing,
    /// The list of any age.
    pub known: KeyListing,
    /// Until when the answer is valid that keys cannot be revoked.
    pub not_offered_until: Option<Timestamp>,
}

/// The latest list of the organization's keys, if the account can be used.
pub(super) fn look<E: Environment>(
    env: &E,
    object: &Known<ProjectKey>,
    known: &ProjectKeyIdentity,
    access: &Access<E::Client>,
) -> ListedKeys {
    let (
        AccountView::Usable {
            organization: Some(_),
        },
        Some(connection),
    ) = (&access.view, &access.connection)
    else {
        if access.connection.is_none() {
            // The account is gone, so the keys are no longer read through it.
            env.stop_listing(object);
        }
        return ListedKeys::default();
    };
    let interest = interest(object, known, &env.settings().cluster);
    let filter = interest.filter.clone();
    let latest = env.latest_keys(object, connection, interest);
    access::tell_of_list(
        env,
        &AccountName::of(&object.spec.account_ref, object),
        &latest,
    );
    ListedKeys { latest, filter }
}

/// The recorded keys, and those that the resource may have created in addition.
pub(super) fn interest(
    object: &Known<ProjectKey>,
    known: &ProjectKeyIdentity,
    cluster: &ClusterId,
) -> KeyInterest {
    let records = &known.records;
    let ids = records.current.iter().map(|key| key.id);
    let ids = ids
        .chain(records.previous.iter().map(|key| key.id))
        .chain(records.lost.iter().filter_map(|key| key.id));
    let filter = KeyFilter {
        ids: ids.collect(),
        names: known.names().map(str::to_owned).collect(),
        beginning: key::attempts(&object.spec, object_key(&object.metadata), cluster),
    };
    Interest {
        filter,
        pending: false,
        after: None,
    }
}

/// True if the platform offers no list of keys, or not to this credential.
pub(super) fn is_not_offered(fault: &Fault) -> bool {
    Keys::not_offered(fault).is_some()
}

impl ListedKeys {
    /// A list that began before the last change of the resource's keys is ignored. If a list could
    /// not be read, the last one still shows the state at its time.
    pub(super) fn relevant(
        &self,
        key: &KeyState,
        wrote: Option<Tick>,
        now: Timestamp,
    ) -> RelevantKeys {
        let cannot_revoke = key.not_offered.map(|at| later(at, NOT_OFFERED_LIFETIME));
        let not_offered_until = cannot_revoke.filter(|until| now < *until);
        let (listed, known) = match self.latest.since(wrote) {
            _ if self.is_not_offered(key) => (KeyListing::NotOffered, KeyListing::NotOffered),
            None => (KeyListing::NotRead, KeyListing::NotRead),
            Some(list) => {
                let keys =
                    domain::Listed::new(list.relevant(&self.filter), list.unreadable.clone());
                let known = KeyListing::Read { at: list.at, keys };
                let is_recent = now < later(list.ended, RECENT);
                (
                    if is_recent {
                        known.clone()
                    } else {
                        KeyListing::NotRead
                    },
                    known,
                )
            }
        };
        match not_offered_until {
            None => RelevantKeys {
                listing: listed.clone(),
                listed,
                known,
                not_offered_until,
            },
            Some(_) => {
                let (listing, known) = (KeyListing::NotOffered, KeyListing::NotOffered);
                RelevantKeys {
                    listing,
                    listed,
                    known,
                    not_offered_until,
                }
            }
        }
    }

    /// How many keys the organization has.
    pub(super) fn count(&self) -> Option<usize> {
        self.latest.snapshot.as_ref().map(|list| list.count())
    }

    /// True if a list was read and is still offered.
    pub(super) fn is_read(&self) -> bool {
        self.latest.snapshot.is_some() && !self.is_refused()
    }

    fn is_refused(&self) -> bool {
        self.latest.fault.as_ref().is_some_and(is_not_offered)
    }

    fn is_not_offered(&self, key: &KeyState) -> bool {
        let asked = key
            .anew
            .is_none_or(|anew| self.latest.attempted > Some(anew));
        asked && self.is_refused()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::{KeyEntry, KeyId};
    use crate::platform::KeyList;

    const READ: i64 = 1_800_000_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(READ + second).unwrap()
    }

    /// A list that began at tick 5 and took five seconds.
    fn listed(fault: Option<Fault>) -> ListedKeys {
        let entry = |id: i64, name: &str| KeyEntry {
            id: KeyId(id),
            name: name.to_owned(),
            project_id: None,
            created_at: None,
            last_used_at: None,
            last_used_from: None,
        };
        let keys = vec![entry(1, "ci-1"), entry(2, "theirs")];
        let list = KeyList::new(Tick::at(5), at(0), at(5), keys);
        let attempted = Some(Tick::at(if fault.is_some() { 7 } else { 5 }));
        let filter = KeyFilter {
            beginning: "ci-".to_owned(),
            ..KeyFilter::default()
        };
        ListedKeys {
            latest: LatestKeys {
                snapshot: Some(Arc::new(list)),
                fault,
                attempted,
            },
            filter,
        }
    }

    fn unsupported() -> Fault {
        Fault::Unsupported {
            status: 405,
            message: String::new(),
        }
    }

    /// The known keys, and whether the list proves what is missing.
    fn seen(relevant: &RelevantKeys) -> (Option<Vec<i64>>, bool) {
        (ids(&relevant.known), relevant.listing == relevant.known)
    }

    fn ids(listing: &KeyListing) -> Option<Vec<i64>> {
        let KeyListing::Read { at: begun, keys } = listing else {
            return None;
        };
        assert_eq!(*begun, at(0), "the time at which it was begun");
        Some(keys.shown().iter().map(|key| key.id.0).collect())
    }

    #[test]
    fn a_list_counts_for_what_it_lacks_for_a_while_and_has_only_what_concerns_the_resource() {
        for (second, recent) in [(5, true), (34, true), (35, false), (3600, false)] {
            let relevant = listed(None).relevant(&KeyState::default(), None, at(second));
            assert_eq!(seen(&relevant), (Some(vec![1]), recent), "{second}");
        }
    }

    #[test]
    fn a_list_shows_nothing_of_a_later_change() {
        for (wrote, read) in [(4, true), (5, false), (6, false)] {
            let (key, ended) = (KeyState::default(), Some(Tick::at(wrote)));
            assert_eq!(
                ids(&listed(None).relevant(&key, ended, at(6)).known).is_some(),
                read,
                "{wrote}"
            );
        }
    }

    #[test]
    fn a_list_that_could_not_be_read_shows_nothing_new() {
        let fault = Fault::Server {
            status: 500,
            message: String::new(),
        };
        let relevant = listed(Some(fault.clone())).relevant(&KeyState::default(), None, at(60));
        assert_eq!(seen(&relevant), (Some(vec![1]), false));
        let never = ListedKeys {
            latest: LatestKeys {
                fault: Some(fault),
                ..LatestKeys::default()
            },
            ..ListedKeys::default()
        };
        assert_eq!(
            never.relevant(&KeyState::default(), None, at(6)).listing,
            KeyListing::NotRead
        );
        assert_eq!(
            ListedKeys::default()
                .relevant(&KeyState::default(), None, at(6))
                .listing,
            KeyListing::NotRead
        );
    }

    #[test]
    fn what_is_not_offered_is_believed_until_people_ask_to_look_anew() {
        let listed = listed(Some(unsupported()));
        for (anew, not_offered) in [
            (None, true),
            (Some(6), true),
            (Some(7), false),
            (Some(8), false),
        ] {
            let anew = anew.map(Tick::at);
            let key = KeyState {
                anew,
                ..KeyState::default()
            };
            let expected = if not_offered {
                KeyListing::NotOffered
            } else {
                KeyListing::NotRead
            };
            assert_eq!(
                listed.relevant(&key, anew, at(6)).listing,
                expected,
                "{anew:?}"
            );
        }
    }

    #[test]
    fn that_keys_cannot_be_revoked_is_believed_for_a_while() {
        let key = KeyState {
            not_offered: Some(at(0)),
            ..KeyState::default()
        };
        let believed = listed(None).relevant(&key, None, at(119));
        assert_eq!(
            (believed.listing, believed.not_offered_until),
            (KeyListing::NotOffered, Some(at(120)))
        );
        // While it is recent, the list still proves what is missing.
        for (second, recent) in [(34, true), (35, false)] {
            let relevant = listed(None).relevant(&key, None, at(second));
            assert_eq!(
                (ids(&relevant.listed).is_some(), relevant.listing),
                (recent, KeyListing::NotOffered),
                "{second}"
            );
        }
        let over = listed(None).relevant(&key, None, at(120));
        assert_eq!(
            (ids(&over.known), over.not_offered_until),
            (Some(vec![1]), None)
        );
    }
}
