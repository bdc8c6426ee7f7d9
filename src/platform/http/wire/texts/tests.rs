use proptest::prelude::*;
use serde_json::{Value, json};

use crate::domain::{Compute, ComputeState, PoolingMode};
use crate::platform::http::wire::{
    DecodeError, ListPage, answer, computes, created, keys, projects,
};
use crate::text::is_hidden;

/// A compute with one field replaced.
fn compute(field: &str, value: &Value) -> Value {
    let mut item =
        json!({"id": "ep-a", "project_id": "p", "branch_id": "br-a", "type": "read_write"});
    match field {
        "read_write_pooled_host" => item["hosts"] = json!({field: value}),
        field => item[field] = value.clone(),
    }
    item
}

/// The only entry of a list, or its unreadable field.
fn only<T>(page: Result<ListPage<T>, DecodeError>) -> Result<T, String> {
    let mut page = page.unwrap();
    assert_eq!(
        (page.entries, page.items.len() + page.unreadable.len()),
        (1, 1)
    );
    page.items
        .pop()
        .ok_or_else(|| page.unreadable.remove(0).field)
}

fn read_compute(field: &str, value: &Value) -> Result<Compute, String> {
    let list = json!({"endpoints": [compute(field, value)]});
    only(computes(list.to_string().as_bytes(), &"p".into()))
}

fn read_project(field: &str, value: &Value) -> Result<(), String> {
    let mut item = json!({"id": "p"});
    item[field] = value.clone();
    only(projects(json!({"projects": [item]}).to_string().as_bytes())).map(drop)
}

fn read_key(field: &str, value: &Value) -> Result<(), String> {
    let mut item = json!({"id": 1, "name": "n", "key": "s3cret"});
    item[field] = value.clone();
    only(keys(json!([item]).to_string().as_bytes()))?;
    created(item.to_string().as_bytes(), "n")
        .map(drop)
        .map_err(|error| error.path)
}

/// An altered identifier could belong to another object.
#[test]
fn an_identifier_in_another_form_makes_the_answer_unreadable() {
    let long = "a".repeat(61);
    for id in [
        "a b",
        "a\nlevel=error msg=forged",
        "a/../b",
        "..",
        "A",
        "a\u{1b}[31m",
        "a\u{202e}b",
        "ü",
        &long,
    ] {
        for field in ["id", "project_id", "branch_id"] {
            let error = read_compute(field, &json!(id)).unwrap_err();
            assert_eq!(error, field, "{id:?}");
        }
        assert!(read_project("id", &json!(id)).is_err(), "{id:?}");
        assert!(read_project("org_id", &json!(id)).is_err(), "{id:?}");
        assert!(read_key("project_id", &json!(id)).is_err(), "{id:?}");
        let changed = json!({"endpoint": compute("id", &json!(id))});
        let error = answer(changed.to_string().as_bytes(), &"p".into()).unwrap_err();
        assert!(
            error.message.contains("1 to 60 of a-z, 0-9 and -")
                && !error.message.contains("forged"),
            "{error:?}"
        );
    }
}

/// An altered host could belong to another object.
#[test]
fn a_host_in_another_form_makes_the_entry_unreadable() {
    for host in [
        "h\n",
        "h i",
        "h/",
        "h@evil",
        "h?x",
        "h\u{1b}",
        "ü.example",
        &"h".repeat(254),
        &"h".repeat(2 * 1024 * 1024),
    ] {
        assert_eq!(read_compute("host", &json!(host)).unwrap_err(), "host");
        // The pooled host is optional, so an invalid one is not reported.
        let compute = read_compute("read_write_pooled_host", &json!(host)).unwrap();
        assert_eq!(compute.pooled_host, None);
    }
    for host in [
        "ep-a.eu.platform.example",
        "127.0.0.1:5432",
        "[::1]:5432",
        &"h".repeat(253),
    ] {
        let compute = read_compute("host", &json!(host)).unwrap();
        assert_eq!(compute.host.as_deref(), Some(host));
    }
}

