//! The world as it first starts: the world file and the settings in it.

pub mod declare;
pub mod file;
pub mod settings;
