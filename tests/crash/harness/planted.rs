//! Breaks promises on purpose, to test that each violation is reported.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};

use super::lab::Lab;
use super::manifests::{compute, key};
use super::platform::{ADMIN, FOREIGN, ORGANIZATION, PROJECT, SHARED_BRANCH, TO_ADOPT};
use super::point::prepare;
use super::promises::{unsettled, violations};
use super::scenarios::{Goal, Scenario};
use super::secrecy::leaks;
use super::site::{FOREIGN_SECRET, Site};
use crate::support::{Error, Result};

#[derive(Clone, Copy, Debug)]
pub enum Plant {
    Nothing,
    SecondCompute,
    ForgottenKey,
    ForeignChange,
    AdoptableChange,
    ForeignSecret,
    Token,
    RevokedKey,
}

/// Settles a Compute and a ProjectKey, then breaks the promises one after the other. Returns the
/// violations found after each.
pub async fn violations_of(lab: Arc<Lab>, plants: &[Plant]) -> Result<Vec<String>> {
    let goal = Goal {
        computes: vec!["orders"],
        keys: vec!["ci"],
        created: 1,
        created_keys: 1,
        ..Goal::default()
    };
    let scenario = Scenario::new("planted", Vec::new(), goal).after(vec![
        compute("orders", SHARED_BRANCH, "ReadOnly"),
        key("ci"),
    ]);
    let mut site = Site::open(lab, &scenario, "planted").await?;
    prepare(&mut site, &scenario).await?;
    let mut reported = Vec::new();
    for plant in plants {
        put(&site, *plant).await?;
        let mut found: Vec<String> = unsettled(&site, &scenario.goal)
            .await?
            .into_iter()
            .collect();
        found.extend(violations(&site, &scenario.goal).await?);
        found.extend(leaks(&site).await?);
        reported.push(found.join("\n"));
    }
    Ok(reported)
}

async fn put(site: &Site, plant: Plant) -> Result<()> {
    let endpoints = format!("/projects/{PROJECT}/endpoints");
    let keys = format!("/organizations/{ORGANIZATION}/api_keys");
    let other_pause = json!({"endpoint": {"suspend_timeout_seconds": 600}});
    match plant {
        Plant::Nothing => Ok(()),
        Plant::SecondCompute => {
            let twin = json!({"endpoint": {"branch_id": SHARED_BRANCH, "type": "read_only"}});
            call(site, Method::POST, &endpoints, twin).await
        }
        Plant::ForgottenKey => {
            // The name also occurs as a word in the ProjectKey's message. A mere mention must not
            // count as a report.
            call(
                site,
                Method::POST,
                &keys,
                json!({"key_name": "contains", "project_id": PROJECT}),
            )
            .await
        }
        Plant::ForeignChange => {
            call(
                site,
                Method::PATCH,
                &format!("{endpoints}/{}", FOREIGN[1]),
                other_pause,
            )
            .await
        }
        Plant::AdoptableChange => {
            call(
                site,
                Method::PATCH,
                &format!("{endpoints}/{TO_ADOPT}"),
                other_pause,
            )
            .await
        }
        Plant::ForeignSecret => {
            let other = json!({"metadata": {"labels": {"changed": "true"}}});
            site.objects.patch("Secret", FOREIGN_SECRET, &other).await
        }
        Plant::Token => {
            let careless = json!({"metadata": {"annotations": {"note": format!("use {ADMIN}")}}});
            site.objects.patch("Compute", "orders", &careless).await
        }
        Plant::RevokedKey => {
            let id = site
                .objects
                .get("ProjectKey", "ci")
                .await?
                .unwrap_or_default()["status"]["keyID"]
                .clone();
            call(site, Method::DELETE, &format!("{keys}/{id}"), Value::Null).await
        }
    }
}

async fn call(site: &Site, method: Method, path: &str, body: Value) -> Result<()> {
    let url = format!(
        "{}{path}?org_id={ORGANIZATION}",
        site.platform.simulator.base_url()
    );
    let answer = site
        .lab
        .http
        .request(method, url)
        .bearer_auth(ADMIN)
        .json(&body)
        .send()
        .await;
    let answer = answer.map_err(Error::while_doing("asking the platform"))?;
    if answer.status().is_success() {
        Ok(())
    } else {
        Err(Error::new(format!("{path}: {}", answer.status())))
    }
}
