use super::*;

fn fault(status: u16, change: bool, body: &str) -> Fault {
    let refusal = Refusal {
        status,
        change,
        retry_after: Some(Duration::from_secs(7)),
        location: None,
        request_id: None,
        body: body.as_bytes().to_vec(),
    };
    refusal.into_fault("canary-token")
}

#[test]
fn every_status_has_its_fault() {
    for (status, change, expected) in [
        (300, true, "rejected"),
        (301, true, "rejected"),
        (303, false, "rejected"),
        (303, true, "server"),
        (307, true, "rejected"),
        (400, true, "rejected"),
        (401, true, "unauthorized"),
        (402, true, "rejected"),
        (403, true, "forbidden"),
        (404, true, "not_found"),
        (405, true, "unsupported"),
        (406, true, "rejected"),
        (408, true, "server"),
        (409, true, "conflict"),
        (412, true, "rejected"),
        (422, true, "rejected"),
        (423, true, "busy"),
        (429, true, "throttled"),
        (500, true, "server"),
        (501, true, "unsupported"),
        (502, false, "server"),
        (503, false, "throttled"),
        (503, true, "server"),
        (504, true, "server"),
        (524, true, "server"),
        (999, true, "server"),
    ] {
        let fault = fault(status, change, "");
        assert_eq!(fault.kind(), expected, "{status}");
        let ambiguous = change && expected == "server";
        assert_eq!(fault.may_have_happened() && change, ambiguous, "{status}");
    }
}

#[test]
fn a_404_may_mean_three_things() {
    for (body, expected) in [
        (r#"{"message":"not allowed to perform actions outside the project this key is scoped to"}"#, "forbidden"),
        (r#"{"message":"Not allowed for organization API keys"}"#, "forbidden"),
        (r#"{"message":"this route does not exist"}"#, "unsupported"),
        (r#"{"message":"endpoint is not allowed here: not found"}"#, "not_found"),
        ("404 page not found", "not_found"),
        ("", "not_found"),
    ] {
        assert_eq!(fault(404, false, body).kind(), expected, "{body}");
    }
}

const JSON: &str = "JSON without a message, which is not how the platform answers";

#[test]
fn every_form_of_body_is_read() {
    for (body, expected) in [
        (r#"{"message":"m","code":"","request_id":"r-1"}"#, "m (request r-1)"),
        (r#"{"code":"LIMIT","message":"m"}"#, "m (code LIMIT)"),
        (r#"{"error":"m"}"#, "m"),
        (r#"{"error":{"message":"m","code":"c"},"request_id":"r"}"#, "m (code c, request r)"),
        (r#""m""#, JSON),
        (r#"{"detail":["m"]}"#, JSON),
        (r#"{"id":7,"key":"minted"}"#, JSON),
        (r#"{"error":{"key":"minted"},"code":"c"}"#, &format!("{JSON} (code c)")),
        ("plain\ntext", "text, which is not how the platform answers"),
        ("<html><body><h1>Bad gateway</h1></body></html>", "an HTML page, which is not how the platform answers"),
        ("", "no reason given"),
        ("{}", JSON),
        ("[]", JSON),
        (r#"{"message":null,"error":7}"#, JSON),
        (r#"{"message":"made key_3kd9s0qwlx82mzn4q"}"#, "made [redacted]"),
        (
            r#"{"message":"key canary-token is bad","request_id":"canary-token"}"#,
            "key [redacted] is bad (request [redacted])",
        ),
    ] {
        let Fault::Rejected { message, .. } = fault(400, true, body) else { panic!() };
        assert_eq!(message, expected, "{body}");
    }
}

#[test]
fn the_request_identifier_of_the_header_serves_where_the_body_has_none() {
    let error = ErrorBody::from_body(b"{\"message\":\"m\"}");
    assert_eq!(error.into_message(Some("h-1"), ""), "m (request h-1)");
    let error = ErrorBody::from_body(b"\xff\xfe");
    let message = error.into_message(Some(&"r".repeat(100)), "");
    assert_eq!(message, format!("text, which is not how the platform answers (request {})", "r".repeat(64)));
}

#[test]
fn a_redirect_names_its_target() {
    let refusal = Refusal {
        status: 308,
        change: false,
        retry_after: None,
        location: Some("https://elsewhere/canary-token".to_owned()),
        request_id: None,
        body: Vec::new(),
    };
    let text = refusal.into_fault("canary-token").to_string();
    assert!(text.contains("https://elsewhere/[redacted]"), "{text}");
}

#[test]
fn both_forms_of_retry_after() {
    let now: Timestamp = "1994-11-06T08:49:07Z".parse().unwrap();
    for (value, expected) in [
        ("0", Some(0)),
        (" 120 ", Some(120)),
        ("7200", Some(3600)),
        ("99999999999999999999999", Some(3600)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30)),
        ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
        ("Sun, 06 Nov 2094 08:49:37 GMT", Some(3600)),
        ("", None),
        ("-1", None),
        ("soon", None),
    ] {
        assert_eq!(retry_after(value, now), expected.map(Duration::from_secs), "{value}");
    }
}
