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
