//! The table of manifests, judged by a real API server. tests/offline holds the same table to `dbplane::validate`.

use axum::http::{Method, Request};
use dbplane::validate::Checker;
use kube::Client;
use regex::Regex;
use serde_json::{Value, json};

use crate::cluster;
use crate::table::{Case, cases};

#[tokio::test]
async fn every_manifest_is_judged_as_the_table_says() {
    let client = cluster().await.client().await.unwrap();
    let checker = Checker::new().unwrap();
    let mut wrong = Vec::new();
    for (index, case) in cases().into_iter().enumerate() {
        if let Err(found) = judge(&client, &checker, index, &case).await {
            wrong.push(format!("{}: {found}\n  expected: {:?}", case.name, case.refusal));
        }
    }
    assert!(wrong.is_empty(), "{} misjudged:\n{}", wrong.len(), wrong.join("\n"));
}

/// What was found instead of what the case expects.
async fn judge(client: &Client, checker: &Checker, index: usize, case: &Case) -> Result<(), String> {
    let answer = match &case.old {
        None => send(client, Method::POST, &collection(&case.manifest), &case.manifest).await,
        Some(old) => {
            let name = format!("changed-{index}");
            replace(client, &renamed(old, &name), renamed(&case.manifest, &name)).await?
        }
    };
    match (&case.refusal, answer) {
        (None, Ok(_)) => Ok(()),
        (None, Err(complaints)) => Err(complaints.join("\n")),
        (Some(_), Ok(_)) => Err("it was accepted".to_owned()),
        (Some(refusal), Err(complaints)) if complaints.len() == 1 && refusal.is_told_by(&complaints[0]) => {
            same_words(checker, case, &complaints[0])
        }
        (Some(_), Err(complaints)) => Err(complaints.join("\n")),
    }
}

/// `dbplane validate` says what the API server says.
fn same_words(checker: &Checker, case: &Case, server: &str) -> Result<(), String> {
    let problems = checker.check(&case.manifest, case.old.as_ref()).unwrap_err();
    let ours = problems[0].to_string();
    // Metadata of another type breaks its decoder, which speaks of Go.
    match essence(server) == essence(&ours) || server.contains("cannot unmarshal") {
        true => Ok(()),
        false => Err(format!("the API server says {server:?}, and validate {ours:?}")),
    }
}

/// Without the values that a rule refuses, which only the API server repeats; without its names for integers; without
/// the label, which only validate names; and without the supported values, which the API server puts in quotes, or
/// which a rule tells where a fraction is read as whole.
fn essence(message: &str) -> String {
    let without_preface = message.rsplit("strict decoding error: ").next().unwrap();
    let without_examples = without_preface.split(" (e.g. ").next().unwrap();
    let value = Regex::new(r#"Invalid value: ("[^"]*"|[-\d.]+|true|false): "#).unwrap();
    let without_value = value.replace(without_examples, "Invalid value: ");
    let label = Regex::new(r"^metadata\.(labels|annotations)\.[^:]*").unwrap();
    let without_label = label.replace(&without_value, "metadata.$1");
    let plain = without_label.replace("int32", "integer").replace("float64", "number");
    match plain.split_once("supported values: ") {
        Some((before, _)) => before.split(": ").next().unwrap().to_owned(),
        None => plain,
    }
}

type Answer = Result<Value, Vec<String>>;

async fn replace(client: &Client, old: &Value, mut new: Value) -> Result<Answer, String> {
    let collection = collection(old);
    let path = collection.split('?').next().unwrap();
    let created = send(client, Method::POST, path, old).await.map_err(|complaints| complaints.join("\n"))?;
    new["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let name = old["metadata"]["name"].as_str().unwrap();
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

/// The stored object, or each complaint of the API server.
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
            let reported: Vec<String> = causes.map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
            Err(if reported.is_empty() { vec![status.message.clone()] } else { essential(reported) })
        }
        Err(error) => panic!("{error}"),
    }
}

/// Without what the API server adds of itself: that a wrong shape kept it from evaluating the rules, and what else is
/// wrong with a value that has the wrong type.
fn essential(mut complaints: Vec<String>) -> Vec<String> {
    complaints.retain(|complaint| !complaint.contains("some validation rules were not checked"));
    if complaints.iter().any(|complaint| complaint.contains("in body must be of type")) {
        complaints.retain(|complaint| complaint.contains("in body must be of type"));
    }
    complaints
}
