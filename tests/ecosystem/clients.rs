//! Client libraries that parse connection URIs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{of_debian, tools};

/// The input of a client.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    pub uri: String,
    pub jdbc_uri: String,
}

/// The result of a client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Read {
    pub user: String,
    pub password: String,
    pub database: String,
    pub host: String,
    pub port: u16,
}

/// Parses with libpq, which most clients of other languages use.
pub fn libpq(questions: &[Question]) -> Vec<Read> {
    answers(python("libpq.py"), questions)
}

/// Parses with PostgreSQL's JDBC driver.
pub fn jdbc(questions: &[Question]) -> Vec<Read> {
    let mut command = python("jdbc.py");
    command.arg(of_debian(&[
        "usr",
        "lib",
        "jvm",
        "*",
        "lib",
        "server",
        "libjvm.so",
    ]));
    command.arg(of_debian(&["usr", "share", "java", "postgresql.jar"]));
    answers(command, questions)
}

/// Parses with node's pg.
pub fn node(questions: &[Question]) -> Vec<Read> {
    answers(node_command(), questions)
}

/// True if node's pg can parse them.
pub fn node_understands(questions: &[Question]) -> bool {
    asked(node_command(), &questions).status.success()
}

fn node_command() -> Command {
    let mut command = Command::new("node");
    command.arg(tools("node").join("read.mjs"));
    command
}

/// Parses with pgx, a Go client.
pub fn pgx(questions: &[Question]) -> Vec<Read> {
    answers(pgx_command(), questions)
}

/// True if pgx parses them without sending a part to the server as a setting.
pub fn pgx_understands(questions: &[Question]) -> bool {
    asked(pgx_command(), &questions).status.success()
}

fn pgx_command() -> Command {
    Command::new(tools("pgx").join("pgx"))
}

fn python(script: &str) -> Command {
    script_of("python", script)
}

/// A script of this folder in an environment of the build script.
pub fn script_of(environment: &str, script: &str) -> Command {
    let mut command = Command::new(tools(environment).join("bin/python"));
    command.arg(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/ecosystem/clients")
            .join(script),
    );
    command
}

fn answers(command: Command, questions: &[Question]) -> Vec<Read> {
    answer(command, &questions)
}

/// The answer of a program that reads and writes JSON.
pub fn answer<T: DeserializeOwned>(command: Command, question: &impl Serialize) -> T {
    let what = format!("{command:?}");
    let output = asked(command, question);
    assert!(output.status.success(), "{what}: {}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn asked(mut command: Command, question: &impl Serialize) -> Output {
    let mut client = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    client
        .stdin
        .take()
        .unwrap()
        .write_all(&serde_json::to_vec(question).unwrap())
        .unwrap();
    client.wait_with_output().unwrap()
}
