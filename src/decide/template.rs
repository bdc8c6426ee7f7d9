//! Fills texts with placeholders of the form {{ name }}.

/// One byte more than Kubernetes accepts in one Secret.
const TOO_MUCH: usize = 1024 * 1024 + 1;

/// Fills the templates of one Secret. Each may repeat the same long value hundreds of times. Once
/// they exceed the size of a Secret, the rest is omitted, and Kubernetes rejects the Secret as too
/// large.
#[derive(Debug)]
pub struct Filler {
    left: usize,
}

impl Default for Filler {
    fn default() -> Self {
        Self { left: TOO_MUCH }
    }
}

impl Filler {
    /// Replaces placeholders once: inserted values are not searched again. Other text between
    /// braces stays.
    pub fn fill<'a>(&mut self, text: &'a str, value: impl Fn(&str) -> Option<&'a str>) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while filled.len() < self.left
            && let Some((before, after)) = rest.split_once("{{")
        {
            filled.push_str(before);
            let known = after
                .split_once("}}")
                .and_then(|(name, behind)| Some((value(name.trim_matches(' '))?, behind)));
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
        self.left = self.left.saturating_sub(filled.len());
        filled
    }
}

#[cfg(test)]
mod tests;
