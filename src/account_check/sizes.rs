//! Finds sizes that the platform's description does not list.

use crate::domain::{COMPUTE_SIZES, Compute, ComputeUnits};

/// The number of computes with an unlisted size.
pub fn differences(computes: &[Compute]) -> Vec<String> {
    let unlisted = computes
        .iter()
        .filter(|compute| has_unlisted_size(compute))
        .count();
    if unlisted == 0 {
        return Vec::new();
    }
    let of = computes.len();
    vec![format!(
        "{unlisted} of {of} computes have a size that is not listed"
    )]
}

fn has_unlisted_size(compute: &Compute) -> bool {
    [compute.settings.min, compute.settings.max]
        .into_iter()
        .flatten()
        .any(|size| !is_listed(size))
}

fn is_listed(size: ComputeUnits) -> bool {
    COMPUTE_SIZES
        .iter()
        .any(|listed| ComputeUnits::new(*listed) == Some(size))
}
