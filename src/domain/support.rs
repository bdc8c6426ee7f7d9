//! What a platform was seen to support beyond the basics.

use super::Compute;

/// What a compute, or a list of them, shows of what the platform supports. The adapter knows by what: one dialect has
/// other fields than the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Support {
    pub names: NameSupport,
    /// Computes show when they suspend.
    pub scale_to_zero: bool,
}

/// What is seen of names of computes; what comes later includes what comes before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameSupport {
    /// Nothing: a name may be refused or dropped.
    #[default]
    Unseen,
    /// Computes show what only a platform with names shows.
    Offered,
    /// Some compute shows its name: what is given one keeps it.
    Kept,
}

impl Support {
    /// What these computes show together.
    pub fn among(computes: &[Compute]) -> Self {
        computes.iter().fold(Self::default(), |all, compute| Self {
            names: all.names.max(compute.support.names),
            scale_to_zero: all.scale_to_zero || compute.support.scale_to_zero,
        })
    }
}
