//! Fetches what a running operator serves, for users who forward its port.

use std::time::Duration;

use crate::platform::client_error;

/// Timeout for the operator's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The text at this URL.
///
/// # Errors
/// If there is no answer, or it is not a success.
pub async fn served(url: &str) -> Result<String, String> {
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .build()
        .map_err(client_error)?;
    let answer = client.get(url).send().await.map_err(client_error)?;
    let (status, text) = (answer.status(), answer.text().await.map_err(client_error)?);
    if status.is_success() {
        Ok(text)
    } else {
        Err(format!("{status}: {}", text.trim()))
    }
}
