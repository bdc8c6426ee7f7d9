//! Each mutation, in a bound in which it must be noticed.

use dbplane::api::AccountKind;

use super::{bound, braked, compute, key, minimal_key, named_compute, two_computes, with_account};
use crate::model::bound::Bound;
use crate::model::mutation::Mutation;

pub fn mutations() -> Vec<Bound> {
    vec![
        bound!(breaking(Mutation::IgnoreBaseline, compute()); lost: 1, foreign: 1),
        bound!(breaking(Mutation::UnknownIsNotDone, compute()); lost: 1),
        bound!(breaking(Mutation::SkipSettling, compute()); lost: 1),
        bound!(breaking(Mutation::TrustOldReadings, compute()); lost: 1),
        bound!(breaking(Mutation::SkipVersion, compute()); leaders: 2, ticks: 1),
        bound!(breaking(Mutation::IgnoreClaims, two_computes()); lost: 1, ticks: 0),
        bound!(
            breaking(Mutation::IgnoreClaims, two_computes());
            primaries: true, crashes: 1, ticks: 0
        ),
        bound!(
            breaking(Mutation::IgnoreClaims, two_computes());
            forgeries: 1, deletions: 1, ticks: 0, established: true
        ),
        bound!(breaking(Mutation::SkipIntent, compute()); crashes: 1),
        bound!(breaking(Mutation::NeverTooLate, compute()); leaders: 2, slow: 1, creates: 0),
        bound!(breaking(Mutation::SkipSerialization, two_computes()); lost: 1),
        bound!(breaking(Mutation::IgnoreSettings, compute()); lost: 1, foreign: 1),
        bound!(breaking(Mutation::FailedListIsEmpty, compute()); lost: 1, refused: 1),
        bound!(breaking(Mutation::TrustLists, compute()); partial: 1, deletions: 1, ticks: 1),
        bound!(breaking(Mutation::TrustLists, compute()); partial: 3, ticks: 3),
        bound!(breaking(Mutation::ReleaseUnresolved, compute()); lost: 1, deletions: 1),
        bound!(breaking(Mutation::ReleaseAtOnce, compute()); deletions: 1),
        bound!(breaking(Mutation::RevokeByIdAlone, key()); foreign: 1, crashes: 1),
        bound!(breaking(Mutation::ForgetLostKeys, minimal_key()); crashes: 1),
        bound!(breaking(Mutation::SkipIntent, key()); crashes: 1),
        bound!(breaking(Mutation::SkipSettling, key()); lost: 1),
        bound!(breaking(Mutation::RevokeUnrecorded, key()); leaders: 2, ticks: 0, creates: 2),
        bound!(breaking(Mutation::WriteUnchecked, key()); leaders: 2, ticks: 0, creates: 2),
        bound!(breaking(Mutation::IgnoreMarks, named_compute()); lost: 1, foreign: 1),
        bound!(breaking(Mutation::ForgetUnanswered, compute()); lost: 1, late: true),
        bound!(breaking(Mutation::IgnoreStrays, compute()); lost: 1, late: true),
        bound!(breaking(Mutation::IgnoreTwins, named_compute()); repeated: 1, ticks: 0),
        bound!(breaking(Mutation::IgnoreTwins, compute()); repeated: 1, ticks: 0),
        bound!(
            breaking(Mutation::IgnoreTwins, named_compute());
            repeated: 1, deletions: 1, ticks: 0
        ),
        bound!(
            breaking(Mutation::IgnoreBrake, braked(two_computes()));
            ticks: 0, established: true
        ),
        bound!(
            breaking(Mutation::ForgetBrake, braked(two_computes()));
            crashes: 1, ticks: 0, established: true
        ),
        bound!(breaking(Mutation::SkipRestore, compute()); replacements: 1, ticks: 0),
        bound!(breaking(Mutation::FollowAnnotations, two_computes()); copies: 1, ticks: 0),
        bound!(breaking(Mutation::RecreateAtOnce, compute()); lagging: 2, ticks: 1),
        bound!(
            breaking(Mutation::AbandonDependents, with_account(compute(), AccountKind::Account));
            account_deletion: true, deletions: 1, ticks: 0
        ),
    ]
}

fn breaking(mutation: Mutation, bound: Bound) -> Bound {
    bound!(bound; mutation: Some(mutation))
}
