//! Deviations of the platform, or of a proxy in front of it, from correct behavior. They last until
//! the run settles.

use dbplane_simulator::faults::{Arrival, FaultOrder};
use dbplane_simulator::world::Profile;
use dbplane_simulator::world::message::{Request, Response};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::run::Run;
use super::simulation::Simulation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// The clock of one of its two machines is fast by this many seconds, or slow if negative.
    Clock(i16),
    /// The platform refuses keys younger than this many seconds.
    YoungKeys(u8),
    TimesWithoutZone,
    NormalizedSettings,
    /// The first entry of each list lacks this field.
    OddEntry(&'static str),
    UnknownState,
}

impl Deviation {
    fn order(self) -> FaultOrder {
        let mut order = match self {
            Self::Clock(seconds) => json!({"kind": "clock_off", "seconds": seconds, "every": 2}),
            Self::YoungKeys(seconds) => json!({"kind": "young_key", "seconds": seconds}),
            Self::TimesWithoutZone => json!({"kind": "times_without_zone"}),
            Self::NormalizedSettings => json!({"kind": "normalized_settings"}),
            Self::OddEntry(field) => json!({"kind": "odd_entry", "method": "GET", "field": field}),
            Self::UnknownState => json!({"kind": "state"}),
        };
        order["times"] = Value::from(u32::MAX);
        serde_json::from_value(order).unwrap()
    }
}

pub fn deviations() -> impl Strategy<Value = Deviation> {
    prop_oneof![
        2 => prop::sample::select(&[-3600_i16, -1, 1, 3600][..]).prop_map(Deviation::Clock),
        1 => (1..50_u8).prop_map(Deviation::YoungKeys),
        1 => Just(Deviation::TimesWithoutZone),
        1 => Just(Deviation::NormalizedSettings),
        2 => prop::sample::select(&["id", "branch_id", "type", "created_at"][..]).prop_map(Deviation::OddEntry),
        1 => Just(Deviation::UnknownState),
    ]
}

impl Simulation {
    /// Starts a deviation.
    pub fn deviate(&mut self, deviation: Deviation) {
        self.ledger.clocks_differ |= matches!(deviation, Deviation::Clock(_));
        self.deviations.order(deviation.order()).unwrap();
    }

    /// The platform's response, with any deviation that applies.
    pub fn answered(&mut self, request: &Request) -> Response {
        let key_age = request
            .authorization
            .as_ref()
            .and_then(|header| self.world.key_age(header, self.now));
        let method = format!("{:?}", request.method);
        let fault = self.deviations.meet(Arrival {
            method: &method,
            path: &request.path,
            key_age,
        });
        dbplane_simulator::respond(&mut self.world, request, self.now, fault.as_ref())
    }
}

impl Run<'_> {
    /// Only times could identify the result of a create, but the clocks that write them differ.
    pub fn has_no_evidence_of_creates(&self) -> bool {
        self.history.profile == Profile::Minimal && self.simulation.lock().ledger.clocks_differ
    }
}
