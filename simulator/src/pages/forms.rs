//! Protects forms against cross-site requests and repeated submission.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use maud::{Markup, html};

/// Name of the field with the token.
pub const TOKEN: &str = "token";
/// Name of the field with the form's number.
pub const ONCE: &str = "once";
/// Number of submitted forms that are remembered.
const REMEMBERED: usize = 10_000;

/// The token that every form of this console contains; pages of other sites cannot read it.
#[derive(Debug)]
pub struct Forms {
    token: String,
    sent: Mutex<VecDeque<String>>,
}

impl Default for Forms {
    fn default() -> Self {
        Self {
            token: drawn(),
            sent: Mutex::default(),
        }
    }
}

fn drawn() -> String {
    format!("{:032x}", rand::random::<u128>())
}

impl Forms {
    /// The hidden field for every form.
    pub fn token(&self) -> Markup {
        html! { input type="hidden" name=(TOKEN) value=(self.token); }
    }

    /// The hidden field for forms that must not run again when the user reloads the answer.
    pub fn once() -> Markup {
        html! { input type="hidden" name=(ONCE) value=(drawn()); }
    }

    /// True if this is the token of this console.
    pub fn is_ours(&self, token: &str) -> bool {
        self.token == token
    }

    /// True if the form with this number is submitted for the first time.
    pub fn is_first(&self, number: String) -> bool {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.contains(&number) {
            return false;
        }
        if sent.len() == REMEMBERED {
            sent.pop_front();
        }
        sent.push_back(number);
        true
    }
}
