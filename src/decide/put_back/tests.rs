use super::*;

#[test]
fn only_an_older_version_in_storage_shows_that_it_was_put_back() {
    use Doubt::{Behind, Conflict};
    use StoredVersion::{Gone, NotRead, Version};
    for (doubt, stored, verdict) in [
        (Behind(9), Version(8), RestoreVerdict::PutBack),
        (Behind(9), Version(9), RestoreVerdict::Wait),
        (Behind(9), Version(10), RestoreVerdict::Wait),
        (Behind(9), Gone, RestoreVerdict::Wait),
        (Behind(9), NotRead, RestoreVerdict::Wait),
        (Conflict(9), Version(8), RestoreVerdict::ListAgain),
        (Conflict(9), Version(9), RestoreVerdict::Wait),
        (Conflict(9), Version(10), RestoreVerdict::Wait),
        (Conflict(9), Gone, RestoreVerdict::Wait),
        (Conflict(9), NotRead, RestoreVerdict::Wait),
    ] {
        assert_eq!(
            doubt.settled(stored, Duration::from_secs(59)),
            verdict,
            "{doubt:?}, {stored:?}"
        );
    }
    for stored in [9, 10] {
        assert_eq!(
            Behind(9).settled(Version(stored), LONGEST_LAG),
            RestoreVerdict::ListAgain,
            "{stored}"
        );
    }
    assert_eq!(Behind(9).settled(Gone, LONGEST_LAG), RestoreVerdict::Wait);
}

#[test]
fn a_doubt_that_lasts_is_settled_and_the_objects_take_turns() {
    let mut lasting = Lasting::default();
    let mut next = |doubts: &[(&str, u64)]| {
        let doubts = doubts
            .iter()
            .map(|(uid, known)| (Uid::from(*uid), Doubt::Behind(*known)));
        lasting
            .next(doubts.collect())
            .map(|(uid, lasted)| (uid, lasted.as_secs()))
    };
    let is = |uid: &str, lasted: u64| Some((Uid::from(uid), lasted));
    assert_eq!(next(&[("a", 7), ("b", 7)]), None, "they may be late");
    assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]), is("a", 5));
    assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]), is("b", 5));
    assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]), is("c", 10));
    assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]), is("a", 20));
    assert_eq!(next(&[("a", 9)]), None, "it is written and shown meanwhile");
    assert_eq!(next(&[("a", 9)]), is("a", 5));
    assert_eq!(next(&[]), None);
}
