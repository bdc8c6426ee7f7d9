//! Injector: a test picks a request by name and makes it fail or take long.

use std::time::Duration;

use super::faults::Fault;
use super::in_memory::Request;
use super::simulation::Simulation;

/// Name of the wait for the account's budget before a change.
pub const ADMISSION: &str = "admission of a change";
/// Name of the list of the project's computes.
pub const LIST: &str = "Get /projects/p/endpoints";
/// Name of the creation of a compute.
pub const CREATE: &str = "Post /projects/p/endpoints";
/// Name of the creation of a key.
pub const CREATE_KEY: &str = "Post /organizations/org/api_keys";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    Once,
    Always,
}

/// The effect of a snare.
#[derive(Clone, Debug)]
pub enum Injected {
    Fault(Fault),
    /// The request takes this many seconds.
    Slow(u16),
    /// This happens just before the request.
    Meanwhile(fn(&mut Simulation)),
}

/// The first match applies.
#[derive(Debug, Default)]
pub struct Injector(Vec<(&'static str, Times, Injected)>);

impl Injector {
    /// Matches requests by name; a trailing `*` matches any ending.
    pub fn set(&mut self, at: &'static str, times: Times, what: Injected) {
        self.0.push((at, times, what));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, name: &str) -> Option<Injected> {
        let fits = |at: &str| {
            at.strip_suffix('*')
                .map_or(at == name, |beginning| name.starts_with(beginning))
        };
        let first = self.0.iter().position(|(at, ..)| fits(at))?;
        match self.0[first].1 {
            Times::Once => Some(self.0.remove(first).2),
            Times::Always => Some(self.0[first].2.clone()),
        }
    }
}

impl Simulation {
    /// Applies a matching snare. Returns the fault to answer with, if any.
    pub fn injected(&mut self, name: &str) -> Option<Fault> {
        match self.injector.take(name)? {
            Injected::Fault(fault) => return Some(fault),
            Injected::Slow(seconds) => self.advance(Duration::from_secs(seconds.into())),
            Injected::Meanwhile(happens) => happens(self),
        }
        None
    }
}

pub fn name_of(request: &Request) -> String {
    match request {
        Request::Patch { resource, .. } => format!("patch of {} {}", resource.0, resource.1),
        Request::ApplyStatus { resource, .. } => format!("status of {} {}", resource.0, resource.1),
        Request::Create { resource, .. } => format!("creation of {} {}", resource.0, resource.1),
        Request::Delete { resource, .. } => format!("deletion of {} {}", resource.0, resource.1),
        Request::Event { resource, .. } => format!("event of {} {}", resource.0, resource.1),
        Request::ReadObject(resource) => format!("read of {} {}", resource.0, resource.1),
        Request::ReadSecret(name) => format!("read of Secret {name}"),
        Request::CreateSecret(name, _) => format!("creation of Secret {name}"),
        Request::ApplySecret {
            name,
            dry_run: true,
            ..
        } => format!("dry run of Secret {name}"),
        Request::ApplySecret {
            name,
            dry_run: false,
            ..
        } => format!("write of Secret {name}"),
        Request::PatchSecret { name, .. } => format!("patch of Secret {name}"),
        Request::IsNamespaceTerminating(_) => "read of the namespace".to_owned(),
    }
}
