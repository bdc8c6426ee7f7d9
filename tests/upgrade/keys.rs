//! The states of ProjectKeys.

use dbplane_simulator::world::Profile;
use serde_json::{Value, json};

use super::calls::Call::{CreateKey, RevokeKey};
use super::states::{CONFLICT, Deed, Moment, READY, Says, State};

fn key(name: &'static str, more: Value) -> State {
    let mut spec = json!({"keyName": "{object}", "secret": {"name": "{object}"}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
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
    // Where a key cannot be revoked, a person is asked to.
    let retired: Says = match profile {
        Profile::Minimal => ("Synced", "RevocationUnsupported"),
        _ => READY,
    };
    let revoked = key("revoked", json!({"onRevoked": "Report"})).then(Deed::KeyRevoked, ("Stalled", "KeyRevoked"));
    // The version before did not record the platform of keys. It is the one that lists them.
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

/// The version before was killed while the outcome of a call was not known. Where keys are listed, one whose secret nobody has is revoked. Where
/// they are not, the process that waits in vain gives its key up at once, and a person is asked.
fn in_the_midst(profile: Profile) -> Vec<State> {
    let overlap = || json!({"rotation": {"every": "8760h", "overlap": "24h"}});
    let rotates = |name| key(name, overlap()).then(rotate(), READY);
    let deleting = key("key-deleting", json!({})).then(Deed::Delete, READY).done(Moment::Refused).times(2);
    if profile == Profile::Minimal {
        let asks: Says = ("Synced", "RevocationUnsupported");
        return vec![
            key("key-lost", json!({})).declared(Moment::Unanswered).says(asks).next(&[], Some(CONFLICT)).times(4),
            key("rotation-lost", overlap())
                .then(rotate(), asks)
                .done(Moment::Unanswered)
                .next(&[], Some(CONFLICT))
                .times(3),
            deleting.next(&[], Some(CONFLICT)),
        ];
    }
    vec![
        key("key-dropped", json!({})).declared(Moment::Dropped).next(&[], Some(CONFLICT)).times(4),
        key("key-late", json!({})).declared(Moment::Late).next(&[CreateKey, RevokeKey], Some(READY)).times(4),
        rotates("rotation-dropped").done(Moment::Dropped).next(&[CreateKey], Some(READY)).times(3),
        rotates("rotation-late").done(Moment::Late).next(&[CreateKey, RevokeKey], Some(READY)).times(3),
        deleting.next(&[RevokeKey], None),
    ]
}
