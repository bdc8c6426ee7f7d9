//! Starts the same playground as `make playground`.

use std::path::PathBuf;
use std::process::Command;

use crate::page::repository;
use crate::support::{PATIENCE, Running, Sandbox, wait_for};

/// A playground that ends on drop.
pub struct Playground {
    // Fields are dropped in this order: the process must end before its sandbox.
    process: Running,
    /// The file that readers source.
    pub way: PathBuf,
    _sandbox: Sandbox,
}

impl Playground {
    pub async fn start() -> Self {
        let program = repository().join("target/debug/examples/demo");
        assert!(
            program.is_file(),
            "no {}: cargo build --workspace --bins --example demo",
            program.display()
        );
        let sandbox = Sandbox::new("playground").unwrap();
        let way = sandbox.folder().join("way");
        let mut command = Command::new(program);
        command
            .arg("--playground")
            .arg(&way)
            .env_remove("KUBECONFIG");
        let mut process = sandbox.start("playground", command).unwrap().log_on_panic();
        let ready = wait_for("the playground to be ready", PATIENCE * 3, async || {
            if let Ok(Some(status)) = process.ended() {
                return Some(Err(format!("{status}:\n{}", process.last_lines(40))));
            }
            way.exists().then_some(Ok(()))
        });
        ready.await.unwrap().unwrap();
        Self {
            process,
            way,
            _sandbox: sandbox,
        }
    }

    /// Ends it like Ctrl-C, and checks that nothing is left.
    pub async fn end(mut self) {
        self.process.terminate(PATIENCE).await.unwrap();
        assert!(
            !self.way.exists(),
            "the way to a playground that is gone is still there"
        );
    }
}
