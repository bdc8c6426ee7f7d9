use serde_json::{Value, json};

use super::*;
use crate::domain::UnreadableEntry;

fn read(item: Value) -> Result<Compute, DecodeError> {
    let list = json!({"endpoints": [item]});
    computes(list.to_string().as_bytes(), &"asked".into()).map(|mut page| page.items.remove(0))
}

fn cu(value: f64) -> Option<ComputeUnits> {
    ComputeUnits::new(value)
}

#[test]
fn the_smallest_compute() {
    let compute = read(json!({"id": "ep-a", "branch_id": "br-a", "type": "read_write"})).unwrap();
    assert_eq!(compute.project_id, "asked");
    assert_eq!(compute.role, Role::Primary);
    assert_eq!(compute.current_state, ComputeState::Other("unknown".into()));
    assert_eq!(compute.settings, Settings::default());
}

#[test]
fn a_whole_compute() {
    let compute = read(json!({
        "id": "ep-a", "host": "h", "project_id": "p", "branch_id": "br-a", "type": "read_only", "region_id": "r",
        "autoscaling_limit_min_cu": 0.25, "autoscaling_limit_max_cu": 2.0, "current_state": "active",
        "pending_state": "idle", "settings": {"pg_settings": {"a": "1MB", "b": 7, "c": true, "d": null, "e": [0], "f": {}}},
        "pooler_enabled": false, "pooler_mode": "transaction", "disabled": false, "passwordless_access": true,
        "suspend_timeout_seconds": 60, "name": "n", "last_active": "2025-01-02T03:04:05.123456789+00:00",
        "hosts": {"read_write_host": "h", "read_write_pooled_host": "h-pooler"},
        "created_at": "2025-01-02T03:04:05Z", "updated_at": "2025-01-02T03:04:05.1Z", "group": {"size": 1}
    }))
    .unwrap();
    assert_eq!(
        (compute.settings.min, compute.settings.max),
        (cu(0.25), cu(2.0))
    );
    assert_eq!(
        compute.settings.suspend_after,
        Some(SuspendAfter::Seconds(60))
    );
    let postgres: Vec<_> = compute
        .settings
        .postgres
        .0
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(postgres, [("a", "1MB"), ("b", "7"), ("c", "true")]);
    assert_eq!(
        compute.last_active,
        "2025-01-02T03:04:05.123456789Z".parse().ok()
    );
    assert_eq!(compute.role, Role::Replica);
    assert_eq!(compute.region.as_deref(), Some("r"));
    assert_eq!(
        (compute.host.as_deref(), compute.pooled_host.as_deref()),
        (Some("h"), Some("h-pooler"))
    );
    assert_eq!(compute.created_at, "2025-01-02T03:04:05Z".parse().ok());
}

#[test]
fn nulls_and_odd_values_are_not_reported() {
    let compute = read(json!({
        "id": "ep-a", "branch_id": "br-a", "type": "something_new", "project_id": null, "host": null, "name": null,
        "current_state": "hibernating", "pending_state": "", "settings": null, "pooler_enabled": null,
        "autoscaling_limit_min_cu": "1", "autoscaling_limit_max_cu": -3, "suspend_timeout_seconds": 1.5,
        "last_active": "soon", "created_at": "2025-02-07", "updated_at": 7, "started_at": "",
        "disabled": "no", "region_id": 7
    }))
    .unwrap();
    assert_eq!(compute.role, Role::Replica);
    assert_eq!(
        compute.current_state,
        ComputeState::Other("hibernating".into())
    );
    assert_eq!(compute.pending_state, None);
    assert_eq!(compute.settings, Settings::default());
    assert_eq!(compute.region, None);
    assert_eq!(
        (compute.last_active, compute.created_at, compute.updated_at),
        (None, None, None)
    );
}

#[test]
fn a_pooled_host_that_is_none_is_not_reported() {
    for hosts in [
        json!({}),
        json!({"read_write_pooled_host": ""}),
        json!({"read_write_pooled_host": 7}),
        json!("h"),
        json!(null),
    ] {
        let item = json!({"id": "ep-a", "branch_id": "br-a", "type": "read_write", "hosts": hosts});
        assert_eq!(read(item).unwrap().pooled_host, None, "{hosts}");
    }
}

