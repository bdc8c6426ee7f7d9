//! The screenshots in docs/guide/simulator.md. `make console-pictures` writes them; the test takes
//! the same ones without replacing them.

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::keys::number;
use super::{ORGANIZATION, ORGANIZATION_KEY, PROJECT, Script, Site, computes};
use crate::fixture::root;

const RECORD: &str = "DBPLANE_CONSOLE_PICTURES";
const DESK: u32 = 1000;
const PHONE: u32 = 360;
const LARGEST: usize = 80_000;

/// The pictures with their widths.
const PICTURES: [(&str, u32); 7] = [
    ("overview.png", DESK),
    ("compute.png", DESK),
    ("new-key.png", DESK),
    ("revoke.png", DESK),
    ("requests.png", DESK),
    ("faults.png", DESK),
    ("phone.png", PHONE),
];

fn guide() -> PathBuf {
    root().join("docs/guide/console")
}

/// A site with a stopped clock and reproducible names.
async fn site() -> (Site, String) {
    let site = Site::start(Script::On).await;
    let id = site.idle_compute("br-main-42").await;
    let replica = json!({ "project_id": PROJECT, "branch_id": "br-dev-7", "type": "read_only" });
    site.order("/computes", replica).await;
    site.order(&format!("/computes/{id}/activity"), json!({}))
        .await;
    site.platform
        .advance(std::time::Duration::from_mins(3))
        .unwrap();
    let key = json!({ "key_name": "for the pipeline", "project_id": PROJECT });
    site.order(&format!("/organizations/{ORGANIZATION}/api_keys"), key)
        .await;
    site.order(
        "/faults",
        json!({ "status": 503, "method": "GET", "path": "/endpoints$", "times": 2 }),
    )
    .await;
    for status in [503, 503, 200] {
        assert_eq!(site.get(&computes(), ORGANIZATION_KEY).await, Some(status));
    }
    site.order(
        "/faults",
        json!({ "kind": "lose_answer", "method": "POST", "path": "/endpoints$" }),
    )
    .await;
    let starting = json!({ "project_id": PROJECT, "branch_id": "br-dev-7", "type": "read_write" });
    site.order("/computes", starting).await;
    let clock = site
        .http
        .patch(site.address("/clock"))
        .json(&json!({ "paused": true, "speed": 1 }));
    clock.send().await.unwrap().error_for_status().unwrap();
    (site, id)
}

/// Opens the page of a picture.
async fn show(site: &Site, picture: &str, compute: &str) {
    match picture {
        "overview.png" => site.open("/").await,
        "compute.png" => site.open(&format!("/pages/computes/{compute}")).await,
        "new-key.png" => drop(super::keys::create(site, "for the backup").await),
        "revoke.png" => {
            site.open(&format!(
                "/pages/keys/{}/revoke",
                number(site, "for the pipeline").await
            ))
            .await
        }
        "requests.png" => site.open("/pages/requests?outcome=failed").await,
        "faults.png" => site.open("/pages/faults").await,
        "phone.png" => site.open("/pages/computes").await,
        _ => panic!("nobody knows how to take {picture}"),
    }
}

async fn take(site: &Site, width: u32) -> Vec<u8> {
    let browser = &site.browser;
    // This is lower than any page, so `scrollHeight` is the height of the content.
    browser.resize(width, 100).await;
    let height = browser
        .run("return document.documentElement.scrollHeight", json!([]))
        .await
        .as_u64()
        .unwrap();
    browser
        .run("document.activeElement.blur()", json!([]))
        .await;
    // Longer screenshots would be tedious to scroll past.
    let highest = if width == PHONE { 900 } else { 640 };
    let clip = json!({ "x": 0, "y": 0, "width": width, "height": height.min(highest), "scale": 1 });
    let wanted = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
    let taken: Value = browser.devtools("Page.captureScreenshot", wanted).await;
    serde_json::from_value::<ByteString>(taken["data"].clone())
        .unwrap()
        .0
}

/// The width in the header of a PNG.
fn width(picture: &[u8]) -> u32 {
    assert!(picture.starts_with(b"\x89PNG"), "it is no PNG");
    u32::from_be_bytes(picture[16..20].try_into().unwrap())
}

#[tokio::test]
async fn the_guide_shows_the_pages() {
    let anew = std::env::var_os(RECORD).is_some();
    let folder = if anew {
        guide()
    } else {
        root().join("target/ecosystem/console")
    };
    fs::create_dir_all(&folder).unwrap();
    let (site, compute) = site().await;
    for (name, width) in PICTURES {
        show(&site, name, &compute).await;
        fs::write(folder.join(name), take(&site, width).await).unwrap();
    }
    check(&folder);
    check(&guide());
    let text = fs::read_to_string(root().join("docs/guide/simulator.md")).unwrap();
    for (name, _) in PICTURES {
        let place = text
            .split_once(&format!("](console/{name})"))
            .unwrap_or_else(|| panic!("{name} is not shown"))
            .0;
        let alternative = place.rsplit_once("![").unwrap().1;
        assert!(
            alternative.len() > 40,
            "{name} has to be said in words: {alternative}"
        );
    }
}

/// Checks that exactly these pictures exist, with the right widths and of small size.
fn check(folder: &Path) {
    let mut found: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut expected = PICTURES.map(|(name, _)| name.to_owned()).to_vec();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{}", folder.display());
    for (name, expected) in PICTURES {
        let picture = fs::read(folder.join(name)).unwrap();
        assert_eq!(width(&picture), expected, "{name}");
        assert!(
            picture.len() <= LARGEST,
            "{name} has {} bytes",
            picture.len()
        );
    }
}
