use super::*;

fn refusal(status: u16, body: &str) -> RefusedAnswer {
    RefusedAnswer {
        status,
        change: true,
        retry_after: Some(Duration::from_secs(7)),
        location: None,
        request_id: None,
        html: false,
        body: body.as_bytes().to_vec(),
        complete: true,
    }
}

fn fault(status: u16, change: bool, body: &str) -> Fault {
    RefusedAnswer {
        change,
        ..refusal(status, body)
    }
    .into_fault("canary-token")
}

#[test]
fn every_status_has_its_fault() {
    for (status, change, expected) in [
        (300, true, "gateway"),
        (302, true, "gateway"),
        (303, false, "gateway"),
        (303, true, "gateway"),
        (307, true, "gateway"),
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
        let ambiguous = change && matches!(expected, "server" | "gateway");
        assert_eq!(fault.may_have_happened() && change, ambiguous, "{status}");
    }
}

#[test]
fn a_404_may_mean_three_things() {
    for (body, expected) in [
        (
            r#"{"message":"not allowed to perform actions outside the project this key is scoped to"}"#,
            "forbidden",
        ),
        (
            r#"{"message":"Not allowed for organization API keys"}"#,
            "forbidden",
        ),
        (r#"{"message":"this route does not exist"}"#, "unsupported"),
        (
            r#"{"message":"endpoint is not allowed here: not found"}"#,
            "not_found",
        ),
        ("{}", "not_found"),
        ("", "not_found"),
    ] {
        assert_eq!(fault(404, false, body).kind(), expected, "{body}");
    }
}

#[test]
fn only_json_or_nothing_is_the_platforms_refusal() {
    let page = "<!DOCTYPE html><html><head><title>Blocked</title></head></html>";
    let message = r#"{"message":"limit reached"}"#;
    let html = |body: &str| RefusedAnswer {
        html: true,
        ..refusal(422, body)
    };
    let cut = |body: &str| RefusedAnswer {
        complete: false,
        ..refusal(422, body)
    };
    for (refusal, form) in [
        (refusal(422, message), None),
        (refusal(422, &format!(" {message}\n")), None),
        (refusal(422, "[]"), None),
        (refusal(422, ""), None),
        (refusal(422, "\n"), None),
        (refusal(422, page), Some(Form::Foreign)),
        (refusal(422, "  <html>"), Some(Form::Foreign)),
        (refusal(422, "404 page not found"), Some(Form::Text)),
        (refusal(422, r#""not found""#), Some(Form::Text)),
        (refusal(422, "404"), Some(Form::Text)),
        (refusal(422, r#"{"message":"limit"#), Some(Form::Text)),
        (html(message), Some(Form::Foreign)),
        (html(""), Some(Form::Foreign)),
        (cut(message), Some(Form::Foreign)),
        (cut(""), Some(Form::Foreign)),
    ] {
        let text = format!("{refusal:?}");
        let found = match refusal.into_fault("") {
            Fault::Gateway { form, .. } => Some(form),
            Fault::Rejected { .. } => None,
            other => panic!("{other}"),
        };
        assert_eq!(found, form, "{text}");
    }
}

#[test]
fn an_answer_of_a_gateway_says_nothing_of_the_object() {
    for status in [400, 403, 404, 405, 409, 410, 418, 422, 423, 451] {
        let fault = fault(status, true, "<html>blocked</html>");
        assert!(matches!(fault, Fault::Gateway { .. }), "{status}: {fault}");
        assert!(fault.may_have_happened() && !fault.is_refusal(), "{status}");
        assert_eq!(fault.is_missing(), status == 404, "{status}");
    }
    // These mean the same in any form.
    for (status, kind) in [(401, "unauthorized"), (429, "throttled")] {
        assert_eq!(fault(status, true, "<html>no</html>").kind(), kind);
    }
    // The answer of a proxy that does not know the method, not of a platform without the call.
    assert_eq!(fault(501, false, "<html>no</html>").kind(), "server");
}

const JSON: &str = "JSON without a message, which is not how the platform answers";

#[test]
fn every_form_of_body_is_read() {
    for (body, expected) in [
        (
            r#"{"message":"m","code":"","request_id":"r-1"}"#,
            "m (request r-1)",
        ),
        (r#"{"code":"LIMIT","message":"m"}"#, "m (code LIMIT)"),
        (r#"{"error":"m"}"#, "m"),
        (
            r#"{"error":{"message":"m","code":"c"},"request_id":"r"}"#,
            "m (code c, request r)",
        ),
        (r#""m""#, JSON),
        (r#"{"detail":["m"]}"#, JSON),
        (r#"{"id":7,"key":"minted"}"#, JSON),
        (
            r#"{"error":{"key":"minted"},"code":"c"}"#,
            &format!("{JSON} (code c)"),
        ),
        ("plain\ntext", "text, which is not how the platform answers"),
        (
            "<html><body><h1>Bad gateway</h1></body></html>",
            "an HTML page, which is not how the platform answers",
        ),
        ("", "no reason given"),
        ("{}", JSON),
        ("[]", JSON),
        (r#"{"message":null,"error":7}"#, JSON),
        (
            r#"{"message":"made key_3kd9s0qwlx82mzn4q"}"#,
            "made [redacted]",
        ),
        (
            r#"{"message":"key canary-token is bad","request_id":"canary-token"}"#,
            "key [redacted] is bad (request [redacted])",
        ),
    ] {
        let (Fault::Rejected { message, .. } | Fault::Gateway { message, .. }) =
            fault(400, true, body)
        else {
            panic!()
        };
        assert_eq!(message, expected, "{body}");
    }
}

#[test]
fn the_request_identifier_of_the_header_serves_where_the_body_has_none() {
    let error = ErrorBody::from_body(b"{\"message\":\"m\"}");
    assert_eq!(error.into_message(Some("h-1"), ""), "m (request h-1)");
    let error = ErrorBody::from_body(b"\xff\xfe");
    let message = error.into_message(Some(&"r".repeat(100)), "");
    assert_eq!(
        message,
        format!(
            "text, which is not how the platform answers (request {})",
            "r".repeat(64)
        )
    );
}

#[test]
fn a_redirect_names_its_target() {
    let location = Some("https://elsewhere/canary-token".to_owned());
    let text = RefusedAnswer {
        location,
        ..refusal(308, "")
    }
    .into_fault("canary-token")
    .to_string();
    assert!(
        text.contains("https://elsewhere/[redacted]") && text.contains("check the base URL"),
        "{text}"
    );
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
        assert_eq!(
            retry_after(value, now),
            expected.map(Duration::from_secs),
            "{value}"
        );
    }
}
