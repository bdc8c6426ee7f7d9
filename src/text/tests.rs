use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn what_is_taken_out() {
    for (text, expected) in [
        ("plain text, ü and 🐘", "plain text, ü and 🐘"),
        ("a\nlevel=error forged", "a level=error forged"),
        ("\u{1b}[31mred\u{9b}0m", "\u{fffd}[31mred\u{fffd}0m"),
        (
            "a\u{202e}b\u{2066}c\u{200b}d\u{feff}",
            "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}",
        ),
        ("a\u{2028}b\u{7f}\0", "a b\u{fffd}\u{fffd}"),
    ] {
        assert_eq!(line(text, 100), expected, "{text:?}");
    }
    assert_eq!(lines("a\n\tb\r\u{1b}c"), "a\n\tb \u{fffd}c");
    assert_eq!(
        document(json!({"a\u{7}": ["\u{1b}", 1, null]})),
        json!({"a\u{fffd}": ["\u{fffd}", 1, null]})
    );
}

#[test]
fn what_is_too_long_is_cut_between_characters() {
    assert_eq!(line("abcdef", 6), "abcdef");
    assert_eq!(line("abcdefg", 6), "abc…");
    assert_eq!(line("üüüü", 6), "ü…");
}

proptest! {
    #[test]
    fn a_line_is_bounded_and_has_nothing_hidden(text in any::<String>(), longest in 3usize..200) {
        let shown = line(&text, longest).into_owned();
        prop_assert!(shown.len() <= longest);
        prop_assert!(!shown.chars().any(is_hidden));
        prop_assert_eq!(line(&shown, longest), shown.as_str());
    }
}
