//! Reference pages of the programs: commands, arguments, flags and variables.

use std::fmt::Write;

use clap::{Arg, Command};

use crate::command_line::verbs;

const MADE: &str = "This page is made by `make reference` from what `--help` and the man pages are made of, and a test compares them.";

/// The page of dbplane.
pub fn operator() -> String {
    let mut page = format!(
        "# The commands of dbplane\n\n{MADE} [The guide](../guide/command-line.md) explains how the verbs work together, with examples.\n\n\
         As `kubectl-dbplane` in your `PATH` the same program is `kubectl dbplane`. `dbplane man` writes man pages, and `dbplane completion` completions for your shell.\n\n\
         If a flag names a variable, the variable is used when the flag is absent. Each verb also takes `-h` for a short description, and `--help` for this one.\n\n"
    );
    let all = verbs(&built(dbplane::cli::command()), "dbplane");
    for (name, verb) in &all {
        writeln!(
            page,
            "- [{name}](#{}): {}",
            name.replace(' ', "-"),
            said(verb.get_about())
        )
        .unwrap();
    }
    for (name, verb) in all {
        write!(page, "\n## {name}\n\n").unwrap();
        page.push_str(&section(verb));
    }
    page
}

/// The page of the simulator.
pub fn simulator() -> String {
    let program = built(dbplane_simulator::arguments::command());
    let guide = "[The guide](../guide/simulator.md) shows what the simulated platform does, and its console.";
    format!(
        "# The command line of the simulator\n\n{MADE} {guide}\n\n{}",
        section(program)
    )
}

fn built(mut command: Command) -> Command {
    command.build();
    command
}

/// The section of a command.
fn section(mut verb: Command) -> String {
    let mut page = said(verb.get_long_about().or(verb.get_about()));
    let usage = verb.render_usage().to_string();
    write!(
        page,
        "\n\n```text\n{}\n```\n",
        usage.trim_start_matches("Usage: ")
    )
    .unwrap();
    let shown =
        |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let (arguments, flags): (Vec<_>, Vec<_>) = verb
        .get_arguments()
        .filter(shown)
        .partition(|arg| arg.is_positional());
    for (heading, args) in [("Arguments", arguments), ("Flags", flags)] {
        if !args.is_empty() {
            write!(page, "\n{heading}:\n\n").unwrap();
            args.into_iter()
                .for_each(|arg| page.push_str(&argument(arg)));
        }
    }
    page.push_str(&after(&verb));
    page
}

/// An argument or flag with its default, variable and values.
fn argument(arg: &Arg) -> String {
    let short = arg
        .get_short()
        .map(|short| format!("`-{short}`, "))
        .unwrap_or_default();
    let plain = arg.to_string();
    let mut line = format!(
        "- {short}`{plain}`: {}",
        said(arg.get_long_help().or(arg.get_help())).trim_end_matches('.')
    );
    line.push('.');
    if arg.is_required_set() {
        line.push_str(" Required.");
    }
    let takes_value = arg.get_action().takes_values();
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if takes_value && !defaults.is_empty() {
        write!(line, " Default: `{}`.", defaults.join(",")).unwrap();
    }
    if let Some(variable) = arg.get_env() {
        write!(line, " Variable: `{}`.", variable.to_string_lossy()).unwrap();
    }
    line.push('\n');
    for value in arg
        .get_possible_values()
        .iter()
        .filter(|value| takes_value && !value.is_hide_set())
    {
        let help = value
            .get_help()
            .map(|help| format!(": {help}"))
            .unwrap_or_default();
        writeln!(line, "  - `{}`{help}", value.get_name()).unwrap();
    }
    line
}

/// Examples and exit codes follow the flags.
fn after(verb: &Command) -> String {
    let help = verb
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let (examples, codes) = help.split_once("\n\nExit status:\n").unwrap();
    let mut page = "\nExamples:\n\n```sh\n".to_owned();
    for line in examples.lines().skip(1) {
        let (command, meaning) = line.trim().split_once("   ").unwrap_or((line.trim(), ""));
        match meaning.trim() {
            "" => writeln!(page, "{command}").unwrap(),
            meaning => writeln!(page, "{command}   # {meaning}").unwrap(),
        }
    }
    page.push_str("```\n\nExit status:\n\n");
    for line in codes.lines() {
        match line.trim().split_once("  ") {
            Some((code, meaning)) => write!(page, "\n- {code}: {}", meaning.trim()).unwrap(),
            None => write!(page, " {}", line.trim()).unwrap(),
        }
    }
    page.replace("status:\n\n\n", "status:\n\n") + "\n"
}

/// Escapes a help text for Markdown.
fn said(help: Option<&impl ToString>) -> String {
    help.map(ToString::to_string)
        .unwrap_or_default()
        .replace('<', "\\<")
        .replace('*', "\\*")
        .replace('|', "\\|")
}
