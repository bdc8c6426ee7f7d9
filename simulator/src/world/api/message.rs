//! API requests and responses as plain data, so that the world needs no server.

use jiff::{SignedDuration, Timestamp};
use percent_encoding::percent_decode_str;
use serde::Serialize;

use crate::world::keys::secret::Token;

/// The method of a request. `Other` is a method that no route uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Post,
    Patch,
    Delete,
    Other,
}

impl Method {
    pub fn parse(name: &str) -> Self {
        match name {
            "GET" => Method::Get,
            "POST" => Method::Post,
            "PATCH" => Method::Patch,
            "DELETE" => Method::Delete,
            _ => Method::Other,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    /// Below the base URL and percent-encoded, e.g. `/projects/aged-wind-123456/endpoints`.
    pub path: String,
    /// Without the question mark; may be empty.
    pub query: String,
    /// The value of the Authorization header, if there was exactly one.
    pub authorization: Option<Token>,
    pub request_id: Option<String>,
    pub body: Vec<u8>,
    /// The client's address, as key listings show it.
    pub from_addr: String,
    /// Arrival on the real clock, which rate limits use.
    pub received_at: Timestamp,
    /// How far the clock of the handling server is ahead; its changes carry that time.
    pub clock_off: SignedDuration,
}

impl Request {
    pub fn new(method: Method, path: impl Into<String>, received_at: Timestamp) -> Self {
        let path = path.into();
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path.to_owned(), query.to_owned()),
            None => (path, String::new()),
        };
        Self {
            method,
            path,
            query,
            authorization: None,
            request_id: None,
            body: Vec::new(),
            from_addr: String::new(),
            received_at,
            clock_off: SignedDuration::ZERO,
        }
    }

    #[must_use]
    pub fn bearer(mut self, secret: &str) -> Self {
        self.authorization = Some(Token::new(format!("Bearer {secret}")));
        self
    }

    #[must_use]
    pub fn json(mut self, body: &serde_json::Value) -> Self {
        self.body = body.to_string().into_bytes();
        self
    }

    /// The decoded value of a query parameter, unless it is absent or empty.
    pub fn query_value(&self, name: &str) -> Option<String> {
        self.query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            (key == name && !value.is_empty()).then(|| decode(&value.replace('+', " ")))
        })
    }
}

/// Percent-decodes a part of a URL; invalid UTF-8 becomes replacement characters.
pub fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// The request's own id, or a generated one.
    pub request_id: String,
    /// Seconds, only with 429.
    pub retry_after: Option<u64>,
    /// JSON, or empty with 204.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as JSON; null if empty.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// The answer of a successful call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::world) struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn ok(body: &impl Serialize) -> Self {
        Self::with(200, body)
    }

    pub fn created(body: &impl Serialize) -> Self {
        Self::with(201, body)
    }

    pub fn no_content() -> Self {
        Self {
            status: 204,
            body: Vec::new(),
        }
    }

    fn with(status: u16, body: &impl Serialize) -> Self {
        // Shapes are plain structs with string keys, so serialization cannot fail.
        Self {
            status,
            body: serde_json::to_vec(body).unwrap_or_default(),
        }
    }
}
