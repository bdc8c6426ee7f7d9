//! The console as HTML pages. They work without JavaScript; the script only refreshes them.

mod assets;
mod clock;
mod compute;
mod computes;
mod faults;
mod fields;
mod forms;
mod keys;
mod layout;
mod operations;
mod overview;
mod parts;
mod projects;
mod requests;
mod times;
mod trouble;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get, post};
use jiff::Timestamp;
use serde::Deserialize;

use super::shell::{Shell, ShellError};
use super::world::{Profile, World};
use forms::Forms;
use layout::{Frame, Place};
use trouble::Trouble;

type At = State<Arc<Desk>>;
type Answer = Result<Response, Trouble>;

/// The shared state of the pages.
#[derive(Debug)]
pub struct Desk {
    shell: Arc<Shell>,
    profile: Profile,
    forms: Forms,
}

impl Desk {
    pub fn new(shell: Arc<Shell>, profile: Profile) -> Arc<Self> {
        Arc::new(Self {
            shell,
            profile,
            forms: Forms::default(),
        })
    }

    /// Reads the world at the current time.
    async fn see<T: Send + 'static>(
        &self,
        look: impl FnOnce(&World) -> T + Send + 'static,
    ) -> Result<(T, Timestamp), ShellError> {
        let seen = move |world: &mut World, now| {
            world.advance_to(now);
            (look(world), world.now())
        };
        self.shell.perform(seen).await
    }

    fn frame(&self, place: Place, now: Timestamp, done: Option<Done>) -> Frame<'_> {
        Frame {
            desk: self,
            place,
            now,
            clock: self.shell.clock(),
            done,
        }
    }
}

/// The routes of the pages below `/console`, beside those of the JSON API.
pub fn routes<S>(desk: Arc<Desk>) -> Router<S> {
    Router::new()
        .route("/", get(overview::show))
        .route("/assets/{name}", get(assets::serve))
        .nest("/pages", below().fallback(async || Trouble::Absent("page")))
        .with_state(desk)
}

/// Serves the overview under `/console/` as well.
pub fn first<S: Clone + Send + Sync + 'static>(desk: Arc<Desk>) -> MethodRouter<S> {
    get(overview::show).with_state(desk)
}

fn below() -> Router<Arc<Desk>> {
    Router::new()
        .route("/clock", post(clock::set))
        .route("/clock/advance", post(clock::advance))
        .route("/computes", get(computes::show).post(computes::create))
        .route("/computes/{id}", get(compute::show))
        .route("/computes/{id}/activity", post(compute::activity))
        .route("/computes/{id}/size", post(compute::resize))
        .route("/computes/{id}/restart", post(compute::restart))
        .route("/computes/{id}/disk", post(compute::fill_disk))
        .route(
            "/computes/{id}/delete",
            get(compute::confirm_deletion).post(compute::delete),
        )
        .route("/keys", get(keys::show).post(keys::create))
        .route(
            "/keys/{id}/revoke",
            get(keys::confirm_revocation).post(keys::revoke),
        )
        .route("/projects", get(projects::show))
        .route("/operations", get(operations::show))
        .route("/requests", get(requests::show))
        .route("/requests/clear", post(requests::clear))
        .route("/faults", get(faults::show).post(faults::order))
        .route("/faults/clear", post(faults::clear))
        .route("/faults/operations", post(faults::fail_operations))
        .route("/faults/operations/clear", post(faults::spare_operations))
}

/// The action that led to this page, for the confirmation message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    Used,
    Created,
    Resized,
    Restarted,
    Deleted,
    Revoked,
    Ordered,
    Cleared,
    Forgotten,
    Clock,
}

impl Done {
    const ALL: [Done; 10] = [
        Done::Used,
        Done::Created,
        Done::Resized,
        Done::Restarted,
        Done::Deleted,
        Done::Revoked,
        Done::Ordered,
        Done::Cleared,
        Done::Forgotten,
        Done::Clock,
    ];

    /// The name of the action in a query.
    fn name(self) -> &'static str {
        match self {
            Done::Used => "used",
            Done::Created => "created",
            Done::Resized => "resized",
            Done::Restarted => "restarted",
            Done::Deleted => "deleted",
            Done::Revoked => "revoked",
            Done::Ordered => "ordered",
            Done::Cleared => "cleared",
            Done::Forgotten => "forgotten",
            Done::Clock => "clock",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Done::Used => "The compute was used.",
            Done::Created => "The compute was created.",
            Done::Resized => "The size was changed.",
            Done::Restarted => "The compute restarts.",
            Done::Deleted => "The compute was deleted.",
            Done::Revoked => {
                "The key was revoked. Every later request with it is answered with 401."
            }
            Done::Ordered => "The fault is ordered.",
            Done::Cleared => "Nothing is ordered any more.",
            Done::Forgotten => "The requests were forgotten.",
            Done::Clock => "The clock was changed.",
        }
    }

    /// Redirects to a page that confirms the action.
    fn at(self, path: &str) -> Response {
        Redirect::to(&format!("{path}?done={}", self.name())).into_response()
    }
}

/// The query parameters that every page accepts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    done: String,
    /// The search text.
    search: String,
}

impl Asked {
    fn done(&self) -> Option<Done> {
        Done::ALL.into_iter().find(|done| done.name() == self.done)
    }

    /// True if one of the texts contains the search text.
    fn finds(&self, texts: &[&str]) -> bool {
        let wanted = self.search.trim().to_lowercase();
        texts
            .iter()
            .any(|text| text.to_lowercase().contains(&wanted))
    }
}
