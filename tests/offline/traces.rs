//! An endpoint of traces that is no URL prevents the start. The message does not repeat it, because
//! it may contain a credential.

use std::process::Command;

#[test]
fn an_invalid_endpoint_is_refused_at_the_start_and_not_shown() {
    let ran = Command::new(env!("CARGO_BIN_EXE_dbplane"))
        .args([
            "run",
            "--health-listen",
            "127.0.0.1:0",
            "--metrics-listen",
            "127.0.0.1:0",
        ])
        .env(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://user:canary@not a host",
        )
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(
        !ran.status.success() && said.contains("OTEL_EXPORTER_OTLP_ENDPOINT is not the URL"),
        "{said}"
    );
    assert!(!said.contains("canary"), "{said}");
}
