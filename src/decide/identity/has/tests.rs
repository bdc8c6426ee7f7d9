use serde_json::{from_value, json};

use super::*;

#[test]
fn whatever_may_be_on_the_platform_is_named_and_what_is_only_observed_is_not() {
    let at = "2026-01-05T08:00:00Z";
    let binding =
        |origin: &str| json!({"id": "ep-1", "project": "p-1", "origin": origin, "at": at});
    let create = |mark: Option<&str>| json!({"at": at, "branch": "br-1", "mark": mark});
    let perhaps =
        format!("perhaps a compute named m-1 on branch br-1 of project p-1, created after {at}");
    let unnamed = format!("perhaps a compute on branch br-1 of project p-1, created after {at}");
    for (record, has) in [
        (json!({}), vec![]),
        (
            json!({"binding": binding("Created")}),
            vec!["compute ep-1 of project p-1"],
        ),
        (json!({"binding": binding("Observed")}), vec![]),
        (
            json!({"intent": create(Some("m-1"))}),
            vec![perhaps.as_str()],
        ),
        (
            json!({"binding": binding("Adopted"), "intent": create(None)}),
            vec!["compute ep-1 of project p-1"],
        ),
        (
            json!({"unanswered": [create(None)]}),
            vec![unnamed.as_str()],
        ),
        (
            json!({"twins": {"ep-2": at}}),
            vec!["perhaps compute ep-2 of project p-1"],
        ),
    ] {
        assert_eq!(
            from_value::<ComputeIdentity>(record.clone())
                .unwrap()
                .has(&"p-1".into()),
            has,
            "{record}"
        );
    }
    let records = json!({
        "current": {"id": 3, "name": "ci-3", "at": at},
        "previous": [{"id": 2, "name": "ci-2", "since": at, "retire_at": at}],
        "lost": [{"name": "ci-1", "since": at}],
    });
    let key = json!({"records": records, "intent": {"name": "ci-4", "at": at}});
    assert_eq!(
        from_value::<ProjectKeyIdentity>(key).unwrap().has(),
        [
            "API key ci-3 (id 3)".to_owned(),
            "API key ci-2 (id 2)".to_owned(),
            "perhaps API key ci-1, to be revoked".to_owned(),
            format!("perhaps API key ci-4, created after {at}"),
        ]
    );
}
