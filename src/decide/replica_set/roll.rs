//! How many replicas there are, and which of them is changed or replaced next.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::{Action, Report};
use super::member::{self, Replica};
use super::{Case, Choice, SetStep, retire};
use crate::api::Share;

impl Case<'_> {
    /// Creates what is missing, and deletes what is too many. Of another branch are those that are to be replaced: new ones come
    /// first, where there may be more than are declared.
    pub(super) fn number(&self, report: &Report) -> Option<Choice> {
        let (current, former): (Vec<&Replica>, Vec<&Replica>) =
            self.replicas.iter().partition(|replica| replica.current);
        let (desired, surge) = (self.desired(), self.surge());
        let most = if former.is_empty() { desired } else { desired.saturating_add(surge) };
        if current.len() < desired && self.replicas.len() < most {
            return Some(self.act(Action::Create, SetStep::Create { name: self.free_name() }, report));
        }
        let surplus = if current.len() > desired { retire::first(current.iter().copied()) } else { None };
        let goes = surplus.or_else(|| self.former(&former, most))?;
        Some(self.act(Action::Delete, SetStep::Retire(member::named(&goes.compute)), report))
    }

    /// The one of another branch that can go now.
    fn former<'a>(&self, former: &[&'a Replica], most: usize) -> Option<&'a Replica> {
        let goes = retire::first(former.iter().copied())?;
        let ready = self.replicas.iter().filter(|replica| replica.is_ready()).count();
        let floor = match self.surge() {
            0 => self.desired().saturating_sub(self.unavailable()),
            _ => self.desired(),
        };
        let is_spare = ready.saturating_sub(1) >= floor;
        (self.replicas.len() > most || !goes.is_ready() || is_spare).then_some(goes)
    }

    /// Changes one that is not as the template says, as long as enough of the others are ready.
    pub(super) fn change(&self, report: &Report) -> Option<Choice> {
        let current: Vec<&Replica> = self.replicas.iter().filter(|replica| replica.current).collect();
        let busy = current.iter().filter(|replica| !replica.is_ready() || replica.declared && !replica.is_settled());
        let may_take_one = busy.count() < self.unavailable();
        // One that is not ready has nothing to lose, and may be ready once it is changed.
        let next = current.iter().filter(|replica| !replica.declared).min_by_key(|replica| replica.is_ready())?;
        let step = SetStep::Update(member::named(&next.compute));
        (may_take_one || !next.is_ready()).then(|| self.act(Action::Change, step, report))
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
                Some(percents) => of_percents(self.desired().saturating_mul(percents.parse().unwrap_or_default())),
                None => text.parse().unwrap_or_default(),
            },
        }
    }

    /// The set's name and the lowest number that no Compute has. Whoever decides on the same sight chooses the same name, so that
    /// nobody creates one twice.
    fn free_name(&self) -> String {
        let set = &self.observed.meta.name;
        let names = &self.observed.names;
        (0..=names.len()).map(|number| format!("{set}-{number}")).find(|name| !names.contains(name)).unwrap_or_default()
    }
}
