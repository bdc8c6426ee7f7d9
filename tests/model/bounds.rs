//! The bounds that are explored: small ones in every run of the tests, and large ones in `make
//! verify`.

use dbplane::api::AccountKind;

use super::bound::{Bound, Subject};
use super::mutation::Mutation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Small,
    Large,
}

const NO_NAMES: Subject = Subject::Computes {
    count: 1,
    marks: false,
};
const NAMES: Subject = Subject::Computes {
    count: 1,
    marks: true,
};
const TWO: Subject = Subject::Computes {
    count: 2,
    marks: false,
};
const TWO_NAMES: Subject = Subject::Computes {
    count: 2,
    marks: true,
};
const THREE: Subject = Subject::Computes {
    count: 3,
    marks: false,
};
const KEY: Subject = Subject::Key { revoke: true };
const MINIMAL_KEY: Subject = Subject::Key { revoke: false };

/// The bounds within which every promise must hold.
pub fn bounds(extent: Extent) -> Vec<Bound> {
    match extent {
        Extent::Small => small(),
        Extent::Large => small()
            .into_iter()
            .chain(large())
            .chain(large_of_two_namespaces())
            .map(|bound| Bound {
                most: MOST,
                ..bound
            })
            .collect(),
    }
}

fn small() -> Vec<Bound> {
    vec![
        Bound {
            lost: 1,
            crashes: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 1,
            foreign: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 1,
            foreign: 1,
            ..Bound::of(NAMES)
        },
        Bound {
            repeated: 1,
            crashes: 1,
            ticks: 1,
            ..Bound::of(NAMES)
        },
        Bound {
            repeated: 1,
            deletions: 1,
            ticks: 1,
            ..Bound::of(NAMES)
        },
        Bound {
            repeated: 1,
            crashes: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            repeated: 1,
            deletions: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 1,
            deletions: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            refused: 1,
            deletions: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 1,
            late: true,
            ticks: 3,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lagging: 2,
            ticks: 2,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            partial: 3,
            vanishing: 1,
            ticks: 3,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            partial: 1,
            deletions: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            leaders: 2,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 1,
            ticks: 1,
            ..Bound::of(TWO)
        },
        Bound {
            lost: 1,
            crashes: 1,
            ..Bound::of(KEY)
        },
        Bound {
            lost: 1,
            crashes: 1,
            ticks: 1,
            ..Bound::of(MINIMAL_KEY)
        },
        Bound {
            lost: 1,
            deletions: 1,
            ..Bound::of(KEY)
        },
        Bound {
            refused: 1,
            foreign: 1,
            deletions: 1,
            ..Bound::of(KEY)
        },
        Bound {
            leaders: 2,
            ticks: 0,
            creates: 1,
            ..Bound::of(KEY)
        },
        Bound {
            replacements: 1,
            lost: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            replacements: 1,
            crashes: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            replacements: 1,
            deletions: 1,
            ticks: 0,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            older: 1,
            crashes: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            replacements: 1,
            lost: 1,
            ticks: 1,
            ..Bound::of(KEY)
        },
        Bound {
            older: 1,
            crashes: 1,
            ticks: 1,
            ..Bound::of(MINIMAL_KEY)
        },
        Bound {
            named: 1,
            lost: 1,
            deletions: 1,
            ticks: 0,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            policies: 1,
            deletions: 1,
            ticks: 0,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            policies: 1,
            deletions: 1,
            ticks: 0,
            ..Bound::of(KEY)
        },
        Bound {
            moves: 1,
            deletions: 1,
            ticks: 0,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            moves: 1,
            deletions: 1,
            ticks: 0,
            ..Bound::of(KEY)
        },
        Bound {
            meddled: 2,
            ticks: 1,
            ..Bound::of(KEY)
        },
        Bound {
            alike: 1,
            lost: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            alike: 1,
            lost: 1,
            ticks: 1,
            ..Bound::of(NAMES)
        },
        Bound {
            copies: 1,
            ticks: 0,
            ..Bound::of(TWO)
        },
        Bound {
            leaders: 2,
            deletions: 1,
            ticks: 0,
            established: true,
            ..Bound::of(TWO)
        },
        Bound {
            cut_offs: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            cut_offs: 1,
            ticks: 1,
            ..Bound::of(KEY)
        },
        Bound {
            primaries: true,
            crashes: 1,
            ticks: 0,
            ..Bound::of(TWO)
        },
        Bound {
            forgeries: 1,
            deletions: 1,
            ticks: 0,
            established: true,
            ..Bound::of(TWO)
        },
        Bound {
            forgeries: 1,
            deletions: 1,
            ticks: 0,
            established: true,
            ..Bound::of(TWO_NAMES)
        },
        Bound {
            forgeries: 1,
            named: 1,
            ticks: 0,
            established: true,
            ..Bound::of(TWO)
        },
        Bound {
            exchanges: 1,
            ticks: 1,
            ..with(AccountKind::Account)
        },
        Bound {
            account_deletion: true,
            deletions: 1,
            ticks: 0,
            ..with(AccountKind::Account)
        },
        Bound {
            account_deletion: true,
            lost: 1,
            ticks: 0,
            ..with(AccountKind::Account)
        },
        Bound {
            account_deletion: true,
            lost: 1,
            ticks: 0,
            subject: KEY,
            ..with(AccountKind::Account)
        },
        Bound {
            admissions: 1,
            deletions: 1,
            ticks: 0,
            ..with(AccountKind::ClusterAccount)
        },
    ]
}

