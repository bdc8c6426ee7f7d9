//! Mistakes in the form of an API key. A message names the mistake, and no part of the key.

use k8s_openapi::ByteString;
use serde_json::json;

/// A shorter text may look like base64 by chance.
const SHORTEST_ENCODED: usize = 12;

/// The mistake in the form of a key that a platform refuses, as a sentence about its entry.
pub fn mistake_in_key(key: &str) -> Option<&'static str> {
    let key = key.trim();
    let begins = |word: &str| {
        key.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    if key.is_empty() {
        None
    } else if key.starts_with(['"', '\'', '`']) || key.ends_with(['"', '\'', '`']) {
        Some("It holds quotation marks: remove them.")
    } else if begins("authorization:") || begins("bearer ") {
        Some("It begins like a header (Authorization, Bearer): keep only the key.")
    } else if key.starts_with('<') && key.ends_with('>') {
        Some("It holds a placeholder in angle brackets: replace it by the key.")
    } else if key.starts_with(['{', '[']) {
        Some("It looks like JSON: keep only the key.")
    } else if key.contains(char::is_whitespace) {
        Some("It holds a space or a line break within the key: remove it.")
    } else if !key.chars().all(|c| c.is_ascii_graphic()) {
        Some("It holds a character that no API key has: copy the key again.")
    } else if is_encoded(key) {
        Some(
            "It looks encoded in base64 twice: encode the key once under data, or not at all under stringData.",
        )
    } else {
        None
    }
}

/// True if the text is base64 of a text. A key is random, so it decodes to other bytes.
fn is_encoded(key: &str) -> bool {
    let decoded: Option<ByteString> = serde_json::from_value(json!(key)).ok();
    key.len() >= SHORTEST_ENCODED
        && decoded.is_some_and(|ByteString(bytes)| {
            let text = bytes.trim_ascii();
            !text.is_empty() && text.iter().all(u8::is_ascii_graphic)
        })
}

#[cfg(test)]
mod tests {
    use super::mistake_in_key;

    const KEY: &str = "napi_3kd9s0qwlx82mzn4q7v1c5b8";

    #[test]
    fn a_mistake_is_named_and_no_part_of_the_key_is_repeated() {
        for (written, words) in [
            (format!("\"{KEY}\""), "quotation marks"),
            (format!("'{KEY}'"), "quotation marks"),
            (format!("Bearer {KEY}"), "Bearer"),
            (format!("authorization: bearer {KEY}"), "Authorization"),
            ("<API_KEY>".to_owned(), "placeholder"),
            (format!("{{\"key\": \"{KEY}\"}}"), "JSON"),
            (format!("{KEY}\n{KEY}"), "line break"),
            (format!("{KEY} second"), "space"),
            (format!("{KEY}\u{200b}"), "character"),
            // The base64 of the key, without and with the line break of a file.
            (
                "bmFwaV8za2Q5czBxd2x4ODJtem40cTd2MWM1Yjg=".to_owned(),
                "base64 twice",
            ),
            (
                "bmFwaV8za2Q5czBxd2x4ODJtem40cTd2MWM1YjgK".to_owned(),
                "base64 twice",
            ),
        ] {
            let mistake = mistake_in_key(&written).unwrap_or_default();
            assert!(mistake.contains(words), "{words}: {mistake}");
            assert!(!mistake.contains("3kd9"), "{mistake}");
        }
    }

    #[test]
    fn a_usual_key_has_no_mistake() {
        for key in [
            "",
            KEY,
            "  napi_3kd9s0qwlx82mzn4\n",
            "3kd9s0qwlx82mzn4q7v1c5b8",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        ] {
            assert_eq!(mistake_in_key(key), None, "{key}");
        }
    }
}
