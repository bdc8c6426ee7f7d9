//! What a compute is doing.

use std::fmt;

/// What a compute is doing. Its text is the platform's word, which is what people are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComputeState {
    /// It was created and has not started yet.
    Init,
    /// It is suspended, and starts when a client connects.
    Idle,
    Active,
    /// Another word of the platform: a new state must not break a reading.
    Other(String),
}

impl ComputeState {
    /// Whether dbplane knows what it means. A word of another kind, such as "failed", shows nothing.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

/// The platform's word for it.
impl From<String> for ComputeState {
    fn from(word: String) -> Self {
        let known = [Self::Init, Self::Idle, Self::Active].into_iter().find(|state| state.to_string() == word);
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
