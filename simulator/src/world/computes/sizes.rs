//! Compute sizes: the allowed values, the autoscaling rules and the limits of each plan.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::world::Profile;

/// A size in compute units (CU), stored as quarters so that sizes compare exactly: 0.25 CU is 1, 56
/// CU is 224.
///
/// On the wire it is a JSON number; whole sizes have no fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u16);

const LARGEST_FIXED: Size = Size(56 * 4);
const WIDEST_SPAN_QUARTERS: u16 = 8 * 4;
const LARGEST_FREE: Size = Size(2 * 4);

impl Size {
    pub const SMALLEST: Size = Size(1);
    pub const ONE: Size = Size(4);
    /// 16 CU, the largest size for autoscaling (and, in the public profile, for suspension).
    pub const LARGEST_AUTOSCALED: Size = Size(16 * 4);

    /// The size of this many CU, or `None` if it does not exist. Sizes are 0.25, 0.5, 1 to 16 and
    /// the even integers from 18 to 56.
    pub fn from_cu(cu: f64) -> Option<Self> {
        let quarters = cu * 4.0;
        if !(quarters.fract() == 0.0 && (1.0..=f64::from(LARGEST_FIXED.0)).contains(&quarters)) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and within 1..=224, checked above"
        )]
        let quarters = quarters as u16;
        let exists = match quarters {
            1 | 2 => true,
            4..=64 => quarters.is_multiple_of(4),
            _ => quarters > 64 && quarters.is_multiple_of(8),
        };
        exists.then_some(Self(quarters))
    }

    pub fn cu(self) -> f64 {
        f64::from(self.0) / 4.0
    }

    pub fn quarters(self) -> u16 {
        self.0
    }

    /// Every size that exists, smallest first.
    pub fn all() -> impl Iterator<Item = Size> {
        (1..=LARGEST_FIXED.0).filter_map(|quarters| Size::from_cu(f64::from(quarters) / 4.0))
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.cu())
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 % 4 {
            0 => serializer.serialize_u16(self.0 / 4),
            _ => serializer.serialize_f64(self.cu()),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let cu = f64::deserialize(deserializer)?;
        Size::from_cu(cu)
            .ok_or_else(|| D::Error::custom(format!("no compute has the size {cu} CU")))
    }
}

/// The size range of a compute: fixed if both bounds are equal, otherwise autoscaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    pub min: Size,
    pub max: Size,
}

impl Range {
    pub fn fixed(size: Size) -> Self {
        Self {
            min: size,
            max: size,
        }
    }

    pub fn is_fixed(self) -> bool {
        self.min == self.max
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_fixed() {
            write!(f, "{} CU", self.min)
        } else {
            write!(f, "{} - {} CU", self.min, self.max)
        }
    }
}

/// The plan of an account. It limits sizes and, in the public profile, scale-to-zero settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    Free,
    Launch,
    Scale,
}

impl Plan {
    /// The plan as the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            Plan::Free => "free",
            Plan::Launch => "launch",
            Plan::Scale => "scale",
        }
    }
}

/// Why a size range is refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeFault {
    /// Below the minimum of 0.25 CU in the request schema.
    TooSmall {
        cu: f64,
    },
    MinAboveMax {
        min: f64,
        max: f64,
    },
    NoSuchSize {
        cu: f64,
    },
    /// Autoscaling above 16 CU.
    AutoscaledTooLarge {
        max: Size,
    },
    /// More than 8 CU between the bounds (public profile).
    SpanTooWide {
        range: Range,
    },
    AbovePlan {
        plan: Plan,
        range: Range,
    },
}

/// Validates a request for `min` to `max` CU on this plan.
pub fn judge(min: f64, max: f64, plan: Plan, profile: Profile) -> Result<Range, SizeFault> {
    if let Some(cu) = [min, max]
        .into_iter()
        .find(|cu| cu.is_nan() || *cu < Size::SMALLEST.cu())
    {
        return Err(SizeFault::TooSmall { cu });
    }
    if min > max {
        return Err(SizeFault::MinAboveMax { min, max });
    }
    let known = |cu: f64| Size::from_cu(cu).ok_or(SizeFault::NoSuchSize { cu });
    let range = Range {
        min: known(min)?,
        max: known(max)?,
    };
    if !range.is_fixed() && range.max > Size::LARGEST_AUTOSCALED {
        return Err(SizeFault::AutoscaledTooLarge { max: range.max });
    }
    let span = range.max.0 - range.min.0;
    if profile == Profile::Public && span > WIDEST_SPAN_QUARTERS {
        return Err(SizeFault::SpanTooWide { range });
    }
    if fits_plan(range, plan, profile) {
        Ok(range)
    } else {
        Err(SizeFault::AbovePlan { plan, range })
    }
}

/// True if the plan allows this range.
pub(in crate::world) fn fits_plan(range: Range, plan: Plan, profile: Profile) -> bool {
    match (profile.obeys(), plan) {
        // By the specification: up to 1 GB, no configurable size and no autoscaling.
        (true, Plan::Free) => range == Range::fixed(Size::SMALLEST),
        (true, Plan::Launch | Plan::Scale) => true,
        (false, Plan::Free) => range.max <= LARGEST_FREE,
        (false, Plan::Launch) => range.max <= Size::LARGEST_AUTOSCALED,
        (false, Plan::Scale) => true,
    }
}

