//! What a running operator serves, for those who forward its port and ask it.

use std::time::Duration;

use crate::platform::client_error;

/// How long the operator may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The text at that address.
///
/// # Errors
/// Where nobody answers, or not with what was asked for.
pub async fn served(url: &str) -> Result<String, String> {
    let client = reqwest::Client::builder().timeout(TIMEOUT).build().map_err(client_error)?;
    let answer = client.get(url).send().await.map_err(client_error)?;
    let (status, text) = (answer.status(), answer.text().await.map_err(client_error)?);
    if status.is_success() { Ok(text) } else { Err(format!("{status}: {}", text.trim())) }
}
