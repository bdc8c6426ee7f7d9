//! The validated base URL, and the URLs of the platform's resources.

use std::fmt;

use reqwest::Url;

use crate::platform::{ConnectError, Endpoint};

/// A validated base URL.
#[derive(Clone)]
pub(super) struct Base(Url);

impl Base {
    pub fn new(endpoint: &Endpoint) -> Result<Self, ConnectError> {
        let mut url = Url::parse(endpoint.base_url.trim())
            .map_err(|error| ConnectError::NotAUrl(error.to_string()))?;
        match url.scheme() {
            "https" => {}
            "http" if endpoint.reach.insecure => {}
            "http" => return Err(ConnectError::Insecure),
            _ => return Err(ConnectError::NotHttps),
        }
        if !url.has_host() {
            return Err(ConnectError::NotAUrl("no host".to_owned()));
        }
        let named = !url.username().is_empty() || url.password().is_some();
        if named || url.query().is_some() || url.fragment().is_some() {
            return Err(ConnectError::NotPlain);
        }
        if !endpoint.reach.admits(&url) {
            let message = "its scheme, host and port are none of those that the operator's flag --allowed-platforms names";
            return Err(ConnectError::NotAdmitted(message.to_owned()));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }

    pub fn url(&self) -> &Url {
        &self.0
    }

    /// The URL below the base, with percent-encoded segments, or `None` if a segment would lead
    /// elsewhere.
    pub fn address(&self, segments: &[&str], query: &[(&str, &str)]) -> Option<Url> {
        // These have a special meaning in URLs even if they are encoded.
        if segments
            .iter()
            .any(|segment| matches!(*segment, "" | "." | ".."))
        {
            return None;
        }
        let mut url = self.0.clone();
        url.path_segments_mut()
            .ok()?
            .pop_if_empty()
            .extend(segments);
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
    use crate::platform::Reach;

    fn base(url: &str, allow_insecure: bool) -> Result<Base, ConnectError> {
        let reach = Reach {
            insecure: allow_insecure,
            ..Reach::default()
        };
        Base::new(&Endpoint {
            base_url: url.to_owned(),
            organization_id: None,
            reach,
        })
    }

    #[test]
    fn with_and_without_a_trailing_slash() {
        for url in [
            "https://h/api/v2",
            "https://h/api/v2/",
            " https://h/api/v2// ",
        ] {
            let address = base(url, false)
                .unwrap()
                .address(&["projects", "p"], &[])
                .unwrap();
            assert_eq!(address.as_str(), "https://h/api/v2/projects/p", "{url}");
        }
        let address = base("https://h", false)
            .unwrap()
            .address(&["projects"], &[])
            .unwrap();
        assert_eq!(address.as_str(), "https://h/projects");
    }

    #[test]
    fn segments_and_queries_are_encoded() {
        let base = base("https://h/v2", false).unwrap();
        let address = base
            .address(&["a/b?c#d", "50%", "e f", "ü"], &[("cursor", "a&b=c d")])
            .unwrap();
        assert_eq!(
            address.as_str(),
            "https://h/v2/a%2Fb%3Fc%23d/50%25/e%20f/%C3%BC?cursor=a%26b%3Dc+d"
        );
        for odd in ["", ".", ".."] {
            assert_eq!(base.address(&["projects", odd], &[]), None);
        }
        let dots = base.address(&["%2e%2e"], &[]).unwrap();
        assert_eq!(dots.as_str(), "https://h/v2/%252e%252e");
    }

    #[test]
    fn what_is_refused() {
        for (url, error) in [
            ("http://h/v2", ConnectError::Insecure),
            ("ftp://h/v2", ConnectError::NotHttps),
            ("https://user:canary@h/v2", ConnectError::NotPlain),
            ("https://h/v2?token=canary", ConnectError::NotPlain),
            ("https://h/v2#x", ConnectError::NotPlain),
        ] {
            assert_eq!(base(url, false).unwrap_err(), error, "{url}");
        }
        for url in ["", "h/v2", "https://", "canary"] {
            let error = base(url, false).unwrap_err();
            assert!(matches!(error, ConnectError::NotAUrl(_)), "{url}: {error}");
            assert!(!error.to_string().contains("canary"));
        }
        assert!(base("http://h/v2", true).is_ok());
    }
}
