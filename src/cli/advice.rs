//! Shows the advice of docs/conditions.md for a reason, for users who do not have the page at hand.

use crate::decide::Reason;

const PAGE: &str = include_str!("../../docs/conditions.md");

/// The section about a reason: its meaning, and what to do.
pub fn about(reason: Reason) -> String {
    let heading = format!("\n### {reason}\n");
    let section = PAGE
        .split_once(&heading)
        .map(|(_, rest)| rest)
        .unwrap_or_default();
    let section = section.split("\n##").next().unwrap_or_default();
    without_links(section.trim())
}

/// Replaces Markdown links by their text.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(link) = next_link(rest) {
        plain.push_str(link.before);
        plain.push_str(link.text);
        rest = link.after;
    }
    plain + rest
}

struct Link<'a> {
    before: &'a str,
    text: &'a str,
    after: &'a str,
}

fn next_link(text: &str) -> Option<Link<'_>> {
    let middle = text.find("](")?;
    let begin = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')?;
    Some(Link {
        before: &text[..begin],
        text: &text[begin + 1..middle],
        after: &text[end + 1..],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Attention;

    #[test]
    fn every_reason_has_a_section_without_markup_of_links() {
        for reason in Reason::ALL {
            let text = about(*reason);
            assert!(
                text.len() > 20 && !text.contains("](") && !text.contains("\n#"),
                "{reason}: {text}"
            );
        }
    }

    /// The page and `Reason::needs` agree on who has to act.
    #[test]
    fn nothing_is_to_be_done_where_the_page_says_so() {
        for reason in Reason::ALL {
            let says_nothing = about(*reason)
                .lines()
                .any(|line| line.trim_start().starts_with("Nothing to do"));
            match reason.needs() {
                Attention::Work => assert!(says_nothing, "{reason}: the page asks for something"),
                Attention::User => assert!(!says_nothing, "{reason}: the page asks for nothing"),
                Attention::Time | Attention::Nothing => {}
            }
        }
    }
}
