//! The public command line, unmodified, on the simulator's public profile. It covers every command
//! for projects, branches, computes, operations and keys.

mod branches;
mod context;
mod keys;
mod projects;

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::ADMIN;
use crate::public::{Platform, Try, assert_complete, try_all};
use crate::tools;

#[rustfmt::skip]
const TRIED: &[Try<CommandLine>] = &[
    ("me",                       keys::me),
    ("orgs list",                keys::orgs_list),
    ("api-keys list",            keys::api_keys_list),
    ("api-keys create",          keys::api_keys_create),
    ("api-keys revoke",          keys::api_keys_revoke),
    ("profile list",             keys::profile_list),
    ("profile create",           keys::profile_create),
    ("profile rotate-key",       keys::profile_rotate_key),
    ("profile remove",           keys::profile_remove),
    ("projects list",            projects::list),
    ("projects create",          projects::create),
    ("projects update",          projects::update),
    ("projects delete",          projects::delete),
    ("projects recover",         projects::recover),
    ("projects get",             projects::get),
    ("operations list",          projects::operations_list),
    ("api",                      projects::api),
    ("branches list",            branches::list),
    ("branches create",          branches::create),
    ("branches reset",           branches::reset),
    ("branches restore",         branches::restore),
    ("branches rename",          branches::rename),
    ("branches set-default",     branches::set_default),
    ("branches set-expiration",  branches::set_expiration),
    ("branches add-compute",     branches::add_compute),
    ("branches delete",          branches::delete),
    ("branches get",             branches::get),
    ("branches schema-diff",     branches::schema_diff),
    ("databases list",           branches::databases_list),
    ("roles list",               branches::roles_list),
    ("connection-string",        branches::connection_string),
    ("diff",                     branches::diff),
    ("link",                     context::link),
    ("set-context",              context::set_context),
    ("checkout",                 context::checkout),
    ("status",                   context::status),
    ("config status",            context::config_status),
    ("config plan",              context::config_plan),
    ("config apply",             context::config_apply),
    ("deploy",                   context::deploy),
    ("env pull",                 context::env_pull),
];

/// The name of a group covers all its commands.
#[rustfmt::skip]
const LEFT_OUT: &[(&str, &str)] = &[
    ("auth",              "signs in with a browser"),
    ("ip-allow",          "who may connect to a database: there is none"),
    ("vpc",               "who may connect to a database: there is none"),
    ("neon-auth",         "a service of its own"),
    ("databases create",  "what is in a branch is not simulated"),
    ("databases delete",  "what is in a branch is not simulated"),
    ("roles create",      "what is in a branch is not simulated"),
    ("roles delete",      "what is in a branch is not simulated"),
    ("logs",              "what databases log: there is none"),
    ("snapshots",         "copies of what is in a branch, which is not simulated"),
    ("inspect",           "asks a database: there is none"),
    ("psql",              "connects to a database: there is none"),
    ("open",              "opens a browser"),
    ("claim",             "a service of its own"),
    ("init",              "prepares a folder for agents"),
    ("mcp",               "prepares an agent"),
    ("plugins",           "prepares an agent"),
    ("skills",            "prepares an agent"),
    ("ask",               "asks a model"),
    ("data-api",          "a service of its own"),
    ("functions",         "a service of its own"),
    ("triggers",          "a service of its own"),
    ("credentials",       "keys of services that are not simulated"),
    ("dev",               "runs functions on this machine"),
    ("config init",       "installs packages"),
    ("buckets",           "a service of its own"),
    ("bootstrap",         "downloads a template"),
    ("completion",        "writes a script for a shell"),
];

/// The command line with its own home folder.
pub struct CommandLine {
    pub platform: Platform,
    folder: TempDir,
}

impl CommandLine {
    fn new(platform: Platform) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The command line does not create this folder if it gets a key.
        fs::create_dir_all(folder.path().join(".config/neon")).unwrap();
        Self { platform, folder }
    }

    /// The output of a command in JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.text(&[arguments, &["--output", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// The output of a command as text.
    pub fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The error output of a command that must fail.
    pub fn failure(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let program = tools("command-line").join("node_modules/.bin/neonctl");
        let arguments_of_all = ["--no-analytics"].iter().chain(arguments).map(OsStr::new);
        let output = self.node([program.as_os_str()].into_iter().chain(arguments_of_all));
        assert_eq!(self.outside(), "", "{arguments:?} left this machine");
        output
    }

    fn node<'a>(&self, arguments: impl Iterator<Item = &'a OsStr>) -> Output {
        let mut node = Command::new("node");
        let only_here = format!(
            "--import={}",
            tools("command-line").join("loopback.mjs").display()
        );
        node.args(arguments)
            .current_dir(self.folder.path())
            .env_clear();
        node.env("HOME", self.folder.path())
            .env("NODE_OPTIONS", only_here);
        node.env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("OUTSIDE", self.file("outside"));
        node.env("NEON_API_HOST", self.platform.simulator.base_url())
            .env("NEON_API_KEY", ADMIN);
        node.envs([("CI", "1"), ("NO_COLOR", "1"), ("COLUMNS", "200")])
            .output()
            .unwrap()
    }

    /// A file in its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The attempts to reach other machines.
    fn outside(&self) -> String {
        fs::read_to_string(self.file("outside")).unwrap_or_default()
    }

    /// The commands in its help text.
    fn commands(&self, group: &[&str]) -> Vec<String> {
        let help = self.text(&[group, &["--help"]].concat());
        let name = [&["neonctl"], group, &[""]].concat().join(" ");
        let lines = help
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| !line.is_empty());
        let listed = lines.filter_map(|line| line.strip_prefix(&name)?.split(' ').next());
        let commands: Vec<String> = listed.map(str::to_owned).collect();
        assert!(!commands.is_empty(), "{group:?} lists no commands: {help}");
        commands
    }
}

#[tokio::test]
async fn every_command_works_as_documented() {
    try_all(TRIED, CommandLine::new).await;
}

#[tokio::test]
async fn every_command_is_tried_or_left_out() {
    let command_line = CommandLine::new(Platform::start().await);
    let is_group = |name: &str| {
        let prefix = format!("{name} ");
        let names = TRIED
            .iter()
            .map(|(name, _)| name)
            .chain(LEFT_OUT.iter().map(|(name, _)| name));
        names.into_iter().any(|name| name.starts_with(&prefix))
    };
    let mut offered = Vec::new();
    for name in command_line.commands(&[]) {
        if is_group(&name) {
            let commands = command_line.commands(&[&name]);
            offered.extend(commands.iter().map(|command| format!("{name} {command}")));
        } else {
            offered.push(name);
        }
    }
    assert_complete(&offered, TRIED, LEFT_OUT);
}

/// All tests of commands depend on this check.
#[tokio::test]
async fn requests_to_other_machines_are_detected() {
    let command_line = CommandLine::new(Platform::start().await);
    let fetch = "fetch('http://192.0.2.1:81').catch((error) => console.log(String(error.cause)))";
    let output = command_line.node(["--eval", fetch].into_iter().map(OsStr::new));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "Error: 192.0.2.1 is not this machine\n"
    );
    assert_eq!(command_line.outside(), "192.0.2.1:81\n");
}
