//! Claims of other resources: which is bound, which is older, whose create comes first.

use super::*;
use crate::api;
use crate::decide::identity::{Told, of_compute, written};

/// A Compute that was created that many seconds after another.
struct Other(api::Compute);

impl Other {
    fn new(name: &str, age: i64) -> Self {
        let spec = json!({"accountRef": {"name": "prod"}, "projectID": "p-1", "branchID": BRANCH, "type": "ReadWrite"});
        let created = at(age).to_string();
        let metadata = json!({"namespace": "shop", "name": name, "uid": name, "creationTimestamp": created});
        let object =
            json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": metadata, "spec": spec});
        Self(serde_json::from_value(object).unwrap())
    }

    fn declaring(mut self, edit: impl FnOnce(&mut ComputeSpec)) -> Self {
        edit(&mut self.0.spec);
        self
    }

    fn replica(self) -> Self {
        self.declaring(|spec| spec.type_ = ComputeType::ReadOnly)
    }

    fn linked(mut self, links: impl FnOnce(&mut ComputeIdentity)) -> Self {
        let mut identity = ComputeIdentity::default();
        links(&mut identity);
        self.0.status.get_or_insert_default().record = Some(written(&identity, &self.0.metadata));
        self
    }

    /// The record is in the annotation alone.
    fn wishing(mut self) -> Self {
        let record = self.0.status.take().and_then(|status| status.record).unwrap();
        self.0.metadata.annotations.get_or_insert_default().insert(names::RECORD.into(), record);
        self
    }

    fn bound(self, id: &str) -> Self {
        let binding =
            Binding { id: id.into(), project: "p-1".into(), platform: None, origin: Origin::Created, at: NOW };
        self.linked(|identity| identity.binding = Some(binding))
    }

    fn creating(self, begun: i64) -> Self {
        self.creating_on(BRANCH, begun)
    }

    fn creating_on(self, branch: &str, begun: i64) -> Self {
        self.intending(branch, begun, Told::ByBaseline)
    }

    fn intending(self, branch: &str, begun: i64, told: Told) -> Self {
        let mark = Some(format!("mark-{}", self.0.metadata.name.as_deref().unwrap()));
        let intent = CreateIntent {
            at: at(begun),
            branch: branch.into(),
            platform: None,
            baseline: (told == Told::ByBaseline).then(BTreeSet::new),
            newest: None,
            mark,
            asked: None,
        };
        self.linked(|identity| identity.intent = Some(intent))
    }
}

fn claims<'a>(
    mine: &'a api::Compute,
    others: impl IntoIterator<Item = &'a api::Compute>,
    unreadable: impl IntoIterator<Item = &'a api::ObjectMeta>,
    creating: impl Fn(&str) -> Option<Told>,
) -> Claims {
    told(Told::ByBaseline, mine, others, unreadable, creating)
}

/// The same of one whose create would be told so.
fn told<'a>(
    told: Told,
    mine: &'a api::Compute,
    others: impl IntoIterator<Item = &'a api::Compute>,
    unreadable: impl IntoIterator<Item = &'a api::ObjectMeta>,
    creating: impl Fn(&str) -> Option<Told>,
) -> Claims {
    super::super::claims((mine, &of_compute(mine).unwrap_or_default().identity, told), others, unreadable, creating)
}

fn claimed(mine: &Other, others: &[Other]) -> Claims {
    claims(&mine.0, others.iter().map(|other| &other.0), [], |_| None)
}

/// Whose create comes first.
fn by(claims: &Claims) -> Option<&str> {
    claims.creating.as_ref().map(|rival| rival.by.as_str())
}

#[test]
fn a_bound_compute_belongs_to_the_oldest_that_is_bound_to_it() {
    let others = [
        Other::new("young", 20).bound("ep-1"),
        Other::new("old", 0).bound("ep-1"),
        Other::new("less-old", 5).bound("ep-1"),
        Other::new("elsewhere", 0).bound("ep-2").declaring(|spec| spec.branch_id = "br-dev".into()),
        Other::new("foreign", 0).bound("ep-3").declaring(|spec| spec.project_id = "p-2".into()),
    ];
    let bound = claimed(&Other::new("mine", 10), &others).bound;
    let claim = |name: &str| Claim { by: format!("Compute shop/{name}"), first: true };
    assert_eq!(bound, [("ep-1".to_owned(), claim("old")), ("ep-2".to_owned(), claim("elsewhere"))].into());
    assert!(!claimed(&Other::new("mine", 10), &others[..1]).bound["ep-1"].first);
    let oneself = [Other::new("mine", 10).bound("ep-1")];
    assert_eq!(claimed(&oneself[0], &oneself), Claims::default(), "nobody is in one's own way");
}

