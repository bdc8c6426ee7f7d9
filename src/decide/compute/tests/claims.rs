//! Claims of other resources: bindings, and the order of claims.

mod creates;

use super::*;
use crate::api;
use crate::api::Known;
use crate::decide::identity::{of_unreadable, written};
use crate::decide::record_of;

const HERE: &str = "https://platform.example/v2";

/// A Compute on the platform `HERE`.
#[derive(Clone, Debug)]
struct ClaimingCompute(api::Compute);

impl ClaimingCompute {
    fn known(&self) -> Known<api::Compute> {
        Known::new(self.0.clone()).unwrap()
    }

    fn new(name: &str) -> Self {
        let spec = json!({"accountRef": {"name": "prod"}, "projectID": "p-1", "branchID": BRANCH, "type": "ReadWrite"});
        let metadata = json!({"namespace": "shop", "name": name, "uid": name});
        let object = json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": metadata, "spec": spec});
        Self(serde_json::from_value(object).unwrap())
    }

    fn declaring(mut self, edit: impl FnOnce(&mut ComputeSpec)) -> Self {
        edit(&mut self.0.spec);
        self
    }

    fn replica(self) -> Self {
        self.declaring(|spec| spec.type_ = ComputeType::ReadOnly)
    }

    fn elsewhere(self) -> Self {
        self.declaring(|spec| spec.branch_id = "br-dev".into())
    }

    fn of_project(self, project: &str) -> Self {
        self.declaring(|spec| spec.project_id = project.into())
    }

    fn recorded(&self) -> ComputeIdentity {
        record_of(&self.0).unwrap().identity
    }

    fn recording(mut self, edit: impl FnOnce(&mut ComputeIdentity)) -> Self {
        let mut identity = self.recorded();
        edit(&mut identity);
        self.0.status.get_or_insert_default().record = Some(written(&identity, &self.0.metadata));
        self
    }

    /// The record is only in the annotation.
    fn wishing(mut self) -> Self {
        let record = self
            .0
            .status
            .take()
            .and_then(|status| status.record)
            .unwrap();
        self.0
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(names::RECORD.into(), record);
        self
    }

    /// Bound since `since` seconds after now.
    fn bound(self, id: &str, since: i64) -> Self {
        let (project, branch) = (
            self.0.spec.project_id.clone(),
            self.0.spec.branch_id.clone(),
        );
        self.recording(|identity| {
            let (platform, branch) = (Some(HERE.into()), Some(branch));
            let binding = Binding {
                id: id.into(),
                project,
                platform,
                branch,
                origin: Origin::Created,
                at: at(since),
            };
            (identity.binding, identity.intent) = (Some(binding), None);
        })
    }

    fn creating(self, since: i64) -> Self {
        let intent = self.create(since, Evidence::ByBaseline);
        self.recording(|identity| identity.intent = Some(intent))
    }

    fn unanswered(self, since: i64) -> Self {
        let create = self.create(since, Evidence::ByBaseline);
        self.recording(|identity| identity.unanswered = vec![create])
    }

    fn create(&self, since: i64, evidence: Evidence) -> CreateIntent {
        CreateIntent {
            at: at(since),
            branch: self.0.spec.branch_id.clone(),
            platform: Some(HERE.into()),
            baseline: (evidence == Evidence::ByBaseline).then(BTreeSet::new),
            newest: None,
            mark: Some(format!("mark-{}", self.0.metadata.name.as_deref().unwrap())),
            asked: None,
        }
    }

    /// On another platform, which uses the same ids for projects, branches and computes.
    fn on_another_platform(self) -> Self {
        self.recording(|identity| {
            *identity = identity
                .clone()
                .with_platforms(|_| "https://other.example/v2".into())
        })
    }

    /// Being deleted, with these finalizers.
    fn deleting(mut self, finalizers: &[&str]) -> Self {
        let since = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(-60));
        self.0.metadata.deletion_timestamp = Some(since);
        self.0.metadata.finalizers =
            Some(finalizers.iter().map(|name| (*name).to_owned()).collect());
        self
    }

    fn as_other(&self) -> Other<'_> {
        Other {
            meta: &self.0.metadata,
            spec: Some(&self.0.spec),
            identity: self.recorded(),
            admitted: true,
        }
    }

    fn unreadable(&self) -> Other<'_> {
        let identity = of_unreadable(&self.0.metadata).unwrap_or_default().identity;
        Other {
            meta: &self.0.metadata,
            spec: None,
            identity,
            admitted: true,
        }
    }

    fn among<'a>(
        &'a self,
        evidence: Evidence,
        others: impl IntoIterator<Item = Other<'a>>,
        here: &Reservations,
    ) -> Claims {
        claims(
            Mine {
                object: &self.0,
                identity: &self.recorded(),
                platform: HERE,
                evidence,
                now: NOW,
            },
            others,
            here,
        )
    }

    /// The claims of the others, without reservations.
    fn with<const N: usize>(&self, others: [&Self; N]) -> Claims {
        self.among(
            Evidence::ByBaseline,
            others.map(Self::as_other),
            &Reservations::default(),
        )
    }
}

