//! The bounds of every run of the tests: one or two events of each kind.

use dbplane::api::AccountKind;

use super::{
    bound, compute, key, minimal_key, named_compute, two_computes, two_named_computes, with_account,
};
use crate::model::bound::Bound;

pub fn small() -> Vec<Bound> {
    [
        faults(),
        changes_by_others(),
        leaders_without_api_server(),
        two_namespaces(),
        accounts(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Faults of calls, lists and processes.
fn faults() -> Vec<Bound> {
    vec![
        bound!(compute(); lost: 1, crashes: 1),
        bound!(compute(); lost: 1, foreign: 1),
        bound!(named_compute(); lost: 1, foreign: 1),
        bound!(named_compute(); repeated: 1, crashes: 1, ticks: 1),
        bound!(named_compute(); repeated: 1, deletions: 1, ticks: 1),
        bound!(compute(); repeated: 1, crashes: 1, ticks: 1),
        bound!(compute(); repeated: 1, deletions: 1, ticks: 1),
        bound!(compute(); lost: 1, deletions: 1),
        bound!(compute(); refused: 1, deletions: 1),
        bound!(compute(); lost: 1, late: true, ticks: 3),
        bound!(compute(); lagging: 2, ticks: 2),
        bound!(compute(); partial: 3, vanishing: 1, ticks: 3),
        bound!(compute(); partial: 1, deletions: 1, ticks: 1),
        bound!(compute(); leaders: 2, ticks: 0),
        bound!(two_computes(); lost: 1, ticks: 0),
        bound!(key(); lost: 1, crashes: 1),
        bound!(minimal_key(); lost: 1, crashes: 1, ticks: 1),
        bound!(key(); lost: 1, deletions: 1),
        bound!(key(); refused: 1, foreign: 1, deletions: 1),
        bound!(key(); leaders: 2, ticks: 0, creates: 1),
    ]
}

/// Changes by users, policies and other programs.
fn changes_by_others() -> Vec<Bound> {
    vec![
        bound!(compute(); replacements: 1, lost: 1, ticks: 1),
        bound!(compute(); replacements: 1, crashes: 1, ticks: 1),
        bound!(compute(); replacements: 1, deletions: 1, ticks: 0),
        bound!(compute(); older: 1, crashes: 1, ticks: 1),
        bound!(key(); replacements: 1, lost: 1, ticks: 1),
        bound!(minimal_key(); older: 1, crashes: 1, ticks: 1),
        bound!(compute(); named: 1, lost: 1, deletions: 1, ticks: 0),
        bound!(compute(); policies: 1, deletions: 1, ticks: 0),
        bound!(key(); policies: 1, deletions: 1, ticks: 0),
        bound!(compute(); moves: 1, deletions: 1, ticks: 0),
        bound!(key(); moves: 1, deletions: 1, ticks: 0),
        bound!(key(); meddled: 2, ticks: 1),
        bound!(compute(); alike: 1, lost: 1, ticks: 1),
        bound!(named_compute(); alike: 1, lost: 1, ticks: 1),
        bound!(two_computes(); copies: 1, ticks: 0),
        bound!(two_computes(); leaders: 2, deletions: 1, ticks: 0, established: true),
    ]
}

fn leaders_without_api_server() -> Vec<Bound> {
    vec![
        bound!(compute(); cut_offs: 1, ticks: 1),
        bound!(key(); cut_offs: 1, ticks: 1),
    ]
}

/// Two Computes in two namespaces.
fn two_namespaces() -> Vec<Bound> {
    vec![
        bound!(two_computes(); primaries: true, crashes: 1, ticks: 0),
        bound!(two_computes(); forgeries: 1, deletions: 1, ticks: 0, established: true),
        bound!(two_named_computes(); forgeries: 1, deletions: 1, ticks: 0, established: true),
        bound!(two_computes(); forgeries: 1, named: 1, ticks: 0, established: true),
    ]
}

fn accounts() -> Vec<Bound> {
    vec![
        bound!(with_account(compute(), AccountKind::Account); exchanges: 1, ticks: 1),
        bound!(
            with_account(compute(), AccountKind::Account);
            account_deletion: true, deletions: 1, ticks: 0
        ),
        bound!(
            with_account(compute(), AccountKind::Account);
            account_deletion: true, lost: 1, ticks: 0
        ),
        bound!(
            with_account(key(), AccountKind::Account);
            account_deletion: true, lost: 1, ticks: 0
        ),
        bound!(
            with_account(compute(), AccountKind::ClusterAccount);
            admissions: 1, deletions: 1, ticks: 0
        ),
    ]
}