#[test]
fn an_empty_value_or_another_type_counts_as_missing() {
    for nothing in [json!(""), json!(null), json!(7), json!({})] {
        assert_eq!(read_compute("host", &nothing).unwrap().host, None);
        let compute = read_compute("project_id", &nothing).unwrap();
        assert_eq!(compute.project_id, "p");
        assert!(read_project("org_id", &nothing).is_ok());
        assert!(read_key("project_id", &nothing).is_ok());
        assert_eq!(read_compute("id", &nothing).unwrap_err(), "id");
    }
}

#[test]
fn a_new_key_that_cannot_be_sent_is_none() {
    for key in ["", "a\nb", "a\u{7f}", &"a".repeat(16 * 1024 + 1)] {
        let body = json!({"id": 1, "key": key});
        assert_eq!(
            created(body.to_string().as_bytes(), "n").unwrap_err().path,
            "key",
            "{}",
            key.len()
        );
    }
}

#[test]
fn settings_are_kept_as_they_are_or_not_read() {
    let settings = |settings: Value| read_compute("settings", &json!({"pg_settings": settings}));
    let many = |count: usize| {
        (0..count)
            .map(|index| (format!("s{index}"), json!("v")))
            .collect::<Value>()
    };
    let kept = settings(json!({"a": "1\n2"})).unwrap().settings.postgres.0;
    assert_eq!(
        kept["a"], "1\n2",
        "they are sent back when another one changes"
    );
    assert_eq!(
        settings(many(1000)).unwrap().settings.postgres.0.len(),
        1000
    );
    for large in [
        many(1001),
        json!({"a": "v".repeat(8 * 1024 + 1)}),
        json!({"a".repeat(129): "v"}),
    ] {
        assert_eq!(settings(large).unwrap_err(), "settings.pg_settings");
    }
}

/// All texts of a compute, except those that are compared and sent back.
fn texts(compute: Compute) -> Vec<String> {
    let state = |state: ComputeState| state.to_string();
    let mode = compute
        .settings
        .pooler_mode
        .map(|mode: PoolingMode| mode.to_string());
    let pending = compute.pending_state.map(state);
    let others = [
        compute.region,
        compute.host,
        compute.pooled_host,
        compute.name,
        pending,
        mode,
    ]
    .into_iter()
    .flatten();
    others
        .chain([
            compute.id.to_string(),
            compute.project_id.to_string(),
            compute.branch_id.to_string(),
            state(compute.current_state),
        ])
        .collect()
}

fn nasty() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("ep-a".into()),
        Just("\n".to_owned()),
        Just("\u{1b}[2J".to_owned()),
        Just("\u{202e}".to_owned()),
        Just("x".repeat(300)),
        any::<String>(),
    ];
    prop::collection::vec(pieces, 0..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Any text of a platform is kept in a form that is bounded and safe to show.
    #[test]
    fn no_text_of_an_answer_hides_anything(text in nasty(), field in 0usize..11) {
        let fields = ["id", "project_id", "branch_id", "region_id", "host", "name", "current_state", "pending_state", "pooler_mode",
            "read_write_pooled_host", "type"];
        let value = json!(text);
        let kept = read_compute(fields[field], &value).map(texts).unwrap_or_default();
        let list = json!([{"id": 1, "name": text, "last_used_from_addr": text}]);
        let listed = keys(list.to_string().as_bytes()).unwrap().items.into_iter();
        let listed = listed.flat_map(|key| [Some(key.name), key.last_used_from]);
        let body = json!({"id": 1, "key": "k", "name": text, "created_by": text});
        let created = created(body.to_string().as_bytes(), "n").unwrap();
        let named = json!({"projects": [{"id": "p", "name": text}]});
        let projects = projects(named.to_string().as_bytes()).unwrap().items.into_iter().map(|project| project.name);
        let all = kept.into_iter().map(Some).chain(listed).chain([Some(created.name), created.created_by]).chain(projects);
        for shown in all.flatten() {
            prop_assert!(shown.len() <= 256 && !shown.chars().any(is_hidden), "{shown:?}");
            // An altered text cannot be a name that dbplane made.
            let is_own = ["ep-a", "p", "br-a", "unknown"].contains(&shown.as_str());
            prop_assert!(is_own || shown == text || shown.contains([' ', '\u{fffd}', '…']), "{shown:?}");
        }
    }
}
