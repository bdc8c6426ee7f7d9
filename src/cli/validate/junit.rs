//! Writes JUnit XML: a suite for each file, a test case for each object.

use std::io::Write;

use quick_junit::{NonSuccessKind, Report as Xml, TestCase, TestCaseStatus, TestSuite};

use super::{CheckedFile, Error, ValidationReport};
use crate::cli::files::UnreadableFile;
use crate::validate::{Checked, Finding};

pub(super) fn write(report: &ValidationReport, out: &mut dyn Write) -> Result<(), Error> {
    let mut xml = Xml::new("dbplane validate");
    xml.add_test_suites(report.files.iter().map(suite));
    xml.add_test_suites(report.unreadable.iter().map(not_read));
    xml.serialize(&mut *out)?;
    Ok(())
}

fn suite(file: &CheckedFile) -> TestSuite {
    let mut suite = TestSuite::new(&*file.name);
    suite.add_test_cases(file.checked.iter().map(|checked| case(&file.name, checked)));
    suite
}

/// A test case has one failure. Its message is the first finding, and its text contains all
/// findings.
fn case(file: &str, checked: &Checked) -> TestCase {
    let status = match checked.findings.as_slice() {
        [] => TestCaseStatus::success(),
        findings @ [first, ..] => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let lines: Vec<String> = findings.iter().map(|finding| line(file, finding)).collect();
            status
                .set_message(first.to_string())
                .set_type(first.check.name())
                .set_description(lines.join("\n"));
            status
        }
    };
    let line = checked.position.line;
    let name = checked
        .object
        .clone()
        .unwrap_or_else(|| format!("document at line {line}"));
    let mut case = TestCase::new(name, status);
    case.set_classname(file);
    case.extra.insert("file".into(), file.into());
    case.extra.insert("line".into(), line.to_string().into());
    case
}

fn line(file: &str, finding: &Finding) -> String {
    let position = finding.position;
    let help = finding
        .help
        .as_ref()
        .map(|help| format!("\n    {help}"))
        .unwrap_or_default();
    format!(
        "{file}:{}:{}: {finding}{help}",
        position.line, position.column
    )
}

fn not_read(unreadable: &UnreadableFile) -> TestSuite {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status
        .set_message(&*unreadable.cause)
        .set_type("unreadable");
    let mut suite = TestSuite::new(&*unreadable.file);
    suite.add_test_case(TestCase::new("can be read", status));
    suite
}
