//! The capacity of a size, from the platform's table of sizes.

use crate::api::Capacity;
use crate::domain::ComputeUnits;

/// Memory of one CU, in GB.
const MEMORY_PER_CU: f64 = 4.0;
/// The share of memory that the local file cache may use.
const CACHE_SHARE: f64 = 0.8;

/// `max_connections` by size: the documented values, which no formula reproduces.
const CONNECTIONS: [(f64, u32); 10] = [
    (0.25, 112),
    (0.5, 225),
    (1., 450),
    (2., 901),
    (3., 1351),
    (4., 1802),
    (5., 2253),
    (6., 2703),
    (7., 3154),
    (8., 3604),
];
/// For sizes from 9 CU on.
const MOST_CONNECTIONS: u32 = 4000;

/// The capacity of a compute between `min` and `max`: connections by the smallest size, everything
/// else by the largest. `None` if the smallest size is not in the platform's table.
pub fn capacity(min: ComputeUnits, max: ComputeUnits) -> Option<Capacity> {
    let memory = max.value() * MEMORY_PER_CU;
    Some(Capacity {
        vcpu: max.to_string(),
        memory: gigabytes(memory),
        local_file_cache: gigabytes(memory * CACHE_SHARE),
        max_connections: max_connections(min)?,
    })
}

/// The size in the form of the status: one number, or a range.
pub fn text(min: ComputeUnits, max: ComputeUnits) -> String {
    if min == max {
        min.to_string()
    } else {
        format!("{min}-{max}")
    }
}

fn max_connections(min: ComputeUnits) -> Option<u32> {
    let documented = CONNECTIONS
        .iter()
        .find(|(size, _)| ComputeUnits::new(*size) == Some(min))
        .map(|(_, most)| *most);
    documented.or_else(|| (min.value() >= 9.0).then_some(MOST_CONNECTIONS))
}

fn gigabytes(amount: f64) -> String {
    format!("{}GB", (amount * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests;
