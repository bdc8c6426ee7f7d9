//! The wire format of API keys.

use jiff::Timestamp;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{DecodeError, ListEntry, ListPage, lenient, parse, texts, times};
use crate::domain::{CreatedKey, KeyEntry, KeyId, ProjectId};

/// The body of a key create.
#[derive(Serialize)]
pub(in crate::platform::http) struct CreateKeyBody<'a> {
    pub key_name: &'a str,
    pub project_id: &'a ProjectId,
}

/// A key ID of 64 bits. Some platforms write it as text because a double cannot hold it.
fn identifier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<KeyId>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    Ok(match serde_json::from_str::<String>(raw) {
        Ok(text) => text.parse().ok().map(KeyId),
        Err(_) => serde_json::from_str(raw).ok(),
    })
}

#[derive(Deserialize)]
pub(super) struct WireKey {
    #[serde(default, deserialize_with = "identifier")]
    id: Option<KeyId>,
    #[serde(default, deserialize_with = "lenient")]
    key: Option<String>,
    #[serde(default, deserialize_with = "texts::shown")]
    name: Option<String>,
    #[serde(default, deserialize_with = "times::time")]
    created_at: Option<Timestamp>,
    #[serde(default)]
    created_by: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "texts::identifier")]
    project_id: Option<ProjectId>,
    #[serde(default, deserialize_with = "times::time")]
    last_used_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "texts::shown")]
    last_used_from_addr: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    revoked: Option<bool>,
}

/// The answer to a key create. No error contains any part of the body, because it includes the
/// secret.
pub(in crate::platform::http) fn created(
    body: &[u8],
    name: &str,
) -> Result<CreatedKey, DecodeError> {
    let record: WireKey = serde_json::from_slice(body)
        .map_err(|_| DecodeError::new(".", "not the object that a key's creation should return"))?;
    Ok(CreatedKey {
        id: record.id.ok_or_else(|| DecodeError::missing("", "id"))?,
        secret: record
            .key
            .filter(|key| texts::is_secret(key))
            .map(SecretString::from)
            .ok_or_else(|| DecodeError::missing("", "key"))?,
        name: record.name.unwrap_or_else(|| name.to_owned()),
        created_at: record.created_at,
        created_by: record.created_by.and_then(|value| creator(&value)),
        project_id: record.project_id,
    })
}

/// The difference between a created key and the request. A member that the answer lacks is no
/// difference. The text contains no part of the body.
pub(in crate::platform::http) fn difference(
    key: &CreatedKey,
    name: &str,
    project: &ProjectId,
) -> Option<&'static str> {
    if key.name != name {
        return Some("which is not called what was asked for");
    }
    match &key.project_id {
        Some(found) if found != project => Some("which is of another project"),
        _ => None,
    }
}

/// A text in the answer to a create, an object in the list.
fn creator(value: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct KeyCreator {
        id: String,
    }
    let creator = match serde_json::from_str(value.get()) {
        Ok(text) => text,
        Err(_) => serde_json::from_str::<KeyCreator>(value.get()).ok()?.id,
    };
    Some(texts::cleaned(creator))
}

impl ListEntry for KeyEntry {
    type Wire = WireKey;

    fn of(record: WireKey) -> Result<Self, &'static str> {
        Ok(Self {
            id: record.id.ok_or("id")?,
            name: record.name.ok_or("name")?,
            project_id: record.project_id,
            created_at: record.created_at,
            last_used_at: record.last_used_at,
            // A key that was never used has an empty address.
            last_used_from: record
                .last_used_from_addr
                .filter(|address| !address.is_empty()),
        })
    }

    fn id(json: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Identity {
            #[serde(default, deserialize_with = "identifier")]
            id: Option<KeyId>,
        }
        Some(serde_json::from_str::<Identity>(json).ok()?.id?.to_string())
    }
}

/// The list of keys is a bare array.
pub(in crate::platform::http) fn keys(body: &[u8]) -> Result<ListPage<KeyEntry>, DecodeError> {
    parse(body).map(|list| ListPage::of(list, None))
}

