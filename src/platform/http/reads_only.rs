//! A transport that sends only reads, and keeps the answers.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use reqwest::header::HeaderMap;
use reqwest::{Method, Request, Response, StatusCode};

use super::HttpOptions;
use super::endpoint::Base;
use super::transport::{NetworkTransport, Transport, Unanswered};
use crate::platform::{ConnectError, Endpoint};

/// Larger than any list that dbplane reads.
const LARGEST_BODY: usize = 16 * 1024 * 1024;

/// The network, for commands that must not change anything.
#[derive(Debug)]
pub struct ReadsOnly {
    network: NetworkTransport,
    timeout: std::time::Duration,
    answers: Mutex<Vec<ReadAnswer>>,
}

#[derive(Clone)]
pub struct ReadAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Leaves out headers and body, because they are not checked for secrets.
impl std::fmt::Debug for ReadAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answered")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl ReadsOnly {
    /// # Errors
    /// If the platform cannot be called at this address.
    pub fn new(endpoint: &Endpoint, options: &HttpOptions) -> Result<Self, ConnectError> {
        let network = NetworkTransport::new(options, Base::new(endpoint)?.url(), &endpoint.reach)?;
        Ok(Self {
            network,
            timeout: options.request_timeout,
            answers: Mutex::default(),
        })
    }

    pub fn answers(&self) -> Vec<ReadAnswer> {
        self.answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Unanswered> {
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| Unanswered::of(error, self.timeout))?
        {
            body.extend_from_slice(&chunk);
            if body.len() > LARGEST_BODY {
                return Err(Unanswered {
                    sent: true,
                    message: "the answer is larger than 16 MiB".to_owned(),
                });
            }
        }
        Ok(body)
    }
}

#[async_trait]
impl Transport for ReadsOnly {
    async fn carry(&self, request: Request) -> Result<Response, Unanswered> {
        if request.method() != Method::GET {
            return Err(Unanswered {
                sent: false,
                message: "only reads are allowed here".to_owned(),
            });
        }
        let response = self.network.carry(request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = self.body(response).await?;
        self.answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(ReadAnswer {
                status,
                headers: headers.clone(),
                body: body.clone(),
            });
        let mut whole = axum::http::Response::new(body);
        (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
        Ok(whole.into())
    }
}
