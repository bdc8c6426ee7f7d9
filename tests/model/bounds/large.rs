//! The bounds of `make verify`: more events, and several at once.

use dbplane::api::AccountKind;

use super::{
    bound, braked, compute, key, minimal_key, named_compute, three_computes, two_computes,
    two_named_computes, with_account,
};
use crate::model::bound::Bound;

pub fn large() -> Vec<Bound> {
    [
        one_compute(),
        computes_of_a_branch(),
        keys(),
        accounts(),
        applied_manifests_and_records(),
        edits_of_the_spec(),
        altered_secrets(),
        foreign_creates_like_ours(),
        leaders_without_api_server(),
        braked_deletions(),
        two_namespaces(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn one_compute() -> Vec<Bound> {
    vec![
        bound!(compute(); lost: 2, refused: 1, crashes: 2, lagging: 1, ticks: 2),
        bound!(compute(); lost: 1, refused: 1, crashes: 2, lagging: 1, ticks: 3),
        bound!(compute(); lost: 2, refused: 1, crashes: 1, lagging: 1, ticks: 3),
        bound!(named_compute(); lost: 1, refused: 1, crashes: 2, foreign: 1, ticks: 2),
        bound!(named_compute(); lost: 2, refused: 1, crashes: 1, foreign: 1, ticks: 2),
        bound!(compute(); lost: 2, crashes: 1, foreign: 1, ticks: 3),
        bound!(compute(); lost: 1, refused: 1, crashes: 1, deletions: 1, ticks: 3),
        bound!(compute(); partial: 3, vanishing: 1, lost: 1, crashes: 1, ticks: 3),
        bound!(compute(); partial: 2, lost: 1, deletions: 1),
        bound!(compute(); lost: 2, crashes: 1, late: true, ticks: 4),
        bound!(compute(); leaders: 2, slow: 1, ticks: 1),
        bound!(compute(); leaders: 2, lost: 1, ticks: 1),
        bound!(compute(); leaders: 2, deletions: 1, ticks: 1),
    ]
}

fn computes_of_a_branch() -> Vec<Bound> {
    vec![
        bound!(two_computes(); lost: 1, crashes: 1),
        bound!(two_computes(); lost: 1, foreign: 1, ticks: 1),
        bound!(two_named_computes(); lost: 1, ticks: 1),
        bound!(two_named_computes(); lost: 2, ticks: 0),
        bound!(two_computes(); lost: 1, deletions: 1, ticks: 1),
        bound!(two_computes(); lost: 1, deletions: 2, ticks: 0),
        bound!(three_computes(); lost: 1, ticks: 0),
    ]
}

fn keys() -> Vec<Bound> {
    vec![
        bound!(key(); lost: 2, refused: 1, crashes: 1, foreign: 1),
        bound!(key(); lost: 1, refused: 1, crashes: 1, deletions: 1),
        bound!(minimal_key(); lost: 1, refused: 1, crashes: 1),
        bound!(minimal_key(); lost: 1, crashes: 1, deletions: 1),
        bound!(key(); leaders: 2, ticks: 1, creates: 2),
        bound!(key(); leaders: 2, slow: 1, ticks: 1, creates: 1),
        bound!(minimal_key(); leaders: 2, ticks: 1, creates: 2),
    ]
}

fn accounts() -> Vec<Bound> {
    vec![
        bound!(
            with_account(compute(), AccountKind::Account);
            exchanges: 1, lost: 1, crashes: 1, ticks: 1
        ),
        bound!(with_account(compute(), AccountKind::Account); exchanges: 1, lost: 1, ticks: 2),
        bound!(with_account(compute(), AccountKind::Account); exchanges: 1, crashes: 1, ticks: 2),
        bound!(
            with_account(compute(), AccountKind::Account);
            account_deletion: true, deletions: 1, lost: 1, crashes: 1, ticks: 1
        ),
        bound!(
            with_account(compute(), AccountKind::ClusterAccount);
            admissions: 2, lost: 1, deletions: 1, ticks: 1
        ),
    ]
}

fn applied_manifests_and_records() -> Vec<Bound> {
    vec![
        bound!(compute(); replacements: 1, lost: 1),
        bound!(compute(); replacements: 2, lost: 1, crashes: 1, ticks: 1),
        bound!(compute(); replacements: 1, leaders: 2, ticks: 0),
        bound!(key(); replacements: 1, leaders: 2, ticks: 0, creates: 1),
        bound!(two_computes(); replacements: 1, lost: 1, ticks: 1),
        bound!(key(); replacements: 1, older: 1, lost: 1, crashes: 1),
        bound!(minimal_key(); replacements: 1, lost: 1, crashes: 1),
    ]
}

fn edits_of_the_spec() -> Vec<Bound> {
    vec![
        bound!(compute(); named: 1, lost: 1, deletions: 1, ticks: 1),
        bound!(named_compute(); named: 1, lost: 1, deletions: 1, ticks: 1),
        bound!(compute(); policies: 2, lost: 1, deletions: 1, ticks: 1),
        bound!(key(); policies: 2, lost: 1, deletions: 1, ticks: 0),
        bound!(compute(); moves: 2, lost: 1, deletions: 1, ticks: 0),
        bound!(key(); moves: 2, lost: 1, ticks: 0),
    ]
}

fn altered_secrets() -> Vec<Bound> {
    vec![
        bound!(key(); meddled: 3, lost: 1, crashes: 1, ticks: 1),
        bound!(minimal_key(); meddled: 3, crashes: 1, deletions: 1, ticks: 0),
    ]
}

fn foreign_creates_like_ours() -> Vec<Bound> {
    vec![
        bound!(compute(); alike: 1, lost: 1, crashes: 1, deletions: 1, ticks: 1),
        bound!(two_computes(); alike: 1, lost: 1, ticks: 0),
    ]
}

fn leaders_without_api_server() -> Vec<Bound> {
    vec![
        bound!(compute(); cut_offs: 2, lost: 1, deletions: 1),
        bound!(two_computes(); cut_offs: 1, lost: 1, ticks: 1),
        bound!(key(); cut_offs: 1, lost: 1, deletions: 1),
        bound!(minimal_key(); cut_offs: 1, crashes: 1),
        bound!(compute(); cut_offs: 1, lost: 1, replacements: 1, ticks: 1),
    ]
}

fn braked_deletions() -> Vec<Bound> {
    vec![
        bound!(braked(two_computes()); ticks: 0),
        bound!(braked(two_computes()); crashes: 1, established: true),
    ]
}

/// Two Computes in two namespaces.
fn two_namespaces() -> Vec<Bound> {
    vec![
        bound!(two_computes(); primaries: true, lost: 1, crashes: 1, ticks: 1),
        bound!(two_named_computes(); primaries: true, lost: 1, crashes: 1, deletions: 1, ticks: 0),
        bound!(two_named_computes(); primaries: true, crashes: 2, lost: 1, ticks: 0),
        bound!(
            two_computes();
            forgeries: 2, lost: 1, crashes: 1, deletions: 1, ticks: 0, established: true
        ),
        bound!(
            two_named_computes();
            forgeries: 2, lost: 1, crashes: 1, deletions: 1, ticks: 0, established: true
        ),
    ]
}