/// The revocation state in the answer to a revocation, if it has one.
pub(in crate::platform::http) fn revoked(body: &[u8]) -> Option<bool> {
    serde_json::from_slice::<WireKey>(body).ok()?.revoked
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_created_key_keeps_64_bits_of_id() {
        let body = br#"{"id":9223372036854775807,"key":"s3cret","name":"n","created_at":"2025-01-02T03:04:05Z",
            "created_by":"user_01h","project_id":"p"}"#;
        let key = created(body, "asked").unwrap();
        assert_eq!(key.id.0, i64::MAX);
        assert_eq!(key.secret.expose_secret(), "s3cret");
        assert_eq!(
            (key.name.as_str(), key.created_by.as_deref()),
            ("n", Some("user_01h"))
        );
        assert!(!format!("{key:?}").contains("s3cret"));
    }

    #[test]
    fn a_created_key_needs_its_id_and_its_secret() {
        for (body, path) in [
            (r#"{"key":"s3cret-canary"}"#, "id"),
            (r#"{"id":"s3cret-canary","key":"s3cret-canary"}"#, "id"),
            (r#"{"id":1}"#, "key"),
            (r#"{"id":1,"key":""}"#, "key"),
            (r#"{"id":1,"key":"s3cret-canary""#, "."),
            (r#""s3cret-canary""#, "."),
        ] {
            let error = created(body.as_bytes(), "n").unwrap_err();
            assert_eq!(error.path, path, "{body}");
            assert!(!format!("{error:?}").contains("canary"), "{error:?}");
        }
        assert_eq!(
            created(br#"{"id":"12","key":"x"}"#, "asked").unwrap().name,
            "asked"
        );
    }

    #[test]
    fn a_created_key_is_compared_with_what_was_asked_for() {
        let name = "which is not called what was asked for";
        let project = "which is of another project";
        for (body, expected) in [
            (
                r#"{"id":1,"key":"x","name":"asked","project_id":"p"}"#,
                None,
            ),
            (r#"{"id":1,"key":"x"}"#, None),
            (r#"{"id":1,"key":"x","name":7,"project_id":7}"#, None),
            (
                r#"{"id":1,"key":"x","name":"aske","project_id":"p"}"#,
                Some(name),
            ),
            (
                r#"{"id":1,"key":"x","name":"","project_id":"p"}"#,
                Some(name),
            ),
            (r#"{"id":1,"key":"x","name":"Asked"}"#, Some(name)),
            (
                r#"{"id":1,"key":"x","name":"asked","project_id":"q"}"#,
                Some(project),
            ),
            (r#"{"id":1,"key":"x","project_id":"q"}"#, Some(project)),
        ] {
            let key = created(body.as_bytes(), "asked").unwrap();
            assert_eq!(difference(&key, "asked", &"p".into()), expected, "{body}");
        }
    }

    #[test]
    fn the_list_is_a_bare_array() {
        let body =
            br#"[{"id":9007199254740993,"name":"a","created_by":{"id":"u","name":"x","image":""},
            "last_used_at":null,"last_used_from_addr":"","created_at":"2025-01-02 nonsense"}]"#;
        let entries = keys(body).unwrap().items;
        assert_eq!(entries[0].id.0, 9_007_199_254_740_993);
        assert_eq!(entries[0].created_at, None);
        assert_eq!(
            (entries[0].last_used_at, &entries[0].last_used_from),
            (None, &None)
        );
        assert!(keys(b"{}").is_err());
    }

    #[test]
    fn a_key_that_cannot_be_read_is_named_by_its_number_and_the_others_are_read() {
        for (odd, expected) in [
            (r#"{"id":2}"#, "2 (name)"),
            (r#"{"id":"2","name":7}"#, "2 (name)"),
            (
                r#"{"id":2,"name":"b","project_id":"No Project"}"#,
                "2 (project_id)",
            ),
            (
                r#"{"name":"b"}"#,
                "one whose identifier cannot be read (id)",
            ),
            (
                "null",
                "one whose identifier cannot be read (of another form)",
            ),
        ] {
            let page =
                keys(format!(r#"[{{"id":1,"name":"a"}},{odd},{{"id":3,"name":"c"}}]"#).as_bytes())
                    .unwrap();
            assert_eq!(
                page.items.iter().map(|key| key.id.0).collect::<Vec<_>>(),
                [1, 3],
                "{odd}"
            );
            assert_eq!(
                (page.unreadable[0].to_string().as_str(), page.entries),
                (expected, 3),
                "{odd}"
            );
        }
    }

    #[test]
    fn when_and_from_where_a_key_was_last_used() {
        let body = br#"[{"id":1,"name":"a","last_used_at":"2025-01-02T03:04:05Z","last_used_from_addr":"192.0.2.7, 2001:db8::7"},
            {"id":2,"name":"b","last_used_at":"yesterday","last_used_from_addr":7},{"id":3,"name":"c"}]"#;
        let used: Vec<_> = keys(body)
            .unwrap()
            .items
            .into_iter()
            .map(|key| (key.last_used_at, key.last_used_from))
            .collect();
        let at = "2025-01-02T03:04:05Z".parse().ok();
        assert_eq!(
            used,
            [
                (at, Some("192.0.2.7, 2001:db8::7".to_owned())),
                (None, None),
                (None, None)
            ]
        );
    }

    #[test]
    fn a_creator_is_a_text_or_an_object() {
        for (json, expected) in [
            (r#""u""#, Some("u")),
            (r#"{"id":"u","name":7}"#, Some("u")),
            (r#"{"id":7}"#, None),
            ("7", None),
        ] {
            let value = RawValue::from_string(json.to_owned()).unwrap();
            assert_eq!(creator(&value).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn what_the_answer_to_a_revocation_says() {
        for (body, expected) in [
            (r#"{"id":1,"revoked":true}"#, Some(true)),
            (r#"{"id":1,"revoked":false}"#, Some(false)),
            (r#"{"id":1}"#, None),
            ("", None),
            ("<html>", None),
        ] {
            assert_eq!(revoked(body.as_bytes()), expected, "{body}");
        }
    }
}
