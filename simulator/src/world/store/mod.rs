//! The saved part of a world, and the generator of ids that makes it reproducible.

pub mod ids;
pub mod rows;
pub mod tracked;
