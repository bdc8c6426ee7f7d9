use std::sync::Mutex;

use async_trait::async_trait;
use tokio::time::Instant;

use super::*;
use crate::platform::fake::Notes;
use crate::platform::{Platform, Unanswered};

/// Answers with four pages, and records the URLs of its requests.
#[derive(Debug, Default)]
struct PagedTransport(Mutex<Vec<String>>);

#[async_trait]
impl Transport for PagedTransport {
    async fn carry(&self, request: reqwest::Request) -> Result<reqwest::Response, Unanswered> {
        let mut asked = self.0.lock().unwrap();
        asked.push(request.url().to_string());
        let body = match asked.len() {
            page @ ..4 => {
                format!(r#"{{"projects":[{{"id":"a"}}],"pagination":{{"cursor":"{page}"}}}}"#)
            }
            _ => r#"{"projects":[{"id":"b"}]}"#.to_owned(),
        };
        Ok(axum::http::Response::new(body).into())
    }
}

fn access(base_url: &str) -> ConnectOptions {
    ConnectOptions {
        leadership: Leadership::default(),
        endpoint: Endpoint {
            base_url: base_url.to_owned(),
            organization_id: Some("org-a".into()),
            reach: Reach::default(),
        },
        request_timeout: Duration::from_secs(5),
        rate: Rate {
            requests_per_minute: 60,
            burst: 1,
        },
        room: Arc::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_within_one_budget_and_measured() {
    let (pages, meter) = (
        Arc::new(PagedTransport::default()),
        Arc::new(Notes::default()),
    );
    let over = OverHttp {
        transport: Some(Arc::clone(&pages) as Arc<dyn Transport>),
        ..OverHttp::default()
    };
    let secret = SecretString::from("s3cret");
    let client = over
        .connect(
            &access("https://h/v2"),
            &secret,
            Arc::clone(&meter) as Arc<dyn Meter>,
        )
        .unwrap();
    let start = Instant::now();
    client.list_projects().await.unwrap();
    assert_eq!(
        *pages.0.lock().unwrap(),
        [
            "https://h/v2/projects?org_id=org-a",
            "https://h/v2/projects?org_id=org-a&cursor=1&limit=400",
            "https://h/v2/projects?org_id=org-a&cursor=2&limit=400",
            "https://h/v2/projects?org_id=org-a&cursor=3&limit=400"
        ]
    );
    assert!(
        start.elapsed() > Duration::from_secs(2),
        "further pages wait for the same budget: {:?}",
        start.elapsed()
    );
    let recorded: Vec<_> = meter
        .0
        .lock()
        .unwrap()
        .iter()
        .map(|(call, outcome, _)| (*call, *outcome))
        .collect();
    assert_eq!(recorded, [("list_projects", "ok")]);
}

#[tokio::test]
async fn what_cannot_be_called_is_known_before_anything_is_sent() {
    let pages = Arc::new(PagedTransport::default());
    let over = OverHttp {
        transport: Some(Arc::clone(&pages) as Arc<dyn Transport>),
        ..OverHttp::default()
    };
    let refused = |url: &str, key: &str| {
        let secret = SecretString::from(key);
        over.connect(&access(url), &secret, Arc::new(crate::platform::NoMeter))
            .unwrap_err()
    };
    assert_eq!(refused("http://h/v2", "s3cret"), ConnectError::Insecure);
    assert_eq!(refused("https://h/v2", " \n"), ConnectError::NoKey);
    assert!(pages.0.lock().unwrap().is_empty());
    // The same error over the network.
    let broken = OverHttp::default().connect(
        &access("h"),
        &SecretString::from("k"),
        Arc::new(crate::platform::NoMeter),
    );
    assert!(matches!(broken.unwrap_err(), ConnectError::NotAUrl(_)));
}

#[test]
fn one_platform_however_it_is_spelled_and_what_is_declared_to_be_the_same() {
    let alias = |text: &str| text.parse::<PlatformAlias>();
    let aliases = [
        "https://old.example/api/v2=https://new.example/api/v2",
        "https://10.0.0.7/v2/=https://h.example/v2",
    ];
    let platforms = Platforms::with_aliases(aliases.map(|text| alias(text).unwrap()));
    let [first, second] = [("a", "b"), ("b", "c")]
        .map(|(a, b)| format!("https://{a}.example/v2=https://{b}.example/v2"));
    let twice = Platforms::with_aliases([second, first].map(|text| alias(&text).unwrap()));
    assert_eq!(
        ["a", "b", "c"].map(|host| twice.of(&format!("https://{host}.example/v2"))),
        ["https://c.example/v2"; 3]
    );
    for (url, platform) in [
        ("https://new.example/api/v2", "https://new.example/api/v2"),
        (
            "HTTPS://New.Example:443/api/./v2/",
            "https://new.example/api/v2",
        ),
        ("https://old.example/api/v2/", "https://new.example/api/v2"),
        (
            "https://old.example:443/api/v2",
            "https://new.example/api/v2",
        ),
        (
            "https://old.example:8443/api/v2",
            "https://old.example:8443/api/v2",
        ),
        ("http://old.example/api/v2", "http://old.example/api/v2"),
        ("https://old.example/api/v3", "https://old.example/api/v3"),
        ("https://10.7/v2", "https://h.example/v2"),
    ] {
        assert_eq!(platforms.of(url), platform, "{url}");
    }
    for wrong in [
        "",
        "https://a.example/v2",
        "old=https://a.example/v2",
        "https://a.example/v2=new",
    ] {
        assert!(
            alias(wrong).is_err_and(|why| why.contains("two base URLs")),
            "{wrong}"
        );
    }
}
