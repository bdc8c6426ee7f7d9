//! Manifests that no command on their page applies. Those of a guide are applied, as its preface
//! says. The API server validates all others by a dry run in the fleet's namespace.

use crate::covered::{self, By};
use crate::page::{Block, blocks, book};

/// A block for each manifest of the page that validates it.
pub fn trials(page: &str) -> Vec<Block> {
    let is_applied = |block: &Block| match covered::by(page, block) {
        Some(By::Walkthrough) => block.file().is_some(),
        Some(By::Guide) => block.file().is_none(),
        _ => false,
    };
    let manifests = blocks(page)
        .into_iter()
        .filter(|block| block.is_manifest() && !is_applied(block));
    manifests
        .filter(|block| !covered::is_part(page, block))
        .map(|block| {
            fed(
                "kubectl --namespace=shop apply --dry-run=server --validate=strict -f -",
                &block,
            )
        })
        .collect()
}

/// The blocks of a guide, with a command in place of each manifest that its reader applies.
pub fn applied(page: &str) -> Vec<Block> {
    let is_applied = |block: &Block| {
        block.is_manifest() && block.file().is_none() && !covered::is_part(page, block)
    };
    blocks(page)
        .into_iter()
        .map(|block| {
            if is_applied(&block) {
                fed("apply", &block)
            } else {
                block
            }
        })
        .collect()
}

/// A block of a command that reads the manifest.
fn fed(command: &str, manifest: &Block) -> Block {
    Block {
        line: manifest.line,
        language: "sh".to_owned(),
        fails: false,
        text: format!(
            "{command} <<'END OF MANIFEST'\n{}END OF MANIFEST\n",
            manifest.text
        ),
    }
}

#[test]
fn every_manifest_has_a_namespace() {
    let (mut without, mut count) = (Vec::new(), 0);
    for page in book() {
        let manifests = blocks(&page)
            .into_iter()
            .filter(|block| block.is_manifest() && !covered::is_part(&page, block));
        for block in manifests {
            for object in block.text.split("\n---\n") {
                count += 1;
                let in_none = [
                    "kind: Namespace\n",
                    "kind: ClusterAccount\n",
                    "kind: ClusterAccount ",
                ]
                .iter()
                .any(|kind| object.contains(kind));
                if !in_none && !object.contains("namespace: ") {
                    without.push(format!("{page}:{}: {object}", block.line));
                }
            }
        }
    }
    assert!(
        without.is_empty(),
        "these belong to no namespace: {without:#?}"
    );
    assert!(count > 50, "only {count} objects were found");
}
