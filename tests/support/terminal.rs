//! A terminal for a program's standard error or for all its streams. Use it with `#[path =
//! "../support/terminal.rs"] mod terminal;`.

#![allow(
    dead_code,
    reason = "every test target compiles all of this and uses a part of it"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::process::{ExitStatus, Output, Stdio};

use nix::pty::{OpenptyResult, Winsize, openpty};
use tokio::process::Command;
use tokio::task::spawn_blocking;

pub struct Terminal(OpenptyResult);

impl Terminal {
    pub fn open() -> Self {
        Self::of_width(200)
    }

    pub fn of_width(columns: u16) -> Self {
        Self(
            openpty(
                &Winsize {
                    ws_row: 24,
                    ws_col: columns,
                    ws_xpixel: 0,
                    ws_ypixel: 0,
                },
                None,
            )
            .unwrap(),
        )
    }

    /// Runs a command with its standard error on the terminal. Returns exit status, standard
    /// output, and the terminal's output.
    pub async fn of(self, mut command: Command) -> (Output, String) {
        let reader = spawn_blocking(move || everything(File::from(self.0.master)));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(self.0.slave);
        let child = command
            .env("TERM", "xterm")
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        // The command holds the other end as well.
        drop(command);
        let output = child.wait_with_output().await.unwrap();
        (output, reader.await.unwrap())
    }

    /// Runs a command with all streams on the terminal and types this input. Returns the exit
    /// status and the screen with the echoed input.
    pub async fn with_person(self, mut command: Command, types: &str) -> (ExitStatus, String) {
        let mut master = File::from(self.0.master);
        // The terminal buffers the input.
        master.write_all(types.as_bytes()).unwrap();
        let reader = spawn_blocking(move || everything(master));
        let other = || self.0.slave.try_clone().unwrap();
        command.stdin(other()).stdout(other()).stderr(other());
        drop(self.0.slave);
        let mut child = command
            .env("TERM", "xterm")
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        drop(command);
        let status = child.wait().await.unwrap();
        (status, reader.await.unwrap())
    }
}

/// Reads until the other end is closed, which is an error on Linux.
fn everything(mut master: File) -> String {
    let mut shown = Vec::new();
    let _ = master.read_to_end(&mut shown);
    String::from_utf8(shown).unwrap()
}
