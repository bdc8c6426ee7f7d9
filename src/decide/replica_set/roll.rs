//! Keeps the number of replicas, and selects the next one to change or replace.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::member::{self, Replica};
use super::{SetCase, SetDecision, SetStep, retire};
use crate::api::Share;
use crate::decide::names::derived;
use crate::decide::{Action, Report};

impl SetCase<'_> {
    /// Creates missing replicas and deletes surplus ones. Replicas of another project
    /// or branch are to be replaced. Their successors are created first if more replicas than declared are allowed.
    pub(super) fn number(&self, report: &Report) -> Option<SetDecision> {
        let (current, former): (Vec<&Replica>, Vec<&Replica>) =
            self.replicas.iter().partition(|replica| replica.current);
        let (desired, surge) = (self.desired(), self.surge());
        let hidden = self.observed.unreadable;
        let most = if former.is_empty() {
            desired
        } else {
            desired.saturating_add(surge)
        };
        if current.len() + hidden < desired && self.replicas.len() + hidden < most {
            return Some(self.act(
                Action::Create,
                SetStep::Create {
                    name: self.free_name(),
                },
                report,
            ));
        }
        let surplus = if current.len() + hidden > desired {
            retire::first(current.iter().copied())
        } else {
            None
        };
        let goes = surplus.or_else(|| self.former(&former, most))?;
        Some(self.act(
            Action::Delete,
            SetStep::Retire(member::named(&goes.compute)),
            report,
        ))
    }

    /// The replica of another project or branch that can be deleted now.
    fn former<'a>(&self, former: &[&'a Replica], most: usize) -> Option<&'a Replica> {
        let goes = retire::first(former.iter().copied())?;
        let others = || {
            self.replicas
                .iter()
                .filter(|replica| replica.name() != goes.name())
        };
        let (ready, serving) = (
            others().filter(|it| it.is_ready()).count(),
            others().filter(|it| !it.serves_nobody()).count(),
        );
        let floor = match self.surge() {
            0 => self.desired().saturating_sub(self.unavailable()),
            _ => self.desired(),
        };
        // An unseen replica may serve, so maxUnavailable does not cover it.
        let is_spare = ready
            >= if goes.is_seen() {
                floor
            } else {
                self.desired()
            };
        let is_surplus = self.replicas.len() > most && serving >= self.desired();
        (goes.serves_nobody() || is_surplus || is_spare).then_some(goes)
    }

    /// Updates one replica that differs from the template, as long as enough others are ready. A
    /// replica that does not serve has nothing to lose, and may serve after the change. An unseen
    /// replica is skipped: otherwise all of them would change at once when the platform is
    /// reachable again.
    pub(super) fn change(&self, report: &Report) -> Option<SetDecision> {
        let current = || self.replicas.iter().filter(|replica| replica.current);
        let can_change = current().filter(|replica| !replica.declared && replica.is_seen());
        let next =
            can_change.min_by_key(|replica| (!replica.serves_nobody(), replica.is_ready()))?;
        let others = current().filter(|replica| replica.name() != next.name());
        let busy = others
            .filter(|replica| !replica.is_ready() || replica.declared && !replica.is_settled());
        let may_take_one = busy.count() < self.unavailable();
        let step = SetStep::Update(member::named(&next.compute));
        (next.serves_nobody() || may_take_one).then(|| self.act(Action::Change, step, report))
    }

    /// Sets the template's account on a replica that cannot be observed. Otherwise a set whose
    /// account is gone could never move to another account. This changes nothing on the platform.
    pub(super) fn account(&self, report: &Report) -> Option<SetDecision> {
        let mut replicas = self.replicas.iter();
        let next =
            replicas.find(|replica| !replica.is_seen() && replica.has_other_account(self.spec))?;
        let step = SetStep::UseAccount(member::named(&next.compute));
        Some(self.act(Action::Change, step, report))
    }

    fn surge(&self) -> usize {
        let Share(share) = &self.spec.strategy.max_surge;
        self.count(share, |part| part.div_ceil(100))
    }

    fn unavailable(&self) -> usize {
        let Share(share) = &self.spec.strategy.max_unavailable;
        self.count(share, |part| part / 100).max(1)
    }

    fn count(&self, share: &IntOrString, of_percents: fn(usize) -> usize) -> usize {
        match share {
            IntOrString::Int(count) => usize::try_from(*count).unwrap_or_default(),
            IntOrString::String(text) => match text.strip_suffix('%') {
                Some(percents) => of_percents(
                    self.desired()
                        .saturating_mul(percents.parse().unwrap_or_default()),
                ),
                None => text.parse().unwrap_or_default(),
            },
        }
    }

    /// The set's name and the lowest free number. All processes with the same view choose the same
    /// name, so none creates a replica twice.
    fn free_name(&self) -> String {
        let (set, names) = (&self.observed.meta.name, &self.observed.names);
        // A name that is too long is cut and digested. The longest number decides, so that all
        // numbers share one beginning.
        let longest = format!("-{}", names.len());
        let last = derived(set, &longest);
        let beginning = last.strip_suffix(&longest).unwrap_or(set);
        (0..=names.len())
            .map(|number| format!("{beginning}-{number}"))
            .find(|name| !names.contains(name))
            .unwrap_or_default()
    }
}
