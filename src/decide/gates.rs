//! The gates of a decision: conditions that every kind except accounts checks in the same order
//! before it decides by its own rules.

use super::{AccountView, Decision, Health, Observed, Report, brake, paused};

/// The decisions of one kind at the gates. A default means that the kind does nothing special
/// there.
pub(super) trait Gates {
    type Step;

    /// A step that even the deletion has to wait for.
    fn before_deletion(&self) -> Option<Decision<Self::Step>> {
        None
    }

    /// The decision about a resource that is being deleted.
    fn deletion(&self) -> Decision<Self::Step>;

    /// A step that a pause must not delay.
    fn before_pause(&self) -> Option<Decision<Self::Step>> {
        None
    }

    /// A step that needs no account: it restores the finalizer and the copy of the record.
    fn before_account(&self) -> Option<Decision<Self::Step>> {
        None
    }

    /// The decision while the account cannot be used.
    fn without_account(&self, obstacle: Report) -> Decision<Self::Step> {
        Decision::rest(obstacle)
    }

    /// The decision of the kind after all gates.
    fn decision(&self) -> Decision<Self::Step>;
}

/// Decides on a resource. `brakes` is true if its deletion deletes something on the platform.
/// `case` is the input of the kind's rules, or the decision about an invalid record.
pub(super) fn decide<T, C: Gates>(
    observed: &Observed<T>,
    brakes: bool,
    case: Result<C, Decision<C::Step>>,
) -> Decision<C::Step> {
    let meta = &observed.meta;
    if brakes && let Some(braked) = brake::held(meta, &observed.limits) {
        return braked;
    }
    let case = match case {
        Ok(case) => case,
        Err(invalid_record) => return invalid_record,
    };
    if let Some(choice) = case.before_deletion() {
        return choice;
    }
    if meta.deleting {
        return case.deletion();
    }
    if let Some(choice) = case.before_pause() {
        return choice;
    }
    if let Some(paused) = paused(meta) {
        return Decision::rest(paused);
    }
    if let Some(choice) = case.before_account() {
        return choice;
    }
    if observed.account == AccountView::Pending {
        return Decision::silent();
    }
    match observed.account.obstacle() {
        Some(mistake @ Health::Stalled(..)) => case.without_account(meta.unlooked(mistake)),
        Some(obstacle) => case.without_account(Report::of(obstacle)),
        None => case.decision(),
    }
}
