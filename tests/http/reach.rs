//! Allowed and forbidden destinations of requests.

use std::io::ErrorKind;
use std::net::TcpListener;

use dbplane::domain::Fault;
use dbplane::platform::{ConnectError, Endpoint, HttpPlatform, Platform, Reach};
use secrecy::SecretString;

use crate::server::{TOKEN, options};

fn endpoint(base_url: String, reach: Reach) -> Endpoint {
    Endpoint {
        base_url,
        organization_id: None,
        reach,
    }
}

fn connect(base_url: String, reach: Reach) -> Result<HttpPlatform, ConnectError> {
    HttpPlatform::new(
        endpoint(base_url, reach),
        SecretString::from(TOKEN),
        &options(),
    )
}

/// True if a client has connected to this non-blocking listener.
fn was_called(listener: &TcpListener) -> bool {
    match listener.accept() {
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        outcome => outcome.map(|_| true).unwrap(),
    }
}

/// The address is checked when the name is resolved, for each connection: a check in advance could
/// not detect a changed name.
#[tokio::test]
async fn a_name_that_resolves_to_this_machine_is_not_called() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = || {
        format!(
            "https://localhost:{}/v2",
            listener.local_addr().unwrap().port()
        )
    };
    let platform = connect(url(), Reach::default()).unwrap();
    for _ in 0..2 {
        let fault = platform.list_projects().await.unwrap_err();
        assert!(matches!(fault, Fault::Transport { .. }), "{fault}");
        for words in [
            "cannot be reached: the host of the base URL",
            "a loopback address",
            "--allow-insecure-platform",
        ] {
            assert!(fault.to_string().contains(words), "{fault}");
        }
        assert!(!was_called(&listener));
    }
    // If allowed, the same request arrives. The listener must be closed, because TLS would wait for
    // an answer.
    let allowed = connect(
        url(),
        Reach {
            insecure: true,
            ..Reach::default()
        },
    )
    .unwrap();
    let asked = tokio::spawn(async move { allowed.list_projects().await });
    while !was_called(&listener) {
        tokio::task::yield_now().await;
    }
    drop(listener);
    assert!(asked.await.unwrap().is_err());
}

#[tokio::test]
async fn an_address_in_the_url_is_refused_before_anything_is_sent() {
    let api_server = || Reach {
        api_server: vec!["192.0.2.1".parse().unwrap()],
        ..Reach::default()
    };
    for (host, kind) in [
        ("127.0.0.1", "a loopback address"),
        ("[::ffff:127.0.0.1]", "a loopback address"),
        ("169.254.169.254", "a link-local address"),
        ("168.63.129.16", "the address of a cloud's metadata service"),
        ("[2002:a9fe:a9fe::1]", "a link-local address"),
        ("10.1.2.3", "a private address"),
        ("[fd12::3]", "a private address"),
        ("192.0.2.1", "the API server's address"),
    ] {
        let error = connect(format!("https://{host}/v2"), api_server()).unwrap_err();
        assert!(
            matches!(error, ConnectError::NotAdmitted(_)),
            "{host}: {error}"
        );
        assert!(
            error.to_string().contains(kind) && !error.to_string().contains(host),
            "{host}: {error}"
        );
        assert!(
            connect(
                format!("https://{host}/v2"),
                Reach {
                    insecure: true,
                    ..api_server()
                }
            )
            .is_ok()
        );
    }
}

/// An administrator can allow a host by its full name, but only with private addresses.
#[tokio::test]
async fn a_host_allowed_by_its_full_name_may_have_a_private_address() {
    let named = |platform: &str| Reach {
        platforms: vec![platform.parse().unwrap()],
        api_server: vec!["10.96.0.1".parse().unwrap()],
        ..Reach::default()
    };
    for host in ["10.1.2.3", "[fd12::3]", "192.168.0.1", "100.64.0.1"] {
        let url = format!("https://{host}/v2");
        assert!(
            connect(url.clone(), named(&format!("https://{host}"))).is_ok(),
            "{host}"
        );
        let error = connect(url, Reach::default()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("--allowed-platforms names the host in full"),
            "{host}: {error}"
        );
    }
    for host in [
        "127.0.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "10.96.0.1",
        "[::ffff:10.96.0.1]",
    ] {
        let error = connect(
            format!("https://{host}/v2"),
            named(&format!("https://{host}")),
        )
        .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("only with --allow-insecure-platform"),
            "{host}: {error}"
        );
    }
}

#[tokio::test]
async fn a_platform_that_is_not_allowed_is_refused() {
    let reach = Reach {
        platforms: vec!["https://*.example.com".parse().unwrap()],
        ..Reach::default()
    };
    assert!(connect("https://api.example.com/v2".to_owned(), reach.clone()).is_ok());
    let error = connect("https://api.example.com.evil.org/v2".to_owned(), reach).unwrap_err();
    assert!(matches!(error, ConnectError::NotAdmitted(_)), "{error}");
    assert!(
        error.to_string().contains("--allowed-platforms") && !error.to_string().contains("evil"),
        "{error}"
    );
}
