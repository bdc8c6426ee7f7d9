//! Connections of accounts.

use super::*;

/// A connection with this number and its own client.
fn connection(number: u64) -> Arc<AccountConnection<RateLimited>> {
    let access: PlatformAccess =
        serde_json::from_value(serde_json::json!({"baseURL": "https://platform.example/api/v2"}))
            .unwrap();
    let to = ConnectOptions {
        endpoint: Endpoint {
            base_url: access.base_url.clone(),
            ..Endpoint::default()
        },
        request_timeout: Duration::from_secs(1),
        rate: Rate::default(),
        leadership: Leadership::default(),
        room: Arc::default(),
    };
    let credential = SecretString::from("key");
    let platform = OverHttp::default()
        .connect(&to, &credential, Arc::new(NoMeter))
        .unwrap();
    let (poll_interval, names) = (Duration::from_secs(30), NameSupport::Unseen);
    Arc::new(AccountConnection {
        number,
        platform,
        access,
        poll_interval,
        credential,
        names,
        check: None,
        seen: Vec::new(),
    })
}

/// Publishes an account with this connection. Returns whether that changed anything.
fn publish(
    state: &ProcessState<RateLimited>,
    name: &AccountName,
    connection: Option<Arc<AccountConnection<RateLimited>>>,
) -> bool {
    let entry = AccountEntry {
        connection,
        availability: Availability::Usable,
        protected: true,
        in_use: true,
        many_keys: false,
        gone: std::collections::BTreeSet::new(),
        generation: 1,
    };
    state.publish_account(name, entry)
}

#[test]
fn that_names_are_kept_is_known_of_one_connection() {
    let state = ProcessState::<RateLimited>::default();
    let name = AccountName {
        kind: AccountKind::ClusterAccount,
        namespace: None,
        name: "company".to_owned(),
    };
    publish(&state, &name, Some(connection(1)));
    let shown = |connection, names| state.names_shown(&name, connection, names);
    assert_eq!(shown(1, NameSupport::Offered), NameSupport::Offered);
    assert_eq!(
        shown(2, NameSupport::Kept),
        NameSupport::Kept,
        "of another connection"
    );
    assert_eq!(shown(1, NameSupport::Unseen), NameSupport::Offered);
    assert_eq!(shown(1, NameSupport::Kept), NameSupport::Kept);
    assert_eq!(
        shown(1, NameSupport::Unseen),
        NameSupport::Kept,
        "an empty project shows no names"
    );
    assert_eq!(
        state.account(&name).unwrap().connection.unwrap().names,
        NameSupport::Kept
    );
    publish(&state, &name, Some(connection(2)));
    assert_eq!(shown(2, NameSupport::Unseen), NameSupport::Unseen);
}

#[test]
fn a_former_key_counts_as_long_as_somebody_may_call_with_it() {
    let state = ProcessState::<RateLimited>::default();
    let name = AccountName {
        kind: AccountKind::ClusterAccount,
        namespace: None,
        name: "company".to_owned(),
    };
    let publish = |connection| publish(&state, &name, connection);
    assert!(publish(Some(connection(1))) && !state.uses_former_key(&name));
    let on_its_way = state
        .account(&name)
        .unwrap()
        .connection
        .unwrap()
        .platform
        .probing();
    assert!(publish(Some(connection(2))) && state.uses_former_key(&name));
    let second = state.account(&name).unwrap().connection;
    assert!(
        !publish(second) && state.uses_former_key(&name),
        "the same connection again"
    );
    drop(on_its_way);
    assert!(!state.uses_former_key(&name));
    // The account has no credentials at present.
    let on_its_way = state.account(&name).unwrap();
    assert!(publish(None) && state.uses_former_key(&name));
    drop(on_its_way);
    assert!(!state.uses_former_key(&name));
}
