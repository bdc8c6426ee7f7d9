//! A terminal of which a program's standard error is a part. Use it with `#[path = "../support/terminal.rs"] mod terminal;`.

use std::fs::File;
use std::io::Read;
use std::process::{Output, Stdio};

use nix::pty::{OpenptyResult, Winsize, openpty};
use tokio::process::Command;
use tokio::task::spawn_blocking;

pub struct Terminal(OpenptyResult);

impl Terminal {
    pub fn open() -> Self {
        Self(openpty(&Winsize { ws_row: 24, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 }, None).unwrap())
    }

    /// Runs a command on it: how it ended, what it wrote to standard output, and what the terminal was sent.
    pub async fn of(self, mut command: Command) -> (Output, String) {
        let mut master = File::from(self.0.master);
        let reader = spawn_blocking(move || {
            let mut shown = Vec::new();
            // It ends with an error once nobody has the other end any more.
            let _ = master.read_to_end(&mut shown);
            shown
        });
        command
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(self.0.slave)
            .kill_on_drop(true);
        let child = command.spawn().unwrap();
        // It has the other end as well.
        drop(command);
        let output = child.wait_with_output().await.unwrap();
        (output, String::from_utf8(reader.await.unwrap()).unwrap())
    }
}
