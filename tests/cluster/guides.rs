//! The manifests in docs/guide, each page applied as a reader would.

use std::path::Path;

use crate::cluster;

/// The blocks of a page in this language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}\n");
    page.split(&opening).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[tokio::test]
async fn every_manifest_of_every_guide_is_accepted() {
    let cluster = cluster().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide");
    let mut applied = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("guide-{}", path.file_stem().unwrap().to_str().unwrap());
        cluster.kubectl(&["create", "namespace", &name]).await.unwrap();
        for manifest in blocks(&std::fs::read_to_string(&path).unwrap(), "yaml") {
            let arguments = ["apply", "--namespace", &name, "-f", "-"];
            let outcome = cluster.kubectl_with_input(&arguments, manifest).await;
            outcome.unwrap_or_else(|error| panic!("{}: {error}\n{manifest}", path.display()));
            applied += 1;
        }
    }
    assert!(applied >= 3, "only {applied} manifests were found");
}
