use serde_json::json;

use super::*;
use crate::api::{Compute, Known};
use crate::controller::compute::Computes;
use crate::controller::environment::keys;

fn compute(namespace: &str, name: &str, branch: &str) -> Known<Compute> {
    let spec = json!({"accountRef": {"name": "prod"}, "projectID": "p", "branchID": branch, "type": "ReadOnly"});
    serde_json::from_value(
        json!({"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": spec}),
    )
    .unwrap()
}

fn put(index: &Index<Known<Compute>>, compute: &Known<Compute>) {
    index.set(compute, &keys::<Computes>(compute));
}

fn found(index: &Index<Known<Compute>>, key: &Key) -> BTreeSet<String> {
    index
        .find(key)
        .iter()
        .map(|reference| reference.name.clone())
        .collect()
}

#[test]
fn objects_are_found_by_what_they_name_now() {
    let index = Index::default();
    for (name, branch) in [("a", "br-1"), ("b", "br-1"), ("c", "br-2")] {
        put(&index, &compute("shop", name, branch));
    }
    put(&index, &compute("bank", "a", "br-2"));
    let on = |branch: &str| {
        Key::Want(ClaimSubject::Branch {
            project: "p".into(),
            branch: branch.into(),
        })
    };
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(found(&index, &on("br-1")), names(&["a", "b"]));
    assert_eq!(index.find(&on("br-2")).len(), 2);
    assert_eq!(
        found(&index, &Key::Namespace("shop".into())),
        names(&["a", "b", "c"])
    );
    put(&index, &compute("shop", "a", "br-2"));
    assert_eq!(found(&index, &on("br-1")), names(&["b"]), "it has moved");
    index.remove(&compute("shop", "b", "whatever"));
    assert_eq!(found(&index, &on("br-1")), names(&[]));
    assert_eq!(
        found(&index, &Key::Namespace("shop".into())),
        names(&["a", "c"])
    );
}

#[test]
fn nothing_is_kept_of_what_is_gone() {
    let index = Index::default();
    let all: Vec<Known<Compute>> = (0..100)
        .map(|number| compute("shop", &format!("c-{number}"), "br-1"))
        .collect();
    all.iter().for_each(|compute| put(&index, compute));
    all.iter().for_each(|compute| index.remove(compute));
    let entries = index.0.read().unwrap();
    assert!(
        entries.objects.is_empty() && entries.keys.is_empty(),
        "{entries:?}"
    );
}