#[test]
fn a_wish_claims_nothing() {
    let mine = Other::new("mine", 10).replica();
    for other in [Other::new("evil", 0).bound("ep-1"), Other::new("evil", 0).creating(-60)] {
        let other = other.replica().wishing();
        let branch = Subject::Branch { project: "p-1".into(), branch: BRANCH.into() };
        assert_eq!(subjects(&other.0), [branch].into());
        assert_eq!(claimed(&mine, &[other]), Claims::default());
    }
}

#[test]
fn one_that_cannot_be_read_keeps_what_its_record_names_in_its_project() {
    let bound = |uid: &str, project: &str| {
        let mut unreadable = Other::new("unreadable", 0);
        let own = unreadable.0.metadata.uid.replace(uid.to_owned());
        let mut unreadable = unreadable.linked(|identity| {
            let binding = Binding {
                id: "ep-1".into(),
                project: project.into(),
                platform: None,
                origin: Origin::Created,
                at: NOW,
            };
            identity.binding = Some(binding);
        });
        unreadable.0.metadata.uid = own;
        let unreadable = unreadable.wishing();
        claims(&Other::new("mine", 10).0, [], [&unreadable.0.metadata], |_| None).bound
    };
    assert!(bound("unreadable", "p-1").contains_key("ep-1"));
    assert_eq!(bound("unreadable", "p-2"), BTreeMap::new());
    assert_eq!(bound("former", "p-1"), BTreeMap::new(), "the status of an earlier resource, from a backup");
}

#[test]
fn the_oldest_resource_that_declares_the_primary_gets_it() {
    let others =
        || [Other::new("b", 5), Other::new("a", 5), Other::new("young", 20), Other::new("reader", 0).replica()];
    assert_eq!(claimed(&Other::new("mine", 10), &others()).primary.as_deref(), Some("Compute shop/a"));
    assert_eq!(claimed(&Other::new("mine", 0), &others()).primary, None);
    assert_eq!(claimed(&Other::new("mine", 10).replica(), &others()).primary, None);
    let elsewhere = [Other::new("a", 5).declaring(|spec| spec.branch_id = "br-dev".into())];
    assert_eq!(claimed(&Other::new("mine", 10), &elsewhere).primary, None);
}

#[test]
fn a_new_create_waits_for_every_unresolved_one_of_its_type_on_the_branch() {
    let mine = Other::new("mine", 0);
    for (what, other, waits) in [
        ("an unresolved one", Other::new("other", 10).creating(0), true),
        ("of the other type", Other::new("other", 10).replica().creating(0), false),
        (
            "on this branch, changed in the spec since",
            Other::new("other", 10).creating(0).declaring(|spec| spec.branch_id = "br-dev".into()),
            true,
        ),
        ("on another branch, changed in the spec since", Other::new("other", 10).creating_on("br-dev", 0), false),
        ("one that is in the annotation alone", Other::new("other", 10).creating(0).wishing(), false),
        ("one that is resolved", Other::new("other", 10).creating(0).bound("ep-1"), false),
        ("none", Other::new("other", 10), false),
    ] {
        assert_eq!(claimed(&mine, &[other]).creating.is_some(), waits, "{what}");
    }
    let begun = claims(&mine.0, [&Other::new("other", 10).0], [], |uid| (uid == "other").then_some(Told::ByBaseline));
    assert_eq!(by(&begun), Some("Compute shop/other"), "begun in this process");
    let unreadable = Other::new("other", 10).0.metadata;
    let begun = claims(&mine.0, [], [&unreadable], |uid| (uid == "other").then_some(Told::ByBaseline));
    assert_eq!(by(&begun), Some("Compute shop/other"), "and cannot be read since");
    assert_eq!(claims(&mine.0, [], [&unreadable], |_| None).creating, None);
}

