//! The console as pages for people. They work without script, which only keeps them up to date.

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

/// What the pages work on.
#[derive(Debug)]
pub struct Desk {
    shell: Arc<Shell>,
    profile: Profile,
    forms: Forms,
}

impl Desk {
    pub fn new(shell: Arc<Shell>, profile: Profile) -> Arc<Self> {
        Arc::new(Self { shell, profile, forms: Forms::default() })
    }

    /// Looks at the world as it is now.
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
        Frame { desk: self, place, now, clock: self.shell.clock(), done }
    }
}

/// The pages' routes, below `/console`, beside those of the JSON API.
pub fn routes<S>(desk: Arc<Desk>) -> Router<S> {
    Router::new()
        .route("/", get(overview::show))
        .route("/assets/{name}", get(assets::serve))
        .nest("/pages", below().fallback(async || Trouble::Absent("page")))
        .with_state(desk)
}

/// The first page, under its other name `/console/`.
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
        .route("/computes/{id}/delete", get(compute::confirm_deletion).post(compute::delete))
        .route("/keys", get(keys::show).post(keys::create))
        .route("/keys/{id}/revoke", get(keys::confirm_revocation).post(keys::revoke))
        .route("/projects", get(projects::show))
        .route("/operations", get(operations::show))
        .route("/requests", get(requests::show))
        .route("/requests/clear", post(requests::clear))
        .route("/faults", get(faults::show).post(faults::order))
        .route("/faults/clear", post(faults::clear))
        .route("/faults/operations", post(faults::fail_operations))
        .route("/faults/operations/clear", post(faults::spare_operations))
}

/// What was done before a page is shown.
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

    /// Its name in a query.
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
            Done::Revoked => "The key was revoked. Every later request with it is answered with 401.",
            Done::Ordered => "The fault is ordered.",
            Done::Cleared => "Nothing is ordered any more.",
            Done::Forgotten => "The requests were forgotten.",
            Done::Clock => "The clock was changed.",
        }
    }

    /// The way to a page that says so.
    fn at(self, path: &str) -> Response {
        Redirect::to(&format!("{path}?done={}", self.name())).into_response()
    }
}

/// The part of a query that every page understands.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    done: String,
    /// What is looked for.
    search: String,
}

impl Asked {
    fn done(&self) -> Option<Done> {
        Done::ALL.into_iter().find(|done| done.name() == self.done)
    }

    /// Whether one of these texts has what is looked for.
    fn finds(&self, texts: &[&str]) -> bool {
        let wanted = self.search.trim().to_lowercase();
        texts.iter().any(|text| text.to_lowercase().contains(&wanted))
    }
}
