//! The platform: the port in domain terms, its adapters, and the limits for calls.

mod budget;
mod connect;
#[cfg(test)]
pub(crate) mod fake;
mod gate;
mod http;
mod observer;
mod organizations;
mod port;
mod rate;
mod rate_limited;
mod reach;
mod room;
mod turns;

pub use budget::{Budget, BudgetFigures, Jitter, Priority, WaitFigures};
pub use connect::{
    Connect, ConnectError, ConnectOptions, Endpoint, OverHttp, PlatformAlias, Platforms, address_of,
};
pub use http::{
    Clients, HttpOptions, HttpPlatform, ReadAnswer, ReadsOnly, Transport, Unanswered, client_error,
    replace_runs, without_tokens,
};
pub use observer::{
    ComputeFilter, ComputeInterest, Interest, KeyFilter, KeyInterest, KeyList, Keys, Latest,
    LatestKeys, LatestSnapshot, ListName, Listing, Observers, ProjectComputes, Reading, Snapshot,
    Source, Subscriber, Tick, Ticks,
};
pub use organizations::Organizations;
pub use port::{ChangeAnswer, Platform, PlatformClient};
pub use rate::Rate;
pub use rate_limited::{Admitted, Meter, NoMeter, RateLimited};
pub use reach::{PlatformPattern, Reach};
pub use room::{Room, Rooms};
use turns::FOR;
pub use turns::Party;
