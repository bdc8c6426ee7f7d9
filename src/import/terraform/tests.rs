//! Tests of reading a state, with the attribute names of each provider.

use serde_json::{Value, json};

use super::*;
use crate::domain::ComputeUnits;

fn resource(kind: &str, attributes: Value) -> Value {
    let instance =
        json!({"schema_version": 0, "attributes": attributes, "sensitive_attributes": []});
    json!({"mode": "managed", "type": kind, "name": "x", "provider": "provider[\"registry/neon\"]", "instances": [instance]})
}

fn state(resources: &[Value]) -> String {
    json!({"version": 4, "terraform_version": "1.9.0", "serial": 3, "lineage": "l", "outputs": {}, "resources": resources})
        .to_string()
}

fn only(resources: &[Value]) -> FoundCompute {
    let computes = read(&state(resources)).unwrap().computes;
    assert_eq!(computes.len(), 1, "{computes:#?}");
    computes[0].clone()
}

#[test]
fn a_compute_in_the_words_of_each_provider() {
    let identity =
        json!({"id": "ep-1", "project_id": "p-1", "branch_id": "br-1", "type": "read_only"});
    let with = |more: Value| {
        let mut attributes = identity.clone();
        attributes
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        only(&[resource("neon_endpoint", attributes)])
    };
    let flat = with(json!({
        "autoscaling_limit_min_cu": 0.25, "autoscaling_limit_max_cu": 2, "suspend_timeout_seconds": -1, "pooler_enabled": true,
        "pooler_mode": "transaction", "disabled": true, "pg_settings": {"work_mem": "64MB"}, "key": "canary",
    }));
    let nested = with(json!({
        "autoscaling_limit_min_cu": 0.25, "autoscaling_limit_max_cu": 2.0, "suspend_timeout_seconds": -1.0, "pooler_enabled": true,
        "pooler_mode": "transaction", "disabled": true, "settings": {"pg_settings": {"work_mem": "64MB"}},
    }));
    let other = with(json!({"min_cu": 0.25, "max_cu": 2, "suspend_timeout": -1}));
    assert_eq!(flat.settings, nested.settings);
    assert_eq!(
        (flat.role, flat.branch.as_str(), flat.project.as_str()),
        (Role::Replica, "br-1", "p-1")
    );
    for found in [&flat, &other] {
        assert_eq!(
            (found.settings.min, found.settings.max),
            (ComputeUnits::new(0.25), ComputeUnits::new(2.0))
        );
        assert_eq!(found.settings.suspend_after, Some(SuspendAfter::Never));
    }
    assert_eq!(flat.settings.postgres.0["work_mem"], "64MB");
    assert_eq!(
        (flat.settings.disabled, flat.settings.pooler_enabled),
        (Some(true), Some(true))
    );
}

#[test]
fn the_compute_of_a_project_or_a_branch_is_found_once() {
    let project = resource(
        "neon_project",
        json!({"id": "p-1", "default_branch_id": "br-1", "default_endpoint_id": "ep-1", "database_password": "canary"}),
    );
    let found = only(std::slice::from_ref(&project));
    assert_eq!(
        (found.id.as_str(), found.branch.as_str(), &found.settings),
        ("ep-1", "br-1", &Settings::default())
    );
    let endpoint = resource(
        "neon_endpoint",
        json!({"id": "ep-1", "project_id": "p-1", "branch_id": "br-1", "min_cu": 1, "max_cu": 1}),
    );
    let both = only(&[project, endpoint]);
    assert_eq!(both.settings.min, ComputeUnits::new(1.0));
    assert!(
        both.notes[0].starts_with("From neon_endpoint.x."),
        "{:?}",
        both.notes
    );
    let block = json!({"id": "br-2", "endpoint": {"id": "ep-2", "min_cu": 0.5, "max_cu": 0.5}});
    for branch in [
        resource("neon_project", json!({"id": "p-1", "branch": block})),
        resource("neon_project", json!({"id": "p-1", "branch": [block]})),
        resource(
            "neon_branch",
            json!({"project_id": "p-1", "id": "br-2", "endpoint": block["endpoint"]}),
        ),
    ] {
        let found = only(&[branch]);
        assert_eq!(
            (
                found.id.as_str(),
                found.branch.as_str(),
                found.project.as_str()
            ),
            ("ep-2", "br-2", "p-1")
        );
        assert_eq!(found.settings.max, ComputeUnits::new(0.5));
    }
}

