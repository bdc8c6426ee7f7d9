//! How far something is that takes longer than a second, for people at a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is over sooner needs no bar.
const SOON: Duration = Duration::from_secs(1);

/// A bar on standard error: none where that is no terminal.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// `what` is counted up to `length`.
    pub fn new(what: &'static str, length: usize) -> Self {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden()).with_message(what);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}");
        Self(style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style)))
    }

    /// One more is done.
    pub fn advance(&self) {
        if self.0.is_hidden() && self.0.elapsed() >= SOON {
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