#[test]
fn a_compute_without_identity_is_an_entry_that_cannot_be_read() {
    let listed = |item: Value| {
        let list = json!({"endpoints": [item]});
        let page = computes(list.to_string().as_bytes(), &"asked".into()).unwrap();
        assert_eq!((page.items.len(), page.entries), (0, 1), "{list}");
        page.unreadable[0].clone()
    };
    for field in ["id", "branch_id", "type"] {
        for bad in [Value::Null, json!(7)] {
            let mut item = json!({"id": "ep-a", "branch_id": "br-a", "type": "read_write"});
            item[field] = bad;
            let id = (field != "id").then(|| "ep-a".into());
            assert_eq!(
                listed(item),
                UnreadableEntry {
                    id,
                    field: field.to_owned()
                }
            );
        }
    }
    assert_eq!(
        listed(json!(1)),
        UnreadableEntry {
            id: None,
            field: "of another form".to_owned()
        }
    );
    assert!(computes(b"{}", &"p".into()).is_err());
    assert!(
        computes(br#"{"endpoints":null}"#, &"p".into())
            .unwrap()
            .items
            .is_empty()
    );
}

#[test]
fn words_that_are_known_and_others() {
    let item = |state: &str, mode: &str| {
        json!({"id": "ep-a", "branch_id": "br-a", "type": "read_write", "current_state": state, "pending_state": state,
            "pooler_mode": mode})
    };
    for (word, state) in [
        ("init", ComputeState::Init),
        ("idle", ComputeState::Idle),
        ("active", ComputeState::Active),
        ("Active", ComputeState::Other("Active".into())),
    ] {
        let compute = read(item(word, "transaction")).unwrap();
        assert_eq!(compute.current_state.to_string(), word);
        assert_eq!(
            (compute.current_state, compute.pending_state),
            (state.clone(), Some(state))
        );
    }
    for odd in [json!(7), json!({"state": "active"}), json!(true)] {
        let item = json!({"id": "ep-a", "branch_id": "br-a", "type": "read_write", "current_state": odd, "pending_state": odd});
        let unknown = ComputeState::Other("unknown".into());
        let compute = read(item).unwrap();
        assert_eq!(
            (compute.current_state, compute.pending_state),
            (unknown.clone(), Some(unknown)),
            "{odd}"
        );
    }
    for (word, mode) in [
        ("transaction", PoolingMode::Transaction),
        ("session", PoolingMode::Other("session".into())),
    ] {
        let settings = read(item("idle", word)).unwrap().settings;
        assert_eq!(
            serde_json::to_value(ComputeAttributes::from(&settings)).unwrap(),
            json!({"pooler_mode": word})
        );
        assert_eq!(settings.pooler_mode, Some(mode));
    }
}

#[test]
fn computes_show_what_the_platform_supports() {
    let plain = json!({});
    let suspending = json!({"suspend_timeout_seconds": 0});
    let started = json!({"started_at": "2025-01-02T03:04:05Z"});
    let named = json!({"name": "a person's"});
    let of = |names, scale_to_zero| Support {
        names,
        scale_to_zero,
        settings: false,
    };
    for (what, items, support) in [
        ("nothing", vec![], of(NameSupport::Unseen, false)),
        ("the least", vec![&plain], of(NameSupport::Unseen, false)),
        (
            "when they suspend",
            vec![&plain, &suspending],
            of(NameSupport::Offered, true),
        ),
        (
            "when they were started",
            vec![&started, &plain],
            of(NameSupport::Offered, false),
        ),
        (
            "a name",
            vec![&suspending, &named, &plain],
            of(NameSupport::Kept, true),
        ),
    ] {
        let computes: Vec<Compute> = items
            .into_iter()
            .map(|fields| {
                let mut item = json!({"id": "ep-a", "branch_id": "br-a", "type": "read_write"});
                item.as_object_mut()
                    .unwrap()
                    .extend(fields.as_object().unwrap().clone());
                read(item).unwrap()
            })
            .collect();
        assert_eq!(Support::among(&computes), support, "{what}");
    }
    for (settings, shown) in [
        (json!({"pg_settings": {"work_mem": "64MB"}}), true),
        (json!({"pg_settings": {}}), true),
        (json!({}), true),
        (json!({"pg_settings": null}), false),
        (json!({"pg_settings": [7]}), false),
        (json!(null), false),
        (json!("none"), false),
    ] {
        let item =
            json!({"id": "ep-a", "branch_id": "br-a", "type": "read_write", "settings": settings});
        assert_eq!(read(item).unwrap().support.settings, shown, "{settings}");
    }
}

#[test]
fn suspend_timeouts_both_ways() {
    for (wire, after) in [
        (0, SuspendAfter::Default),
        (-1, SuspendAfter::Never),
        (300, SuspendAfter::Seconds(300)),
    ] {
        assert_eq!(SuspendAfter::of_seconds(wire), after);
        let settings = Settings {
            suspend_after: Some(after),
            ..Settings::default()
        };
        let body = serde_json::to_value(ComputeAttributes::from(&settings)).unwrap();
        assert_eq!(body, json!({"suspend_timeout_seconds": wire}));
    }
}

#[test]
fn a_create_sends_only_what_is_declared() {
    let mut new = NewCompute {
        branch_id: "br-a".into(),
        role: Role::Primary,
        name: None,
        settings: Settings::default(),
    };
    let body = serde_json::to_string(&CreateBody::new(&new, "read_only")).unwrap();
    assert_eq!(
        body,
        r#"{"endpoint":{"branch_id":"br-a","type":"read_write"}}"#
    );
    new.role = Role::Replica;
    new.name = Some("n".to_owned());
    new.settings.min = cu(0.25);
    new.settings.max = cu(4.0);
    let body = serde_json::to_string(&CreateBody::new(&new, "reader")).unwrap();
    assert_eq!(
        body,
        r#"{"endpoint":{"branch_id":"br-a","type":"reader","name":"n","autoscaling_limit_min_cu":0.25,"autoscaling_limit_max_cu":4}}"#
    );
}

#[test]
fn a_change_sends_only_what_changes_and_both_limits() {
    let mut change = ComputeChange::default();
    assert_eq!(
        serde_json::to_value(ChangeBody::from(&change)).unwrap(),
        json!({"endpoint": {}})
    );
    change.branch_id = Some("br-b".into());
    change.settings.max = cu(2.0);
    change
        .settings
        .postgres
        .0
        .insert("work_mem".to_owned(), "64MB".to_owned());
    change.settings.pooler_enabled = Some(true);
    change.settings.pooler_mode = Some(PoolingMode::Transaction);
    change.settings.passwordless_access = Some(false);
    change.settings.disabled = Some(false);
    assert_eq!(
        serde_json::to_value(ChangeBody::from(&change)).unwrap(),
        json!({"endpoint": {
            "branch_id": "br-b", "autoscaling_limit_min_cu": 2, "autoscaling_limit_max_cu": 2,
            "settings": {"pg_settings": {"work_mem": "64MB"}}, "pooler_enabled": true, "pooler_mode": "transaction",
            "passwordless_access": false, "disabled": false,
        }})
    );
}

#[test]
fn an_answer_keeps_the_operations_that_can_be_read() {
    let body = br#"{"endpoint":{"id":"ep-a","branch_id":"b","type":"read_write"},"operations":[
        {"id":"o","endpoint_id":"ep-a","action":"brand_new","status":"odd","error":""},{"id":7},null,
        {"id":"p","action":"start_compute","status":"running","failures_count":2},
        {"id":"q","action":"start_compute","status":"running","failures_count":"2"}]}"#;
    let answer = answer(body, &"p".into()).unwrap();
    assert_eq!(answer.compute.map(|c| c.id).as_deref(), Some("ep-a"));
    let failures: Vec<_> = answer
        .operations
        .iter()
        .map(|operation| operation.failures)
        .collect();
    assert_eq!(failures, [None, Some(2), None]);
    assert_eq!(
        (
            answer.operations[0].action.as_str(),
            answer.operations[0].error.as_deref()
        ),
        ("brand_new", None)
    );
}

#[test]
fn an_answer_names_what_it_lacks() {
    assert_eq!(
        answer(br#"{"endpoint":{"id":"ep-a"}}"#, &"p".into())
            .unwrap_err()
            .path,
        "endpoint.branch_id"
    );
    assert_eq!(
        answer(br#"{"endpoint":7}"#, &"p".into()).unwrap_err().path,
        "endpoint"
    );
    assert_eq!(answer(b"{}", &"p".into()).unwrap().compute, None);
}
