//! Compares printed output with that on a page.

/// Matches any text within a line; alone on a line, it matches any lines.
const ANY: char = '…';

/// Column widths vary, so whitespace is collapsed.
pub fn fits(shown: &str, printed: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.filter(|line| !line.is_empty()).collect()
    };
    fit(&lines(shown), &lines(printed))
}

fn fit(shown: &[String], printed: &[String]) -> bool {
    match (shown, printed) {
        ([], []) => true,
        ([first, rest @ ..], _) if *first == ANY.to_string() => {
            (0..=printed.len()).any(|skipped| fit(rest, &printed[skipped..]))
        }
        ([first, rest @ ..], [line, lines @ ..]) => line_fits(first, line) && fit(rest, lines),
        _ => false,
    }
}

fn line_fits(shown: &str, printed: &str) -> bool {
    match shown.split_once(ANY) {
        None => shown == printed,
        Some((before, after)) => printed.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| line_fits(after, &rest[at..]))
        }),
    }
}

#[test]
fn wildcards_match_any_text_and_any_lines() {
    for (shown, printed, fits_it) in [
        ("a  b\n", "a b", true),
        ("a b", "a c", false),
        ("a … c", "a b c", true),
        ("a … c", "a b c d", false),
        ("orders … 4s…", "orders True 4s", true),
        ("a\n…\nb", "a\nb", true),
        ("a\n…\nb", "a\nx\ny\nb", true),
        ("a\n…\nb", "a\nx", false),
        ("…", "", true),
        ("", "a", false),
        ("a", "", false),
    ] {
        assert_eq!(fits(shown, printed), fits_it, "{shown:?} {printed:?}");
    }
}
