//! What is done about a resource that hands over.

use std::time::Duration;

use jiff::Timestamp;

use super::super::identity::{HandOverRecord, Place, Released};
use super::super::names::ClusterId;
use super::super::{Memory, Meta, Reason, Report, later};
use super::view::{HandOverView, Heir, Standing, Successor, unnoticed_text};
use super::{HandsOver, to_place};
use crate::api::HandOverTo;

/// A resource that may hand over.
pub(in crate::decide) struct Giver<'a> {
    /// As messages and commands name it: Compute, compute.
    pub kind: (&'static str, &'static str),
    /// What it has, where it has something that can be handed over.
    pub what: Option<String>,
    /// When the resource was bound to it.
    pub since: Option<Timestamp>,
    pub meta: &'a Meta,
    /// Whether spec.handOverTo is set, and names this place.
    pub declared: Option<&'a HandOverTo>,
    pub cluster: &'a ClusterId,
    pub released: Option<&'a Released>,
    pub successor: &'a Successor,
    pub memory: &'a Memory,
    pub settle: Duration,
    pub now: Timestamp,
}

/// How often to look for what nobody is told of: that the namespace of a resource that waits is being deleted.
pub(in crate::decide) const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// What is done about a resource that hands over.
pub(in crate::decide) enum Given {
    /// It is released: that is recorded, in both places.
    Release(Released),
    /// The resource that it was released to is gone, as is made sure of first.
    TakeBack(Place),
    Rest(Report),
    /// Nothing before then.
    Wait(Report, Timestamp),
    /// It has nothing any more, as the text says.
    Over(String),
}

/// Whether the record of a resource that is being deleted has to be in both places again: only then the other one goes on.
pub(in crate::decide) fn needs_record(meta: &Meta, record: &HandOverRecord) -> bool {
    meta.deleting && meta.record_lost && *record != HandOverRecord::default()
}

/// What the deletion of a resource waits for that has taken over from another one.
pub(in crate::decide) fn unnoticed<K: HandsOver>(meta: &Meta, view: &HandOverView<K::Identity>) -> Option<Report> {
    let place = view.unnoticed_by.as_ref().filter(|_| meta.deleting)?;
    let kind = K::KIND.to_lowercase();
    let Place { namespace, name, .. } = place;
    let text = unnoticed_text::<K>(place);
    let see = format!(
        "{text} If it is paused, end that; otherwise see its status: kubectl -n {namespace} get {kind} {name} -o yaml."
    );
    Some(Report::progressing(Reason::HandingOver, see))
}

/// What is done about a resource that hands over; `None` where it is treated as any other.
pub(in crate::decide) fn give(giver: &Giver) -> Option<Given> {
    match giver.released {
        Some(released) => Some(giver.released(released)),
        None => giver.unreleased(),
    }
}

