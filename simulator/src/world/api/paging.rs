//! Cursors and limits of lists. A cursor is opaque to clients: the position in the list as
//! hexadecimal.

use crate::world::api::errors::Refusal;
use crate::world::api::message::Request;

/// The default and the maximum of items on a page.
#[derive(Debug, Clone, Copy)]
pub(in crate::world) struct Limit {
    pub default: usize,
    pub max: usize,
}

impl Limit {
    /// The requested limit or the default; 400 outside of 1 to the maximum.
    pub fn of(self, request: &Request) -> Result<usize, Refusal> {
        let Some(given) = request.query_value("limit") else {
            return Ok(self.default);
        };
        let limit = given
            .parse()
            .ok()
            .filter(|limit| (1..=self.max).contains(limit));
        limit.ok_or_else(|| {
            Refusal::invalid(format!("limit must be a number from 1 to {}", self.max))
        })
    }
}

/// The decoded cursor of the request.
pub(in crate::world) fn cursor(request: &Request) -> Result<Option<String>, Refusal> {
    let Some(sealed) = request.query_value("cursor") else {
        return Ok(None);
    };
    open(&sealed).map(Some).ok_or_else(invalid_cursor)
}

/// The refusal of a cursor that this list did not produce.
pub(in crate::world) fn invalid_cursor() -> Refusal {
    Refusal::invalid("cursor is not valid")
}

/// Encodes a position as a cursor.
pub(in crate::world) fn seal(position: &str) -> String {
    position.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn open(sealed: &str) -> Option<String> {
    let digits = sealed.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok();
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_to_what_was_sealed() {
        assert_eq!(
            open(&seal("aged-wind-123456")).as_deref(),
            Some("aged-wind-123456")
        );
        for broken in ["0", "zz", "ff", "é"] {
            assert_eq!(open(broken), None, "{broken}");
        }
    }
}