/// A Compute and its account.
fn with(account: AccountKind) -> Bound {
    Bound {
        account: Some(account),
        ..Bound::of(NO_NAMES)
    }
}

/// With a brake on deletions, whose memory is in statuses.
fn braked(subject: Subject) -> Bound {
    Bound {
        deletions: 2,
        deletes_per_minute: 1,
        ticks: 1,
        ..Bound::of(subject)
    }
}

/// The number of states that fit into four gigabytes of memory.
const MOST: usize = 4_000_000;

fn large() -> Vec<Bound> {
    vec![
        Bound {
            lost: 2,
            refused: 1,
            crashes: 2,
            lagging: 1,
            ticks: 2,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 1,
            refused: 1,
            crashes: 2,
            lagging: 1,
            ticks: 3,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 2,
            refused: 1,
            crashes: 1,
            lagging: 1,
            ticks: 3,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 1,
            refused: 1,
            crashes: 2,
            foreign: 1,
            ticks: 2,
            ..Bound::of(NAMES)
        },
        Bound {
            lost: 2,
            refused: 1,
            crashes: 1,
            foreign: 1,
            ticks: 2,
            ..Bound::of(NAMES)
        },
        Bound {
            lost: 2,
            crashes: 1,
            foreign: 1,
            ticks: 3,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 1,
            refused: 1,
            crashes: 1,
            deletions: 1,
            ticks: 3,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            partial: 3,
            vanishing: 1,
            lost: 1,
            crashes: 1,
            ticks: 3,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            partial: 2,
            lost: 1,
            deletions: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 2,
            crashes: 1,
            late: true,
            ticks: 4,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            leaders: 2,
            slow: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            leaders: 2,
            lost: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            leaders: 2,
            deletions: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            lost: 1,
            crashes: 1,
            ..Bound::of(TWO)
        },
        Bound {
            lost: 1,
            foreign: 1,
            ..Bound::of(TWO)
        },
        Bound {
            lost: 1,
            ticks: 1,
            ..Bound::of(TWO_NAMES)
        },
        Bound {
            lost: 2,
            ticks: 0,
            ..Bound::of(TWO_NAMES)
        },
        Bound {
            lost: 1,
            deletions: 1,
            ticks: 1,
            ..Bound::of(TWO)
        },
        Bound {
            lost: 1,
            deletions: 2,
            ticks: 0,
            ..Bound::of(TWO)
        },
        Bound {
            lost: 1,
            ticks: 0,
            ..Bound::of(THREE)
        },
        Bound {
            lost: 2,
            refused: 1,
            crashes: 1,
            foreign: 1,
            ..Bound::of(KEY)
        },
        Bound {
            lost: 1,
            refused: 1,
            crashes: 1,
            deletions: 1,
            ..Bound::of(KEY)
        },
        Bound {
            lost: 1,
            refused: 1,
            crashes: 1,
            ..Bound::of(MINIMAL_KEY)
        },
        Bound {
            lost: 1,
            crashes: 1,
            deletions: 1,
            ..Bound::of(MINIMAL_KEY)
        },
        Bound {
            leaders: 2,
            ticks: 1,
            creates: 2,
            ..Bound::of(KEY)
        },
        Bound {
            leaders: 2,
            slow: 1,
            ticks: 1,
            creates: 1,
            ..Bound::of(KEY)
        },
        Bound {
            leaders: 2,
            ticks: 1,
            creates: 2,
            ..Bound::of(MINIMAL_KEY)
        },
        Bound {
            exchanges: 1,
            lost: 1,
            crashes: 1,
            ticks: 1,
            ..with(AccountKind::Account)
        },
        Bound {
            exchanges: 1,
            lost: 1,
            ticks: 2,
            ..with(AccountKind::Account)
        },
        Bound {
            exchanges: 1,
            crashes: 1,
            ticks: 2,
            ..with(AccountKind::Account)
        },
        Bound {
            account_deletion: true,
            deletions: 1,
            lost: 1,
            crashes: 1,
            ticks: 1,
            ..with(AccountKind::Account)
        },
        Bound {
            admissions: 2,
            lost: 1,
            deletions: 1,
            ticks: 1,
            ..with(AccountKind::ClusterAccount)
        },
        Bound {
            replacements: 1,
            lost: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            replacements: 2,
            lost: 1,
            crashes: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            replacements: 1,
            leaders: 2,
            ticks: 0,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            replacements: 1,
            leaders: 2,
            ticks: 0,
            creates: 1,
            ..Bound::of(KEY)
        },
        Bound {
            replacements: 1,
            lost: 1,
            ticks: 1,
            ..Bound::of(TWO)
        },
        Bound {
            replacements: 1,
            older: 1,
            lost: 1,
            crashes: 1,
            ..Bound::of(KEY)
        },
        Bound {
            replacements: 1,
            lost: 1,
            crashes: 1,
            ..Bound::of(MINIMAL_KEY)
        },
        Bound {
            named: 1,
            lost: 1,
            deletions: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            named: 1,
            lost: 1,
            deletions: 1,
            ticks: 1,
            ..Bound::of(NAMES)
        },
        Bound {
            policies: 2,
            lost: 1,
            deletions: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            policies: 2,
            lost: 1,
            deletions: 1,
            ticks: 0,
            ..Bound::of(KEY)
        },
        Bound {
            moves: 2,
            lost: 1,
            deletions: 1,
            ticks: 0,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            moves: 2,
            lost: 1,
            ticks: 0,
            ..Bound::of(KEY)
        },
        Bound {
            meddled: 3,
            lost: 1,
            crashes: 1,
            ticks: 1,
            ..Bound::of(KEY)
        },
        Bound {
            meddled: 3,
            crashes: 1,
            deletions: 1,
            ticks: 0,
            ..Bound::of(MINIMAL_KEY)
        },
        Bound {
            alike: 1,
            lost: 1,
            crashes: 1,
            deletions: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            alike: 1,
            lost: 1,
            ticks: 0,
            ..Bound::of(TWO)
        },
        Bound {
            cut_offs: 2,
            lost: 1,
            deletions: 1,
            ..Bound::of(NO_NAMES)
        },
        Bound {
            cut_offs: 1,
            lost: 1,
            ticks: 1,
            ..Bound::of(TWO)
        },
        Bound {
            cut_offs: 1,
            lost: 1,
            deletions: 1,
            ..Bound::of(KEY)
        },
        Bound {
            cut_offs: 1,
            crashes: 1,
            ..Bound::of(MINIMAL_KEY)
        },
        Bound {
            cut_offs: 1,
            lost: 1,
            replacements: 1,
            ticks: 1,
            ..Bound::of(NO_NAMES)
        },
        braked(TWO),
        Bound {
            crashes: 1,
            ticks: 0,
            ..braked(TWO)
        },
    ]
}

