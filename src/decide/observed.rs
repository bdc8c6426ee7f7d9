//! The input of a decision, besides the spec and the time.

use std::ops::{Deref, DerefMut};

use super::names::ClusterId;
use super::{AccountView, Limits, Memory, Meta};
use crate::api::Uid;

/// An observation: the part that is the same for every kind, and the facts of one kind. The facts
/// are reached without naming them, as in `observed.snapshot`.
#[derive(Clone, Debug)]
pub struct Observed<T> {
    pub meta: Meta,
    pub uid: Uid,
    pub account: AccountView,
    pub memory: Memory,
    pub limits: Limits,
    /// The cluster that the operator manages, for unique names.
    pub cluster: ClusterId,
    /// A random number for this decision, for unique names.
    pub random: u32,
    pub facts: T,
}

impl<T> Deref for Observed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.facts
    }
}

impl<T> DerefMut for Observed<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.facts
    }
}