#[test]
fn what_is_sensitive_deposed_or_of_others_is_not_read() {
    let identity = json!({"id": "ep-1", "project_id": "p-1", "branch_id": "br-1", "pg_settings": {"a": "canary"}, "min_cu": 1, "max_cu": 1});
    let mut sensitive = resource("neon_endpoint", identity.clone());
    sensitive["instances"][0]["sensitive_attributes"] = json!([[{"type": "get_attr", "value": "pg_settings"}, {"type": "index", "value": {"value": "a", "type": "string"}}]]);
    let found = only(&[sensitive]);
    assert!(found.settings.postgres.is_empty() && found.settings.min.is_some());

    let mut deposed = resource("neon_endpoint", identity.clone());
    deposed["instances"][0]["deposed"] = json!("a1b2c3d4");
    let mut data = resource("neon_endpoint", identity.clone());
    data["mode"] = json!("data");
    let contents = read(&state(&[deposed, data, resource("aws_instance", identity)])).unwrap();
    assert!(
        contents.computes.is_empty() && contents.staying.is_empty(),
        "{contents:?}"
    );
}

#[test]
fn addresses_are_those_of_terraform() {
    let mut each = resource(
        "neon_endpoint",
        json!({"id": "ep-1", "project_id": "p-1", "branch_id": "br-1"}),
    );
    each["module"] = json!("module.db[\"eu\"]");
    let second = json!({"index_key": 1, "attributes": {"id": "ep-2", "project_id": "p-1", "branch_id": "br-2"}});
    each["instances"][0]["index_key"] = json!("it's");
    each["instances"].as_array_mut().unwrap().push(second);
    let contents = read(&state(&[each])).unwrap();
    let expected = [
        r#"module.db["eu"].neon_endpoint.x["it's"]"#,
        r#"module.db["eu"].neon_endpoint.x[1]"#,
    ];
    assert_eq!(contents.taken_over, expected);
    let command = &contents.computes[0].notes[1];
    assert_eq!(
        command,
        r#"  terraform state rm 'module.db["eu"].neon_endpoint.x["it'\''s"]'"#
    );
}

#[test]
fn keys_of_one_project_are_told_from_the_others() {
    let contents = read(&state(&[
        resource(
            "neon_org_api_key",
            json!({"id": "7", "name": "ci", "org_id": "o", "project_id": "p-1", "key": "canary"}),
        ),
        resource(
            "neon_organization_api_key",
            json!({"id": 8, "name": "all", "org_id": "o", "project_id": null, "key": "canary"}),
        ),
        resource(
            "neon_api_key",
            json!({"id": "9", "name": "me", "key": "canary"}),
        ),
        resource("neon_role", json!({"name": "r", "password": "canary"})),
    ]));
    let contents = contents.unwrap();
    let addressed = |address: &str| Some(address.to_owned());
    let key = FoundKey {
        project: "p-1".into(),
        name: "ci".into(),
        id: "7".into(),
        address: addressed("neon_org_api_key.x"),
    };
    assert_eq!(contents.keys, [key]);
    assert_eq!(
        contents.staying,
        [
            "neon_api_key.x",
            "neon_organization_api_key.x",
            "neon_role.x"
        ]
    );
    assert!(!format!("{contents:?}").contains("canary"));
}

#[test]
fn what_is_no_state_is_refused_without_a_word_of_it() {
    for (text, expected) in [
        ("canary", StateError::NoJson { line: 1, column: 1 }),
        (
            r#"{"encrypted_data": "canary", "encryption_version": "v0"}"#,
            StateError::Encrypted,
        ),
        (
            r#"{"format_version": "1.0", "values": {"canary": 1}}"#,
            StateError::OtherVersion,
        ),
        (
            r#"{"version": 3, "modules": ["canary"]}"#,
            StateError::OtherVersion,
        ),
        (
            r#"{"version": 4, "resources": [{"mode": "managed", "type": "canary"}]}"#,
            StateError::OtherForm,
        ),
        (
            r#"{"version": 4, "resources": "canary"}"#,
            StateError::OtherForm,
        ),
        ("[]", StateError::OtherVersion),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error, expected, "{text}");
        assert!(!error.to_string().contains("canary"));
    }
    assert!(read(r#"{"version": 4}"#).unwrap().computes.is_empty());
}

#[test]
fn a_compute_without_an_identity_is_named() {
    let contents = read(&state(&[resource(
        "neon_endpoint",
        json!({"id": "ep-1", "project_id": null}),
    )]))
    .unwrap();
    assert!(
        contents.computes.is_empty() && contents.unclear[0].starts_with("neon_endpoint.x: "),
        "{contents:?}"
    );
}
