//! Manifests that no command on their page applies. The API server validates them by a dry run in
//! the fleet's namespace.

use crate::covered::{self, By};
use crate::page::{Block, blocks};

/// A block for each manifest of the page that validates it.
pub fn trials(page: &str) -> Vec<Block> {
    let is_followed = covered::pages(By::Walkthrough)
        .iter()
        .any(|followed| followed == page);
    let applied = |block: &Block| is_followed && block.file().is_some();
    let manifests = blocks(page)
        .into_iter()
        .filter(|block| block.is_manifest() && !applied(block));
    manifests
        .filter(|block| !covered::is_part(page, block))
        .map(|block| trial(&block))
        .collect()
}

fn trial(manifest: &Block) -> Block {
    let apply = "kubectl --namespace=shop apply --dry-run=server --validate=strict -f -";
    let text = format!(
        "{apply} <<'END OF MANIFEST'\n{}END OF MANIFEST\n",
        manifest.text
    );
    Block {
        line: manifest.line,
        language: "sh".to_owned(),
        fails: false,
        text,
    }
}