/// Two Computes in two namespaces.
fn large_of_two_namespaces() -> Vec<Bound> {
    vec![
        Bound {
            primaries: true,
            lost: 1,
            crashes: 1,
            ticks: 1,
            ..Bound::of(TWO)
        },
        Bound {
            primaries: true,
            lost: 1,
            crashes: 1,
            deletions: 1,
            ticks: 0,
            ..Bound::of(TWO_NAMES)
        },
        Bound {
            primaries: true,
            crashes: 2,
            lost: 1,
            ticks: 0,
            ..Bound::of(TWO_NAMES)
        },
        Bound {
            forgeries: 2,
            lost: 1,
            crashes: 1,
            deletions: 1,
            ticks: 0,
            established: true,
            ..Bound::of(TWO)
        },
        Bound {
            forgeries: 2,
            lost: 1,
            crashes: 1,
            deletions: 1,
            ticks: 0,
            established: true,
            ..Bound::of(TWO_NAMES)
        },
    ]
}

/// Each mutation, in a bound in which it must be noticed.
pub fn mutations() -> Vec<Bound> {
    let broken = |mutation, bound| Bound {
        mutation: Some(mutation),
        ..bound
    };
    vec![
        broken(
            Mutation::IgnoreBaseline,
            Bound {
                lost: 1,
                foreign: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::UnknownIsNotDone,
            Bound {
                lost: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::SkipSettling,
            Bound {
                lost: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::TrustOldReadings,
            Bound {
                lost: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::SkipVersion,
            Bound {
                leaders: 2,
                ticks: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::IgnoreClaims,
            Bound {
                lost: 1,
                ..Bound::of(TWO)
            },
        ),
        broken(
            Mutation::IgnoreClaims,
            Bound {
                primaries: true,
                crashes: 1,
                ticks: 0,
                ..Bound::of(TWO)
            },
        ),
        broken(
            Mutation::IgnoreClaims,
            Bound {
                forgeries: 1,
                deletions: 1,
                ticks: 0,
                established: true,
                ..Bound::of(TWO)
            },
        ),
        broken(
            Mutation::SkipIntent,
            Bound {
                crashes: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::NeverTooLate,
            Bound {
                leaders: 2,
                slow: 1,
                creates: 0,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::SkipSerialization,
            Bound {
                lost: 1,
                ..Bound::of(TWO)
            },
        ),
        broken(
            Mutation::IgnoreSettings,
            Bound {
                lost: 1,
                foreign: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::FailedListIsEmpty,
            Bound {
                lost: 1,
                refused: 1,
                ticks: 3,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::TrustLists,
            Bound {
                partial: 1,
                deletions: 1,
                ticks: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::TrustLists,
            Bound {
                partial: 3,
                ticks: 3,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::ReleaseUnresolved,
            Bound {
                lost: 1,
                deletions: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::ReleaseAtOnce,
            Bound {
                deletions: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::RevokeByIdAlone,
            Bound {
                foreign: 1,
                crashes: 1,
                ..Bound::of(KEY)
            },
        ),
        broken(
            Mutation::ForgetLostKeys,
            Bound {
                crashes: 1,
                ..Bound::of(MINIMAL_KEY)
            },
        ),
        broken(
            Mutation::SkipIntent,
            Bound {
                crashes: 1,
                ..Bound::of(KEY)
            },
        ),
        broken(
            Mutation::SkipSettling,
            Bound {
                lost: 1,
                ..Bound::of(KEY)
            },
        ),
        broken(
            Mutation::RevokeUnrecorded,
            Bound {
                leaders: 2,
                ticks: 0,
                creates: 2,
                ..Bound::of(KEY)
            },
        ),
        broken(
            Mutation::WriteUnchecked,
            Bound {
                leaders: 2,
                ticks: 0,
                creates: 2,
                ..Bound::of(KEY)
            },
        ),
        broken(
            Mutation::IgnoreMarks,
            Bound {
                lost: 1,
                foreign: 1,
                ..Bound::of(NAMES)
            },
        ),
        broken(
            Mutation::ForgetUnanswered,
            Bound {
                lost: 1,
                late: true,
                ticks: 3,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::IgnoreStrays,
            Bound {
                lost: 1,
                late: true,
                ticks: 3,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::IgnoreTwins,
            Bound {
                repeated: 1,
                ticks: 0,
                ..Bound::of(NAMES)
            },
        ),
        broken(
            Mutation::IgnoreTwins,
            Bound {
                repeated: 1,
                ticks: 0,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::IgnoreTwins,
            Bound {
                repeated: 1,
                deletions: 1,
                ticks: 0,
                ..Bound::of(NAMES)
            },
        ),
        broken(
            Mutation::IgnoreBrake,
            Bound {
                ticks: 0,
                ..braked(TWO)
            },
        ),
        broken(
            Mutation::ForgetBrake,
            Bound {
                crashes: 1,
                ticks: 0,
                ..braked(TWO)
            },
        ),
        broken(
            Mutation::SkipRestore,
            Bound {
                replacements: 1,
                ticks: 0,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::FollowAnnotations,
            Bound {
                copies: 1,
                ticks: 0,
                ..Bound::of(TWO)
            },
        ),
        broken(
            Mutation::RecreateAtOnce,
            Bound {
                lagging: 2,
                ticks: 1,
                ..Bound::of(NO_NAMES)
            },
        ),
        broken(
            Mutation::AbandonDependents,
            Bound {
                account_deletion: true,
                deletions: 1,
                ticks: 0,
                ..with(AccountKind::Account)
            },
        ),
    ]
}
