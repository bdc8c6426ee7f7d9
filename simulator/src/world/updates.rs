//! What a change of configuration does to a compute: which operations it takes.

use super::Profile;
use super::model::{Action, ComputeConfig, State};

/// What is different between two configurations, as far as it matters to a compute that may be running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Difference {
    pub moved: bool,
    pub resized: bool,
    pub switched_off: bool,
    /// Anything else. The public API makes no operation of a new name.
    pub other: bool,
}

impl Difference {
    /// What `new` changes about `old`.
    pub fn between(old: &ComputeConfig, new: &ComputeConfig, profile: Profile) -> Self {
        let masked = ComputeConfig {
            branch_id: old.branch_id.clone(),
            range: old.range,
            disabled: if new.disabled { old.disabled } else { new.disabled },
            name: if profile.obeys() { new.name.clone() } else { old.name.clone() },
            ..new.clone()
        };
        Self {
            moved: old.branch_id != new.branch_id,
            resized: old.range != new.range,
            switched_off: new.disabled && !old.disabled,
            other: masked != *old,
        }
    }
}

/// The operations that a change takes, and whether they replace what is under way or follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// Nothing is to be done.
    Nothing,
    /// At once; what was under way is given up.
    Instead(&'static [Action]),
    /// When what is under way is done.
    Behind(&'static [Action]),
}

/// The operations for a change of a compute that is, or is about to be, in the state `target`.
pub(super) fn course(difference: Difference, target: State, profile: Profile) -> Course {
    use Action::{ApplyConfig, StartCompute, SuspendCompute};
    let running = target != State::Idle;
    match (difference, running, profile) {
        (Difference { moved: true, .. }, _, _) => Course::Instead(&[ApplyConfig, SuspendCompute]),
        (Difference { moved: false, resized: false, switched_off: false, other: false }, _, _) => Course::Nothing,
        (Difference { switched_off: true, .. }, true, _) => Course::Instead(&[ApplyConfig, SuspendCompute]),
        (Difference { resized: true, .. }, true, _) => Course::Instead(&[ApplyConfig, SuspendCompute, StartCompute]),
        (_, true, _) => Course::Behind(&[ApplyConfig]),
        // A suspended compute takes its configuration when it starts. The specification has an operation for every change.
        (_, false, Profile::Public) => Course::Nothing,
        (_, false, Profile::Default | Profile::Minimal) => Course::Behind(&[ApplyConfig]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Action::{ApplyConfig, StartCompute, SuspendCompute};

    #[test]
    fn courses() {
        const NONE: Difference = Difference { moved: false, resized: false, switched_off: false, other: false };
        let moved = Difference { moved: true, ..NONE };
        let resized = Difference { resized: true, ..NONE };
        let off = Difference { switched_off: true, ..NONE };
        let other = Difference { other: true, ..NONE };
        let restart = Course::Instead(&[ApplyConfig, SuspendCompute, StartCompute]);
        let stop = Course::Instead(&[ApplyConfig, SuspendCompute]);
        let apply = Course::Behind(&[ApplyConfig]);
        use Profile::{Default, Minimal, Public};
        use State::{Active, Idle, Init};
        let cases = [
            (NONE, Active, Public, Course::Nothing),
            (NONE, Idle, Minimal, Course::Nothing),
            (moved, Active, Public, stop),
            (moved, Idle, Public, stop),
            (moved, Init, Minimal, stop),
            (resized, Active, Public, restart),
            (resized, Active, Minimal, restart),
            (resized, Idle, Public, Course::Nothing),
            (resized, Idle, Default, apply),
            (resized, Idle, Minimal, apply),
            (off, Active, Public, stop),
            (off, Idle, Public, Course::Nothing),
            (other, Active, Public, apply),
            (other, Idle, Public, Course::Nothing),
            (Difference { moved: true, resized: true, ..NONE }, Active, Public, stop),
        ];
        for (difference, target, profile, expected) in cases {
            assert_eq!(course(difference, target, profile), expected, "{difference:?} {target:?} {profile:?}");
        }
    }
}
