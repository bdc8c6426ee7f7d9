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
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table() {
        for (cu, vcpu, memory, cache, connections) in [
            (0.25, "0.25", "1GB", "0.8GB", 112),
            (0.5, "0.5", "2GB", "1.6GB", 225),
            (1., "1", "4GB", "3.2GB", 450),
            (2., "2", "8GB", "6.4GB", 901),
            (3., "3", "12GB", "9.6GB", 1351),
            (4., "4", "16GB", "12.8GB", 1802),
            (5., "5", "20GB", "16GB", 2253),
            (6., "6", "24GB", "19.2GB", 2703),
            (7., "7", "28GB", "22.4GB", 3154),
            (8., "8", "32GB", "25.6GB", 3604),
            (9., "9", "36GB", "28.8GB", 4000),
            (16., "16", "64GB", "51.2GB", 4000),
            (18., "18", "72GB", "57.6GB", 4000),
            (56., "56", "224GB", "179.2GB", 4000),
        ] {
            let size = ComputeUnits::new(cu).unwrap();
            let expected = Capacity {
                vcpu: vcpu.into(),
                memory: memory.into(),
                local_file_cache: cache.into(),
                max_connections: connections,
            };
            assert_eq!(capacity(size, size), Some(expected), "{cu} CU");
        }
    }

    #[test]
    fn connections_follow_the_smallest_size() {
        let (min, max) = (
            ComputeUnits::new(0.25).unwrap(),
            ComputeUnits::new(4.).unwrap(),
        );
        let capacity = capacity(min, max).unwrap();
        assert_eq!(
            (capacity.vcpu.as_str(), capacity.max_connections),
            ("4", 112)
        );
        assert_eq!(text(min, max), "0.25-4");
    }
}
