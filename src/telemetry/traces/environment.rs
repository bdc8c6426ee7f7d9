//! The trace settings in the standard's environment variables. Unsupported settings are rejected,
//! so that nobody waits for traces that never arrive.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

/// The standard's default.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of enabled traces.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Timeout of one request to the collector.
    pub timeout: Duration,
    /// The service name, if the environment sets it apart from the other attributes.
    pub service_name: Option<String>,
}

/// The settings of traces, or `None` if they are disabled.
///
/// # Errors
/// If a setting is unsupported, with advice. The message contains no value that may be a secret.
pub fn wanted(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Wanted>, String> {
    let environment = Environment { variable };
    match environment.asks_for_traces()? {
        false => Ok(None),
        true => environment.checked().map(Some),
    }
}

struct Environment<F> {
    variable: F,
}

impl<F: Fn(&str) -> Option<String>> Environment<F> {
    /// An empty variable counts as absent.
    fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    }

    /// OTEL_EXPORTER_OTLP_TRACES_*, or else OTEL_EXPORTER_OTLP_*: the name and the value.
    fn exporter(&self, name: &str) -> Option<(String, String)> {
        let names = [
            format!("OTEL_EXPORTER_OTLP_TRACES_{name}"),
            format!("OTEL_EXPORTER_OTLP_{name}"),
        ];
        names
            .into_iter()
            .find_map(|name| self.get(&name).map(|value| (name, value)))
    }

    fn asks_for_traces(&self) -> Result<bool, String> {
        if self
            .get("OTEL_SDK_DISABLED")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            return Ok(false);
        }
        match self.get("OTEL_TRACES_EXPORTER").as_deref() {
            None => Ok(self.exporter("ENDPOINT").is_some()),
            Some("none") => Ok(false),
            Some("otlp") => Ok(true),
            Some(other) => Err(format!(
                "OTEL_TRACES_EXPORTER={other}: dbplane does not have it; write otlp or none"
            )),
        }
    }

    fn checked(&self) -> Result<Wanted, String> {
        self.check_what_is_not_supported()?;
        self.check_endpoint()?;
        self.check_headers()?;
        self.check_sampler()?;
        for name in [
            "OTEL_BSP_SCHEDULE_DELAY",
            "OTEL_BSP_MAX_QUEUE_SIZE",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
        ] {
            self.get(name)
                .map(|value| number(name, &value))
                .transpose()?;
        }
        let timeout = self
            .exporter("TIMEOUT")
            .map(|(name, value)| number(&name, &value))
            .transpose()?;
        Ok(Wanted {
            timeout: timeout.map_or(TIMEOUT, Duration::from_millis),
            service_name: self.get("OTEL_SERVICE_NAME"),
        })
    }

    fn check_what_is_not_supported(&self) -> Result<(), String> {
        match self.exporter("PROTOCOL") {
            Some((name, value)) if value != "http/protobuf" => {
                return Err(format!(
                    "{name}={value}: dbplane does not have it; write http/protobuf, which collectors usually serve on port 4318"
                ));
            }
            _ => {}
        }
        if let Some((name, value)) = self
            .exporter("COMPRESSION")
            .filter(|(_, value)| value != "none")
        {
            return Err(format!(
                "{name}={value}: dbplane does not compress; write none, or leave it out"
            ));
        }
        for name in ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"] {
            if let Some((name, _)) = self.exporter(name) {
                return Err(format!(
                    "{name} is not supported; leave it out, and name the certificate authorities in SSL_CERT_FILE"
                ));
            }
        }
        Ok(())
    }

    /// An endpoint may contain a credential, so its text is not repeated.
    fn check_endpoint(&self) -> Result<(), String> {
        let Some((name, value)) = self.exporter("ENDPOINT") else {
            return Ok(());
        };
        let url = Url::parse(&value)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(url) = url else {
            return Err(format!(
                "{name} is not the URL of a collector; write one such as http://collector:4318"
            ));
        };
        match url.username().is_empty() && url.password().is_none() {
            true => Ok(()),
            false => Err(format!(
                "{name} holds a credential; write it to OTEL_EXPORTER_OTLP_HEADERS"
            )),
        }
    }

    fn check_headers(&self) -> Result<(), String> {
        let Some((name, value)) = self.exporter("HEADERS") else {
            return Ok(());
        };
        for (index, pair) in value
            .split(',')
            .filter(|pair| !pair.trim().is_empty())
            .enumerate()
        {
            let header = pair
                .split_once('=')
                .filter(|(key, value)| is_header(key.trim(), value.trim()));
            if header.is_none() {
                let number = index + 1;
                return Err(format!(
                    "{name}: entry {number} cannot be sent; write NAME=VALUE, with commas between entries"
                ));
            }
        }
        Ok(())
    }

    fn check_sampler(&self) -> Result<(), String> {
        let Some(sampler) = self.get("OTEL_TRACES_SAMPLER") else {
            return Ok(());
        };
        match sampler.strip_prefix("parentbased_").unwrap_or(&sampler) {
            "always_on" | "always_off" => return Ok(()),
            "traceidratio" => {}
            _ => {
                return Err(format!(
                    "OTEL_TRACES_SAMPLER={sampler}: dbplane does not have it; write always_on, always_off or traceidratio, with or without \
                     parentbased_ before it"
                ));
            }
        }
        let share = self
            .get("OTEL_TRACES_SAMPLER_ARG")
            .and_then(|value| value.parse::<f64>().ok());
        match share.is_some_and(|share| (0.0..=1.0).contains(&share)) {
            true => Ok(()),
            false => Err(format!(
                "OTEL_TRACES_SAMPLER={sampler} needs OTEL_TRACES_SAMPLER_ARG; write a share from 0.0 to 1.0"
            )),
        }
    }
}

