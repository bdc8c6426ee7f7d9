//! Runs passes over an object, whatever its kind.

use std::task::Poll;

use dbplane::controller::environment::{Environment, Kind, KindVisitor};
use dbplane::controller::object::uid;
use dbplane::controller::pass::refused::report_refused_request;
use dbplane::controller::pass::{Next, pass};
use dbplane::decide::Wake;
use kube::Resource as _;

use super::{End, Process, poll};
use crate::in_memory::{self, Resource};

/// Runs one pass over the current version of an object.
pub(super) struct One<'a> {
    pub process: &'a Process,
    pub resource: &'a Resource,
    pub end: End,
}

impl KindVisitor for One<'_> {
    fn visit<K: Kind>(&mut self) {
        if K::Object::kind(&()) != self.resource.0 {
            return;
        }
        let Some(object) = self
            .process
            .simulation
            .lock()
            .cluster
            .get::<K::Object>(&self.resource.1)
        else {
            return;
        };
        let passed = poll(pass::<K, Process>(self.process, &object));
        if matches!(passed, Poll::Ready(Ok(_))) {
            self.process.state().pass_succeeded(uid(object.as_ref()));
        }
        self.end = match passed {
            Poll::Pending => End::Died,
            Poll::Ready(Err(error)) => {
                let reported = poll(report_refused_request::<K, Process>(
                    self.process,
                    &object,
                    &error,
                ));
                self.process.state().pass_failed(uid(object.as_ref()));
                self.process.simulation.lock().ledger.note_refused(error);
                if reported.is_ready() {
                    End::Again
                } else {
                    End::Died
                }
            }
            Poll::Ready(Ok(pass)) => match pass.next {
                // Nothing is cached yet, or the watch delivers our own write at once.
                Next::Now | Next::OnOwnWrite => End::Again,
                Next::On(_) if pass.report.is_none() => End::Again,
                Next::On(Wake::OnChange) => End::Rest(None),
                Next::On(Wake::At(time)) => End::Rest(Some(time)),
            },
        };
    }
}

/// Handles an object that is gone.
pub(super) struct Gone<'a> {
    pub process: &'a Process,
    pub resource: &'a Resource,
    pub stored: &'a in_memory::cluster::Stored,
}

impl KindVisitor for Gone<'_> {
    fn visit<K: Kind>(&mut self) {
        if K::Object::kind(&()) != self.resource.0 {
            return;
        }
        let object = self.stored.typed::<K::Object>().unwrap();
        K::on_deleted(self.process, object.as_ref());
        // A pass with the last version may still have been queued.
        let effects = || self.process.simulation.lock().effects;
        let before = effects();
        assert!(poll(pass::<K, Process>(self.process, &object)).is_ready());
        assert_eq!(
            effects(),
            before,
            "something was asked for or done for {:?}, which is gone",
            self.resource
        );
    }
}
