//! A client of the simulated platform's console: acts as its users, and reads the platform's state.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::support::{Error, PATIENCE, Result, wait_for};

/// A compute as the console shows it.
#[derive(Debug, Clone, Deserialize)]
pub struct Compute {
    pub id: String,
    pub status: String,
    pub size: String,
    pub interruptions: u64,
}

/// A request that the platform has received.
#[derive(Debug, Deserialize)]
pub struct Request {
    pub n: u64,
    pub method: String,
    pub path: String,
}

#[derive(Debug)]
pub struct Console {
    http: reqwest::Client,
    /// The base URL of the platform's API.
    pub base_url: String,
    root: String,
}

impl Console {
    pub fn of(base_url: String) -> Result<Self> {
        let root = base_url
            .strip_suffix("/api/v2")
            .ok_or_else(|| Error::new(format!("the simulator's base URL is not one: {base_url}")))?
            .to_owned();
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .no_proxy()
            .build()
            .map_err(failed)?;
        Ok(Self {
            http,
            root,
            base_url,
        })
    }

    pub fn url(&self) -> String {
        format!("{}/console", self.root)
    }

    pub async fn computes(&self) -> Result<Vec<Compute>> {
        answer(self.http.get(format!("{}/computes", self.url()))).await
    }

    /// The compute with this id, or an error.
    pub async fn compute(&self, id: &str) -> Result<Compute> {
        let computes = self.computes().await?;
        let found = computes.into_iter().find(|compute| compute.id == id);
        found.ok_or_else(|| Error::new(format!("the platform has no compute {id}")))
    }

    /// Waits until `holds` is true for the platform's compute.
    pub async fn wait_for(
        &self,
        id: &str,
        what: &str,
        holds: impl Fn(&Compute) -> bool,
    ) -> Result<Compute> {
        wait_for(what, PATIENCE, async || {
            self.compute(id).await.ok().filter(&holds)
        })
        .await
    }

    /// Changes a compute, as a user would by hand.
    pub async fn change(&self, id: &str, attributes: &Value) -> Result<Compute> {
        answer(
            self.http
                .patch(format!("{}/computes/{id}", self.url()))
                .json(attributes),
        )
        .await
    }

    /// Simulates activity on a compute.
    pub async fn use_compute(&self, id: &str) -> Result<Compute> {
        answer(
            self.http
                .post(format!("{}/computes/{id}/activity", self.url())),
        )
        .await
    }

    /// Advances the platform's clock.
    pub async fn advance(&self, by: Duration) -> Result<()> {
        let body = json!({"seconds": by.as_secs_f64()});
        answer::<Value>(
            self.http
                .post(format!("{}/clock/advance", self.url()))
                .json(&body),
        )
        .await
        .map(drop)
    }

    /// The API requests after number `since`.
    pub async fn requests(&self, since: u64) -> Result<Vec<Request>> {
        answer(
            self.http
                .get(format!("{}/requests?since={since}", self.url())),
        )
        .await
    }

    /// The status of the platform's answer to a GET with this key.
    pub async fn status_for(&self, key: &str, path: &str) -> Result<u16> {
        let request = self
            .http
            .get(format!("{}{path}", self.base_url))
            .bearer_auth(key);
        Ok(request.send().await.map_err(failed)?.status().as_u16())
    }
}

async fn answer<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T> {
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    let body = response.text().await.map_err(failed)?;
    if !status.is_success() {
        return Err(Error::new(format!(
            "the simulator's console refuses ({status}): {body}"
        )));
    }
    serde_json::from_str(&body).map_err(Error::while_doing("reading the console's answer"))
}

fn failed(error: reqwest::Error) -> Error {
    Error::new(format!("calling the simulator: {}", error.without_url()))
}
