//! Texts with placeholders, as {{ name }}.

/// Replaces placeholders once: inserted values are not searched again. Anything else between braces stays.
pub fn filled<'a>(text: &'a str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let known = after.split_once("}}").and_then(|(name, behind)| Some((value(name.trim_matches(' '))?, behind)));
        match known {
            Some((value, behind)) => {
                filled.push_str(value);
                rest = behind;
            }
            None => {
                filled.push_str("{{");
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}
