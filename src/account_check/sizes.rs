//! Finds sizes that the platform's description does not list.

use crate::domain::{COMPUTE_SIZES, Compute, ComputeUnits};

/// The number of computes with an unlisted size.
pub fn differences(computes: &[Compute]) -> Vec<String> {
    let is_listed = |size: &ComputeUnits| {
        COMPUTE_SIZES
            .iter()
            .any(|listed| ComputeUnits::new(*listed) == Some(*size))
    };
    let limits = |compute: &Compute| {
        [compute.settings.min, compute.settings.max]
            .into_iter()
            .flatten()
    };
    let unlisted = computes
        .iter()
        .filter(|compute| !limits(compute).all(|size| is_listed(&size)))
        .count();
    let text = || {
        format!(
            "{unlisted} of {} computes have a size that is not listed",
            computes.len()
        )
    };
    (unlisted > 0).then(text).into_iter().collect()
}
