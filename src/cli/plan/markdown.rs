//! Writes a plan as a comment on a pull request.

use std::io::{self, Write};

use super::text::{cost, is_shown, of_manifest, step_text, summary, waits};
use crate::plan::{Plan, Planned};

pub fn write(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "### dbplane plan\n\n{}\n{}",
        escaped(&summary(plan)),
        escaped(&cost(plan))
    )?;
    let shown: Vec<&Planned> = plan
        .resources
        .iter()
        .filter(|planned| is_shown(planned))
        .collect();
    if !shown.is_empty() {
        writeln!(
            out,
            "\n| resource | what dbplane does | interrupts |\n|---|---|---|"
        )?;
    }
    for planned in shown {
        let (does, interrupts) = (does(planned), interrupts(planned));
        writeln!(
            out,
            "| {}{} | {does} | {interrupts} |",
            escaped(&planned.id.to_string()),
            of_manifest(planned)
        )?;
    }
    if !plan.not_read.is_empty() {
        writeln!(out, "\nNot read:")?;
    }
    plan.not_read
        .iter()
        .try_for_each(|what| writeln!(out, "- {}", escaped(what)))
}

fn does(planned: &Planned) -> String {
    let steps = planned.steps.iter().map(|step| {
        let text = step_text(step);
        // This part has its own column.
        text.split(" (interrupts")
            .next()
            .and_then(|text| text.split(" (no interruption").next())
            .unwrap_or(&text)
            .to_owned()
    });
    let gone = planned.gone.then(|| "the resource goes".to_owned());
    let unknown = planned
        .unknown
        .as_ref()
        .map(|unknown| format!("unknown: {unknown}"));
    let lines: Vec<String> = steps
        .chain(gone)
        .chain(waits(planned))
        .chain(unknown)
        .map(|line| escaped(&line))
        .collect();
    if lines.is_empty() {
        "nothing".to_owned()
    } else {
        lines.join("<br>")
    }
}

fn interrupts(planned: &Planned) -> &'static str {
    if planned.steps.iter().any(crate::plan::Step::interrupts) {
        "yes"
    } else {
        "no"
    }
}

/// Escapes text so that Markdown shows it literally.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' | '\r' => escaped.push(' '),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '@' => {
                escaped.push('\\');
                escaped.push(sign);
            }
            _ => escaped.push(sign),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_somebody_else_is_text_and_nothing_more() {
        assert_eq!(
            escaped("a|b <img> [x](y) @all\n# c"),
            "a\\|b \\<img\\> \\[x\\](y) \\@all \\# c"
        );
    }
}
