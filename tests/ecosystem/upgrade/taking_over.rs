//! This version starts with the objects that the previous version left while work was in progress.

use dbplane_simulator::world::Profile;

use super::Version;
use super::bring_about::bring_about;
use super::site::Site;
use crate::recorded::{BEFORE, Before, changed, differences, folder, objects, says};

/// Set by `make record-objects`.
const RECORD: &str = "DBPLANE_RECORD_OBJECTS";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_of_the_previous_version_are_continued_on_a_platform_with_names_and_lists() {
    taken_over(Profile::Default).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_of_the_previous_version_are_continued_on_a_platform_without_names_and_lists() {
    taken_over(Profile::Minimal).await;
}

async fn taken_over(profile: Profile) {
    let objects = objects(profile);
    let site = Site::open(Version::Of(BEFORE), profile, &objects).await;
    let mut former = site.start(Version::Of(BEFORE), "former", &[]).await;
    let recording = bring_about(&site, &mut former, &objects).await;
    if std::env::var_os(RECORD).is_some() {
        recording.save(&folder(BEFORE, profile));
    }
    // Definitions are upgraded together with the operator.
    for file in Version::This.definitions() {
        site.cluster
            .kubectl(&[
                "apply",
                "--server-side",
                "--force-conflicts",
                "-f",
                &file.display().to_string(),
            ])
            .await
            .unwrap();
    }
    let since = site.requests();
    let mut this = site.start(Version::This, "this", &[]).await;
    until_ended(&site, &objects).await;
    site.until_at_rest().await;
    let after = site.record().await;
    let before = Before {
        recording: &recording,
        objects: &objects,
    };
    let found = differences(&before, &after, &site.changes(since));
    assert!(found.is_empty(), "{found:#?}");
    // After another restart there is nothing left to do. Missing and refused things are only
    // checked and reported again.
    let since = site.requests();
    this.process.kill().unwrap();
    let _again = site.start(Version::This, "again", &[]).await;
    site.until_at_rest().await;
    site.until("everything to be as it was", async || {
        changed(&after, &site.record().await)
    })
    .await;
    // The operator checks a missing compute by an empty PATCH, which gets 404. An existing compute
    // would answer with another status.
    let asked = site
        .asked(since)
        .into_iter()
        .filter(|(method, _, status)| (method.as_str(), *status) != ("PATCH", Some(404)));
    assert_eq!(asked.collect::<Vec<_>>(), []);
}

/// Waits until every object has its final condition.
async fn until_ended(site: &Site, objects: &[crate::recorded::Object]) {
    site.until("all objects to end as they should", async || {
        let mut missing = Vec::new();
        for kind in ["Compute", "ProjectKey", "ReadReplicaSet"] {
            let all = site.all(kind).await;
            for object in objects.iter().filter(|object| object.state.kind == kind) {
                let as_wanted = match (object.state.ends, all.get(&object.name)) {
                    (None, seen) => seen.is_none(),
                    (Some(wanted), seen) => seen.is_some_and(|seen| says(seen, wanted)),
                };
                if !as_wanted {
                    let seen = all
                        .get(&object.name)
                        .map(|seen| seen["status"]["conditions"].to_string());
                    missing.push(format!(
                        "{}: {seen:?} instead of {:?}",
                        object.name, object.state.ends
                    ));
                }
            }
        }
        missing
    })
    .await;
}
