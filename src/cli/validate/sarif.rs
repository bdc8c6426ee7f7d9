//! Writes the part of SARIF 2.1.0 that code hosts show beside the lines of a change.

use std::io::Write;
use std::path::{Component, Path};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Error, Report};
use crate::validate::Check;

/// The characters of a path that need no encoding in a relative URI.
const IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

pub(super) fn write(report: &Report, out: &mut dyn Write) -> Result<(), Error> {
    let rules: Vec<Value> = Check::ALL
        .iter()
        .map(|check| json!({"id": check.name(), "shortDescription": {"text": check.describe()}}))
        .collect();
    let results: Vec<Value> = report
        .findings()
        .map(|(file, checked, finding)| {
            let object = checked.object.iter().map(String::as_str);
            let message = finding.to_string();
            let text = object.chain([&*message]).chain(finding.help.as_deref()).collect::<Vec<_>>().join(": ");
            json!({
                "ruleId": finding.check.name(),
                "ruleIndex": Check::ALL.iter().position(|check| *check == finding.check),
                "level": "error",
                "message": {"text": text},
                "locations": [{
                    "physicalLocation": {
                        "artifactLocation": {"uri": uri(&file.name)},
                        "region": {"startLine": finding.position.line, "startColumn": finding.position.column},
                    },
                    "logicalLocations": checked.object.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
                }],
            })
        })
        .collect();
    let notifications: Vec<Value> = report
        .unreadable
        .iter()
        .map(|unreadable| {
            let location = json!({"physicalLocation": {"artifactLocation": {"uri": uri(&unreadable.file)}}});
            json!({"level": "error", "message": {"text": unreadable.cause}, "locations": [location]})
        })
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "dbplane", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules}},
            // Columns are counted in characters.
            "columnKind": "unicodeCodePoints",
            "results": results,
            "invocations": [{
                "executionSuccessful": report.unreadable.is_empty(),
                "toolExecutionNotifications": notifications,
            }],
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    Ok(writeln!(out)?)
}

/// A path as a URI; a relative path stays relative, because code hosts know files by their path in
/// the repository.
fn uri(name: &str) -> String {
    let path = Path::new(name);
    let plain: String = match path.components().next() {
        Some(Component::CurDir) => path
            .components()
            .skip(1)
            .collect::<std::path::PathBuf>()
            .display()
            .to_string(),
        _ => name.to_owned(),
    };
    let encoded = utf8_percent_encode(&plain, IN_PATHS).to_string();
    if path.is_absolute() {
        format!("file://{encoded}")
    } else {
        encoded
    }
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn a_path_becomes_a_uri() {
        for (path, expected) in [
            ("deploy/a b.yaml", "deploy/a%20b.yaml"),
            ("./deploy/a.yaml", "deploy/a.yaml"),
            ("../a#.yaml", "../a%23.yaml"),
            ("/tmp/ä.yaml", "file:///tmp/%C3%A4.yaml"),
            ("<stdin>", "%3Cstdin%3E"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }
}
