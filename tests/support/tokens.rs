//! Searches for tokens in text that must not contain them.

use k8s_openapi::ByteString;

/// The possible encodings of a token: plain, Base64 at any offset, and hexadecimal.
pub fn forms(token: &str) -> Vec<String> {
    let base64 = |bytes: Vec<u8>| {
        let encoded = serde_json::to_value(ByteString(bytes)).unwrap_or_default();
        encoded
            .as_str()
            .unwrap_or_default()
            .trim_end_matches('=')
            .to_owned()
    };
    let shifted = (0..3).map(|offset| {
        let text = base64([vec![b'x'; offset], token.as_bytes().to_vec()].concat());
        // Drops the characters that depend on neighbouring bytes.
        text[4.min(offset * 4)..text.len() - 2].to_owned()
    });
    let hexadecimal = token.bytes().map(|byte| format!("{byte:02x}")).collect();
    shifted.chain([token.to_owned(), hexadecimal]).collect()
}

/// The names of the texts that contain the token in any encoding.
pub fn found<'a, T: AsRef<str>>(
    texts: impl IntoIterator<Item = (&'a str, T)>,
    token: &str,
) -> Vec<&'a str> {
    let forms = forms(token);
    let holds = |text: &str| forms.iter().any(|form| text.contains(form));
    texts
        .into_iter()
        .filter(|(_, text)| holds(text.as_ref()))
        .map(|(place, _)| place)
        .collect()
}
