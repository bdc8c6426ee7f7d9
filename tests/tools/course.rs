//! The allowed order of statuses of a resource.

use regex::Regex;

/// A user's action between two quiet periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Nothing,
    Created,
    /// A change of its spec, its Secret or the age of its key.
    Changed,
    Deleted,
    /// Deleted without a finalizer.
    DeletedAtOnce,
    /// Its set is changed or deleted, which creates, changes or deletes it.
    OfItsSet,
    /// Deleted with its namespace. Its Secret may be deleted first and cannot be written again. An
    /// unused account has no finalizer and is deleted at once.
    DeletedWithNamespace,
}

impl Deed {
    /// The allowed orders of statuses by their first letters, without repetitions. A status must
    /// not return: after Current, tools consider the resource done.
    fn allowed(self) -> &'static str {
        match self {
            Self::Nothing => "^C?$",
            Self::Created => "^IC$",
            Self::Changed => "^C?(IC)?$",
            Self::Deleted => "^C?T$",
            Self::DeletedAtOnce => "^C?T?$",
            Self::OfItsSet => "^C?(IC)?T?$",
            Self::DeletedWithNamespace => "^C?I?F?T?$",
        }
    }
}

/// The error in this series of kstatus results, if any.
pub fn flaw(deed: Deed, statuses: &[&str]) -> Option<String> {
    let mut seen = statuses.to_vec();
    seen.dedup();
    let letters: String = seen
        .iter()
        .filter_map(|status| status.chars().next())
        .collect();
    let allowed = Regex::new(deed.allowed()).unwrap().is_match(&letters);
    (!allowed).then(|| format!("{deed:?}: {}", seen.join(", ")))
}

#[test]
fn an_oscillating_course_is_reported() {
    let (new, current, gone, failed) = ("InProgress", "Current", "Terminating", "Failed");
    for (deed, statuses, fine) in [
        (Deed::Created, vec![new, new, current, current], true),
        (Deed::Created, vec![current], false),
        (Deed::Created, vec![new], false),
        (Deed::Created, vec![new, current, new, current], false),
        (Deed::Created, vec![new, failed, current], false),
        (Deed::Nothing, vec![], true),
        (Deed::Nothing, vec![current], true),
        (Deed::Nothing, vec![current, new, current], false),
        (Deed::Changed, vec![current], true),
        (Deed::Changed, vec![current, new, new, current], true),
        (Deed::Changed, vec![new, current], true),
        (Deed::Changed, vec![new, current, new, current], false),
        (Deed::Changed, vec![current, new], false),
        (Deed::Deleted, vec![current, gone, gone], true),
        (Deed::Deleted, vec![gone, current], false),
        (Deed::Deleted, vec![current], false),
        (Deed::DeletedAtOnce, vec![current], true),
        (Deed::DeletedAtOnce, vec![current, failed], false),
        (Deed::Deleted, vec![current, failed, gone], false),
        (Deed::OfItsSet, vec![new, current], true),
        (Deed::OfItsSet, vec![current, gone], true),
        (
            Deed::OfItsSet,
            vec![current, new, current, new, current],
            false,
        ),
        (Deed::OfItsSet, vec![current, failed, gone], false),
        (
            Deed::DeletedWithNamespace,
            vec![current, failed, gone],
            true,
        ),
        (Deed::DeletedWithNamespace, vec![current, failed], true),
        (
            Deed::DeletedWithNamespace,
            vec![current, new, failed, gone],
            true,
        ),
        (
            Deed::DeletedWithNamespace,
            vec![current, failed, current, gone],
            false,
        ),
    ] {
        assert_eq!(
            flaw(deed, &statuses).is_none(),
            fine,
            "{deed:?} {statuses:?}"
        );
    }
}
