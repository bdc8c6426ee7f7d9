//! Fetches what a running operator serves, for users who forward its port.

use std::path::PathBuf;
use std::time::Duration;

use crate::platform::client_error;

/// Timeout for the operator's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The address of the metrics, and the file of the token that they need.
#[derive(Clone, Debug)]
pub struct Source {
    pub url: String,
    pub token_file: Option<PathBuf>,
}

/// The text of the metrics.
///
/// # Errors
/// If the file cannot be read, there is no answer, or it is not a success.
pub async fn served(source: &Source) -> Result<String, String> {
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .build()
        .map_err(client_error)?;
    let mut request = client.get(&source.url);
    if let Some(file) = &source.token_file {
        let token = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        request = request.bearer_auth(token.trim());
    }
    let answer = request.send().await.map_err(client_error)?;
    let (status, text) = (answer.status(), answer.text().await.map_err(client_error)?);
    if status.is_success() {
        Ok(text)
    } else {
        Err(format!("{status}: {}", text.trim()))
    }
}
