//! Shows the progress of longer work on standard error, if that is a terminal, and removes it at
//! the end.

use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::screen::stderr;

/// Shorter work shows no progress.
const QUICK: Duration = Duration::from_secs(1);

/// A line that disappears at the end.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Shows at once what the command waits for, and the elapsed time.
    pub fn waiting(what: &str) -> Self {
        let bar = styled(None, "{spinner} {wide_msg} {elapsed}", what);
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    /// Counts `what` up to `length`. Shown once this takes longer.
    pub fn counting(what: &str, length: usize) -> Self {
        Self(styled(
            u64::try_from(length).ok(),
            "{msg} {wide_bar} {pos}/{len}",
            what,
        ))
    }

    /// Writes a line that stays, and shows it as what the command waits for.
    pub fn say(&self, what: &str) {
        self.0.set_message(what.to_owned());
        // Without standard error the command still does its work.
        let _ = self.0.suspend(|| writeln!(stderr(), "{what}"));
    }

    /// Counts one more.
    pub fn advance(&self) {
        if self.0.is_hidden() && self.0.elapsed() >= QUICK {
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.0.inc(1);
    }
}

/// Hidden at first.
fn styled(length: Option<u64>, template: &str, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden())
        .with_message(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Waits for `work`, and shows `what` if that takes longer.
pub async fn during<T>(what: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(QUICK) => {}
    }
    let _shown = Progress::waiting(what);
    work.await
}
