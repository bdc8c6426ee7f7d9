//! Identifiers and tokens from a seeded generator, so that a world is reproducible from its seed.

use serde::{Deserialize, Serialize};

use crate::world::keys::secret::Token;

/// SplitMix64: eight bytes of state, easy to persist, good enough for names. Not for real secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Generator {
    state: u64,
}

const ADJECTIVES: [&str; 16] = [
    "aged", "bold", "calm", "cool", "dry", "early", "flat", "green", "holy", "late", "mute", "odd",
    "proud", "quiet", "round", "wild",
];
const NOUNS: [&str; 16] = [
    "bar", "bird", "bonus", "cell", "dawn", "dust", "fire", "frost", "haze", "lab", "math", "rain",
    "sea", "silence", "term", "wind",
];
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TOKEN_LENGTH: usize = 56;

impl Generator {
    /// A generator with reproducible output.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        usize::try_from(self.next_u64() % bound).unwrap_or_default()
    }

    /// E.g. `ep-cool-dawn-0b3f9a21`.
    pub fn compute_id(&mut self) -> String {
        format!("ep-{}", self.slug())
    }

    /// E.g. `aged-wind-0b3f9a21`.
    pub fn project_id(&mut self) -> String {
        self.slug()
    }

    /// E.g. `br-aged-wind-0b3f9a21`.
    pub fn branch_id(&mut self) -> String {
        format!("br-{}", self.slug())
    }

    fn slug(&mut self) -> String {
        let adjective = ADJECTIVES[self.below(ADJECTIVES.len())];
        let noun = NOUNS[self.below(NOUNS.len())];
        format!("{adjective}-{noun}-{:08x}", self.next_u64() >> 32)
    }

    /// A version 4 UUID.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.next_u64(), self.next_u64());
        let version = (high & !0xF000) | 0x4000;
        let variant = (low & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            version >> 32,
            (version >> 16) & 0xFFFF,
            version & 0xFFFF,
            variant >> 48,
            variant & 0xFFFF_FFFF_FFFF
        )
    }

    pub fn token(&mut self) -> Token {
        let mut secret = String::from("dbsim_");
        for _ in 0..TOKEN_LENGTH {
            secret.push(char::from(BASE62[self.below(BASE62.len())]));
        }
        Token::new(secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_names() {
        let (mut one, mut two) = (Generator::new(7), Generator::new(7));
        assert_eq!(one.compute_id(), two.compute_id());
        assert_eq!(one.uuid(), two.uuid());
        assert_ne!(one.token(), Generator::new(8).token());
    }

    #[test]
    fn a_uuid_is_of_version_4() {
        let uuid = Generator::new(1).uuid();
        let shape: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(shape, [8, 4, 4, 4, 12]);
        assert_eq!(&uuid[14..15], "4");
        assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}");
    }

    #[test]
    fn a_token_is_not_printed() {
        assert_eq!(format!("{:?}", Token::new("x")), "Token(hidden)");
    }
}
