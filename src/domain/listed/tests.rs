use super::*;

fn odd(id: Option<&str>) -> UnreadableEntry {
    UnreadableEntry {
        id: id.map(str::to_owned),
        field: "type".to_owned(),
    }
}

fn list(unreadable: &[Option<&str>]) -> Listed<&'static str> {
    let entries: Vec<_> = unreadable.iter().map(|id| odd(*id)).collect();
    Listed::new(vec!["ep-a"], entries.into())
}

#[test]
fn a_list_lacks_only_what_no_entry_of_it_can_be() {
    for (unreadable, id, expected) in [
        (vec![], Some("ep-a"), "shown"),
        (vec![], Some("ep-b"), "absent"),
        (vec![], None, "absent"),
        (vec![Some("ep-b")], Some("ep-a"), "shown"),
        (vec![Some("ep-b")], Some("ep-b"), "unclear"),
        (vec![Some("ep-b")], Some("ep-c"), "absent"),
        (vec![Some("ep-b")], None, "unclear"),
        (vec![None], Some("ep-a"), "shown"),
        (vec![None], Some("ep-c"), "unclear"),
        (vec![None], None, "unclear"),
    ] {
        let list = list(&unreadable);
        let seen = match list.find(id, |entry| Some(*entry) == id) {
            Shown::Entry(_) => "shown",
            Shown::Unclear(_) => "unclear",
            Shown::Absent => "absent",
        };
        assert_eq!(seen, expected, "{id:?} {unreadable:?}");
    }
}

#[test]
fn few_are_named_and_all_are_counted() {
    let few = list(&[Some("ep-b"), None]);
    assert_eq!(
        few.unreadable().to_string(),
        "one whose identifier cannot be read (type), ep-b (type)"
    );
    assert_eq!(few.count(), 3);
    let ids: Vec<String> = (0..8).map(|number| format!("ep-{number}")).collect();
    let many = list(&ids.iter().map(|id| Some(id.as_str())).collect::<Vec<_>>());
    assert!(
        many.unreadable()
            .to_string()
            .ends_with("ep-4 (type) and 3 more"),
        "{}",
        many.unreadable()
    );
}
