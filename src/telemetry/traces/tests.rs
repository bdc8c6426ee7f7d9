use super::are_enabled;

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

fn enabled(variables: &[(&str, &str)]) -> bool {
    are_enabled(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn traces_are_off_unless_they_are_asked_for() {
    for variables in [
        &[][..],
        &[
            ("OTEL_SERVICE_NAME", "x"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b"),
        ],
        &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "zipkin")],
        &[ENDPOINT, ("OTEL_SDK_DISABLED", "True")],
        &[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_SDK_DISABLED", "true"),
        ],
    ] {
        assert!(!enabled(variables), "{variables:?}");
    }
}

#[test]
fn traces_are_on_if_an_exporter_or_an_endpoint_is_named() {
    for variables in [
        &[ENDPOINT][..],
        &[(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "https://collector/v1/traces",
        )],
        &[("OTEL_TRACES_EXPORTER", "otlp")],
        &[ENDPOINT, ("OTEL_SDK_DISABLED", "no")],
    ] {
        assert!(enabled(variables), "{variables:?}");
    }
}