/// The largest size of a plan.
pub fn ceiling(plan: Plan, profile: Profile) -> Size {
    match (profile.obeys(), plan) {
        (true, Plan::Free) => Size::SMALLEST,
        (false, Plan::Free) => LARGEST_FREE,
        (_, Plan::Launch | Plan::Scale) => Size::LARGEST_AUTOSCALED,
    }
}

/// The range of a compute that is created without a size.
pub fn default_range(plan: Plan, profile: Profile) -> Range {
    match (profile.obeys(), plan) {
        (true, Plan::Free) => Range::fixed(Size::SMALLEST),
        _ => Range::fixed(Size::ONE),
    }
}

/// The resources of a size: a row of the platform's table of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Capacity {
    pub vcpu: f64,
    pub ram_gb: f64,
    /// 80% of the RAM.
    pub local_file_cache_gb: f64,
    pub max_connections: u32,
}

pub fn capacity(size: Size) -> Capacity {
    let ram_gb = 4.0 * size.cu();
    Capacity {
        vcpu: size.cu(),
        ram_gb,
        local_file_cache_gb: (ram_gb * 8.0).round() / 10.0,
        max_connections: connections(size),
    }
}

fn connections(size: Size) -> u32 {
    match size.0 {
        1 => 112,
        2 => 225,
        4 => 450,
        8 => 901,
        12 => 1351,
        16 => 1802,
        20 => 2253,
        24 => 2703,
        28 => 3154,
        32 => 3604,
        _ => 4000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowed_set_has_38_sizes() {
        let all: Vec<f64> = Size::all().map(Size::cu).collect();
        assert_eq!(all.len(), 38);
        assert_eq!(all[..4], [0.25, 0.5, 1.0, 2.0]);
        assert_eq!(all[17..20], [16.0, 18.0, 20.0]);
        assert_eq!(all[37], 56.0);
    }

    #[test]
    fn sizes_that_do_not_exist() {
        for cu in [
            0.0,
            -1.0,
            0.1,
            0.75,
            1.5,
            17.0,
            17.3,
            19.0,
            58.0,
            f64::NAN,
            f64::INFINITY,
        ] {
            assert_eq!(Size::from_cu(cu), None, "{cu}");
        }
    }

    #[test]
    fn a_whole_size_is_written_without_fraction() {
        let written = |cu| serde_json::to_string(&Size::from_cu(cu).unwrap()).unwrap();
        assert_eq!(
            [written(1.0), written(0.25), written(0.5), written(56.0)],
            ["1", "0.25", "0.5", "56"]
        );
    }

    #[test]
    fn judgement_by_profile_and_plan() {
        use Plan::{Free, Launch, Scale};
        use Profile::{Default, Minimal, Public};
        let cases = [
            (1.0, 1.0, Scale, Minimal, true),
            (56.0, 56.0, Scale, Minimal, true),
            (56.0, 56.0, Launch, Minimal, true),
            (56.0, 56.0, Launch, Default, true),
            (56.0, 56.0, Launch, Public, false),
            (16.0, 16.0, Launch, Public, true),
            (0.25, 16.0, Scale, Minimal, true),
            (0.25, 16.0, Scale, Default, true),
            (0.25, 16.0, Scale, Public, false),
            (0.25, 8.0, Scale, Public, true),
            (1.0, 9.0, Scale, Public, true),
            (1.0, 10.0, Scale, Public, false),
            (8.0, 16.0, Launch, Public, true),
            (16.0, 18.0, Scale, Minimal, false),
            (2.0, 1.0, Scale, Minimal, false),
            (0.25, 0.25, Free, Minimal, true),
            (0.5, 0.5, Free, Minimal, false),
            (0.5, 0.5, Free, Default, false),
            (0.25, 0.5, Free, Minimal, false),
            (0.25, 2.0, Free, Public, true),
            (3.0, 3.0, Free, Public, false),
        ];
        for (min, max, plan, profile, accepted) in cases {
            assert_eq!(
                judge(min, max, plan, profile).is_ok(),
                accepted,
                "{min}..{max} {plan:?} {profile:?}"
            );
        }
    }

    #[test]
    fn table_of_sizes() {
        let rows = [
            (0.25, 1.0, 0.8, 112),
            (0.5, 2.0, 1.6, 225),
            (3.0, 12.0, 9.6, 1351),
            (8.0, 32.0, 25.6, 3604),
            (9.0, 36.0, 28.8, 4000),
            (56.0, 224.0, 179.2, 4000),
        ];
        for (cu, ram_gb, local_file_cache_gb, max_connections) in rows {
            let row = Capacity {
                vcpu: cu,
                ram_gb,
                local_file_cache_gb,
                max_connections,
            };
            assert_eq!(capacity(Size::from_cu(cu).unwrap()), row);
        }
    }
}
