use kube::ResourceExt;
use kube::core::ObjectMeta as Meta;

use super::*;
use crate::api::{Known, ProjectKey, ProjectKeyStatus};
use crate::controller::key::ProjectKeys;
use crate::decide::identity::{KeyIntent, ProjectKeyIdentity, written};

fn object(name: &str, uid: &str) -> ProjectKey {
    let spec = serde_json::json!({
        "accountRef": {"name": "prod"}, "projectID": "p", "keyName": "ci", "secret": {"name": "ci"},
    });
    ProjectKey {
        metadata: meta(name, uid),
        ..ProjectKey::new("", serde_json::from_value(spec).unwrap())
    }
}

fn meta(name: &str, uid: &str) -> Meta {
    let (name, uid) = (Some(name.to_owned()), Some(uid.to_owned()));
    Meta {
        name,
        uid,
        namespace: Some("shop".to_owned()),
        ..Meta::default()
    }
}

fn readable(name: &str, uid: &str) -> Guarded<Known<ProjectKey>> {
    known(object(name, uid))
}

fn known(object: ProjectKey) -> Guarded<Known<ProjectKey>> {
    Guarded(Ok(Known::new(object).unwrap()))
}

fn invalid(name: &str, uid: &str) -> Guarded<Known<ProjectKey>> {
    Guarded(Err(Invalid::new(
        meta(name, uid),
        None,
        "missing field `spec`",
    )))
}

/// A feed without a watch.
struct Bench {
    unreadable: UnreadableObjects,
    reader: Reader<ProjectKeys>,
}

impl Bench {
    fn new() -> Self {
        let unreadable = UnreadableObjects::default();
        let reader = Reader::new(
            None,
            reflector::store().1,
            &Arc::default(),
            &unreadable,
            &Later::default(),
        );
        Self { unreadable, reader }
    }

    /// The objects that are taken for gone.
    fn happens(&mut self, event: watcher::Event<Guarded<Known<ProjectKey>>>) -> Vec<String> {
        let (_, news) = self.reader.apply(event);
        news.gone
            .iter()
            .filter_map(|object| object.metadata.uid.clone())
            .collect()
    }

    /// The objects that become invalid, and those that are no longer invalid.
    fn judged(
        &mut self,
        event: watcher::Event<Guarded<Known<ProjectKey>>>,
    ) -> (Vec<String>, Vec<String>) {
        let (_, news) = self.reader.apply(event);
        let invalid = news
            .invalid
            .iter()
            .filter_map(|invalid| invalid.meta.uid.clone());
        (
            invalid.collect(),
            news.no_longer_invalid
                .iter()
                .filter_map(|meta| meta.uid.clone())
                .collect(),
        )
    }

    fn listed(
        &mut self,
        objects: impl IntoIterator<Item = Guarded<Known<ProjectKey>>>,
    ) -> Vec<String> {
        let mut gone = self.happens(watcher::Event::Init);
        for object in objects {
            gone.extend(self.happens(watcher::Event::InitApply(object)));
        }
        gone.extend(self.happens(watcher::Event::InitDone));
        gone.sort();
        gone
    }