#[test]
fn creates_that_are_told_by_their_marks_wait_only_for_those_that_are_not() {
    let by_baseline = || Other::new("baseline", 10).creating(0);
    let by_mark = || Other::new("mark", 10).intending(BRANCH, 0, Told::ByMark);
    let mine = Other::new("mine", 0);
    for (now, other, waits) in [
        (Told::ByMark, by_mark(), false),
        (Told::ByMark, by_baseline(), true),
        (Told::ByBaseline, by_mark(), true),
        (Told::ByBaseline, by_baseline(), true),
    ] {
        let theirs = of_compute(&other.0).unwrap().identity.intent.unwrap().told();
        let recorded = told(now, &mine.0, [&other.0], [], |_| None).creating;
        assert_eq!(recorded.is_some(), waits, "{now:?} and {theirs:?}");
        let begun = told(now, &mine.0, [&Other::new("other", 10).0], [], |_| Some(theirs)).creating;
        assert_eq!(begun.is_some(), waits, "{now:?} and {theirs:?} in this process");
    }
    let mine = Other::new("mine", 0).intending(BRANCH, 5, Told::ByMark);
    assert_eq!(claimed(&mine, &[by_mark()]).creating, None, "nor with an intent of its own");
    assert_eq!(by(&claimed(&mine, &[by_mark(), by_baseline()])), Some("Compute shop/baseline"));
}

#[test]
fn unresolved_creates_are_resolved_from_the_first_to_the_last() {
    let all = || [Other::new("c", 0).creating(3), Other::new("b", 0).creating(1), Other::new("a", 0).creating(1)];
    let [c, b, a] = all();
    assert_eq!(claimed(&a, &all()).creating, None);
    assert_eq!(by(&claimed(&b, &all())), Some("Compute shop/a"), "the UID decides within one moment");
    assert_eq!(by(&claimed(&c, &all())), Some("Compute shop/a"));
    assert_eq!(claimed(&c, &all()).marks, ["mark-a".to_owned(), "mark-b".to_owned()].into());
    assert_eq!(claimed(&c.replica(), &all()).creating, None, "what is not of one type is not mixed up");
    let begun = claims(&a.0, [&Other::new("d", 0).0], [], |_| Some(Told::ByBaseline));
    assert_eq!(begun.creating, None, "what is begun now is later");
}

#[test]
fn what_has_nothing_in_common_claims_nothing() {
    let mine = Other::new("mine", 0).creating_on("br-old", 0);
    let identity = of_compute(&mine.0).unwrap().identity;
    let ids = ["ep-1".to_owned()].into();
    let at_stake = at_stake(&mine.0, &identity, &ids);
    let elsewhere = |other: Other| other.declaring(|spec| spec.branch_id = "br-dev".into());
    for (what, other, concerns) in [
        ("on the branch", Other::new("other", 0), true),
        (
            "on the branch of the intent",
            Other::new("other", 0).declaring(|spec| spec.branch_id = "br-old".into()),
            true,
        ),
        ("creating there", elsewhere(Other::new("other", 0).creating(0)), true),
        ("bound to it", elsewhere(Other::new("other", 0).bound("ep-1")), true),
        ("bound to another", elsewhere(Other::new("other", 0).bound("ep-2")), false),
        ("elsewhere", elsewhere(Other::new("other", 0)), false),
        ("in another project", Other::new("other", 0).declaring(|spec| spec.project_id = "p-2".into()), false),
    ] {
        assert_eq!(!subjects(&other.0).is_disjoint(&at_stake), concerns, "{what}");
    }
}

#[test]
fn who_has_its_compute_has_nothing_to_do_with_its_branch() {
    let others = [Other::new("on the branch", 0), Other::new("bound to it", 0).bound("ep-1")];
    let intended = |mine: Other| of_compute(&mine.creating(0).0).unwrap().identity.intent;
    let bound = of_compute(&Other::new("mine", 0).bound("ep-1").0).unwrap().identity;
    let unanswered = intended(Other::new("mine", 0)).into_iter().collect();
    for (what, identity, listed, expected) in [
        ("bound", bound.clone(), "ep-1", [false, true]),
        ("where the list lacks it", bound.clone(), "ep-2", [true, true]),
        ("with an unanswered create", ComputeIdentity { unanswered, ..bound }, "ep-1", [true, true]),
    ] {
        let at_stake = at_stake(&Other::new("mine", 0).0, &identity, &[listed.to_owned()].into());
        let concern = |other: &Other| !subjects(&other.0).is_disjoint(&at_stake);
        assert_eq!(others.each_ref().map(concern), expected, "{what}");
    }
}
