//! The API as requests, answers and refusals, with access to it and its limits.

pub mod access;
pub mod errors;
pub mod message;
pub mod paging;
pub mod rate;
pub mod routes;
pub mod shapes;
