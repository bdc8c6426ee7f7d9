//! The console as a JSON API without credentials, for programs and tests on the same machine. Its
//! HTML pages are in [`super::pages`].

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::clock::{self, Clock};
use super::faults::FaultOrder;
use super::guard;
use super::shell::{Shell, ShellError};
use super::world::errors::Refusal;
use super::world::model::{FailureOrder, Owner};
use super::world::sizes::Plan;
use super::world::{Profile, World};

type Shared = State<Arc<Shell>>;
type Answer = Result<Response, Problem>;

/// The console's routes, below `/console`.
pub fn routes() -> Router<Arc<Shell>> {
    Router::new()
        .route("/users/{user}/api_keys", post(create_personal_key))
        .route(
            "/organizations/{organization}/api_keys",
            post(create_organization_key),
        )
        .route(
            "/organizations/{organization}",
            axum::routing::patch(set_plan),
        )
        .route("/owners", get(list_owners))
        .route("/api_keys", get(list_keys))
        .route("/api_keys/{id}/revoke", post(revoke_key))
        .route("/computes", get(list_computes).post(create_compute))
        .route(
            "/computes/{id}",
            axum::routing::patch(change_compute).delete(delete_compute),
        )
        .route("/computes/{id}/activity", post(activity))
        .route(
            "/computes/{id}/fill_temporary_disk",
            post(fill_temporary_disk),
        )
        .route("/projects/{id}/transfer", post(transfer_project))
        .route("/clock", get(show_clock).patch(set_clock))
        .route("/clock/advance", post(advance_clock))
        .route(
            "/faults",
            get(list_faults).post(order_fault).delete(clear_faults),
        )
        .route("/failing_operations", post(fail_operations))
        .route("/requests", get(list_requests).delete(clear_requests))
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "the console has no such page") })
        .layer(from_fn(guard::json_from_browsers))
}

/// An error of the console, sent as JSON.
#[derive(Debug)]
struct Problem {
    status: StatusCode,
    message: String,
}

impl Problem {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "message": self.message }))).into_response()
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = StatusCode::from_u16(refusal.status(Profile::Minimal))
            .unwrap_or(StatusCode::BAD_REQUEST);
        Self::new(status, refusal.message())
    }
}

impl From<ShellError> for Problem {
    fn from(error: ShellError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))
}

/// Runs `work` on the world and sends its result.
async fn answer<T: Serialize + Send + 'static>(
    shell: &Arc<Shell>,
    status: StatusCode,
    work: impl FnOnce(&mut World, Timestamp) -> Result<T, Refusal> + Send + 'static,
) -> Answer {
    let outcome = shell.perform(work).await??;
    Ok((status, Json(outcome)).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewKeyForm {
    key_name: String,
    project_id: Option<String>,
}

async fn create_personal_key(
    State(shell): Shared,
    Path(user): Path<String>,
    body: Bytes,
) -> Answer {
    let form: NewKeyForm = read(&body)?;
    if form.project_id.is_some() {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "a personal key is not for one project",
        ));
    }
    answer(&shell, StatusCode::CREATED, move |world, now| {
        world.console_create_personal_key(&user, &form.key_name, now)
    })
    .await
}

async fn create_organization_key(
    State(shell): Shared,
    Path(organization): Path<String>,
    body: Bytes,
) -> Answer {
    let form: NewKeyForm = read(&body)?;
    let create = move |world: &mut World, now| {
        world.console_create_organization_key(&organization, &form.key_name, form.project_id, now)
    };
    answer(&shell, StatusCode::CREATED, create).await
}

async fn list_owners(State(shell): Shared) -> Answer {
    answer(
        &shell,
        StatusCode::OK,
        |world, _| Ok(world.console_owners()),
    )
    .await
}

async fn list_keys(State(shell): Shared) -> Answer {
    answer(&shell, StatusCode::OK, |world, _| Ok(world.console_keys())).await
}

async fn revoke_key(State(shell): Shared, Path(id): Path<i64>) -> Answer {
    answer(&shell, StatusCode::OK, move |world, now| {
        world.console_revoke_key(id, now)
    })
    .await
}

#[derive(Debug, Deserialize)]
struct ComputeFilter {
    project_id: Option<String>,
}

async fn list_computes(State(shell): Shared, Query(filter): Query<ComputeFilter>) -> Answer {
    let list = move |world: &mut World, now| {
        world.advance_to(now);
        Ok(world.console_computes(filter.project_id.as_deref()))
    };
    answer(&shell, StatusCode::OK, list).await
}

#[derive(Debug, Deserialize)]
struct NewComputeForm {
    project_id: String,
    #[serde(flatten)]
    attributes: Value,
}

async fn create_compute(State(shell): Shared, body: Bytes) -> Answer {
    let form: NewComputeForm = read(&body)?;
    let create = move |world: &mut World, now| {
        world.console_create_compute(&form.project_id, &form.attributes, now)
    };
    answer(&shell, StatusCode::CREATED, create).await
}

