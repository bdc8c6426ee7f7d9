//! The optional features that a platform was seen to support.

use super::Compute;

/// What the platform supports, as a compute or a list of computes shows it. The adapter detects it: dialects have different
/// fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Support {
    pub names: NameSupport,
    /// Computes show when they suspend.
    pub scale_to_zero: bool,
    /// Computes show their database settings, or that they have none.
    pub settings: bool,
}

/// Support of names of computes; each value includes the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameSupport {
    /// Not known: the platform may refuse or ignore a name.
    #[default]
    Unseen,
    /// Computes show fields that only a platform with names has.
    Offered,
    /// Some compute shows a name, so the platform keeps names.
    Kept,
}

impl Support {
    /// The support that these computes show together.
    pub fn among(computes: &[Compute]) -> Self {
        computes.iter().fold(Self::default(), |all, compute| Self {
            names: all.names.max(compute.support.names),
            scale_to_zero: all.scale_to_zero || compute.support.scale_to_zero,
            settings: all.settings || compute.support.settings,
        })
    }
}
