//! The platforms that accounts may name.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

/// The hosts that accounts may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The platforms that accounts may name; any if empty. A host that is named in full may have a
    /// private address.
    pub platforms: Vec<PlatformPattern>,
    /// For tests: accepts `http://`, which sends the API key in plain text, and any address.
    pub insecure: bool,
    /// The API server's own addresses, which are never called.
    pub api_server: Vec<IpAddr>,
}

impl Reach {
    /// True if the administrator named the host of `url` in full. A pattern with a star also
    /// matches names that others own.
    pub(super) fn names(&self, url: &Url) -> bool {
        self.platforms
            .iter()
            .any(|pattern| !pattern.below && pattern.matches(url))
    }

    /// True if an account may name `url`.
    pub(super) fn admits(&self, url: &Url) -> bool {
        self.platforms.is_empty() || self.platforms.iter().any(|pattern| pattern.matches(url))
    }
}

/// `https://api.example.com`, or `https://*.example.com` with exactly one label for the star.
/// Patterns match the scheme, host and port of a parsed URL, never its text.
#[derive(Clone, PartialEq, Eq)]
pub struct PlatformPattern {
    scheme: String,
    /// Without the star.
    host: String,
    port: Option<u16>,
    below: bool,
}

impl PlatformPattern {
    /// The pattern of exactly this platform.
    pub fn of(base_url: &str) -> Option<Self> {
        let url = Url::parse(base_url.trim()).ok()?;
        let (scheme, host) = (url.scheme().to_owned(), url.host_str()?.to_owned());
        Some(Self {
            scheme,
            host,
            port: url.port_or_known_default(),
            below: false,
        })
    }

    fn matches(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let host = match (self.below, host.split_once('.')) {
            (false, _) => host,
            (true, Some((label, parent))) if !label.is_empty() => parent,
            (true, _) => return false,
        };
        host == self.host && url.scheme() == self.scheme && url.port_or_known_default() == self.port
    }
}

impl FromStr for PlatformPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url =
            Url::parse(text.trim()).map_err(|error| wrong(&format!("it is no URL ({error})")))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(wrong("its scheme is neither https nor http"));
        }
        let named = !url.username().is_empty() || url.password().is_some();
        if named || url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has more than scheme, host and port"));
        }
        let host = url.host_str().unwrap_or_default();
        let (host, below) = host
            .strip_prefix("*.")
            .map_or((host, false), |parent| (parent, true));
        if host.is_empty() || host.contains('*') {
            return Err(wrong(
                "a star stands only for the first label of a host name",
            ));
        }
        Ok(Self {
            scheme: url.scheme().to_owned(),
            host: host.to_owned(),
            port: url.port_or_known_default(),
            below,
        })
    }
}

fn wrong(why: &str) -> String {
    format!(
        "{why}; write https://api.example.com, or https://*.example.com for the names one level below"
    )
}

