//! Runs the commands of the book in order, and compares their output with the pages.
//!
//! A walkthrough starts from a playground (`make playground`), as its page says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod covered;
mod manifests;
mod page;
mod picture;
mod playground;
mod session;
mod shown;
#[path = "../support/mod.rs"]
mod support;

use std::io::Write;

use covered::{By, PREFACE};
use page::{Block, blocks};
use playground::Playground;
use session::{Ran, Session};

/// Pages that need two clusters or leave something behind.
const APART: [&str; 2] = ["docs/guide/restore.md", "docs/guide/clusters.md"];

/// Writes directly to stderr, because the test harness shows a passing test's output only on
/// request.
fn tell(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

async fn follow(page: &str, playgrounds: &[(&str, &Playground)]) -> Ran {
    Session::new(page, playgrounds).follow().await
}

#[tokio::test]
async fn a_newcomer_gets_from_the_first_page_to_a_managed_fleet() {
    let playground = Playground::start().await;
    let mut ran = Ran::default();
    for page in covered::pages(By::Walkthrough)
        .iter()
        .filter(|page| !APART.contains(&page.as_str()) && *page != picture::PAGE)
    {
        ran.add(&follow(page, &[("playground", &playground)]).await);
    }
    // This must run before the guides create objects in their namespace, because some fields are
    // immutable.
    let manifests = manifests_of_all_pages(&playground).await;
    ran.add(&guides(&playground).await);
    tell(&format!(
        "{ran}; {manifests} manifests beside them are accepted\n"
    ));
    assert!(
        ran.pages >= 15 && ran.blocks >= 50 && ran.compared >= 15,
        "{ran}"
    );
    playground.end().await;
}

#[tokio::test]
async fn lost_resources_are_restored_and_moved_to_another_cluster() {
    let (playground, second) = tokio::join!(Playground::start(), Playground::start());
    let mut ran = Ran::default();
    for page in APART {
        ran.add(&follow(page, &[("playground", &playground), ("second", &second)]).await);
    }
    tell(&format!("{ran}\n"));
    playground.end().await;
    second.end().await;
}

/// It has a playground of its own, because it counts all creates.
#[tokio::test]
async fn a_create_whose_answer_is_lost_is_not_repeated() {
    let playground = Playground::start().await;
    let ran = follow(picture::PAGE, &[("playground", &playground)]).await;
    tell(&format!("{ran}\n"));
    playground.end().await;
}

async fn guides(playground: &Playground) -> Ran {
    let mut ran = Ran::default();
    let preface = session::script(&blocks(PREFACE));
    for page in covered::pages(By::Guide) {
        let before = if page == PREFACE { "" } else { &preface };
        let session = Session::new(&page, &[("playground", playground)]);
        let runs =
            |block: &Block| block.is_command() && covered::by(&page, block) == Some(By::Guide);
        let applied = manifests::applied(&page);
        ran.add(&session.perform(before, &applied, runs).await);
    }
    ran
}

/// Returns their number.
async fn manifests_of_all_pages(playground: &Playground) -> usize {
    let mut tried = 0;
    let (way, mut before) = (
        "source target/playground",
        "source target/playground\nkubectl create namespace shop",
    );
    for page in page::book() {
        let trials = manifests::trials(&page);
        if !trials.is_empty() {
            let session = Session::new(&page, &[("playground", playground)]);
            tried += session.perform(before, &trials, |_| true).await.blocks;
            before = way;
        }
    }
    // Readers apply those of the walkthroughs and guides.
    assert!(tried >= 8, "only {tried} manifests were found");
    tried
}
