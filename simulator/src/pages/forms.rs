//! Forms that only our own pages can send.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Form;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use maud::{Markup, html};

use super::Desk;
use super::trouble::Trouble;

const TOKEN: &str = "token";
const ONCE: &str = "once";
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

    /// Whether a form is sent for the first time.
    pub fn is_first(&self, fields: &Fields) -> bool {
        let Some(number) = fields.text(ONCE) else { return false };
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

/// What was filled in, in a form of ours.
#[derive(Debug)]
pub struct Fields(HashMap<String, String>);

impl Fields {
    /// A field, unless it was left empty.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// A field that has to be filled in.
    pub fn needed(&self, name: &'static str) -> Result<String, Trouble> {
        self.text(name).ok_or_else(|| Trouble::Form(format!("{} is missing", shown(name))))
    }

    /// A number, unless it was left empty.
    pub fn number<T: FromStr>(&self, name: &'static str) -> Result<Option<T>, Trouble> {
        let parse =
            |text: String| text.parse().map_err(|_| Trouble::Form(format!("{} is no such number", shown(name))));
        self.text(name).map(parse).transpose()
    }
}

fn shown(name: &str) -> String {
    name.replace('_', " ")
}

impl FromRequest<Arc<Desk>> for Fields {
    type Rejection = Trouble;

    async fn from_request(request: Request, desk: &Arc<Desk>) -> Result<Self, Trouble> {
        let form = Form::<HashMap<String, String>>::from_request(request, desk).await;
        let Form(fields) = form.map_err(|rejection| Trouble::Form(rejection.body_text()))?;
        match fields.get(TOKEN) == Some(&desk.forms.token) {
            true => Ok(Self(fields)),
            false => {
                let message = "the form is not of this simulator, or of before its last start: open the page again";
                Err(Trouble::Stale(StatusCode::FORBIDDEN, message))
            }
        }
    }
}
