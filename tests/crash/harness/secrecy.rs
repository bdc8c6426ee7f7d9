//! Checks that no token of a point occurs in anything that the operator wrote.

use serde_json::json;

use super::platform::ADMIN;
use super::site::Site;
use crate::support::{Result, tokens};

/// The places where a token was found.
pub async fn leaks(site: &Site) -> Result<Vec<String>> {
    let secret = site
        .gate
        .tokens()
        .into_iter()
        .chain([ADMIN.to_owned(), site.lab.token.clone()]);
    let texts = texts(site).await?;
    let mut leaks = Vec::new();
    for token in secret {
        let places = tokens::found(texts.iter().map(|(place, text)| (*place, text)), &token);
        leaks.extend(
            places
                .iter()
                .map(|place| format!("a token of {} characters is in the {place}", token.len())),
        );
    }
    Ok(leaks)
}

async fn texts(site: &Site) -> Result<Vec<(&'static str, String)>> {
    let mut objects = Vec::new();
    for kind in ["Compute", "ProjectKey", "ReadReplicaSet", "Account"] {
        objects.extend(site.objects.list(kind).await?);
    }
    objects.extend(
        site.objects
            .get("ClusterAccount", &site.objects.namespace)
            .await?,
    );
    let requests: Vec<String> = site
        .platform
        .requests()
        .into_iter()
        .map(|entry| format!("{entry:?}"))
        .collect();
    Ok(vec![
        ("log", site.log()),
        ("metrics", site.metrics().await?),
        (
            "events",
            json!(site.objects.list("Event").await?).to_string(),
        ),
        ("resources", json!(objects).to_string()),
        ("platform's request log", requests.join("\n")),
        ("requests' URLs", site.gate.passages().lines().join("\n")),
    ])
}
