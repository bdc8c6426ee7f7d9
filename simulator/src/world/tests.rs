//! Property tests of the world: invariants under random events.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use crate::world::api::message::{Method, Request};
use crate::world::setup::file::WorldFile;
use crate::world::store::rows::Row;
use crate::world::{Profile, World};

const WORLD: &str = "
settings: {rate_limit: {enabled: false}}
users: [{id: user-1}]
organizations: [{id: org-1, plan: scale, members: [{user: user-1, role: admin}]}]
projects: [{id: p, owner: org-1, branches: [{id: b0}, {id: b1}, {id: b2}]}]
keys:
  - {type: personal, owner: user-1, name: admin, token: admin}
  - {type: organization, owner: org-1, name: all, token: all}
";

/// An event, with its delay in milliseconds after the previous one.
#[derive(Debug, Clone)]
struct Event {
    after_ms: i64,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Create {
        branch: u8,
        primary: bool,
        disabled: bool,
    },
    Move {
        compute: usize,
        branch: u8,
    },
    Resize {
        compute: usize,
        max: u8,
    },
    Disable {
        compute: usize,
        disabled: bool,
    },
    Restart {
        compute: usize,
    },
    Delete {
        compute: usize,
    },
    Activity {
        compute: usize,
    },
    CreateKey,
    Revoke {
        key: i64,
    },
    Look,
}

