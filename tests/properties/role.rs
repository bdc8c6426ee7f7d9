//! The database user and password that users declare for connections.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use proptest::prelude::*;

use super::history::{Chapter, Event, History};
use super::run::Run;

/// Name of the Secret with both.
pub const ROLE: &str = "role";

/// The password is set for long enough to be written. Then it changes or is removed.
pub fn role_at_last() -> impl Strategy<Value = Vec<Chapter>> {
    let chapter = |password, seconds| Chapter {
        event: Event::Role(password),
        seconds,
    };
    (0..30_u16, prop::option::weighted(0.3, Just(1_u8)))
        .prop_map(move |(seconds, password)| vec![chapter(Some(0), 60), chapter(password, seconds)])
}

impl History {
    /// True if Computes refer to the Secret with the user and password. Without a `Role` event they
    /// do not, so that the faults of known histories still hit the same requests.
    pub fn has_role(&self) -> bool {
        self.chapters
            .iter()
            .any(|chapter| matches!(chapter.event, Event::Role(_)))
    }
}

impl Run<'_> {
    pub fn put_role(&mut self, password: Option<u8>) {
        let mut simulation = self.simulation.lock();
        let Some(password) = password else {
            simulation.cluster.secrets.remove(ROLE);
            return;
        };
        let entries = [
            ("username", "app".to_owned()),
            ("password", format!("p{password}")),
        ];
        let data = entries
            .into_iter()
            .map(|(name, text)| (name.to_owned(), ByteString(text.into_bytes())));
        simulation.cluster.put_secret(
            ROLE,
            Secret {
                data: Some(data.collect()),
                ..Secret::default()
            },
        );
    }
}