impl Giver<'_> {
    fn released(&self, released: &Released) -> Given {
        let (kind, what, to) = (self.kind.0, self.what.as_deref().unwrap_or("What it had"), &released.to);
        let over = || format!("{what} is managed by {kind} {to}.");
        let done =
            |more: &str| Report::handed_over(format!("{} This resource changes nothing any more: {more}", over()));
        match self.successor {
            Successor::Elsewhere(_) if self.meta.deleting => Given::Over(over()),
            Successor::Elsewhere(_) => Given::Rest(done(
                "copy status.release to spec.takeOverFrom.release there, and delete this one once that one is ready.",
            )),
            Successor::There(heir) if heir.standing == Standing::HasTakenOver && !released.taken => {
                Given::Release(Released { taken: true, ..released.clone() })
            }
            Successor::There(heir) if heir.standing == Standing::HasTakenOver => match self.meta.deleting {
                true if heir.awaits_secret => {
                    Given::Rest(self.waits(&format!("{kind} {to} is taking over the Secret.")))
                }
                true => Given::Over(over()),
                false => Given::Rest(done("delete it.")),
            },
            // Whatever has become of the other one since: what it had is not this one's any more.
            _ if released.taken && self.meta.deleting => Given::Over(format!("{what} was taken over by {kind} {to}.")),
            _ if released.taken => Given::Rest(Report::handed_over(format!(
                "{what} was taken over by {kind} {to}. This resource changes nothing any more: delete it."
            ))),
            Successor::There(heir) if released.uid.as_ref() == Some(&heir.uid) => Given::Rest(match heir.standing {
                Standing::Does(problem) => self.stuck(to, problem, "delete that one, and then: "),
                _ => self.waits(&format!("{kind} {to} is about to take over {what}.")),
            }),
            // It was deleted, and there is another one.
            Successor::There(heir) if heir.standing == Standing::Asks => Given::Release(self.release_to(heir)),
            Successor::There(Heir { standing: Standing::Does(what), .. }) => Given::Rest(self.stuck(to, what, "")),
            Successor::Never(_) => Given::TakeBack(to.clone()),
            Successor::Absent(_) if !self.declares(to) => Given::TakeBack(to.clone()),
            Successor::Hidden(_, why) => Given::Rest(self.stuck(to, why, "")),
            Successor::There(_) | Successor::Absent(_) | Successor::Unnamed => {
                Given::Rest(self.stuck(to, "does not exist any more", ""))
            }
        }
    }

    fn unreleased(&self) -> Option<Given> {
        self.what.as_ref()?;
        match self.successor {
            Successor::Unnamed | Successor::Never(_) => None,
            Successor::Elsewhere(to) => {
                Some(self.release(Released { to: to.clone(), uid: None, at: self.at(), taken: false }))
            }
            Successor::There(heir) => match heir.standing {
                // It has taken over where an older backup has brought the record from before.
                Standing::Asks | Standing::IsTakingOver | Standing::HasTakenOver => {
                    Some(self.release(self.release_to(heir)))
                }
                Standing::Does(what) if self.meta.deleting => Some(Given::Rest(self.stuck(&heir.place, what, ""))),
                Standing::Does(_) => None,
            },
            Successor::Absent(to) if self.meta.deleting => Some(Given::Rest(self.stuck(to, "does not exist", ""))),
            Successor::Hidden(to, why) if self.meta.deleting => Some(Given::Rest(self.stuck(to, why, ""))),
            Successor::Absent(_) | Successor::Hidden(..) => None,
        }
    }

    /// What the other one takes over must not be deleted then.
    fn release(&self, released: Released) -> Given {
        let over = self.memory.deletes_over(self.settle, self.now);
        if !self.meta.deleting || over <= self.now {
            return Given::Release(released);
        }
        let (what, kind, to) = (self.what.as_deref().unwrap_or("What it has"), self.kind.0, &released.to);
        let message = format!(
            "{what} is handed over to {kind} {to} from {over} on: until then a delete may be carried out that was sent before              spec.handOverTo was set."
        );
        Given::Wait(self.waits(&message), over)
    }

    fn release_to(&self, heir: &Heir) -> Released {
        Released { to: heir.place.clone(), uid: Some(heir.uid.clone()), at: self.at(), taken: false }
    }

    /// After the binding, whatever the clocks of two processes say: who was bound later than the release has found free what it has.
    fn at(&self) -> Timestamp {
        self.since.map_or(self.now, |since| self.now.max(later(since, Duration::from_nanos(1))))
    }

    fn declares(&self, place: &Place) -> bool {
        let me = self.meta.object_key();
        self.declared.is_some_and(|to| to_place(to, self.cluster, me) == *place)
    }

    fn waits(&self, message: &str) -> Report {
        Report::progressing(Reason::HandingOver, message)
    }

    fn stuck(&self, to: &Place, problem: &str, before: &str) -> Report {
        let ((kind, command), what) = (self.kind, self.what.as_deref().unwrap_or("what it had"));
        let Meta { namespace, name, deleting, .. } = self.meta;
        let instead = if *deleting { "delete it with this resource" } else { "keep it here" };
        let ask = match self.successor {
            Successor::Hidden(..) => String::new(),
            _ => format!("Create that one with spec.takeOverFrom: {{namespace: {namespace}, name: {name}}}. "),
        };
        Report::stalled(
            Reason::HandingOver,
            format!(
                "{what} is to be handed over to {kind} {to}, which {problem}. {ask}To {instead}: {before}kubectl -n {namespace} patch \
                 {command} {name} --type merge -p '{{\"spec\":{{\"handOverTo\":null}}}}'."
            ),
        )
    }
}
