//! The schemas of sizes in compute units, with a rule that lists the sizes.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::rules;
use crate::domain::{COMPUTE_SIZES, ComputeUnits};

impl JsonSchema for ComputeUnits {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ComputeUnits".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        sizes_up_to(
            f64::INFINITY,
            "0.25, 0.5, 1 to 16 in whole steps, or 18 to 56 in steps of 2",
        )
    }
}

/// The sizes that an autoscaling range may have: above 16 CU the platform has fixed sizes only.
pub(super) fn autoscaling_sizes(_: &mut SchemaGenerator) -> Schema {
    sizes_up_to(16., "0.25, 0.5, or 1 to 16 in whole steps")
}

fn sizes_up_to(largest: f64, words: &str) -> Schema {
    let mut sizes = COMPUTE_SIZES.to_vec();
    sizes.retain(|size| *size <= largest);
    // Outside the API server a whole number is no double by itself.
    let rule = rules::demand(
        &format!("double(self) in {sizes:?}"),
        &format!("write a size in CU: {words}"),
    );
    json_schema!({"type": "number", "x-kubernetes-validations": [rule]})
}
