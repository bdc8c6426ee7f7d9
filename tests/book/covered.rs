//! Assigns a test to each block of commands in the book, so that no block is untested.

use std::collections::BTreeSet;

use crate::page::{Block, blocks, book, repository};

/// The test that runs a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Runs the whole page in order.
    Walkthrough,
    /// Runs it after the preface of the guides.
    Guide,
    /// Another test, in this file.
    Test(&'static str),
    /// No test, with the reason.
    Nobody(&'static str),
}

/// The page that says where a reader of the guides is.
pub const PREFACE: &str = "docs/guide/README.md";

/// Each block by its page and its first line; `*` means all blocks of the page.
pub const COMMANDS: &[(&str, &str, By)] = &[
    ("docs/start/first-ten-minutes.md", "*", By::Walkthrough),
    ("docs/start/first-project.md", "*", By::Walkthrough),
    ("docs/start/lost-answer.md", "*", By::Walkthrough),
    ("docs/guide/restore.md", "*", By::Walkthrough),
    ("docs/guide/clusters.md", "*", By::Walkthrough),
    ("docs/guide/teams.md", "*", By::Walkthrough),
    ("docs/guide/rename-or-move.md", "*", By::Walkthrough),
    (PREFACE, "*", By::Guide),
    ("docs/validate.md", "*", By::Guide),
    ("docs/guide/connection.md", "*", By::Guide),
    ("docs/guide/deletion-protection.md", "*", By::Guide),
    ("docs/guide/disruption.md", "*", By::Guide),
    ("docs/guide/drift.md", "*", By::Guide),
    (
        "docs/guide/from-terraform.md",
        "terraform state pull | dbplane import --account prod -n shop --from-terraform - --out computes",
        By::Test("tests/offline/import.rs"),
    ),
    (
        "docs/guide/from-terraform.md",
        "terraform state rm 'module.computes.neon_endpoint.primary[\"dev\"]'",
        By::Nobody("terraform, with a state of it"),
    ),
    ("docs/guide/editors.md", "*", By::Guide),
    ("docs/guide/gitops.md", "*", By::Guide),
    (
        "docs/guide/gitops-from-scratch.md",
        "kubectl kustomize overlays/prod | dbplane validate -",
        By::Guide,
    ),
    (
        "docs/guide/gitops-from-scratch.md",
        "flux bootstrap git --url=ssh://git@git.example/fleet --branch=main --path=clusters/prod",
        By::Nobody("a Git host"),
    ),
    (
        "docs/guide/gitops-from-scratch.md",
        "flux get kustomizations --watch",
        By::Nobody("Flux in the cluster; tests/ecosystem/gitops has its controller"),
    ),
    (
        "docs/guide/gitops-from-scratch.md",
        "kubectl -n argocd get applications --watch",
        By::Nobody("Argo CD in the cluster; tests/ecosystem/gitops has its controller"),
    ),
    ("docs/guide/import.md", "*", By::Guide),
    ("docs/guide/least-privilege.md", "*", By::Guide),
    ("docs/guide/operations.md", "*", By::Guide),
    ("docs/guide/plan.md", "*", By::Guide),
    (
        "docs/guide/problems.md",
        "*",
        By::Nobody("a Pod of the operator, to forward its ports: a control plane has no nodes"),
    ),
    ("docs/guide/reconcile.md", "*", By::Guide),
    ("docs/guide/replicas.md", "*", By::Guide),
    ("docs/guide/restarts.md", "*", By::Guide),
    ("docs/guide/rotation.md", "*", By::Guide),
    ("docs/guide/schedules.md", "*", By::Guide),
    (
        "docs/reference/commands.md",
        "*",
        By::Nobody(
            "the resources that the examples of --help name; tests/offline/pages.rs has the program read them",
        ),
    ),
    (
        "docs/reference/simulator.md",
        "*",
        By::Nobody("a terminal of its own: it serves until it is stopped"),
    ),
    (
        "deploy/chart/README.md",
        "*",
        By::Test("tests/ecosystem/chart.rs"),
    ),
    ("docs/runbook/DbplaneBudgetExhausted.md", "*", RUNBOOK),
    ("docs/runbook/DbplaneCredentialsRefused.md", "*", RUNBOOK),
    ("docs/runbook/DbplaneDeletionPaused.md", "*", RUNBOOK),
    ("docs/runbook/DbplaneKeysToRevoke.md", "*", RUNBOOK),
    ("docs/runbook/DbplaneNoLeader.md", "*", RUNBOOK),
    ("docs/runbook/DbplanePlatformUnreachable.md", "*", RUNBOOK),
    ("docs/runbook/DbplaneSnapshotsStale.md", "*", RUNBOOK),
    ("docs/runbook/DbplaneStalled.md", "*", RUNBOOK),
    ("docs/runbook/DbplaneUnresolvedCreates.md", "*", RUNBOOK),
];

const RUNBOOK: By = By::Test("tests/ecosystem/monitoring.rs");

/// YAML that is not for an API server: the page, the first line, and its purpose.
pub const PARTS: &[(&str, &str, &str)] = &[
    (
        "docs/guide/install.md",
        "# kustomization.yaml",
        "a file of kustomize",
    ),
    (
        "docs/guide/gitops.md",
        "# kustomization.yaml",
        "a file of kustomize",
    ),
    (
        "docs/guide/gitops.md",
        "apiVersion: v1",
        "for kustomize alone, which does not print it",
    ),
    (
        "docs/guide/gitops-from-scratch.md",
        "# clusters/prod/databases.yaml",
        "kinds of Flux",
    ),
    (
        "docs/guide/gitops-from-scratch.md",
        "# Applications of Argo CD",
        "a kind of Argo CD",
    ),
    ("docs/guide/teams.md", "replicas: 2", "values of the chart"),
    ("docs/guide/traces.md", "operator:", "values of the chart"),
    (
        "docs/resources.md",
        "  disruption:",
        "a part of a spec, of which docs/guide/disruption.md has the whole",
    ),
    (
        "docs/validate.md",
        "# .pre-commit-config.yaml",
        "a file of pre-commit",
    ),
    (
        "docs/validate.md",
        "manifests:",
        "jobs of a service that builds",
    ),
];

pub fn by(page: &str, block: &Block) -> Option<By> {
    let names = |(of, line, _): &&(&str, &str, By)| {
        *of == page && (*line == "*" || *line == block.first_line())
    };
    COMMANDS.iter().find(names).map(|(_, _, by)| *by)
}

pub fn is_part(page: &str, block: &Block) -> bool {
    PARTS
        .iter()
        .any(|(of, line, _)| *of == page && *line == block.first_line())
}

/// The pages with such blocks, without duplicates, in the order of the book.
pub fn pages(wanted: By) -> Vec<String> {
    book()
        .into_iter()
        .filter(|page| {
            blocks(page)
                .iter()
                .any(|block| block.is_command() && by(page, block) == Some(wanted))
        })
        .collect()
}

/// Commands on any page, and the manifests of the guides.
fn is_to_be_tried(page: &str, block: &Block) -> bool {
    let in_a_guide = page.starts_with("docs/guide/");
    block.is_command() || in_a_guide && block.is_manifest() && !is_part(page, block)
}

#[test]
fn every_block_is_run_or_has_a_reason() {
    let (mut unknown, mut used, mut count) = (Vec::new(), BTreeSet::new(), 0);
    for page in book() {
        for block in blocks(&page)
            .iter()
            .filter(|block| is_to_be_tried(&page, block))
        {
            count += 1;
            let line = block.first_line();
            for (of, line, _) in COMMANDS
                .iter()
                .filter(|(of, named, _)| *of == page && ["*", line].contains(named))
            {
                used.insert((*of, *line));
            }
            match by(&page, block) {
                Some(By::Test(file)) => {
                    assert!(repository().join(file).is_file(), "{page}: no {file}")
                }
                Some(_) => {}
                None => unknown.push(format!("{page}:{}: {line}", block.line)),
            }
        }
    }
    assert!(
        unknown.is_empty(),
        "name in COMMANDS who runs these: {unknown:#?}"
    );
    let stale: Vec<_> = COMMANDS
        .iter()
        .filter(|(of, line, _)| !used.contains(&(*of, *line)))
        .collect();
    assert!(
        stale.is_empty(),
        "nothing on the pages is meant by: {stale:#?}"
    );
    assert!(count > 50, "only {count} blocks were found");
}

#[test]
fn every_guide_says_where_its_reader_is() {
    for page in pages(By::Guide).iter().filter(|page| *page != PREFACE) {
        let text = std::fs::read_to_string(repository().join(page)).unwrap();
        assert!(
            text.contains("README.md)"),
            "{page} does not link to {PREFACE}"
        );
    }
}

#[test]
fn every_part_of_a_manifest_still_exists() {
    for (page, line, _) in PARTS {
        let found = blocks(page)
            .into_iter()
            .any(|block| block.is_manifest() && block.first_line() == *line);
        assert!(found, "{page} has no manifest that begins with {line}");
    }
}

/// The commands of a walkthrough must apply all files that its reader saves.
#[test]
fn every_file_of_a_walkthrough_is_used_by_its_commands() {
    let mut files = 0;
    for page in pages(By::Walkthrough) {
        let all = blocks(&page);
        for file in all.iter().filter_map(Block::file) {
            files += 1;
            let used = all
                .iter()
                .any(|block| block.is_command() && block.text.contains(file));
            assert!(used, "{page}: no command uses {file}");
        }
    }
    assert!(files >= 10, "only {files} files were found");
}
