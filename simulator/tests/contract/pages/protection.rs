//! The protection of the console and of its pages against other sites.

use regex::Regex;
use reqwest::Method;
use reqwest::header::{ACCEPT, HOST, ORIGIN};
use serde_json::Value;

use super::{PLACES, hidden, page_of, shows};
use crate::support::*;

#[tokio::test]
async fn pages_have_nothing_inline_and_forbid_everything_else() {
    let platform = Platform::new().await;
    let path = platform.active_primary().await;
    let inline =
        Regex::new(r#"(?i)<style|<script(?: defer)?>|\sstyle=|\son[a-z]+="|javascript:|https?://"#)
            .unwrap();
    let ids = Regex::new(r#"\sid="([^"]*)""#).unwrap();
    let compute = page_of(&path).1;
    for place in PLACES
        .iter()
        .copied()
        .chain([compute.as_str(), "/pages/unknown"])
    {
        let page = platform.page(place).await;
        assert_eq!(
            inline.find(&page.text).map(|found| found.as_str()),
            None,
            "{place}"
        );
        let mut seen: Vec<&str> = ids
            .captures_iter(&page.text)
            .map(|id| id.get(1).unwrap().as_str())
            .collect();
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all, "ids of {place} are unique");
        shows(
            &page,
            &[
                r#"<html lang="en">"#,
                "This is a simulator.",
                r#"<main id="main""#,
                r#"<nav aria-label="#,
                "<h1>",
            ],
        );
        forbids_everything_else(&page);
    }
    let json = platform
        .console(Method::GET, "/computes", Value::Null)
        .await
        .expect(200);
    assert_eq!(json.headers["x-content-type-options"], "nosniff");
    for (name, kind) in [
        ("console.css", "text/css"),
        ("console.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let asset = platform.page(&format!("/assets/{name}")).await.expect(200);
        assert!(
            asset.headers["content-type"]
                .to_str()
                .unwrap()
                .starts_with(kind)
        );
    }
    platform.page("/assets/unknown").await.expect(404);
}

fn forbids_everything_else(page: &Answer) {
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    assert_eq!(page.headers["referrer-policy"], "same-origin");
    assert_eq!(page.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn pages_of_other_sites_change_nothing() {
    let platform = Platform::new().await;
    let here = platform
        .simulator
        .console_url()
        .strip_suffix("/console")
        .unwrap()
        .to_owned();
    let json = [("content-type", "application/json")];
    let key = r#"{ "key_name": "x" }"#;
    let create = async |headers: &[(&str, &str)], status| {
        let headers = [&json[..], headers].concat();
        let path = "/organizations/org-scale-1/api_keys";
        platform
            .strange(Method::POST, path, &headers, key)
            .await
            .expect(status);
    };
    create(&[], 201).await;
    create(
        &[(ORIGIN.as_str(), &here), ("sec-fetch-site", "same-origin")],
        201,
    )
    .await;
    for origin in [
        "http://evil.example",
        "null",
        "http://localhost:1",
        "https://127.0.0.1",
    ] {
        create(&[(ORIGIN.as_str(), origin)], 403).await;
    }
    for site in ["cross-site", "same-site"] {
        create(&[("sec-fetch-site", site)], 403).await;
    }
    let plain = [
        ("content-type", "text/plain"),
        ("sec-fetch-site", "same-origin"),
    ];
    platform
        .strange(
            Method::POST,
            "/clock/advance",
            &plain,
            r#"{ "seconds": 1 }"#,
        )
        .await
        .expect(415);
    platform
        .strange(
            Method::GET,
            "/computes",
            &[("sec-fetch-site", "cross-site")],
            "",
        )
        .await
        .expect(200);
}

#[tokio::test]
async fn forms_of_other_sites_change_nothing() {
    let platform = Platform::new().await;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for token in [
        "name=x&reach=user/user-ada",
        "token=0&once=1&name=x&reach=user/user-ada",
    ] {
        platform
            .strange(Method::POST, "/pages/keys", &form, token)
            .await
            .expect(403);
    }
    let page = platform.page("/pages/faults").await.expect(200);
    assert!(hidden(&page).contains_key("token"));
    let crossed = [form[0], (ORIGIN.as_str(), "http://evil.example")];
    platform
        .strange(Method::POST, "/pages/faults/clear", &crossed, "")
        .await
        .expect(403);
}

#[tokio::test]
async fn names_of_others_that_lead_to_loopback_are_refused() {
    let platform = Platform::new().await;
    for path in ["/", "/computes", "/pages/keys"] {
        for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
            platform
                .strange(Method::GET, path, &[(HOST.as_str(), host)], "")
                .await
                .expect(421);
        }
        for host in ["localhost:80", "127.0.0.1", "[::1]:4010"] {
            platform
                .strange(
                    Method::GET,
                    path,
                    &[(HOST.as_str(), host), (ACCEPT.as_str(), "*/*")],
                    "",
                )
                .await
                .expect(200);
        }
    }
}
