//! The name of the program: its own, or `kubectl dbplane` if kubectl runs it as a plugin.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

use clap::Command;

const OWN: &str = "dbplane";
/// The file name that kubectl looks for, and the command that users type.
const PLUGIN: (&str, &str) = ("kubectl-dbplane", "kubectl dbplane");

/// The file name by which kubectl asks for completions of the plugin.
const COMPLETER: &str = "kubectl_complete-dbplane";

/// True if kubectl runs this program for completions.
pub fn completes_for_kubectl() -> bool {
    std::env::args_os()
        .next()
        .is_some_and(|path| Path::new(&path).file_stem() == Some(OsStr::new(COMPLETER)))
}

/// The command that users type to run this program.
pub fn program() -> &'static str {
    static NAME: LazyLock<&str> = LazyLock::new(|| {
        std::env::args_os()
            .next()
            .map_or(OWN, |path| name_of(&path))
    });
    *NAME
}

fn name_of(path: &OsStr) -> &'static str {
    match Path::new(path).file_stem() {
        Some(stem) if stem == PLUGIN.0 => PLUGIN.1,
        _ => OWN,
    }
}

/// The same command line, with this name in usage lines and examples.
pub fn renamed(command: Command, program: &'static str) -> Command {
    command
        .bin_name(program)
        .mut_subcommands(|verb| match verb.get_after_help() {
            Some(help) => {
                let help = help
                    .to_string()
                    .replace(&format!("\n  {OWN} "), &format!("\n  {program} "));
                verb.after_help(help)
            }
            None => verb,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_file_decides() {
        for (path, name) in [
            ("/usr/bin/dbplane", "dbplane"),
            ("dbplane-0.1", "dbplane"),
            ("/home/a/.krew/bin/kubectl-dbplane", "kubectl dbplane"),
            ("kubectl-dbplane.exe", "kubectl dbplane"),
        ] {
            assert_eq!(name_of(OsStr::new(path)), name, "{path}");
        }
    }
}