#[test]
fn what_is_declared_or_wished_for_claims_nothing() {
    let mine = ClaimingCompute::new("mine");
    let declared =
        ClaimingCompute::new("declared").declaring(|spec| spec.compute_id = Some("ep-1".into()));
    let wishing = [
        ClaimingCompute::new("bound").bound("ep-1", -60).wishing(),
        ClaimingCompute::new("creating").creating(-60).wishing(),
        ClaimingCompute::new("unanswered").unanswered(-60).wishing(),
    ];
    for other in &wishing {
        assert_eq!(
            mine.with([other]),
            Claims::default(),
            "{}",
            other.as_other().meta.name.as_ref().unwrap()
        );
        assert_eq!(subjects(&other.known()), BTreeSet::new());
    }
    let only_declared = |id: &str| Claims {
        declared: [id.into()].into(),
        ..Claims::default()
    };
    assert_eq!(mine.with([&declared]), only_declared("ep-1"));
    assert_eq!(subjects(&declared.known()), BTreeSet::new());
    assert_eq!(mine.with([&declared.of_project("p-2")]), Claims::default());
}

/// Another resource may import a compute that a create made in addition.
#[test]
fn the_mark_of_a_create_that_has_made_a_compute_keeps_nothing_from_others() {
    let mine = ClaimingCompute::new("mine");
    let create = mine.create(-60, Evidence::ByMark);
    let theirs = ClaimingCompute::new("theirs")
        .bound("ep-1", -60)
        .recording(|identity| identity.made = vec![create]);
    assert_eq!(mine.with([&theirs]).marks, BTreeMap::new());
}

#[test]
fn nothing_is_claimed_of_another_platform_or_project() {
    for mine in [
        ClaimingCompute::new("mine"),
        ClaimingCompute::new("mine").replica(),
    ] {
        let type_ = mine.0.spec.type_;
        let others = || {
            let others = ["a", "b", "c"]
                .map(|name| ClaimingCompute::new(name).declaring(|spec| spec.type_ = type_));
            let [bound, creating, unanswered] = others;
            [
                bound.bound("ep-1", -60),
                creating.creating(-60),
                unanswered.unanswered(-60),
            ]
        };
        for (other, there) in others().into_iter().zip(others()) {
            assert_ne!(mine.with([&other]), Claims::default());
            assert_eq!(mine.with([&there.on_another_platform()]), Claims::default());
        }
        let bound = ClaimingCompute::new("bound")
            .of_project("p-2")
            .bound("ep-1", -60);
        assert_eq!(mine.with([&bound]), Claims::default());
    }
}

#[test]
fn a_compute_belongs_to_whoever_was_bound_to_it_first() {
    let first = ClaimingCompute::new("first").bound("ep-1", -60);
    let second = ClaimingCompute::new("second").bound("ep-1", -30);
    let claim = |name: &str, first| {
        BTreeMap::from([(
            "ep-1".into(),
            Claim {
                by: holder(name),
                first,
            },
        )])
    };
    assert_eq!(
        ClaimingCompute::new("mine").with([&second, &first]).bound,
        claim("first", true)
    );
    assert_eq!(
        first.with([&first, &second]).bound,
        claim("second", false),
        "nobody is in one's own way"
    );
    assert_eq!(second.with([&first]).bound, claim("first", true));
    let [a, b] = ["a", "b"].map(|uid| ClaimingCompute::new(uid).bound("ep-1", -60));
    assert_eq!(
        (a.with([&b]).bound, b.with([&a]).bound),
        (claim("b", false), claim("a", true)),
        "by UID"
    );
    let about_to_be = Reservations {
        computes: [("ep-1".into(), holder("faster"))].into(),
        ..Default::default()
    };
    assert_eq!(
        ClaimingCompute::new("mine")
            .among(Evidence::ByMark, [], &about_to_be)
            .bound,
        claim("faster", true)
    );
    assert_eq!(
        first.among(Evidence::ByMark, [], &about_to_be).bound,
        claim("faster", false)
    );
}

#[test]
fn a_primary_belongs_to_whoever_was_bound_on_the_branch_first() {
    let mine = ClaimingCompute::new("mine");
    let other = || ClaimingCompute::new("other");
    for (what, other, has_it) in [
        ("bound there", other().bound("ep-1", -60), true),
        (
            "bound to a replica there",
            other().replica().bound("ep-1", -60),
            false,
        ),
        (
            "bound on another branch",
            other().elsewhere().bound("ep-1", -60),
            false,
        ),
        (
            "bound there, and declares another branch",
            other().bound("ep-1", -60).elsewhere(),
            true,
        ),
        (
            "bound elsewhere, and declares this one",
            other()
                .elsewhere()
                .bound("ep-1", 0)
                .declaring(|spec| spec.branch_id = BRANCH.into()),
            false,
        ),
    ] {
        assert_eq!(
            mine.with([&other]).primary,
            has_it.then(|| holder("other")),
            "{what}"
        );
        assert_eq!(
            mine.clone().replica().with([&other]).primary,
            None,
            "{what}"
        );
        let outside = Other {
            admitted: false,
            ..other.as_other()
        };
        let claims = mine.among(Evidence::ByBaseline, [outside], &Reservations::default());
        let has = |id: &str| [(id.into(), holder("other"))].into();
        assert_eq!(
            (claims.primary, claims.bound, claims.outside),
            (None, BTreeMap::new(), has("ep-1")),
            "{what}"
        );
    }
    // The computes of both are missing.
    let [first, second] = [("first", -60), ("second", -30)]
        .map(|(name, since)| ClaimingCompute::new(name).bound(name, since));
    assert_eq!(first.with([&second]).primary, None);
    assert_eq!(second.with([&first]).primary, Some(holder("first")));
}

