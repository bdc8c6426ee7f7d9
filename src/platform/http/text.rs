//! What is shown of a platform's texts: one line, of bounded length, without a token.

const LONGEST: usize = 300;
const REDACTED: &str = "[redacted]";

/// `raw` on one line of at most 300 characters, without control characters, and without `secret` should it occur there.
pub(super) fn tidy(raw: &str, secret: &str) -> String {
    // Before anything is cut: a part of a token is still a secret.
    let raw = match secret {
        "" => raw.to_owned(),
        _ => raw.replace(secret, REDACTED),
    };
    let mut line = String::new();
    for word in raw.split(|c: char| c.is_whitespace() || is_hidden(c)).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    bounded(line)
}

/// Control characters, and those that turn or hide what a terminal shows.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn bounded(mut line: String) -> String {
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// The words of an HTML page. Anything else is returned as it is.
pub(super) fn without_markup(text: &str) -> String {
    let start = text.trim_start().to_ascii_lowercase();
    if !(start.starts_with("<!") || start.starts_with("<html") || start.contains("</")) {
        return text.to_owned();
    }
    let mut words = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        words.push_str(&rest[..open]);
        words.push(' ');
        let tag = &rest[open..];
        let end = ["script", "style"]
            .into_iter()
            .find(|name| is_tag(tag, name))
            .map_or(">".to_owned(), |name| format!("</{name}>"));
        let Some(close) = tag.to_ascii_lowercase().find(&end) else {
            return words;
        };
        rest = &tag[close + end.len()..];
    }
    words.push_str(rest);
    words
}

fn is_tag(tag: &str, name: &str) -> bool {
    tag.get(1..=name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
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
    fn markup_is_stripped() {
        let page = "<!DOCTYPE html><html><head><style>a{}</style><title>524: timed out</title></head>\
            <body onload='x'><script>alert('<b>')</script><p>A &lt; B</p></body></html>";
        assert_eq!(tidy(&without_markup(page), ""), "524: timed out A &lt; B");
        assert_eq!(without_markup("min <= max"), "min <= max");
        assert_eq!(tidy(&without_markup("<html><body>cut <scr"), ""), "cut");
        assert_eq!(tidy(&without_markup("<html><script>never closed"), ""), "");
    }
}
