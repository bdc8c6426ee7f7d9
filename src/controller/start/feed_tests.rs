use kube::core::ObjectMeta as Meta;

use super::super::super::key::ProjectKeys;
use super::*;
use crate::api::ProjectKey;

fn object(name: &str, uid: &str) -> ProjectKey {
    let spec = serde_json::json!({
        "accountRef": {"name": "prod"}, "projectID": "p", "keyName": "ci", "secret": {"name": "ci"},
    });
    ProjectKey { metadata: meta(name, uid), ..ProjectKey::new("", serde_json::from_value(spec).unwrap()) }
}

fn meta(name: &str, uid: &str) -> Meta {
    let (name, uid) = (Some(name.to_owned()), Some(uid.to_owned()));
    Meta { name, uid, namespace: Some("shop".to_owned()), ..Meta::default() }
}

/// As it is read: what has a spec is readable.
type Guarded = DeserializeGuard<ProjectKey>;

fn readable(name: &str, uid: &str) -> Guarded {
    DeserializeGuard(Ok(object(name, uid)))
}

fn invalid(name: &str, uid: &str) -> Guarded {
    DeserializeGuard(Err(InvalidObject { error: "missing field `spec`".to_owned(), metadata: meta(name, uid) }))
}

/// A feed without a watch.
struct Bench {
    store: Store<ProjectKey>,
    writer: reflector::store::Writer<ProjectKey>,
    unreadable: Unreadable,
    split: Split<ProjectKeys>,
    departures: Departures<ProjectKeys>,
}

impl Bench {
    fn new() -> Self {
        let (store, writer) = reflector::store();
        let (unreadable, env) = (Unreadable::default(), Later::default());
        let split = Split::new(None, store.clone(), &unreadable, &env);
        let departures = Departures::new(store.clone(), &unreadable, &env);
        Self { store, writer, unreadable, split, departures }
    }

    /// Who is taken for gone.
    fn happens(&mut self, event: watcher::Event<Guarded>) -> Vec<String> {
        let Some(event) = self.split.readable(event) else { return Vec::new() };
        self.writer.apply_watcher_event(&event);
        let gone = self.departures.gone(&Ok(event));
        gone.iter().filter_map(|object| object.metadata.uid.clone()).collect()
    }

    fn listed(&mut self, objects: impl IntoIterator<Item = Guarded>) -> Vec<String> {
        let mut gone = self.happens(watcher::Event::Init);
        for object in objects {
            gone.extend(self.happens(watcher::Event::InitApply(object)));
        }
        gone.extend(self.happens(watcher::Event::InitDone));
        gone.sort();
        gone
    }

    fn known(&self) -> (Vec<String>, Vec<String>) {
        let mut readable: Vec<_> = self.store.state().iter().map(|object| object.name_any()).collect();
        readable.sort();
        let unreadable = self.unreadable.all().iter().filter_map(|meta| meta.name.clone()).collect();
        (readable, unreadable)
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_went_while_nobody_watched_is_reported_too() {
    let mut bench = Bench::new();
    let all = || [readable("stays", "1"), readable("goes", "2"), readable("returns", "3")];
    assert!(bench.listed(all()).is_empty());
    let left = || [readable("stays", "1"), readable("returns", "4")];
    assert_eq!(bench.listed(left()), ["2", "3"]);
    assert!(bench.listed(left()).is_empty());
    assert_eq!(bench.happens(watcher::Event::Delete(readable("stays", "1"))), ["1"]);
}

#[test]
fn an_object_that_cannot_be_read_is_not_taken_for_gone() {
    let mut bench = Bench::new();
    bench.listed([readable("a", "1"), invalid("b", "2")]);
    assert_eq!(bench.known(), (names(&["a"]), names(&["b"])));
    assert!(bench.happens(watcher::Event::Apply(invalid("a", "1"))).is_empty());
    assert_eq!(bench.known(), (names(&[]), names(&["a", "b"])));
    // It is so also in the next list.
    assert!(bench.listed([invalid("a", "1"), readable("b", "2")]).is_empty());
    assert_eq!(bench.known(), (names(&["b"]), names(&["a"])));
    assert!(bench.happens(watcher::Event::Apply(readable("a", "1"))).is_empty());
    assert_eq!(bench.known(), (names(&["a", "b"]), names(&[])));
    assert_eq!(bench.happens(watcher::Event::Delete(readable("a", "1"))), ["1"]);
}

#[test]
fn an_object_that_cannot_be_read_and_is_deleted_is_forgotten() {
    let mut bench = Bench::new();
    bench.listed([invalid("a", "1"), invalid("b", "2")]);
    bench.happens(watcher::Event::Delete(invalid("a", "1")));
    assert_eq!(bench.known(), (names(&[]), names(&["b"])));
    bench.listed([]);
    assert_eq!(bench.known(), (names(&[]), names(&[])));
}
