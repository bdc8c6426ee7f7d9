//! In which order a resource may have which status.

use regex::Regex;

/// What people did with a resource, between two times at which everything was quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Nothing,
    Created,
    /// Its spec, its Secret or the age of its key.
    Changed,
    Deleted,
    /// Deleted, and nothing holds it.
    DeletedAtOnce,
    /// Its set is changed or deleted, and it comes, is changed or goes for it.
    OfItsSet,
    /// With everything in its namespace: its Secret may go before it, is to be written again, and cannot be. An account that nothing uses any
    /// more has no finalizer, and is gone at once.
    DeletedWithNamespace,
}

impl Deed {
    /// The statuses in their order, each by its first letter, without repetitions. A status may be left only once: whoever sees
    /// Current has seen the end.
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

/// What is wrong with these statuses of kstatus; `None` where nothing is.
pub fn flaw(deed: Deed, statuses: &[&str]) -> Option<String> {
    let mut seen = statuses.to_vec();
    seen.dedup();
    let letters: String = seen.iter().filter_map(|status| status.chars().next()).collect();
    let allowed = Regex::new(deed.allowed()).unwrap().is_match(&letters);
    (!allowed).then(|| format!("{deed:?}: {}", seen.join(", ")))
}

#[test]
fn a_course_that_goes_back_and_forth_is_reported() {
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
        (Deed::OfItsSet, vec![current, new, current, new, current], false),
        (Deed::OfItsSet, vec![current, failed, gone], false),
        (Deed::DeletedWithNamespace, vec![current, failed, gone], true),
        (Deed::DeletedWithNamespace, vec![current, failed], true),
        (Deed::DeletedWithNamespace, vec![current, new, failed, gone], true),
        (Deed::DeletedWithNamespace, vec![current, failed, current, gone], false),
    ] {
        assert_eq!(flaw(deed, &statuses).is_none(), fine, "{deed:?} {statuses:?}");
    }
}
