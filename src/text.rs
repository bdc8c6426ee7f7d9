//! Makes untrusted texts safe to store, log and show.
//!
//! An altered text contains a space, `\u{fffd}` or `…`. No identifier, host or name that dbplane
//! makes contains any of these, so an altered text is never mistaken for one.

use std::borrow::Cow;

use serde_json::Value;

/// Replaces a hidden character.
const REPLACED: char = '\u{fffd}';
/// Ends a text that was cut.
const CUT: char = '…';

/// Control characters, and characters that reverse, hide or join the shown text.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` on one line of at most `longest` bytes, without hidden characters.
pub fn line(text: &str, longest: usize) -> Cow<'_, str> {
    if text.len() <= longest && !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut line = String::new();
    for c in text.chars().map(visible) {
        if line.len() + c.len_utf8() > longest {
            while line.len() + CUT.len_utf8() > longest && line.pop().is_some() {}
            line.push(CUT);
            break;
        }
        line.push(c);
    }
    Cow::Owned(line)
}

/// `text` as one word of a shell, for commands in messages.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `text` without hidden characters, except line breaks and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .map(|c| if stays(c) { c } else { visible(c) })
        .collect()
}

fn stays(c: char) -> bool {
    !is_hidden(c) || matches!(c, '\n' | '\t')
}

/// The same for every text in a document.
pub fn document(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(lines(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(document).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (lines(&name).into_owned(), document(value)))
            .collect(),
        other => other,
    }
}

fn visible(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        c if is_hidden(c) => REPLACED,
        c => c,
    }
}

/// The same text, starting with a capital letter.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