fn is_header(name: &str, value: &str) -> bool {
    let value = percent_encoding::percent_decode_str(value).collect::<Vec<u8>>();
    HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_bytes(&value).is_ok()
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{name}={value}: write a number above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "canary-of-the-collector";

    fn of(variables: &[(&str, &str)]) -> Result<Option<Wanted>, String> {
        wanted(|name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

    #[test]
    fn traces_are_off_unless_they_are_asked_for() {
        for variables in [
            &[][..],
            &[
                ("OTEL_SERVICE_NAME", "x"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "a=b"),
            ],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "True")],
            &[
                ("OTEL_TRACES_EXPORTER", "otlp"),
                ("OTEL_SDK_DISABLED", "true"),
            ],
            // Settings of disabled traces need not be valid.
            &[
                ENDPOINT,
                ("OTEL_TRACES_EXPORTER", "none"),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ],
        ] {
            assert_eq!(of(variables), Ok(None), "{variables:?}");
        }
    }

    #[test]
    fn traces_are_on_where_an_exporter_or_an_endpoint_is_named() {
        let usual = Wanted {
            timeout: TIMEOUT,
            service_name: None,
        };
        for variables in [
            &[ENDPOINT][..],
            &[(
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "https://collector/v1/traces",
            )],
            &[("OTEL_TRACES_EXPORTER", "otlp")],
            &[
                ENDPOINT,
                ("OTEL_SDK_DISABLED", "no"),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ],
            &[
                ENDPOINT,
                (
                    "OTEL_EXPORTER_OTLP_HEADERS",
                    "authorization=Bearer%20x, x-tenant=1,",
                ),
            ],
            &[
                ENDPOINT,
                ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
                ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ],
        ] {
            assert_eq!(of(variables).unwrap().unwrap(), usual, "{variables:?}");
        }
        let wanted = of(&[
            ENDPOINT,
            ("OTEL_SERVICE_NAME", "databases"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "9000"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1500"),
        ]);
        let expected = Wanted {
            timeout: Duration::from_millis(1500),
            service_name: Some("databases".to_owned()),
        };
        assert_eq!(wanted, Ok(Some(expected)));
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_what_to_write() {
        for ((name, value), advice) in [
            (("OTEL_TRACES_EXPORTER", "zipkin"), "write otlp or none"),
            (
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
                "write http/protobuf",
            ),
            (
                ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
                "write http/protobuf",
            ),
            (("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"), "write none"),
            (
                ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
                "SSL_CERT_FILE",
            ),
            (("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"), "write a number"),
            (("OTEL_BSP_MAX_QUEUE_SIZE", "0"), "write a number"),
            (("OTEL_TRACES_SAMPLER", "xray"), "write always_on"),
            (("OTEL_TRACES_SAMPLER", "traceidratio"), "write a share"),
            (
                ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318"),
                "http://collector:4318",
            ),
            (
                ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://collector"),
                "http://collector:4318",
            ),
        ] {
            let refused = of(&[ENDPOINT, (name, value)]).unwrap_err();
            assert!(
                refused.contains(name) && refused.contains(advice),
                "{name}={value}: {refused}"
            );
        }
    }

    #[test]
    fn no_error_shows_a_credential() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_HEADERS", format!("a=b,{SECRET}")),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                format!("author ization={SECRET}"),
            ),
            (
                "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                format!("authorization={SECRET}%0a"),
            ),
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                format!("https://user:{SECRET}@collector:4318"),
            ),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("//{SECRET}")),
        ] {
            let refused = of(&[ENDPOINT, (name, &value)]).unwrap_err();
            assert!(
                refused.contains(name) && !refused.contains("canary"),
                "{refused}"
            );
        }
    }
}