impl fmt::Debug for PlatformPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scheme,
            host,
            port,
            below,
        } = self;
        let star = if *below { "*." } else { "" };
        write!(f, "{scheme}://{star}{host}:{}", port.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, url: &str) -> bool {
        let reach = Reach {
            platforms: vec![pattern.parse().unwrap()],
            ..Reach::default()
        };
        reach.admits(&Url::parse(url).unwrap())
    }

    /// A pattern, and URLs that it admits or not.
    struct PatternCase {
        pattern: &'static str,
        admits: &'static [&'static str],
        refuses: &'static [&'static str],
    }

    const CASES: &[PatternCase] = &[
        PatternCase {
            pattern: "https://api.example.com",
            admits: &[
                "https://api.example.com",
                "https://api.example.com/api/v2",
                "https://API.Example.COM:443/v2",
            ],
            refuses: &[
                "https://api.example.com:8443/v2",
                "http://api.example.com/v2",
                "https://api.example.com.evil.org/v2",
                "https://api.example.com@evil.org/v2",
                "https://api.example.com:x@evil.org/v2",
                "https://evil.org/https://api.example.com",
                "https://evil.org\\@api.example.com/v2",
                "https://evil.org#@api.example.com",
                "https://api.example.com./v2",
                "https://xapi.example.com/v2",
                "https://api-example.com/v2",
            ],
        },
        PatternCase {
            pattern: "https://api.example.com/",
            admits: &["https://api.example.com/v2"],
            refuses: &[],
        },
        PatternCase {
            pattern: "HTTPS://API.example.com:443",
            admits: &["https://api.example.com/v2"],
            refuses: &[],
        },
        PatternCase {
            pattern: "https://api.example.com:8443",
            admits: &["https://api.example.com:8443/v2"],
            refuses: &["https://api.example.com/v2"],
        },
        PatternCase {
            pattern: "http://api.example.com:443",
            admits: &[],
            refuses: &["https://api.example.com/v2"],
        },
        PatternCase {
            pattern: "https://*.example.com",
            admits: &["https://api.example.com/v2", "https://other.example.com/v2"],
            refuses: &[
                "https://example.com/v2",
                "https://a.b.example.com/v2",
                "https://.example.com/v2",
                "https://evilexample.com/v2",
                "https://api.example.com.evil.org/v2",
                "https://api.example.com:8443/v2",
            ],
        },
        PatternCase {
            pattern: "https://*.example.com:8443",
            admits: &["https://api.example.com:8443/v2"],
            refuses: &[],
        },
        PatternCase {
            pattern: "https://bücher.example",
            admits: &["https://xn--bcher-kva.example/v2"],
            refuses: &[],
        },
        PatternCase {
            pattern: "https://192.0.2.7",
            admits: &["https://192.0.2.7/v2", "https://0xc0000207/v2"],
            refuses: &["https://192.0.2.70/v2"],
        },
        PatternCase {
            pattern: "https://[2001:db8::1]",
            admits: &["https://[2001:DB8:0::1]/v2"],
            refuses: &[],
        },
    ];

    #[test]
    fn a_platform_is_compared_by_scheme_host_and_port() {
        for case in CASES {
            for url in case.admits {
                assert!(matches(case.pattern, url), "{} {url}", case.pattern);
            }
            for url in case.refuses {
                assert!(!matches(case.pattern, url), "{} {url}", case.pattern);
            }
        }
    }

    #[test]
    fn any_platform_where_no_pattern_is_given_and_else_one_of_them() {
        let url = |text: &str| Url::parse(text).unwrap();
        assert!(Reach::default().admits(&url("https://anything.example/v2")));
        let platforms = ["https://a.example", "https://b.example"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        let reach = Reach {
            platforms,
            ..Reach::default()
        };
        let admitted =
            ["a", "b", "c"].map(|name| reach.admits(&url(&format!("https://{name}.example/v2"))));
        assert_eq!(admitted, [true, true, false]);
    }

    #[test]
    fn a_pattern_that_says_something_else_is_refused() {
        for (text, why) in [
            ("", "no URL"),
            ("api.example.com", "no URL"),
            ("*", "no URL"),
            ("https://", "no URL"),
            ("https://*.192.0.2.7", "no URL"),
            ("ftp://api.example.com", "scheme"),
            ("api.example.com:443", "scheme"),
            ("https://api.example.com/v2", "more than"),
            ("https://api.example.com?a", "more than"),
            ("https://api.example.com#a", "more than"),
            ("https://user@api.example.com", "more than"),
            ("https://*", "star"),
            ("https://*.", "star"),
            ("https://api.*.com", "star"),
            ("https://*.*.com", "star"),
            ("https://a*.example.com", "star"),
        ] {
            let error = text.parse::<PlatformPattern>().unwrap_err();
            assert!(
                error.contains(why) && error.contains("https://*.example.com"),
                "{text}: {error}"
            );
        }
    }
}
