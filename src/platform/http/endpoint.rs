//! Where the platform is: the base URL, checked once, and the addresses of its resources.

use std::fmt;

use reqwest::Url;
use thiserror::Error;

/// Where the platform is, and for which organization it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Base URL, ending with the version segment, with or without a trailing slash.
    pub base_url: String,
    /// The organization whose projects are listed, for credentials that the platform asks to name one.
    pub organization_id: Option<String>,
    /// Whether `http://` is accepted, over which the API key travels readably.
    pub allow_insecure: bool,
}

/// Why a platform cannot be called with what was given. No text repeats the URL or the key: either may hold a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EndpointError {
    #[error("the base URL is not an absolute URL with a host: {0}")]
    NotAUrl(String),
    #[error("the base URL must begin with https://")]
    NotHttps,
    #[error(
        "the base URL must begin with https://; http:// sends the API key readably and has to be allowed explicitly"
    )]
    Insecure,
    #[error("the base URL must not hold a user name, a password, a query or a fragment")]
    NotPlain,
    #[error("the API key is empty")]
    NoKey,
    #[error("the API key holds characters that cannot be sent in an HTTP header")]
    UnusableKey,
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// A base URL that was checked.
#[derive(Clone)]
pub(super) struct Base(Url);

impl Base {
    pub fn new(endpoint: &Endpoint) -> Result<Self, EndpointError> {
        let not_a_url = |reason: &dyn fmt::Display| EndpointError::NotAUrl(reason.to_string());
        let mut url = Url::parse(endpoint.base_url.trim()).map_err(|error| not_a_url(&error))?;
        match url.scheme() {
            "https" => {}
            "http" if endpoint.allow_insecure => {}
            "http" => return Err(EndpointError::Insecure),
            _ => return Err(EndpointError::NotHttps),
        }
        if !url.has_host() {
            return Err(not_a_url(&"no host"));
        }
        let named = !url.username().is_empty() || url.password().is_some();
        if named || url.query().is_some() || url.fragment().is_some() {
            return Err(EndpointError::NotPlain);
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }

    /// The address below the base, its segments percent-encoded; `None` where one of them would lead elsewhere.
    pub fn address(&self, segments: &[&str], query: &[(&str, &str)]) -> Option<Url> {
        // URLs give these a meaning even when they are encoded.
        if segments.iter().any(|segment| matches!(*segment, "" | "." | "..")) {
            return None;
        }
        let mut url = self.0.clone();
        url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Some(url)
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(url: &str, allow_insecure: bool) -> Result<Base, EndpointError> {
        Base::new(&Endpoint { base_url: url.to_owned(), organization_id: None, allow_insecure })
    }

    #[test]
    fn with_and_without_a_trailing_slash() {
        for url in ["https://h/api/v2", "https://h/api/v2/", " https://h/api/v2// "] {
            let address = base(url, false).unwrap().address(&["projects", "p"], &[]).unwrap();
            assert_eq!(address.as_str(), "https://h/api/v2/projects/p", "{url}");
        }
        let address = base("https://h", false).unwrap().address(&["projects"], &[]).unwrap();
        assert_eq!(address.as_str(), "https://h/projects");
    }

    #[test]
    fn segments_and_queries_are_encoded() {
        let base = base("https://h/v2", false).unwrap();
        let address = base.address(&["a/b?c#d", "50%", "e f", "ü"], &[("cursor", "a&b=c d")]).unwrap();
        assert_eq!(address.as_str(), "https://h/v2/a%2Fb%3Fc%23d/50%25/e%20f/%C3%BC?cursor=a%26b%3Dc+d");
        for odd in ["", ".", ".."] {
            assert_eq!(base.address(&["projects", odd], &[]), None);
        }
        let dots = base.address(&["%2e%2e"], &[]).unwrap();
        assert_eq!(dots.as_str(), "https://h/v2/%252e%252e");
    }

    #[test]
    fn what_is_refused() {
        for (url, error) in [
            ("http://h/v2", EndpointError::Insecure),
            ("ftp://h/v2", EndpointError::NotHttps),
            ("https://user:canary@h/v2", EndpointError::NotPlain),
            ("https://h/v2?token=canary", EndpointError::NotPlain),
            ("https://h/v2#x", EndpointError::NotPlain),
        ] {
            assert_eq!(base(url, false).unwrap_err(), error, "{url}");
        }
        for url in ["", "h/v2", "https://", "canary"] {
            let error = base(url, false).unwrap_err();
            assert!(matches!(error, EndpointError::NotAUrl(_)), "{url}: {error}");
            assert!(!error.to_string().contains("canary"));
        }
        assert!(base("http://h/v2", true).is_ok());
    }
}
