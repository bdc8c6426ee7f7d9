//! Validates the table of manifests with a real API server. tests/offline validates it with
//! `dbplane::validate`.

use axum::http::{Method, Request};
use dbplane::validate::Checker;
use kube::Client;
use regex::Regex;
use serde_json::{Value, json};

use crate::cluster;
use crate::table::{Case, cases};

#[tokio::test]
async fn every_manifest_is_judged_as_in_the_table() {
    let client = cluster().await.client().await.unwrap();
    let checker = Checker::new().unwrap();
    let mut wrong = Vec::new();
    for (index, case) in cases().into_iter().enumerate() {
        if let Err(found) = judge(&client, &checker, index, &case).await {
            wrong.push(format!(
                "{}: {found}\n  expected: {:?}",
                case.name, case.refusal
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} misjudged:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Compares the result with the expectation of the case.
async fn judge(
    client: &Client,
    checker: &Checker,
    index: usize,
    case: &Case,
) -> Result<(), String> {
    let answer = match &case.old {
        None => {
            send(
                client,
                Method::POST,
                &collection(&case.manifest),
                &case.manifest,
            )
            .await
        }
        Some(old) => {
            let name = format!("changed-{index}");
            replace(client, &renamed(old, &name), renamed(&case.manifest, &name)).await?
        }
    };
    match (&case.refusal, answer) {
        (None, Ok(_)) => Ok(()),
        (None, Err(complaints)) => Err(complaints.join("\n")),
        (Some(_), Ok(_)) => Err("it was accepted".to_owned()),
        (Some(refusal), Err(complaints))
            if complaints.len() == 1 && refusal.is_told_by(&complaints[0]) =>
        {
            same_words(checker, case, &complaints[0])
        }
        (Some(_), Err(complaints)) => Err(complaints.join("\n")),
    }
}

/// Checks that `dbplane validate` reports the same as the API server.
fn same_words(checker: &Checker, case: &Case, server: &str) -> Result<(), String> {
    let problems = checker
        .check(&case.manifest, case.old.as_ref())
        .unwrap_err();
    let ours = problems[0].to_string();
    // Metadata of a wrong type fails in its decoder, whose message is about Go types.
    if essence(server) == essence(&ours) || server.contains("cannot unmarshal") {
        Ok(())
    } else {
        Err(format!(
            "the API server says {server:?}, and validate {ours:?}"
        ))
    }
}

/// Removes known differences. Only the API server repeats rejected values and its names of integer
/// types. Only validate names the label.
fn essence(message: &str) -> String {
    let without_preface = message.rsplit("strict decoding error: ").next().unwrap();
    let without_examples = without_preface.split(" (e.g. ").next().unwrap();
    let value = Regex::new(r#"Invalid value: ("[^"]*"|[-\d.]+|true|false): "#).unwrap();
    let without_value = value.replace(without_examples, "Invalid value: ");
    let label = Regex::new(r"^metadata\.(labels|annotations)\.[^:]*").unwrap();
    let without_label = label.replace(&without_value, "metadata.$1");
    without_label
        .replace("int32", "integer")
        .replace("float64", "number")
}

type Answer = Result<Value, Vec<String>>;

async fn replace(client: &Client, old: &Value, mut new: Value) -> Result<Answer, String> {
    let collection = collection(old);
    let path = collection.split('?').next().unwrap();
    let told = |complaints: Vec<String>| complaints.join("\n");
    let mut stored = send(client, Method::POST, path, old).await.map_err(told)?;
    let name = old["metadata"]["name"].as_str().unwrap();
    if old["status"].is_object() {
        stored["status"] = old["status"].clone();
        let path = format!("{path}/{name}/status");
        stored = send(client, Method::PUT, &path, &stored)
            .await
            .map_err(told)?;
    }
    new["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    let query = "?dryRun=All&fieldValidation=Strict";
    Ok(send(client, Method::PUT, &format!("{path}/{name}{query}"), &new).await)
}

fn renamed(manifest: &Value, name: &str) -> Value {
    let mut manifest = manifest.clone();
    manifest["metadata"]["name"] = json!(name);
    manifest
}

fn collection(manifest: &Value) -> String {
    let plural = match manifest["kind"].as_str().unwrap() {
        "Account" => "namespaces/default/accounts",
        "ClusterAccount" => "clusteraccounts",
        "Compute" => "namespaces/default/computes",
        "ProjectKey" => "namespaces/default/projectkeys",
        "ReadReplicaSet" => "namespaces/default/readreplicasets",
        kind => panic!("{kind}"),
    };
    format!("/apis/dbplane.dev/v1alpha1/{plural}?dryRun=All&fieldValidation=Strict")
}

/// The stored object, or the messages of the API server.
async fn send(client: &Client, method: Method, path: &str, body: &Value) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .unwrap();
    match client.request::<Value>(request).await {
        Ok(object) => Ok(object),
        Err(kube::Error::Api(status)) => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            let reported: Vec<String> = causes
                .map(|cause| format!("{}: {}", cause.field, cause.message))
                .collect();
            Err(if reported.is_empty() {
                vec![status.message.clone()]
            } else {
                essential(reported)
            })
        }
        Err(error) => panic!("{error}"),
    }
}

/// Removes secondary messages of the API server: that rules were not evaluated because of a wrong
/// shape, that a negative number cannot be scaled to, and other errors of a value with a wrong type.
fn essential(mut complaints: Vec<String>) -> Vec<String> {
    let secondary = [
        "some validation rules were not checked",
        "should be a non-negative integer",
    ];
    complaints.retain(|complaint| !secondary.iter().any(|words| complaint.contains(words)));
    if complaints
        .iter()
        .any(|complaint| complaint.contains("in body must be of type"))
    {
        complaints.retain(|complaint| complaint.contains("in body must be of type"));
    }
    complaints
}