fn what() -> impl Strategy<Value = What> {
    let compute = 0..6_usize;
    prop_oneof![
        4 => (0..3_u8, any::<bool>(), any::<bool>()).prop_map(|(branch, primary, disabled)| What::Create { branch, primary, disabled }),
        2 => (compute.clone(), 0..3_u8).prop_map(|(compute, branch)| What::Move { compute, branch }),
        2 => (compute.clone(), 1..9_u8).prop_map(|(compute, max)| What::Resize { compute, max }),
        1 => (compute.clone(), any::<bool>()).prop_map(|(compute, disabled)| What::Disable { compute, disabled }),
        2 => compute.clone().prop_map(|compute| What::Restart { compute }),
        1 => compute.clone().prop_map(|compute| What::Delete { compute }),
        3 => compute.prop_map(|compute| What::Activity { compute }),
        1 => Just(What::CreateKey),
        1 => (3..6_i64).prop_map(|key| What::Revoke { key }),
        1 => Just(What::Look),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let pause = prop_oneof![0..2_000_i64, 0..400_000_i64];
    prop::collection::vec(
        (pause, what()).prop_map(|(after_ms, what)| Event { after_ms, what }),
        0..40,
    )
}

fn profile() -> impl Strategy<Value = Profile> {
    prop::sample::select(Profile::ALL.to_vec())
}

fn begin() -> Timestamp {
    "2026-01-05T08:00:00Z".parse().unwrap()
}

fn world(profile: Profile) -> World {
    World::new(&WorldFile::parse(WORLD).unwrap(), profile, 7, begin()).unwrap()
}

/// The id of the n-th compute in the console.
fn compute(world: &World, number: usize) -> String {
    world
        .console_computes(None)
        .get(number)
        .map_or_else(|| "ep-none".to_owned(), |line| line.id.clone())
}

fn perform(world: &mut World, what: &What, now: Timestamp) -> u16 {
    let all = |method, path: String| Request::new(method, path, now).bearer("all");
    let change = |id: String, attributes: serde_json::Value| {
        all(Method::Patch, format!("/projects/p/endpoints/{id}"))
            .json(&json!({ "endpoint": attributes }))
    };
    let request = match what {
        What::Create {
            branch,
            primary,
            disabled,
        } => {
            let kind = if *primary { "read_write" } else { "read_only" };
            let attributes =
                json!({ "branch_id": format!("b{branch}"), "type": kind, "disabled": disabled });
            all(Method::Post, "/projects/p/endpoints".to_owned())
                .json(&json!({ "endpoint": attributes }))
        }
        What::Move {
            compute: number,
            branch,
        } => change(
            compute(world, *number),
            json!({ "branch_id": format!("b{branch}") }),
        ),
        What::Resize {
            compute: number,
            max,
        } => change(
            compute(world, *number),
            json!({ "autoscaling_limit_min_cu": 1, "autoscaling_limit_max_cu": max }),
        ),
        What::Disable {
            compute: number,
            disabled,
        } => change(compute(world, *number), json!({ "disabled": disabled })),
        What::Restart { compute: number } => all(
            Method::Post,
            format!("/projects/p/endpoints/{}/restart", compute(world, *number)),
        ),
        What::Delete { compute: number } => all(
            Method::Delete,
            format!("/projects/p/endpoints/{}", compute(world, *number)),
        ),
        What::Activity { compute: number } => {
            let id = compute(world, *number);
            return world
                .console_activity(&id, None, now)
                .map_or_else(|refusal| refusal.status(world.profile()), |_| 200);
        }
        What::CreateKey => Request::new(Method::Post, "/organizations/org-1/api_keys", now)
            .bearer("admin")
            .json(&json!({ "key_name": now.to_string(), "project_id": "p" })),
        What::Revoke { key } => {
            return world
                .console_revoke_key(*key, now)
                .map_or_else(|refusal| refusal.status(world.profile()), |_| 200);
        }
        What::Look => all(Method::Get, "/projects/p/endpoints".to_owned()),
    };
    world.respond(&request, now).status
}

/// Everything that would be saved.
fn saved(world: &World) -> serde_json::Value {
    serde_json::to_value(world).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn time_that_passes_in_one_leap_or_in_many_steps_leads_to_the_same(events in events(), profile in profile()) {
        let (mut leaping, mut stepping) = (world(profile), world(profile));
        let mut now = begin();
        for event in &events {
            let next = now + SignedDuration::from_millis(event.after_ms);
            for part in 1..8 {
                stepping.advance_to(now + SignedDuration::from_millis(event.after_ms * part / 8));
            }
            now = next;
            prop_assert_eq!(perform(&mut leaping, &event.what, now), perform(&mut stepping, &event.what, now));
        }
        prop_assert_eq!(saved(&leaping), saved(&stepping));
    }

    #[test]
    fn a_restored_world_continues_as_if_it_had_never_stopped(before in events(), after in events(), profile in profile()) {
        let mut original = world(profile);
        let mut store: std::collections::BTreeMap<(&str, String), Vec<u8>> = Default::default();
        let mut now = begin();
        for event in &before {
            now += SignedDuration::from_millis(event.after_ms);
            perform(&mut original, &event.what, now);
            for Row { table, key, value } in original.take_changes() {
                match value {
                    Some(value) => store.insert((table.name(), key), value),
                    None => store.remove(&(table.name(), key)),
                };
            }
        }
        prop_assume!(!store.is_empty());
        let rows = store.into_iter().filter_map(|((table, _), value)| Some((crate::world::store::rows::Table::parse(table)?, value)));
        let mut restored = World::restore(rows, profile).unwrap();
        for event in &after {
            now += SignedDuration::from_millis(event.after_ms);
            prop_assert_eq!(perform(&mut original, &event.what, now), perform(&mut restored, &event.what, now));
        }
        original.advance_to(now);
        restored.advance_to(now);
        prop_assert_eq!(saved(&original), saved(&restored));
    }

    #[test]
    fn a_branch_never_has_two_primaries_and_everything_settles(events in events(), profile in profile()) {
        let mut world = world(profile);
        let mut now = begin();
        for event in &events {
            now += SignedDuration::from_millis(event.after_ms);
            let status = perform(&mut world, &event.what, now);
            prop_assert!(matches!(status, 200 | 201 | 204 | 401 | 404 | 409 | 423), "{:?}: {}", event, status);
            let lines = world.console_computes(None);
            let mut primaries: Vec<&str> = lines.iter().filter(|line| line.kind == "Primary").map(|line| line.branch_id.as_str()).collect();
            let all = primaries.len();
            primaries.sort_unstable();
            primaries.dedup();
            prop_assert_eq!(primaries.len(), all);
        }
        world.advance_to(now + SignedDuration::from_secs(400));
        prop_assert!(world.console_computes(None).iter().all(|line| line.status == "Idle"));
    }
}
