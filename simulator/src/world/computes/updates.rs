//! The operations that a change of a compute's configuration requires.

use crate::world::Profile;
use crate::world::model::{Action, ComputeConfig, State};

/// The differences between two configurations that matter to a possibly running compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::world) struct Difference {
    pub moved: bool,
    pub resized: bool,
    pub switched_off: bool,
    /// Any other difference. In the public API, a new name starts no operation.
    pub other: bool,
}

impl Difference {
    /// Compares two configurations.
    pub fn between(old: &ComputeConfig, new: &ComputeConfig, profile: Profile) -> Self {
        let masked = ComputeConfig {
            branch_id: old.branch_id.clone(),
            range: old.range,
            disabled: if new.disabled {
                old.disabled
            } else {
                new.disabled
            },
            name: if profile.obeys() {
                new.name.clone()
            } else {
                old.name.clone()
            },
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

/// The operations of a change, and whether they replace or follow those in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::world) enum Operations {
    /// No operations.
    Nothing,
    /// At once; operations in progress are cancelled.
    AtOnce(&'static [Action]),
    /// After the operations in progress.
    AfterOthers(&'static [Action]),
}

/// The operations for a change of a compute whose state is, or will be, `target`.
pub(in crate::world) fn operations_for(
    difference: Difference,
    target: State,
    profile: Profile,
) -> Operations {
    use Action::{ApplyConfig, StartCompute, SuspendCompute};
    let running = target != State::Idle;
    match (difference, running, profile) {
        (Difference { moved: true, .. }, _, _) => {
            Operations::AtOnce(&[ApplyConfig, SuspendCompute])
        }
        (
            Difference {
                moved: false,
                resized: false,
                switched_off: false,
                other: false,
            },
            _,
            _,
        ) => Operations::Nothing,
        (
            Difference {
                switched_off: true, ..
            },
            true,
            _,
        ) => Operations::AtOnce(&[ApplyConfig, SuspendCompute]),
        (Difference { resized: true, .. }, true, _) => {
            Operations::AtOnce(&[ApplyConfig, SuspendCompute, StartCompute])
        }
        (_, true, _) => Operations::AfterOthers(&[ApplyConfig]),
        // A suspended compute applies its configuration at the next start. The specification has an
        // operation for every change.
        (_, false, Profile::Public) => Operations::Nothing,
        (_, false, Profile::Default | Profile::Minimal) => Operations::AfterOthers(&[ApplyConfig]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Action::{ApplyConfig, StartCompute, SuspendCompute};

    #[test]
    fn operations_of_each_change() {
        const NONE: Difference = Difference {
            moved: false,
            resized: false,
            switched_off: false,
            other: false,
        };
        let moved = Difference {
            moved: true,
            ..NONE
        };
        let resized = Difference {
            resized: true,
            ..NONE
        };
        let off = Difference {
            switched_off: true,
            ..NONE
        };
        let other = Difference {
            other: true,
            ..NONE
        };
        let restart = Operations::AtOnce(&[ApplyConfig, SuspendCompute, StartCompute]);
        let stop = Operations::AtOnce(&[ApplyConfig, SuspendCompute]);
        let apply = Operations::AfterOthers(&[ApplyConfig]);
        use Profile::{Default, Minimal, Public};
        use State::{Active, Idle, Init};
        let cases = [
            (NONE, Active, Public, Operations::Nothing),
            (NONE, Idle, Minimal, Operations::Nothing),
            (moved, Active, Public, stop),
            (moved, Idle, Public, stop),
            (moved, Init, Minimal, stop),
            (resized, Active, Public, restart),
            (resized, Active, Minimal, restart),
            (resized, Idle, Public, Operations::Nothing),
            (resized, Idle, Default, apply),
            (resized, Idle, Minimal, apply),
            (off, Active, Public, stop),
            (off, Idle, Public, Operations::Nothing),
            (other, Active, Public, apply),
            (other, Idle, Public, Operations::Nothing),
            (
                Difference {
                    moved: true,
                    resized: true,
                    ..NONE
                },
                Active,
                Public,
                stop,
            ),
        ];
        for (difference, target, profile, expected) in cases {
            assert_eq!(
                operations_for(difference, target, profile),
                expected,
                "{difference:?} {target:?} {profile:?}"
            );
        }
    }
}