async fn change_compute(State(shell): Shared, Path(id): Path<String>, body: Bytes) -> Answer {
    let attributes: Value = read(&body)?;
    answer(&shell, StatusCode::OK, move |world, now| {
        world.console_change_compute(&id, &attributes, now)
    })
    .await
}

async fn delete_compute(State(shell): Shared, Path(id): Path<String>) -> Answer {
    answer(&shell, StatusCode::OK, move |world, now| {
        world.console_delete_compute(&id, now)
    })
    .await
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActivityForm {
    /// CU that the load could use.
    load_cu: Option<f64>,
}

async fn activity(State(shell): Shared, Path(id): Path<String>, body: Bytes) -> Answer {
    let form: ActivityForm = if body.is_empty() {
        ActivityForm::default()
    } else {
        read(&body)?
    };
    answer(&shell, StatusCode::OK, move |world, now| {
        world.console_activity(&id, form.load_cu, now)
    })
    .await
}

async fn fill_temporary_disk(State(shell): Shared, Path(id): Path<String>) -> Answer {
    answer(&shell, StatusCode::OK, move |world, now| {
        world.console_fill_temporary_disk(&id, now)
    })
    .await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TransferForm {
    organization_id: Option<String>,
    user_id: Option<String>,
}

async fn transfer_project(State(shell): Shared, Path(id): Path<String>, body: Bytes) -> Answer {
    let form: TransferForm = read(&body)?;
    let to = match (form.organization_id, form.user_id) {
        (Some(organization), None) => Owner::Organization(organization),
        (None, Some(user)) => Owner::User(user),
        _ => {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "name either an organization_id or a user_id",
            ));
        }
    };
    let transfer = move |world: &mut World, now| {
        world.console_transfer_project(&id, to.clone(), now)?;
        Ok(json!({ "id": id, "owner": to.id() }))
    };
    answer(&shell, StatusCode::OK, transfer).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanForm {
    plan: Plan,
}

async fn set_plan(State(shell): Shared, Path(organization): Path<String>, body: Bytes) -> Answer {
    let form: PlanForm = read(&body)?;
    let set = move |world: &mut World, now| {
        world.console_set_plan(&organization, form.plan, now)?;
        Ok(json!({ "id": organization, "plan": form.plan }))
    };
    answer(&shell, StatusCode::OK, set).await
}

async fn show_clock(State(shell): Shared) -> Json<Value> {
    Json(clock_line(&shell.clock()))
}

fn clock_line(clock: &Clock) -> Value {
    json!({ "now": clock.now(), "speed": clock.speed(), "paused": clock.paused() })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockForm {
    speed: Option<f64>,
    paused: Option<bool>,
}

async fn set_clock(State(shell): Shared, body: Bytes) -> Answer {
    let form: ClockForm = read(&body)?;
    let speed = form.speed.map(clock::speed).transpose();
    let speed = speed.map_err(|message| Problem::new(StatusCode::BAD_REQUEST, message))?;
    let change = move |clock: &mut Clock| {
        *clock = clock
            .at_speed(speed.unwrap_or(clock.speed()))
            .held(form.paused.unwrap_or(clock.paused()));
    };
    shell.change_clock(change).await?;
    Ok(show_clock(State(shell)).await.into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdvanceForm {
    seconds: f64,
}

async fn advance_clock(State(shell): Shared, body: Bytes) -> Answer {
    let form: AdvanceForm = read(&body)?;
    let by = clock::step(form.seconds)
        .map_err(|message| Problem::new(StatusCode::BAD_REQUEST, message))?;
    let now = shell.change_clock(move |clock| clock.advance(by)).await?;
    Ok(Json(json!({ "now": now, "speed": shell.clock().speed() })).into_response())
}

async fn list_faults(State(shell): Shared) -> Response {
    Json(shell.faults().list()).into_response()
}

async fn order_fault(State(shell): Shared, body: Bytes) -> Answer {
    let order: FaultOrder = read(&body)?;
    let id = shell
        .faults()
        .order(order)
        .map_err(|message| Problem::new(StatusCode::BAD_REQUEST, message))?;
    Ok((StatusCode::CREATED, Json(json!({ "id": id }))).into_response())
}

async fn clear_faults(State(shell): Shared) -> StatusCode {
    shell.faults().clear();
    StatusCode::NO_CONTENT
}

async fn fail_operations(State(shell): Shared, body: Bytes) -> Answer {
    let order: FailureOrder = read(&body)?;
    let fail = move |world: &mut World, now| {
        world.console_fail_operations(order.clone(), now);
        Ok(json!({}))
    };
    answer(&shell, StatusCode::CREATED, fail).await
}

#[derive(Debug, Deserialize)]
struct Since {
    #[serde(default)]
    since: u64,
}

async fn list_requests(State(shell): Shared, Query(query): Query<Since>) -> Response {
    Json(shell.log().since(query.since)).into_response()
}

async fn clear_requests(State(shell): Shared) -> StatusCode {
    shell.log().clear();
    StatusCode::NO_CONTENT
}
