//! The optional features that a platform was observed to support.

use super::Compute;

/// The features of the platform that a compute or a list of computes shows. The adapter detects
/// them from the fields, which differ between dialects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Support {
    pub names: NameSupport,
    /// Computes show their scale-to-zero setting.
    pub scale_to_zero: bool,
    /// Computes show their database settings, or that they have none.
    pub settings: bool,
}

/// Support for names of computes. Each value includes the previous ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameSupport {
    /// Unknown: the platform may reject or ignore a name.
    #[default]
    Unseen,
    /// Computes show fields that only exist on platforms with names.
    Offered,
    /// At least one compute shows a name, so the platform keeps names.
    Kept,
}

impl Support {
    /// The features that any of these computes shows.
    pub fn among(computes: &[Compute]) -> Self {
        computes.iter().fold(Self::default(), |all, compute| Self {
            names: all.names.max(compute.support.names),
            scale_to_zero: all.scale_to_zero || compute.support.scale_to_zero,
            settings: all.settings || compute.support.settings,
        })
    }
}
