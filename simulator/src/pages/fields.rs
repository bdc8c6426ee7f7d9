//! The fields of submitted forms.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use axum::Form;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;

use super::Desk;
use super::forms::{ONCE, TOKEN};
use super::trouble::Trouble;

/// The fields of a form that came from this console.
#[derive(Debug)]
pub struct Fields(HashMap<String, String>);

impl Fields {
    /// The value of a field, unless it is empty.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0
            .get(name)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    }

    /// True if this form is submitted for the first time.
    pub fn are_first(&self, desk: &Desk) -> bool {
        self.text(ONCE)
            .is_some_and(|number| desk.forms.is_first(number))
    }

    /// The value of a required field.
    pub fn needed(&self, name: &'static str) -> Result<String, Trouble> {
        self.text(name)
            .ok_or_else(|| Trouble::Form(format!("{} is missing", shown(name))))
    }

    /// The number in a field, unless it is empty.
    pub fn number<T: FromStr>(&self, name: &'static str) -> Result<Option<T>, Trouble> {
        let parse = |text: String| {
            text.parse()
                .map_err(|_| Trouble::Form(format!("{} is no such number", shown(name))))
        };
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
        if fields
            .get(TOKEN)
            .is_some_and(|token| desk.forms.is_ours(token))
        {
            Ok(Self(fields))
        } else {
            let message = "the form is not of this simulator, or of before its last start: open the page again";
            Err(Trouble::Stale(StatusCode::FORBIDDEN, message))
        }
    }
}
