//! Forms that pause, resume, advance and change the speed of the clock.

use axum::extract::State;

use super::fields::Fields;
use super::layout::Place;
use super::trouble::Trouble;
use super::{Answer, At, Done};
use crate::clock::{Clock, speed, step};

/// The page that held the form.
fn back(fields: &Fields) -> &'static str {
    Place::at(&fields.text("back").unwrap_or_default()).path()
}

pub async fn set(State(desk): At, fields: Fields) -> Answer {
    let wanted = fields.number::<f64>("speed")?.map(speed).transpose();
    let wanted = wanted.map_err(|message| Trouble::Form(message.to_owned()))?;
    let paused = fields.number::<bool>("paused")?;
    let change = move |clock: &mut Clock| {
        *clock = clock
            .at_speed(wanted.unwrap_or(clock.speed()))
            .held(paused.unwrap_or(clock.paused()));
    };
    desk.shell.change_clock(change).await?;
    Ok(Done::Clock.at(back(&fields)))
}

pub async fn advance(State(desk): At, fields: Fields) -> Answer {
    let seconds = fields.number::<f64>("seconds")?.unwrap_or_default();
    let by = step(seconds).map_err(|message| Trouble::Form(message.to_owned()))?;
    desk.shell
        .change_clock(move |clock| clock.advance(by))
        .await?;
    Ok(Done::Clock.at(back(&fields)))
}