#[test]
fn one_that_cannot_be_read_keeps_what_its_record_names_in_its_project() {
    let bound = |uid: &str, project: &str| {
        let mut unreadable = ClaimingCompute::new("unreadable").of_project(project);
        let own = unreadable.0.metadata.uid.replace(uid.to_owned());
        let mut unreadable = unreadable.bound("ep-1", -60);
        unreadable.0.metadata.uid = own;
        let unreadable = unreadable.wishing();
        ClaimingCompute::new("mine")
            .among(
                Evidence::ByMark,
                [unreadable.unreadable()],
                &Reservations::default(),
            )
            .bound
    };
    assert!(bound("unreadable", "p-1").contains_key("ep-1"));
    assert_eq!(bound("unreadable", "p-2"), BTreeMap::new());
    assert_eq!(
        bound("former", "p-1"),
        BTreeMap::new(),
        "the status of an earlier resource, from a backup"
    );
}

#[test]
fn what_matters_to_one_is_found_by_what_the_others_claim() {
    let mine = ClaimingCompute::new("mine")
        .elsewhere()
        .creating(0)
        .declaring(|spec| spec.branch_id = BRANCH.into());
    let relevant_subjects = |identity: &ComputeIdentity| {
        relevant_subjects(&mine.0.spec, identity, &["ep-1".into()].into())
    };
    let bound = ClaimingCompute::new("mine").bound("ep-1", 0).recorded();
    let unanswered = ClaimingCompute::new("mine")
        .unanswered(0)
        .bound("ep-1", 0)
        .recorded();
    let other = || ClaimingCompute::new("other");
    for (what, other, concerns) in [
        (
            "creating on the branch",
            other().creating(0),
            [true, false, true],
        ),
        (
            "creating on the branch of the intent",
            other().elsewhere().creating(0),
            [true, false, false],
        ),
        (
            "bound to it",
            other().elsewhere().bound("ep-1", 0),
            [true, true, true],
        ),
        (
            "the primary of the branch",
            other().bound("ep-2", 0),
            [true, false, true],
        ),
        (
            "a replica of the branch",
            other().replica().bound("ep-2", 0),
            [false, false, false],
        ),
        (
            "bound to another elsewhere",
            other().elsewhere().replica().bound("ep-2", 0),
            [false, false, false],
        ),
        (
            "in another project",
            other().of_project("p-2").bound("ep-1", 0),
            [false, false, false],
        ),
        ("declared", other(), [false, false, false]),
    ] {
        let claimed = subjects(&other.known());
        let matters = [&mine.recorded(), &bound, &unanswered]
            .map(|mine| !claimed.is_disjoint(&relevant_subjects(mine)));
        assert_eq!(matters, concerns, "{what}");
    }
}

/// dbplane's finalizer is gone, and another controller's finalizer keeps the object.
#[test]
fn what_is_released_claims_nothing() {
    let mine = ClaimingCompute::new("mine");
    let theirs = "example.com/theirs";
    for gone in [
        ClaimingCompute::new("gone").bound("ep-1", -100),
        ClaimingCompute::new("gone")
            .bound("ep-1", -100)
            .unanswered(-200),
        ClaimingCompute::new("gone").creating(-100),
        ClaimingCompute::new("gone").unanswered(-100),
        ClaimingCompute::new("gone").replica().bound("ep-1", -100),
        ClaimingCompute::new("gone").replica().creating(-100),
    ] {
        let kept = gone.clone().deleting(&[theirs, names::FINALIZER]);
        let reader = if gone.0.spec.type_ == ComputeType::ReadOnly {
            mine.clone().replica()
        } else {
            mine.clone()
        };
        assert_ne!(reader.with([&kept]), Claims::default(), "{kept:?}");
        assert!(!claimed(&kept.known()).is_empty());
        let released = gone.clone().deleting(&[theirs]);
        assert_eq!(reader.with([&released]), Claims::default(), "{released:?}");
        let outside = Other {
            admitted: false,
            ..released.as_other()
        };
        assert_eq!(
            reader.among(Evidence::ByBaseline, [outside], &Reservations::default()),
            Claims::default()
        );
        assert!(
            claimed(&released.known()).is_empty() && !subjects(&released.known()).is_empty(),
            "those that wait are woken"
        );
    }
    // If the resource is not being deleted, dbplane's finalizer is written again.
    let stripped = ClaimingCompute::new("stripped").bound("ep-1", -100);
    assert!(mine.with([&stripped]).bound.contains_key("ep-1"));
}