    fn known(&self) -> (Vec<String>, Vec<String>) {
        let mut readable: Vec<_> = self
            .reader
            .store
            .state()
            .iter()
            .map(|object| object.name_any())
            .collect();
        readable.sort();
        let unreadable = self
            .unreadable
            .all()
            .iter()
            .filter_map(|meta| meta.name.clone())
            .collect();
        (readable, unreadable)
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_went_while_nobody_watched_is_reported_too() {
    let mut bench = Bench::new();
    let all = || {
        [
            readable("stays", "1"),
            readable("goes", "2"),
            readable("returns", "3"),
        ]
    };
    assert!(bench.listed(all()).is_empty());
    let left = || [readable("stays", "1"), readable("returns", "4")];
    assert_eq!(bench.listed(left()), ["2", "3"]);
    assert!(bench.listed(left()).is_empty());
    assert_eq!(
        bench.happens(watcher::Event::Delete(readable("stays", "1"))),
        ["1"]
    );
}

#[test]
fn an_object_that_cannot_be_read_is_not_taken_for_gone() {
    let mut bench = Bench::new();
    bench.listed([readable("a", "1"), invalid("b", "2")]);
    assert_eq!(bench.known(), (names(&["a"]), names(&["b"])));
    assert!(
        bench
            .happens(watcher::Event::Apply(invalid("a", "1")))
            .is_empty()
    );
    assert_eq!(bench.known(), (names(&[]), names(&["a", "b"])));
    // The same is true after the next list.
    assert!(
        bench
            .listed([invalid("a", "1"), readable("b", "2")])
            .is_empty()
    );
    assert_eq!(bench.known(), (names(&["b"]), names(&["a"])));
    assert!(
        bench
            .happens(watcher::Event::Apply(readable("a", "1")))
            .is_empty()
    );
    assert_eq!(bench.known(), (names(&["a", "b"]), names(&[])));
    assert_eq!(
        bench.happens(watcher::Event::Delete(readable("a", "1"))),
        ["1"]
    );
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

#[test]
fn an_error_is_news_once_and_again_when_the_object_was_edited() {
    let mut bench = Bench::new();
    let edited = || {
        let metadata = Meta {
            generation: Some(2),
            ..meta("a", "1")
        };
        Guarded(Err(Invalid::new(metadata, None, "missing field `spec`")))
    };
    let news = |bench: &mut Bench, event| bench.judged(event).0;
    assert_eq!(
        news(&mut bench, watcher::Event::Apply(invalid("a", "1"))),
        ["1"]
    );
    assert!(news(&mut bench, watcher::Event::Apply(invalid("a", "1"))).is_empty());
    assert_eq!(news(&mut bench, watcher::Event::Apply(edited())), ["1"]);
    bench.happens(watcher::Event::Init);
    bench.happens(watcher::Event::InitApply(edited()));
    bench.happens(watcher::Event::InitApply(invalid("b", "2")));
    assert_eq!(
        bench.judged(watcher::Event::InitDone),
        (names(&["2"]), names(&[]))
    );
}

#[test]
fn what_can_be_read_again_is_told_to_those_who_waited_for_it() {
    let mut bench = Bench::new();
    bench.listed([invalid("a", "1"), invalid("b", "2"), invalid("c", "3")]);
    let no_longer = |bench: &mut Bench, event| bench.judged(event).1;
    assert_eq!(
        no_longer(&mut bench, watcher::Event::Apply(readable("a", "1"))),
        ["1"]
    );
    assert!(no_longer(&mut bench, watcher::Event::Apply(readable("a", "1"))).is_empty());
    bench.happens(watcher::Event::Init);
    bench.happens(watcher::Event::InitApply(readable("a", "1")));
    bench.happens(watcher::Event::InitApply(readable("b", "2")));
    assert_eq!(no_longer(&mut bench, watcher::Event::InitDone), ["2", "3"]);
    // When this is reported, the store has the objects already.
    assert_eq!(bench.known().0, names(&["a", "b"]));
}

/// Metadata that a tenant can write without limit takes no memory. An object that is too large even
/// so stops nothing.
#[test]
fn metadata_is_trimmed_on_the_way_in() {
    let annotated = |key: &str| {
        let mut object = object("a", "1");
        let annotations = [
            (key.to_owned(), "x".repeat(200 << 10)),
            ("dbplane.dev/paused".to_owned(), "true".to_owned()),
        ];
        object.metadata.annotations = Some(annotations.into());
        object.status =
            Some(serde_json::from_value(serde_json::json!({"record": "recorded"})).unwrap());
        let mut guarded = known(object);
        trimmed::<ProjectKeys>(&mut guarded);
        guarded
    };
    let object = annotated("example.com/note").0.unwrap();
    assert_eq!(
        object.metadata.annotations,
        Some([("dbplane.dev/paused".to_owned(), "true".to_owned())].into())
    );
    let mut bench = Bench::new();
    bench.listed([readable("a", "1")]);
    bench.happens(watcher::Event::Apply(annotated("dbplane.dev/record")));
    assert_eq!(bench.known(), (names(&[]), names(&["a"])));
    // The record is the one in the status, whatever the annotation says.
    let kept = Some([("dbplane.dev/record".to_owned(), "recorded".to_owned())].into());
    assert_eq!(bench.unreadable.all()[0].annotations, kept);
}

/// An object with this finalizer, being deleted or not.
fn held(uid: &str, finalizer: &str, deleting: bool) -> Guarded<Known<ProjectKey>> {
    let mut object = object("a", uid);
    object.metadata.finalizers = Some(vec![finalizer.to_owned(), "example.com/theirs".to_owned()]);
    object.metadata.deletion_timestamp = deleting.then(|| {
        k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            "2026-11-20T10:00:00Z".parse().unwrap(),
        )
    });
    known(object)
}

#[test]
fn an_object_that_another_finalizer_keeps_is_released_once() {
    let ours = crate::decide::names::FINALIZER;
    let mut bench = Bench::new();
    bench.listed([held("1", ours, false)]);
    let mut released = |event| bench.reader.apply(event).1.released.len();
    use watcher::Event::{Apply, Init, InitApply, InitDone};
    assert_eq!(
        released(Apply(held("1", "example.com/other", false))),
        0,
        "it is given our finalizer again"
    );
    assert_eq!(released(Apply(held("1", ours, true))), 0);
    assert_eq!(released(Apply(held("1", "example.com/other", true))), 1);
    assert_eq!(released(Apply(held("1", "example.com/other", true))), 0);
    // While no watch was running.
    assert_eq!(released(Apply(held("2", ours, true))), 0);
    assert_eq!(
        [
            Init,
            InitApply(held("2", "example.com/other", true)),
            InitDone
        ]
        .map(&mut released),
        [0, 0, 1]
    );
    assert_eq!(
        [
            Init,
            InitApply(held("3", "example.com/other", true)),
            InitDone
        ]
        .map(&mut released),
        [0, 0, 0]
    );
}

#[test]
fn what_a_list_shows_in_an_older_version_is_known_before_the_store_has_it() {
    let versioned = |uid: &str, version: &str| {
        let mut object = object("a", uid);
        object.metadata.resource_version = Some(version.to_owned());
        known(object)
    };
    let mut bench = Bench::new();
    bench.listed([versioned("1", "20")]);
    use watcher::Event::{Apply, Init, InitApply};
    let mut newer = |event| {
        let (_, news) = bench.reader.apply(event);
        let known = bench.reader.store.state();
        assert!(
            news.newer
                .iter()
                .all(|newer| known.iter().any(|known| Arc::ptr_eq(known, newer))),
            "the store has it still"
        );
        news.newer
            .iter()
            .filter_map(|object| object.metadata.resource_version.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(newer(Apply(versioned("1", "30"))), [""; 0]);
    assert_eq!(newer(Init), [""; 0]);
    assert_eq!(newer(InitApply(versioned("1", "30"))), [""; 0]);
    assert_eq!(
        newer(InitApply(versioned("1", "9"))),
        ["30"],
        "versions are numbers"
    );
    assert_eq!(
        newer(InitApply(versioned("2", "9"))),
        [""; 0],
        "another object of this name"
    );
    let recorded = |version: &str, record: Option<&str>| {
        let mut object = object("a", "1");
        object.metadata.resource_version = Some(version.to_owned());
        let status = ProjectKeyStatus {
            record: record.map(str::to_owned),
            ..ProjectKeyStatus::default()
        };
        known(ProjectKey {
            status: Some(status),
            ..object
        })
    };
    assert_eq!(newer(Apply(recorded("31", Some("a")))), [""; 0]);
    assert_eq!(newer(Init), [""; 0]);
    assert_eq!(
        newer(InitApply(recorded("40", Some("b")))),
        [""; 0],
        "it was written meanwhile"
    );
    assert_eq!(
        newer(InitApply(recorded("40", None))),
        ["31"],
        "versions have passed the known one"
    );
}

#[test]
fn what_a_list_has_changed_is_news_once_the_store_has_it() {
    let versioned = |uid: &str, version: &str| {
        let mut object = object(uid, uid);
        object.metadata.resource_version = Some(version.to_owned());
        known(object)
    };
    let mut bench = Bench::new();
    bench.listed([
        versioned("stays", "20"),
        versioned("older", "20"),
        versioned("newer", "20"),
        versioned("goes", "20"),
    ]);
    use watcher::Event::{Init, InitApply, InitDone};
    let mut listed = |event| {
        let (_, news) = bench.reader.apply(event);
        let mut names: Vec<_> = news.listed.iter().map(|object| object.name_any()).collect();
        names.sort();
        names
    };
    assert_eq!(listed(Init), [""; 0]);
    for (uid, version) in [
        ("stays", "20"),
        ("older", "9"),
        ("newer", "30"),
        ("new", "31"),
    ] {
        assert_eq!(listed(InitApply(versioned(uid, version))), [""; 0]);
    }
    assert_eq!(listed(InitDone), ["new", "newer", "older"]);
}

#[test]
fn what_goes_without_its_deletion_leaves_something_behind() {
    let ours = crate::decide::names::FINALIZER;
    let recorded = |object: Guarded<Known<ProjectKey>>| {
        let mut object = (*object.0.unwrap()).clone();
        let intent = KeyIntent {
            name: "ci-1".to_owned(),
            ..KeyIntent::default()
        };
        let known = ProjectKeyIdentity {
            intent: Some(intent),
            ..ProjectKeyIdentity::default()
        };
        let text = written(&known, &object.metadata);
        object.status = Some(serde_json::from_value(serde_json::json!({"record": text})).unwrap());
        left_behind::<ProjectKeys>(&Known::new(object).unwrap())
    };
    assert!(recorded(held("1", ours, false)).is_some_and(|left| left.contains("ci-1")));
    assert_eq!(
        recorded(held("1", ours, true)),
        None,
        "our finalizer was waited for"
    );
    assert_eq!(recorded(held("1", "example.com/other", false)), None);
}
