//! The states of ProjectKeys.

use dbplane_simulator::world::Profile;
use serde_json::{Value, json};

use super::calls::Call::{CreateKey, RevokeKey};
use super::states::{CONFLICT, Deed, Moment, READY, Says, State};

fn key(name: &'static str, more: Value) -> State {
    let mut spec = json!({"keyName": "{object}", "secret": {"name": "{object}"}});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    State::new("ProjectKey", name, spec)
}

fn rotate() -> Deed {
    Deed::Change(json!({"metadata": {"annotations": {"dbplane.dev/rotate": "once"}}}))
}

pub fn states(profile: Profile) -> Vec<State> {
    [settled(profile), in_the_midst(profile)].concat()
}

fn settled(profile: Profile) -> Vec<State> {
    let overlap = json!({"rotation": {"every": "8760h", "overlap": "24h"}});
    let at_once = json!({"rotation": {"every": "8760h", "overlap": "0s"}});
    let both = json!({"secret": {"name": "{object}", "previousKey": "previous"}, "rotation": overlap["rotation"]});
    // A platform that cannot revoke keys leaves the revocation to the user.
    let retired: Says = match profile {
        Profile::Minimal => ("Synced", "RevocationUnsupported"),
        _ => READY,
    };
    let revoked = key("revoked", json!({"onRevoked": "Report"}))
        .then(Deed::KeyRevoked, ("Stalled", "KeyRevoked"));
    // The previous version did not record the platform of keys. Only a platform that lists its keys
    // can be identified as theirs.
    let found = |state: State| match profile {
        Profile::Minimal => state.next(&[], Some(CONFLICT)),
        _ => state,
    };
    vec![
        found(key("key", json!({}))).times(6),
        found(key("rotating", overlap.clone())).times(2),
        found(key("overlaps", overlap).then(rotate(), READY)).times(3),
        found(key("overlaps-in-secret", both).then(rotate(), READY)).times(3),
        found(key("retired", at_once).then(rotate(), retired)).times(3),
        found(key("kept", json!({"deletion": "Orphan"}))),
        revoked.next(&[], Some(CONFLICT)).times(2),
        key("key-never-created", json!({})).annotated(json!({"dbplane.dev/paused": "true"})).says(("Paused", "Paused")),
        key("secret-of-others", json!({"secret": {"name": "unrelated"}})).says(("Stalled", "SecretNotOurs")),
        key("secret-of-another", json!({"secret": {"name": "key-0"}})).says(("Stalled", "ClaimedByAnother")),
        key("key-handed", json!({}))
            .then(
                Deed::Change(json!({"spec": {"handOverTo": {"name": "key-handed-to-{copy}"}}})),
                ("Ready", "HandedOver"),
            )
            .next(&[], Some(CONFLICT))
            .times(2),
        key(
            "key-handed-to",
            json!({"takeOverFrom": {"name": "key-handed-{copy}"}, "secret": {"name": "key-handed-{copy}"}}),
        )
        .first(("Ready", "HandingOver"))
        .next(&[], Some(CONFLICT))
        .times(2),
    ]
}

/// The previous version was killed before the outcome of a call was known. If the platform lists
/// keys, a key without a known secret is revoked. Otherwise the process that gets no answer gives
/// up the key at once and reports that it needs attention.
fn in_the_midst(profile: Profile) -> Vec<State> {
    let overlap = || json!({"rotation": {"every": "8760h", "overlap": "24h"}});
    let rotates = |name| key(name, overlap()).then(rotate(), READY);
    let deleting = key("key-deleting", json!({}))
        .then(Deed::Delete, READY)
        .done(Moment::Refused)
        .times(2);
    if profile == Profile::Minimal {
        let asks: Says = ("Synced", "RevocationUnsupported");
        return vec![
            key("key-lost", json!({}))
                .declared(Moment::Unanswered)
                .says(asks)
                .next(&[], Some(CONFLICT))
                .times(4),
            key("rotation-lost", overlap())
                .then(rotate(), asks)
                .done(Moment::Unanswered)
                .next(&[], Some(CONFLICT))
                .times(3),
            deleting.next(&[], Some(CONFLICT)),
        ];
    }
    vec![
        key("key-dropped", json!({}))
            .declared(Moment::Dropped)
            .next(&[], Some(CONFLICT))
            .times(4),
        key("key-late", json!({}))
            .declared(Moment::Late)
            .next(&[CreateKey, RevokeKey], Some(READY))
            .times(4),
        rotates("rotation-dropped")
            .done(Moment::Dropped)
            .next(&[CreateKey], Some(READY))
            .times(3),
        rotates("rotation-late")
            .done(Moment::Late)
            .next(&[CreateKey, RevokeKey], Some(READY))
            .times(3),
        deleting.next(&[RevokeKey], None),
    ]
}
