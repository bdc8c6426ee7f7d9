use serde_json::json;

use super::*;

fn only(text: &str) -> Node {
    let mut nodes: Vec<Node> = chunks(text)
        .iter()
        .flat_map(|chunk| chunk.parse().unwrap())
        .collect();
    assert_eq!(nodes.len(), 1, "{nodes:?}");
    nodes.remove(0)
}

fn at(node: &Node, path: &str) -> (u64, u64) {
    let position = node.locate(path);
    (position.line, position.column)
}

#[test]
fn a_path_is_found_where_it_is_written() {
    let node = only(
        "kind: Compute\nspec:\n  size: {fixed: 17}\n  names:\n    - a\n    - b\n  set:\n    pg.track: all\n    pg: x\n",
    );
    assert_eq!(at(&node, "kind"), (1, 7));
    assert_eq!(at(&node, "spec.size.fixed"), (3, 17));
    assert_eq!(at(&node, "spec.names[1]"), (6, 7));
    assert_eq!(at(&node, "spec.set.pg.track"), (8, 15));
    assert_eq!(at(&node, "spec.set.pg"), (9, 9));
    assert_eq!(
        node.locate_key("spec.size.fixed"),
        Position {
            line: 3,
            column: 10
        }
    );
}

#[test]
fn what_spans_lines_or_is_missing_is_found_by_the_nearest_key() {
    let node = only("# a comment\nkind: Compute\nspec:\n  size:\n    fixed: 1\n  empty:\n");
    assert_eq!(at(&node, "spec.size"), (4, 3));
    assert_eq!(at(&node, "spec.size.autoscaling.min"), (4, 3));
    assert_eq!(at(&node, "spec.size.fixed.deeper"), (5, 5));
    assert_eq!(at(&node, "spec.projectID"), (3, 1));
    assert_eq!(at(&node, "spec.empty"), (6, 3));
    assert_eq!(at(&node, "metadata.name"), (2, 1));
    assert_eq!(at(&node, ""), (2, 1));
}

#[test]
fn lines_are_those_of_the_stream() {
    let text = "# first\na: 1\n---\n# second\nb: 2\n--- # third\nc: 3\n...\n---\n";
    let nodes: Vec<Node> = chunks(text)
        .iter()
        .flat_map(|chunk| chunk.parse().unwrap())
        .collect();
    let lines: Vec<u64> = ["a", "b", "c"]
        .iter()
        .zip(&nodes)
        .map(|(name, node)| node.locate(name).line)
        .collect();
    assert_eq!((nodes.len(), lines), (3, vec![2, 5, 7]));
}

#[test]
fn comments_and_directives_belong_to_the_document_after_them() {
    let cut = |text| {
        chunks(text)
            .iter()
            .map(|chunk| (chunk.text.to_owned(), chunk.lines_before))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        cut("%YAML 1.2\n# x\n---\na: 1\n"),
        [("%YAML 1.2\n# x\n---\na: 1\n".to_owned(), 0)]
    );
    assert_eq!(cut("a: 1\n---x: 2\n"), [("a: 1\n---x: 2\n".to_owned(), 0)]);
    assert_eq!(
        cut("---\r\na: 1\r\n---\r\n"),
        [("---\r\na: 1\r\n".to_owned(), 0), ("---\r\n".to_owned(), 2)]
    );
}

#[test]
fn what_is_wrong_with_one_document_hides_no_other() {
    let text = "a: [\n---\nb: 2\n---\nc: 1\nc: 2\n";
    let parsed: Vec<_> = chunks(text).iter().map(Chunk::parse).collect();
    assert!(parsed[0].is_err() && parsed[1].is_ok());
    let twice = parsed[2].as_ref().unwrap_err();
    assert_eq!(
        (twice.position.line, twice.message.as_str()),
        (6, "this key is already set in the same mapping")
    );
}

/// The results of kubectl 1.36: `kubectl label --local -f FILE a=b -o json`.
#[test]
fn values_are_read_as_kubectl_reads_them() {
    for (yaml, expected) in [
        ("on", json!(true)),
        ("y", json!(true)),
        ("n", json!(false)),
        ("Off", json!(false)),
        ("TRUE", json!(true)),
        ("\"on\"", json!("on")),
        ("012", json!(10)),
        ("0o10", json!(8)),
        ("0x10", json!(16)),
        ("-0b1", json!(-1)),
        ("1_000", json!(1000)),
        ("08", json!(8)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        (".5", json!(0.5)),
        (
            "123456789012345678901234567890",
            json!(1.2345678901234568e29),
        ),
        ("~", json!(null)),
        ("2026-11-20", json!("2026-11-20")),
        ("12:30:45", json!("12:30:45")),
        ("!!str 1", json!("1")),
    ] {
        assert_eq!(
            only(&format!("a: {yaml}\n")).value()["a"],
            expected,
            "{yaml}"
        );
    }
}

#[test]
fn merges_and_names_that_are_numbers_are_understood() {
    let node = only("base: &base {x: 1}\nmerged: {<<: *base, y: 2}\n1: one\nown: !own tagged\n");
    let expected =
        json!({"base": {"x": 1}, "merged": {"x": 1, "y": 2}, "1": "one", "own": "tagged"});
    assert_eq!(node.value(), expected);
}

#[test]
fn json_is_read_too() {
    let node = only(
        "{\n\t\"kind\": \"Compute\",\n\t\"spec\": {\"a\\/b\": \"\\ud83d\\ude00\", \"list\": [1,2]}\n}\n",
    );
    assert_eq!(
        node.value(),
        json!({"kind": "Compute", "spec": {"a/b": "😀", "list": [1, 2]}})
    );
    assert_eq!(at(&node, "spec.list[1]").0, 3);
}

#[test]
fn a_complaint_quotes_nothing() {
    for text in [
        "kind: Secret\nstringData: {hunter2: a, hunter2: b}",
        "stringData: *hunter2",
        "stringData: !!int hunter2",
        "stringData: !!binary hunter2.",
        "stringData: \"hunter2",
        "stringData: {hunter2",
        "stringData: %hunter2",
        "stringData: hunter2: x",
        "stringData: &hunter2 *hunter2",
        "stringData: {[hunter2]: x}",
        "<<: hunter2",
    ] {
        for unreadable in chunks(text).iter().filter_map(|chunk| chunk.parse().err()) {
            assert!(
                !unreadable.message.contains("hunter"),
                "{text}: {}",
                unreadable.message
            );
        }
    }
}
