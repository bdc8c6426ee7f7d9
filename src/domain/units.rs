//! Compute units as an exact number.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The sizes that the platform lists, in CU.
pub const COMPUTE_SIZES: [f64; 38] = [
    0.25, 0.5, 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15., 16., 18., 20.,
    22., 24., 26., 28., 30., 32., 34., 36., 38., 40., 42., 44., 46., 48., 50., 52., 54., 56.,
];

/// A size in compute units (CU), stored in thousandths so that sizes can be compared and hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeUnits(u32);

impl ComputeUnits {
    /// `value` in CU, rounded to a thousandth. `None` if it is negative, not finite or larger than
    /// any size.
    pub fn new(value: f64) -> Option<Self> {
        let thousandths = (value * 1000.0).round();
        // The limit keeps the cast exact.
        (0.0..=1e9)
            .contains(&thousandths)
            .then_some(Self(thousandths as u32))
    }

    pub fn value(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl fmt::Display for ComputeUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl Serialize for ComputeUnits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 % 1000 {
            0 => serializer.serialize_u32(self.0 / 1000),
            _ => serializer.serialize_f64(self.value()),
        }
    }
}

impl<'de> Deserialize<'de> for ComputeUnits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| {
            serde::de::Error::custom(format!("{value} is not a size in compute units"))
        })
    }
}
