//! Error pages.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::layout;
use crate::shell::ShellError;
use crate::world::Profile;
use crate::world::errors::Refusal;

/// Why an action failed.
#[derive(Debug)]
pub enum Trouble {
    /// The platform rejects it.
    Refused(Refusal),
    /// A field of the form is invalid.
    Form(String),
    /// The form is not from this console, or was already submitted.
    Stale(StatusCode, &'static str),
    Absent(&'static str),
    Shell(ShellError),
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Trouble::Refused(refusal)
    }
}

impl From<ShellError> for Trouble {
    fn from(error: ShellError) -> Self {
        Trouble::Shell(error)
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let (status, message) = match self {
            Trouble::Refused(refusal) => (refusal.status(Profile::Minimal), refusal.message()),
            Trouble::Form(message) => (400, message),
            Trouble::Stale(status, message) => (status.as_u16(), message.to_owned()),
            Trouble::Absent(what) => (404, format!("there is no such {what}")),
            Trouble::Shell(error) => (500, error.to_string()),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        let page = layout::bare(
            "This was not done",
            html! {
                p.notice.wrong role="alert" { "The simulator refused: " (message) "." }
                p { "Nothing was changed. Your browser's Back button leads to the form, as you filled it in." }
            },
        );
        (status, page).into_response()
    }
}
