use super::*;

const GOOD: &str = "apiVersion: dbplane.dev/v1alpha1\nkind: Compute\nmetadata: {name: a, namespace: shop}\nspec:\n  \
                    accountRef: {name: prod}\n  projectID: p\n  branchID: b\n  type: ReadOnly\n";

fn check(text: &str) -> CheckOutcome {
    Checker::new().unwrap().check_text(text)
}

/// The line, column and path of each finding.
fn places(text: &str) -> Vec<(u64, u64, String)> {
    let findings = check(text)
        .checked
        .into_iter()
        .flat_map(|checked| checked.findings);
    findings
        .map(|finding| (finding.position.line, finding.position.column, finding.path))
        .collect()
}

fn at(line: u64, column: u64, path: &str) -> (u64, u64, String) {
    (line, column, path.to_owned())
}

#[test]
fn every_sort_of_mistake_has_its_place() {
    let bad = GOOD
        .replace("projectID: p", "projectId: p")
        .replace("{name: prod}", "{name: Prod}");
    let expected = [at(4, 1, "spec.projectID"), at(6, 3, "spec.projectId")];
    assert_eq!(
        places(&bad),
        expected,
        "a required field is missing, so the rules are not run"
    );
    assert_eq!(
        places(&GOOD.replace("{name: prod}", "{name: Prod}")),
        [at(5, 22, "spec.accountRef.name")]
    );
    assert_eq!(
        places(&GOOD.replace("branchID: b", "branchID: 7")),
        [at(7, 13, "spec.branchID")]
    );
    assert_eq!(
        places(&GOOD.replace("namespace: shop", "label: shop")),
        [at(3, 21, "metadata.label")]
    );
    assert_eq!(
        places(&GOOD.replace("name: a,", "")),
        [at(3, 1, "metadata.name")]
    );
    let labels = GOOD.replace("namespace: shop", "labels: {a.io/b: 1}");
    assert_eq!(places(&labels), [at(3, 38, "metadata.labels.a.io/b")]);
}

#[test]
fn other_kinds_are_skipped_and_counted() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n";
    let other = "apiVersion: other.dev/v1\nkind: Compute\n";
    let outcome = check(&format!(
        "{secret}---\n{GOOD}---\n{other}---\nname: world\n---\n- a\n---\n# nothing\n"
    ));
    assert_eq!((outcome.checked.len(), outcome.skipped), (1, 4));
    assert!(outcome.checked[0].findings.is_empty(), "{outcome:?}");
    assert_eq!(outcome.checked[0].object.as_deref(), Some("Compute shop/a"));
}

#[test]
fn a_kind_or_version_that_is_not_ours_is_reported() {
    let finding = |text: &str| check(text).checked[0].findings[0].clone();
    let version = finding(&GOOD.replace("v1alpha1", "v1"));
    assert_eq!(
        (version.position.line, version.path.as_str()),
        (1, "apiVersion")
    );
    assert!(
        version.message.ends_with("write dbplane.dev/v1alpha1"),
        "{version:?}"
    );
    let kind = finding(&GOOD.replace("Compute", "Computer"));
    assert_eq!((kind.position.line, kind.path.as_str()), (2, "kind"));
    assert!(
        kind.message
            .contains("it has Account, ClusterAccount, Compute, ProjectKey, ReadReplicaSet"),
        "{kind:?}"
    );
    assert_eq!(
        finding(&GOOD.replace("apiVersion: dbplane.dev/v1alpha1\n", "")).path,
        "apiVersion"
    );
    assert_eq!(
        finding(&GOOD.replace("dbplane.dev/v1alpha1", "v1alpha1")).path,
        "apiVersion"
    );
    assert_eq!(finding(&GOOD.replace("kind: Compute\n", "")).path, "kind");
}

#[test]
fn the_items_of_lists_are_checked() {
    let item = GOOD
        .replace("type: ReadOnly", "type: Read")
        .replace('\n', "\n    ");
    let secret = "- {apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: b}}";
    for head in [
        "apiVersion: v1\nkind: List",
        "apiVersion: dbplane.dev/v1alpha1\nkind: ComputeList",
    ] {
        let text = format!("{head}\nitems:\n  {secret}\n  - {}\n", item.trim_end());
        let outcome = check(&text);
        assert_eq!((outcome.checked.len(), outcome.skipped), (1, 1), "{text}");
        assert_eq!(places(&text), [at(12, 13, "spec.type")]);
    }
}

#[test]
fn what_cannot_be_read_is_told_where_it_may_be_ours() {
    let broken = GOOD.replace("{name: prod}", "{name: prod");
    assert_eq!(check(&broken).checked[0].findings[0].check, Check::Yaml);
    let twice = format!("---\n{GOOD}  type: ReadWrite\n");
    assert_eq!(places(&twice), [at(10, 3, "")]);
    let template = "{{ if .Values.x }}\na: {{ b }}\n";
    assert_eq!(
        (check(template).checked.len(), check(template).skipped),
        (0, 1)
    );
}

