//! The user commands, as processes, with the shared operator.

mod actions;
mod keys;
mod status;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use crate::fixture::{ADMIN, Fixture};
use crate::support::tokens;

/// The exit code and the output of a process.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub async fn of(mut command: Command) -> Self {
        let output = command
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks the exit code and parts of the output, which must have neither colours nor the
    /// credential.
    pub fn expect(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        let all = format!("{}{}", self.out, self.err);
        for word in words {
            assert!(all.contains(word), "{word:?} is missing: {self:?}");
        }
        assert!(!all.contains('\x1b'), "{self:?}");
        assert_eq!(tokens::found([("output", &all)], ADMIN), [""; 0]);
        self
    }
}

impl Fixture {
    /// Runs the program with these arguments in the namespace of the test as administrator.
    pub async fn dbplane(&self, args: &[&str]) -> Ran {
        self.dbplane_as(&self.shared.cluster.kubeconfig_path(), args)
            .await
    }

    async fn dbplane_as(&self, kubeconfig: &Path, args: &[&str]) -> Ran {
        Ran::of(self.command(kubeconfig, args)).await
    }

    fn command(&self, kubeconfig: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
        command
            .args(args)
            .args(["-n", &self.namespace])
            .env_clear()
            .env("KUBECONFIG", kubeconfig);
        command
    }

    /// A kubeconfig with these rights for Computes in the namespace, and no others.
    async fn kubeconfig_with(&self, verbs: &str) -> PathBuf {
        let may = format!("--verb={verbs}");
        self.kubectl(&[
            "create",
            "role",
            "some",
            &may,
            "--resource=computes.dbplane.dev",
        ])
        .await;
        let who = format!("--serviceaccount={}:default", self.namespace);
        self.kubectl(&["create", "rolebinding", "some", "--role=some", &who])
            .await;
        self.shared
            .cluster
            .kubeconfig_for_service_account(&self.namespace, "default")
            .await
            .unwrap()
    }
}
