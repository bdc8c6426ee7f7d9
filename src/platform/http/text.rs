//! Cleans the platform's messages for display: one line of bounded length, without tokens.

use crate::domain::NO_REASON;
use crate::text::is_hidden;

const LONGEST: usize = 300;
const LONGEST_IDENTIFIER: usize = 64;
const REDACTED: &str = "[redacted]";

/// `raw` on one line of at most 300 characters, without control characters, `secret` and anything
/// else in the form of a token.
pub(super) fn tidy(raw: &str, secret: &str) -> String {
    // Before anything is cut, because a part of a token is still a secret.
    line(&without_tokens(&without(raw, secret)))
}

/// The same for an identifier, which may look like a token.
pub(super) fn tidy_identifier(raw: &str, secret: &str) -> String {
    line(&without(raw, secret))
        .chars()
        .take(LONGEST_IDENTIFIER)
        .collect()
}

fn without(raw: &str, secret: &str) -> String {
    match secret {
        "" => raw.to_owned(),
        _ => raw.replace(secret, REDACTED),
    }
}

/// Replaces everything in the form of a token.
pub fn without_tokens(text: &str) -> String {
    replace_runs(text, is_of_token, |run| {
        if is_token(run) {
            REDACTED.to_owned()
        } else {
            run.to_owned()
        }
    })
}

/// Replaces each run of characters that match.
pub fn replace_runs(
    text: &str,
    is_of_run: fn(char) -> bool,
    replace: impl Fn(&str) -> String,
) -> String {
    let mut replaced = String::new();
    for piece in text.split_inclusive(|c| !is_of_run(c)) {
        let end = piece.find(|c| !is_of_run(c)).unwrap_or(piece.len());
        let (run, after) = piece.split_at(end);
        if !run.is_empty() {
            replaced.push_str(&replace(run));
        }
        replaced.push_str(after);
    }
    replaced
}

/// The characters of base64, and those that join the parts of a token.
fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=')
}

/// Words, identifiers and UUIDs have shorter parts between separators, or parts without digits.
fn is_token(run: &str) -> bool {
    run.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        let mixed = part.contains(|c: char| c.is_ascii_digit())
            && part.contains(|c: char| c.is_ascii_alphabetic());
        part.len() >= 40 || part.len() >= 16 && mixed
    })
}

fn line(text: &str) -> String {
    let mut line = String::new();
    for word in text
        .split(|c: char| c.is_whitespace() || is_hidden(c))
        .filter(|word| !word.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    bounded(line)
}

fn bounded(mut line: String) -> String {
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Describes an answer that is not one of the platform's errors. It is not quoted, because it may
/// contain anything, even a new key.
pub(super) fn described(body: &[u8]) -> &'static str {
    if body.trim_ascii().is_empty() {
        return NO_REASON;
    }
    if is_json(body) {
        return "JSON without a message, which is not how the platform answers";
    }
    if looks_like_html(body) {
        "an HTML page, which is not how the platform answers"
    } else {
        "text, which is not how the platform answers"
    }
}

fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

/// True if a body may be the platform's: a JSON object or array, or nothing. The specification
/// shows no bodies of errors or of restarts, so dbplane cannot require more.
pub(super) fn has_form(body: &[u8]) -> bool {
    let text = body.trim_ascii();
    text.is_empty() || (text.starts_with(b"{") || text.starts_with(b"[")) && is_json(text)
}

pub(super) fn looks_like_html(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body.trim_ascii_start()).to_ascii_lowercase();
    text.starts_with("<!") || text.starts_with("<html") || text.contains("</")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_without_control_characters() {
        assert_eq!(tidy(" a\r\n\tb\u{1b}[31mc\u{202e}d\0 ", "s"), "a b [31mc d");
    }

    #[test]
    fn the_length_is_bounded_in_characters() {
        let line = tidy(&"ü".repeat(1000), "");
        assert_eq!(line.chars().count(), LONGEST + 1);
        assert!(line.ends_with('…'));
    }

    #[test]
    fn a_token_is_taken_out_before_the_text_is_cut() {
        let text = format!("{}secret-token tail", "x".repeat(LONGEST - 4));
        assert!(!tidy(&text, "secret-token").contains("secr"));
    }

    #[test]
    fn what_has_the_form_of_a_token_is_taken_out() {
        let hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        for token in [
            "napi_3kd9s0qwlx82mzn4".to_owned(),
            "eyJhbGciOiJIUzI1NiJ9".to_owned(),
            "A".repeat(40),
            hex.to_owned(),
            "dGhpcyBpcyBhIHNlY3JldCBrZXk5+/==".to_owned(),
        ] {
            assert_eq!(
                tidy(&format!("key '{token}', refused"), ""),
                "key '[redacted]', refused"
            );
        }
        for plain in [
            "endpoint ep-cool-darkness-a1b2c3d4 of br-wispy-meadow-91827364 in aws-eu-central-1 is in use",
            "request 5f0c2b1e-9d3a-4c77-8a55-0f1e2d3c4b5a failed: ENDPOINT_SETTINGS_CONFLICT, limit 0.25 to 8",
            "autoscalingLimitMaximumComputeUnits must be a number; see https://platform.example/docs/limits",
        ] {
            assert_eq!(tidy(plain, ""), plain);
        }
    }

    #[test]
    fn an_identifier_of_any_form_is_kept_unless_it_is_the_secret() {
        let hex = "9f86d081884c7d659a2feaa0c55ad015";
        assert_eq!(tidy_identifier(hex, "secret"), hex);
        assert_eq!(tidy_identifier("of-secret", "secret"), "of-[redacted]");
    }

    #[test]
    fn what_is_none_of_the_platforms_errors_is_described() {
        for (body, expected) in [
            ("", NO_REASON),
            (" \n", NO_REASON),
            (
                "<!DOCTYPE html><html><head><title>524</title>",
                "an HTML page",
            ),
            ("\n<HTML><script>never closed", "an HTML page"),
            ("upstream connect error", "text"),
            ("min <= max", "text"),
            ("[1]", "JSON"),
            (r#"{"detail": "m"}"#, "JSON"),
        ] {
            assert!(
                described(body.as_bytes()).starts_with(expected),
                "{body}: {}",
                described(body.as_bytes())
            );
        }
    }
}
