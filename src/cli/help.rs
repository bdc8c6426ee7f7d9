//! The list of verbs in `--help`, in groups.

use clap::Command;

use super::screen::{HEADING, Table, width};

/// Each verb by what a user wants to do.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Look",
        &["status", "plan", "validate", "account", "bugreport"],
    ),
    (
        "Change",
        &[
            "restart",
            "rotate",
            "pause",
            "resume",
            "reconcile",
            "confirm-deletion",
            "revoked",
            "not-created",
        ],
    ),
    ("Bring in", &["import", "adopt"]),
    (
        "Run",
        &["run", "crds", "remove-finalizers", "completion", "man"],
    ),
];

/// The command with its verbs in groups. clap itself has one list of all verbs.
pub fn grouped(command: Command) -> Command {
    let mut text = Vec::new();
    for (title, verbs) in GROUPS {
        let mut table = Table::default();
        for name in verbs {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            table.plain([(*name).to_owned(), about]);
        }
        text.extend_from_slice(format!("{HEADING}{title}:{HEADING:#}\n").as_bytes());
        // Writing to memory does not fail.
        let _ = table.write(&mut text, "  ", width());
        text.push(b'\n');
    }
    let groups = String::from_utf8_lossy(&text);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{HEADING}Options:{HEADING:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_in_one_group() {
        let command = super::super::command();
        let mut known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, verbs)| *verbs)
            .copied()
            .collect();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn the_groups_are_shown_in_their_order() {
        let help = super::super::command().render_help().to_string();
        let place = |word: &str| help.find(word).unwrap_or_else(|| panic!("{word}: {help}"));
        let places = [
            "Usage:",
            "Look:\n  status ",
            "Change:",
            "Bring in:",
            "Run:",
            "Options:\n",
        ]
        .map(place);
        assert!(places.is_sorted(), "{help}");
    }
}
