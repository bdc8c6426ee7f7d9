//! The demo's environment without declared resources, and a file that connects another terminal to
//! it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::environment::{Environment, PLAYGROUND};
use super::support::Result;
use super::terminal::Terminal;

/// The file for the other terminal; removed on drop, because it is useless then.
struct Way(PathBuf);

impl Drop for Way {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Starts and installs everything, and runs until a process ends.
pub async fn offer(file: &Path, shown: &mut bool) -> Result<()> {
    let terminal = Terminal::new();
    let mut env = Environment::start(&terminal, &PLAYGROUND).await?;
    terminal.print("Installing dbplane, and starting the operator ...");
    if let Err(error) = install(&mut env).await {
        terminal.print(&env.last_logs());
        return Err(error);
    }
    let variables = variables(&env, &env.programs()?);
    // Write beside the target and rename, so that readers never see a partial file.
    let unfinished = file.with_extension("unfinished");
    fs::write(&unfinished, variables)?;
    fs::rename(&unfinished, file)?;
    let _way = Way(file.to_owned());
    *shown = true;
    terminal.print(&format!(
        "\nReady, and everything stays up until Ctrl-C. In another terminal, in this folder:\n\n     source {}\n",
        file.display()
    ));
    terminal.print(&format!(
        "   The platform's console: {}/",
        env.console.url()
    ));
    env.until_one_ends().await
}

/// Installs as the demo does, without output.
async fn install(env: &mut Environment) -> Result<()> {
    env.kubectl(&[
        "apply",
        "-k",
        concat!(env!("CARGO_MANIFEST_DIR"), "/deploy"),
    ])
    .await?;
    env.start_operator().await
}

fn variables(env: &Environment, programs: &Path) -> String {
    let mut text = String::from("# The way to a playground that runs: source this file.\n");
    let mut export = |name: &str, value: &str| {
        let _ = writeln!(text, "export {name}={value}");
    };
    // GOGC is set for short-lived kubectl processes, not for the user's shell.
    for (name, value) in env
        .variables()
        .into_iter()
        .filter(|(name, _)| name != "GOGC")
    {
        export(&name, &value);
    }
    // Commands that call the platform directly reach it on loopback, as the operator does.
    export("DBPLANE_ALLOW_INSECURE_PLATFORM", "true");
    export("PLATFORM_URL", &env.console.base_url);
    export("CONSOLE_URL", &env.console.url());
    export("PATH", &format!("{}:$PATH", programs.display()));
    text
}