#[test]
fn what_a_rule_refuses_is_not_repeated() {
    let account = "apiVersion: dbplane.dev/v1alpha1\nkind: Account\nmetadata: {name: a}\nspec:\n  baseURL: \
                   https://me:hunter2@platform.example/v2\n  apiKeySecretRef: hunter2\n";
    let fixed = account.replace(
        "apiKeySecretRef: hunter2",
        "apiKeySecretRef: {name: a, key: b}",
    );
    for text in [account, &fixed] {
        let outcome = check(text);
        assert_eq!(outcome.checked[0].findings.len(), 1, "{outcome:?}");
        assert!(!format!("{outcome:?}").contains("hunter2"), "{outcome:?}");
    }
}

/// In the format of `kubectl get -o yaml --show-managed-fields`.
#[test]
fn what_the_api_server_has_written_is_right() {
    let metadata = "metadata:\n  name: a\n  namespace: shop\n  uid: u\n  generation: 2\n  resourceVersion: \"12\"\n  \
                    creationTimestamp: \"2026-11-20T00:00:00Z\"\n  finalizers: [dbplane.dev/compute]\n  ownerReferences:\n  \
                    - {apiVersion: v1, kind: X, name: o, uid: u, controller: true, blockOwnerDeletion: true}\n  \
                    managedFields:\n  - {apiVersion: dbplane.dev/v1alpha1, fieldsType: FieldsV1, fieldsV1: {\"f:spec\": \
                    {\".\": {}}}, manager: kubectl, operation: Update, time: \"2026-11-20T00:00:00Z\"}";
    let text = GOOD.replace("metadata: {name: a, namespace: shop}", metadata) + "status: null\n";
    assert_eq!(places(&text), []);
    let printed = "metadata: {name: a, namespace: shop, creationTimestamp: null}";
    assert_eq!(
        places(&GOOD.replace("metadata: {name: a, namespace: shop}", printed)),
        []
    );
    assert_eq!(places(&text.replace("2026-11-20T00", "yesterday")).len(), 2);
}

#[test]
fn schedules_that_the_operator_does_not_follow_are_found() {
    let compute = |more: &str| format!("{GOOD}  {more}\n");
    let restart = |schedule: &str| format!("maintenance: {{restart: {{schedule: '{schedule}'}}}}");
    let entry = |more: &str| {
        format!("size: {{fixed: 1}}\n  schedules: [{{name: a, size: {{fixed: 2}}, {more}}}]")
    };
    let set = |more: &str| {
        let template = format!("{{accountRef: {{name: prod}}, projectID: p, branchID: b, {more}}}");
        format!(
            "apiVersion: dbplane.dev/v1alpha1\nkind: ReadReplicaSet\nmetadata: {{name: a}}\nspec:\n  \
             selector: {{matchLabels: {{a: b}}}}\n  template: {{metadata: {{labels: {{a: b}}}}, spec: {template}}}\n"
        )
    };
    let window = "disruption: {policy: Window, window: {schedule: '0 0 31 4,6 *', duration: 1h}}";
    for (text, path) in [
        (
            compute(&restart("0 0 31 2 *")),
            "spec.maintenance.restart.schedule",
        ),
        (compute(window), "spec.disruption.window.schedule"),
        (
            compute(&entry("start: '0 0 30 2 *', duration: 1h")),
            "spec.schedules[0].start",
        ),
        (
            compute(&entry("start: '0 0 1 2 *', end: '0 0 30 2 *'")),
            "spec.schedules[0].end",
        ),
        (
            compute(&entry(
                "start: '0 0 1 2 *', duration: 1h, timeZone: Mars/Base",
            )),
            "spec.schedules[0].timeZone",
        ),
        (
            set(&restart("0 0 31 2 *")),
            "spec.template.spec.maintenance.restart.schedule",
        ),
        (set(window), "spec.template.spec.disruption.window.schedule"),
    ] {
        let findings = check(&text).checked.remove(0).findings;
        let [finding] = findings.as_slice() else {
            panic!("{path}: {findings:?}")
        };
        assert_eq!(
            (finding.path.as_str(), finding.check),
            (path, Check::Schedule),
            "{finding:?}"
        );
        assert!(
            finding.help.is_some()
                && !finding.message.contains("0 0")
                && !finding.message.contains("Mars")
        );
    }
    for text in [compute(&restart("0 0 29 2 *")), set(&restart("0 0 29 2 *"))] {
        assert!(check(&text).checked.remove(0).findings.is_empty(), "{text}");
    }
}

#[test]
fn a_misspelled_time_zone_gets_the_one_that_is_meant() {
    for (zone, help) in [
        ("Europe/Berln", "did you mean Europe/Berlin?"),
        (
            "Mars/Base",
            "write a name of the IANA time zone database, such as Europe/Berlin",
        ),
    ] {
        let restart = format!("{{restart: {{schedule: 0 3 * * SUN, timeZone: {zone}}}}}");
        let text = format!("{GOOD}  maintenance: {restart}\n");
        let findings = check(&text).checked.remove(0).findings;
        assert_eq!(findings[0].help.as_deref(), Some(help), "{findings:?}");
    }
}
