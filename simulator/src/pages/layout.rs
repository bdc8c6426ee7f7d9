//! The frame that every page shares.

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};

use super::forms::Forms;
use super::times::exact;
use super::{Desk, Done};
use crate::clock::Clock;
use crate::world::Profile;

/// The pages of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Overview,
    Computes,
    Keys,
    Projects,
    Operations,
    Requests,
    Faults,
}

impl Place {
    const ALL: [Place; 7] = [
        Place::Overview,
        Place::Computes,
        Place::Keys,
        Place::Projects,
        Place::Operations,
        Place::Requests,
        Place::Faults,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Place::Overview => "Overview",
            Place::Computes => "Computes",
            Place::Keys => "API keys",
            Place::Projects => "Projects",
            Place::Operations => "Operations",
            Place::Requests => "Requests",
            Place::Faults => "Faults",
        }
    }

    pub fn path(self) -> &'static str {
        match self {
            Place::Overview => "/console/",
            Place::Computes => "/console/pages/computes",
            Place::Keys => "/console/pages/keys",
            Place::Projects => "/console/pages/projects",
            Place::Operations => "/console/pages/operations",
            Place::Requests => "/console/pages/requests",
            Place::Faults => "/console/pages/faults",
        }
    }

    /// The page with this path, or the overview.
    pub fn at(path: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|place| place.path() == path)
            .unwrap_or(Place::Overview)
    }
}

/// The parts of a page outside its content.
#[derive(Debug)]
pub struct Frame<'a> {
    pub desk: &'a Desk,
    pub place: Place,
    pub now: Timestamp,
    pub clock: Clock,
    pub done: Option<Done>,
}

impl Frame<'_> {
    /// Renders the whole page.
    pub fn page(&self, title: &str, content: Markup) -> Markup {
        document(
            title,
            Some(self.place),
            html! {
                (self.time())
                main id="main" tabindex="-1" {
                    h1 { (title) }
                    p.visually-hidden #refreshed role="status" aria-live="polite" {}
                    @if let Some(done) = self.done { p.notice role="status" { (done.text()) } }
                    (content)
                }
                footer {
                    p { "Profile: " (profile(self.desk.profile)) ". "
                        button #live type="button" aria-pressed="true" hidden { "Live updates" } }
                }
            },
        )
    }

    /// A form with a single button. For screen readers, `of` names the object of the button.
    pub fn button(&self, action: &str, id: &str, label: &str, of: &str) -> Markup {
        html! {
            form.inline method="post" action=(action) {
                (self.desk.forms.token())
                button id=(id) { (label) @if !of.is_empty() { span.visually-hidden { " " (of) } } }
            }
        }
    }

    pub fn token(&self) -> Markup {
        self.desk.forms.token()
    }

    /// For forms that must run only once.
    pub fn token_once(&self) -> Markup {
        html! { (self.desk.forms.token()) (Forms::once()) }
    }

    /// The clock on every page.
    fn time(&self) -> Markup {
        let back =
            html! { (self.token()) input type="hidden" name="back" value=(self.place.path()); };
        let (paused, label) = if self.clock.paused() {
            ("false", "Resume")
        } else {
            ("true", "Pause")
        };
        html! {
            section aria-label="Simulated time" {
                // Open after a change of the clock, because another one often follows.
                details.clock open[self.done == Some(Done::Clock)] {
                    summary {
                        span #clock data-live { span.label { "Simulated time " } time datetime=(self.now) { (exact(self.now)) } " "
                            @if self.clock.paused() { strong { "paused" } } @else { "at speed " (self.clock.speed()) } }
                    }
                    div.controls {
                        form #pause-form data-live method="post" action="/console/pages/clock" {
                            (back) input type="hidden" name="paused" value=(paused);
                            button #pause { (label) }
                        }
                        (self.steps(&back))
                        form method="post" action="/console/pages/clock" {
                            (back)
                            label for="speed" { "Speed" }
                            input #speed type="number" name="speed" min="0" step="any" required value=(self.clock.speed());
                            button { "Set speed" }
                        }
                    }
                }
            }
        }
    }

    fn steps(&self, back: &Markup) -> Markup {
        html! {
            form method="post" action="/console/pages/clock/advance" {
                (back)
                span #step { "Step " }
                @for (seconds, label) in [(60, "1 min"), (300, "5 min"), (3600, "1 h"), (86_400, "1 day")] {
                    button name="seconds" value=(seconds) aria-describedby="step" { "+" (label) }
                }
            }
        }
    }
}

/// A page without the clock, for errors.
pub fn bare(title: &str, content: Markup) -> Markup {
    document(
        title,
        None,
        html! { main id="main" tabindex="-1" { h1 { (title) } (content) } },
    )
}

fn profile(profile: Profile) -> &'static str {
    match profile {
        Profile::Default => "default",
        Profile::Public => "public",
        Profile::Minimal => "minimal",
    }
}

fn document(title: &str, place: Option<Place>, content: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " - Simulated platform" }
                link rel="icon" type="image/svg+xml" href="/console/assets/icon.svg";
                link rel="stylesheet" href="/console/assets/console.css";
                script src="/console/assets/console.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header {
                    p.simulator { strong { "This is a simulator." }
                        " There is no database behind it, it costs nothing, and it asks nobody who they are." }
                    p.brand { a href="/console/" { "Simulated platform" } }
                    nav aria-label="Console" {
                        ul {
                            @for entry in Place::ALL {
                                li { a href=(entry.path()) aria-current=[(Some(entry) == place).then_some("page")] {
                                    (entry.title()) } }
                            }
                        }
                    }
                }
                (content)
            }
        }
    }
}
