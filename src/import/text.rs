//! Makes untrusted texts safe in comments.

/// One line without control characters, for a comment.
pub fn line(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') {
                '?'
            } else {
                c
            }
        })
        .collect()
}

/// The lines of a YAML comment.
pub fn comment<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> String {
    lines
        .into_iter()
        .map(|text| format!("# {}", line(text.as_ref())).trim_end().to_owned() + "\n")
        .collect()
}
