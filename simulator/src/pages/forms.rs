//! Forms that only our own pages can send.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use maud::{Markup, html};

/// The field of the token.
pub const TOKEN: &str = "token";
/// The field of a form's number.
pub const ONCE: &str = "once";
/// How many sent forms are remembered.
const REMEMBERED: usize = 10_000;

/// What makes forms ours: a secret in each, which a page of another site cannot read.
#[derive(Debug)]
pub struct Forms {
    token: String,
    sent: Mutex<VecDeque<String>>,
}

impl Default for Forms {
    fn default() -> Self {
        Self { token: drawn(), sent: Mutex::default() }
    }
}

fn drawn() -> String {
    format!("{:032x}", rand::random::<u128>())
}

impl Forms {
    /// To be put into every form.
    pub fn token(&self) -> Markup {
        html! { input type="hidden" name=(TOKEN) value=(self.token); }
    }

    /// To be put into a form that does something each time that it is sent, and must not do it again when its answer is reloaded.
    pub fn once() -> Markup {
        html! { input type="hidden" name=(ONCE) value=(drawn()); }
    }

    /// Whether a form with this token is ours.
    pub fn is_ours(&self, token: &str) -> bool {
        self.token == token
    }

    /// Whether the form of this number is sent for the first time.
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
