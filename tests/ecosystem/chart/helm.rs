//! The real helm, with folders of its own.

use std::path::Path;
use std::process::{Command, Output};

use super::{NAMESPACE, chart};
use crate::support::Sandbox;
use crate::tools;

pub struct Helm {
    sandbox: Sandbox,
}

impl Helm {
    pub fn new() -> Self {
        Self {
            sandbox: Sandbox::new("helm").unwrap(),
        }
    }

    /// The output, or the error.
    pub fn run(&self, args: &[&str]) -> Result<String, String> {
        result_of(self.command(args).output().unwrap())
    }

    /// Like `run`, and a success has nothing to say on stderr.
    pub fn run_quietly(&self, args: &[&str]) -> Result<String, String> {
        let output = self.command(args).output().unwrap();
        let remarks = String::from_utf8_lossy(&output.stderr).into_owned();
        let result = result_of(output)?;
        assert_eq!(remarks, "", "helm {args:?}");
        Ok(result)
    }

    /// Like `run`, but keeps the runtime free for a platform in this process.
    pub async fn run_async(&self, args: &[&str]) -> Result<String, String> {
        let mut command = tokio::process::Command::from(self.command(args));
        result_of(command.kill_on_drop(true).output().await.unwrap())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(tools("helm").join("helm"));
        command.args(args).env_remove("KUBECONFIG");
        for folder in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(folder, self.sandbox.folder().join(folder));
        }
        command
    }

    /// A folder for charts of tests.
    pub fn folder(&self) -> &Path {
        self.sandbox.folder()
    }

    pub fn template(&self, more: &[&str]) -> Result<String, String> {
        let chart = chart().display().to_string();
        self.run_quietly(
            &[
                &["template", "dbplane", &chart, "--namespace", NAMESPACE],
                more,
            ]
            .concat(),
        )
    }
}

fn result_of(
    Output {
        status,
        stdout,
        stderr,
    }: Output,
) -> Result<String, String> {
    let (stdout, stderr) = (
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    );
    if status.success() {
        Ok(stdout)
    } else {
        Err(stderr)
    }
}
