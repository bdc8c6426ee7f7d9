//! A cluster in memory that answers requests as the API server does. `dbplane plan`, the model and
//! the random histories run the operator's passes on it.

mod cluster;
mod objects;
mod port;
mod print;
mod request;
mod secrets;
mod stored;

pub use cluster::InMemoryCluster;
pub use objects::ObjectsByName;
pub use port::{Carrier, Port, refused};
pub use print::{Print, hash};
pub use request::{Request, RequestTarget, Resource, Response, full_name};
pub use stored::{CONFLICT, NOT_FOUND, Stored, kind, kind_named};
