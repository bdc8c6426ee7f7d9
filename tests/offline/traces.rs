//! Unsupported trace settings in the environment prevent the start, with a message about supported
//! values.

use std::process::Command;

#[test]
fn what_traces_cannot_be_exported_by_is_refused_at_the_start() {
    for (variable, value, advice) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "write http/protobuf"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "canary-without-a-name",
            "write NAME=VALUE",
        ),
    ] {
        let ran = Command::new(env!("CARGO_BIN_EXE_dbplane"))
            .args([
                "run",
                "--health-listen",
                "127.0.0.1:0",
                "--metrics-listen",
                "127.0.0.1:0",
            ])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
            .env(variable, value)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(
            !ran.status.success() && said.contains(variable) && said.contains(advice),
            "{said}"
        );
        assert!(!said.contains("canary"), "{said}");
    }
}
