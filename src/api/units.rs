//! The schemas of sizes in compute units.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::domain::{COMPUTE_SIZES, ComputeUnits};

impl JsonSchema for ComputeUnits {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ComputeUnits".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        sizes_up_to(f64::INFINITY)
    }
}

/// The sizes that an autoscaling range may have: above 16 CU the platform has fixed sizes only.
pub(super) fn autoscaling_sizes(_: &mut SchemaGenerator) -> Schema {
    sizes_up_to(16.)
}

fn sizes_up_to(largest: f64) -> Schema {
    let sizes: Vec<ComputeUnits> = COMPUTE_SIZES
        .into_iter()
        .filter(|size| *size <= largest)
        .filter_map(ComputeUnits::new)
        .collect();
    json_schema!({"type": "number", "enum": sizes})
}
