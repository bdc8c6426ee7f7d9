//! Updates the status with each change. Watches report the changes, so nothing is polled.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, select_all};
use kube::runtime::{WatchStreamExt, watcher};

use super::collect::{Collector, is_account};
use super::{Error, Picture, StatusSubject, take};
use crate::cli::common::{OutputArgs, OutputFormat};
use crate::cli::resource::ResourceKind;
use crate::cli::stop_on_signal;

/// Changes within this time are drawn together.
const TOGETHER: Duration = Duration::from_millis(300);

/// Updates the status until Ctrl-C, or until the one resource is gone. Returns the last one.
pub async fn watch(
    collector: &Collector,
    subject: &StatusSubject,
    output: OutputArgs,
    out: &mut impl Write,
) -> Result<Picture, Error> {
    let stop = stop_on_signal().map_err(Error::Signal)?;
    let mut changes = changes(collector, subject);
    let mut picture = take(collector, subject).await?;
    draw(&picture, output, out)?;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(picture),
            _ = changes.next() => {}
        }
        settle(&mut changes).await;
        let new = match take(collector, subject).await {
            Err(Error::NotFound(what)) => {
                writeln!(out, "{what} is gone")?;
                return Ok(picture);
            }
            // It is read again with the next change.
            Err(Error::Read { .. } | Error::NothingRead { .. }) => continue,
            other => other?,
        };
        if new.document() != picture.document() {
            draw(&new, output, out)?;
        }
        picture = new;
    }
}

async fn settle(changes: &mut BoxStream<'static, ()>) {
    let end = tokio::time::sleep(TOGETHER);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return,
            Some(()) = changes.next() => {}
        }
    }
}

fn draw(picture: &Picture, output: OutputArgs, out: &mut impl Write) -> Result<(), Error> {
    let for_people = matches!(output.output, OutputFormat::Text | OutputFormat::Wide);
    if for_people && std::io::stdout().is_terminal() {
        // Clears the screen and moves the cursor to the top left. `out` would remove this together
        // with colours for NO_COLOR.
        std::io::stdout().write_all(b"\x1b[2J\x1b[H")?;
    } else if output.output != OutputFormat::Json {
        writeln!(out, "---")?;
    }
    picture.write(output, out)?;
    out.flush()?;
    Ok(())
}

/// A change, or the start of a watch. The stream never ends: a failed watch restarts after a
/// backoff.
fn changes(collector: &Collector, subject: &StatusSubject) -> BoxStream<'static, ()> {
    let mut watches = Vec::new();
    match subject {
        StatusSubject::Fleet => {
            for kind in ResourceKind::all() {
                let mut config = watcher::Config::default();
                if !is_account(kind.name()) {
                    config.label_selector = collector.params.label_selector.clone();
                }
                watches.push(changes_of(collector, &kind, config));
            }
        }
        StatusSubject::One { kind, name } => {
            let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
            watches.push(changes_of(collector, kind, config));
        }
    }
    select_all(watches).boxed()
}

fn changes_of(
    collector: &Collector,
    kind: &ResourceKind,
    config: watcher::Config,
) -> BoxStream<'static, ()> {
    let api = kind.api(&collector.client, collector.namespace.as_deref());
    // The initial list causes one event, at its end.
    let changes = watcher::watcher(api, config)
        .default_backoff()
        .filter_map(async |event| match event {
            Ok(watcher::Event::Init | watcher::Event::InitApply(_)) | Err(_) => None,
            Ok(_) => Some(()),
        });
    changes.boxed()
}
