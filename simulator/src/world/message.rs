//! Requests and responses as plain data, so that the world needs no server.

use jiff::{SignedDuration, Timestamp};
use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::secret::Token;

/// The method of a request. `Other` is any that no route has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Post,
    Patch,
    Delete,
    Other,
}

impl Method {
    /// Reads a method as it is written on the wire.
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

/// One request to the API.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    /// Below the base URL, still percent-encoded, e.g. `/projects/aged-wind-123456/endpoints`.
    pub path: String,
    /// Without the question mark; may be empty.
    pub query: String,
    /// The value of the Authorization header; absent when there was none or more than one.
    pub authorization: Option<Token>,
    /// The value of the X-Request-ID header.
    pub request_id: Option<String>,
    pub body: Vec<u8>,
    /// The peer's address, as key listings show it.
    pub from_addr: String,
    /// When it arrived on a clock that nobody advances: rates are counted on it.
    pub received_at: Timestamp,
    /// How fast the clock of the machine is that carries it out: it dates what it changes.
    pub clock_off: SignedDuration,
}

impl Request {
    /// A request without credentials or body.
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

    /// The same request with a key.
    #[must_use]
    pub fn bearer(mut self, secret: &str) -> Self {
        self.authorization = Some(Token::new(format!("Bearer {secret}")));
        self
    }

    /// The same request with a JSON body.
    #[must_use]
    pub fn json(mut self, body: &serde_json::Value) -> Self {
        self.body = body.to_string().into_bytes();
        self
    }

    /// The decoded value of a query parameter, if it is given and not empty.
    pub fn query_value(&self, name: &str) -> Option<String> {
        self.query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            (key == name && !value.is_empty()).then(|| decode(&value.replace('+', " ")))
        })
    }
}

/// A percent-decoded piece of a URL; bytes that are not UTF-8 become replacement characters.
pub fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// One answer of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Echoed, or made up when the request had none.
    pub request_id: String,
    /// Seconds, on 429.
    pub retry_after: Option<u64>,
    /// JSON, or empty on 204.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as JSON; null when it is empty.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What a call answers when it succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Reply {
    /// 200 with a JSON body.
    pub fn ok(body: &impl Serialize) -> Self {
        Self::with(200, body)
    }

    /// 201 with a JSON body.
    pub fn created(body: &impl Serialize) -> Self {
        Self::with(201, body)
    }

    /// 204 without a body.
    pub fn no_content() -> Self {
        Self { status: 204, body: Vec::new() }
    }

    fn with(status: u16, body: &impl Serialize) -> Self {
        // Shapes are plain structs with string keys: they always serialize.
        Self { status, body: serde_json::to_vec(body).unwrap_or_default() }
    }
}
