//! The state of a compute.

use std::fmt;

/// The state of a compute. Its text is the platform's word, which messages show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComputeState {
    /// It was created and has not started yet.
    Init,
    /// It is suspended, and starts when a client connects.
    Idle,
    Active,
    /// Any other word of the platform, so that a new state does not break a reading.
    Other(String),
}

impl ComputeState {
    /// True if dbplane knows the meaning of the state. Any other word, such as "failed", proves
    /// nothing.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

/// Parses the platform's word.
impl From<String> for ComputeState {
    fn from(word: String) -> Self {
        let known = [Self::Init, Self::Idle, Self::Active]
            .into_iter()
            .find(|state| state.to_string() == word);
        known.unwrap_or(Self::Other(word))
    }
}

impl fmt::Display for ComputeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Init => "init",
            Self::Idle => "idle",
            Self::Active => "active",
            Self::Other(word) => word,
        })
    }
}
