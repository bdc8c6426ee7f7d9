//! A scripted server on loopback that records its requests.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use dbplane::domain::{ComputeId, OrganizationId, ProjectId};
use dbplane::platform::{Endpoint, HttpOptions, HttpPlatform, Reach};
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The API key of every test. It may appear only in an Authorization header.
pub const TOKEN: &str = "canary-0123456789abcdef";

/// The IDs in most requests.
pub static P: LazyLock<ProjectId> = LazyLock::new(|| "p".into());
pub static EP: LazyLock<ComputeId> = LazyLock::new(|| "ep-a".into());
pub static ORG: LazyLock<OrganizationId> = LazyLock::new(|| "org-a".into());

#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    /// Path and query as sent.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The index of its connection, from 0.
    pub connection: usize,
}

impl Request {
    pub fn header(&self, name: &str) -> Vec<&str> {
        let matching = self.headers.iter().filter(|(header, _)| header == name);
        matching.map(|(_, value)| value.as_str()).collect()
    }

    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// The server's action after it has read a request.
#[derive(Clone, Debug)]
pub enum Act {
    /// A complete answer on a connection that stays open.
    Answer {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// These bytes, then the connection is closed.
    Raw(Vec<u8>),
    /// The head and a part of the body, then silence.
    Stall(Vec<u8>),
    /// A complete answer, then the connection is closed without notice.
    AnswerAndClose(String),
    /// Resets the connection.
    Reset,
    /// No answer.
    Silence,
}

pub fn answer(status: u16, body: &str) -> Act {
    with_headers(status, &[("content-type", "application/json")], body)
}

pub fn with_headers(status: u16, headers: &[(&'static str, &str)], body: &str) -> Act {
    Act::Answer {
        status,
        headers: headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect(),
        body: body.as_bytes().to_vec(),
    }
}

type Script = dyn FnMut(&Request) -> Act + Send;

pub struct Server {
    pub port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Answers each request with the result of `script`.
    pub async fn scripted(script: impl FnMut(&Request) -> Act + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Mutex<Box<Script>>> = Arc::new(Mutex::new(Box::new(script)));
        let mut tasks = JoinSet::new();
        let seen = Arc::clone(&requests);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(
                    stream,
                    connection,
                    Arc::clone(&seen),
                    Arc::clone(&script),
                ));
            }
        });
        Self {
            port,
            requests,
            _tasks: tasks,
        }
    }

    /// Answers the requests with these acts in order, and repeats the last one.
    pub async fn acting(acts: impl IntoIterator<Item = Act>) -> Self {
        let mut acts: VecDeque<Act> = acts.into_iter().collect();
        Self::scripted(move |_| match acts.len() {
            0 => Act::Silence,
            1 => acts[0].clone(),
            _ => acts.pop_front().unwrap(),
        })
        .await
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.requests().iter().map(Request::line).collect()
    }

    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            base_url: format!("http://127.0.0.1:{}/api/v2", self.port),
            organization_id: Some("org-a".into()),
            reach: Reach {
                insecure: true,
                ..Reach::default()
            },
        }
    }

    pub fn platform(&self) -> HttpPlatform {
        platform(self.endpoint())
    }
}

pub fn platform(endpoint: Endpoint) -> HttpPlatform {
    HttpPlatform::new(endpoint, SecretString::from(TOKEN), &options()).unwrap()
}

pub fn options() -> HttpOptions {
    HttpOptions {
        connect_timeout: Duration::from_secs(5),
        request_timeout: Duration::from_secs(5),
        environment_proxies: false,
        ..HttpOptions::default()
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    seen: Arc<Mutex<Vec<Request>>>,
    script: Arc<Mutex<Box<Script>>>,
) {
    let mut buffer = Vec::new();
    while let Some(mut request) = read(&mut stream, &mut buffer).await {
        request.connection = connection;
        seen.lock().unwrap().push(request.clone());
        let act = script.lock().unwrap()(&request);
        if !perform(&mut stream, act).await {
            return;
        }
    }
}

/// True if the connection stays open.
async fn perform(stream: &mut TcpStream, act: Act) -> bool {
    match act {
        Act::Answer {
            status,
            headers,
            body,
        } => stream
            .write_all(&whole(status, &headers, &body))
            .await
            .is_ok(),
        Act::Raw(bytes) => {
            let _ = stream.write_all(&bytes).await;
            false
        }
        Act::Stall(bytes) => {
            let _ = stream.write_all(&bytes).await;
            std::future::pending().await
        }
        Act::AnswerAndClose(body) => {
            let _ = stream.write_all(&whole(200, &[], body.as_bytes())).await;
            false
        }
        Act::Reset => {
            stream.set_zero_linger().unwrap();
            false
        }
        Act::Silence => std::future::pending().await,
    }
}

fn whole(status: u16, headers: &[(&'static str, String)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status} Scripted\r\n");
    for (name, value) in headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    if status != 204 {
        bytes.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    bytes.push_str("\r\n");
    let mut bytes = bytes.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some((request, length)) = parse(buffer) {
            buffer.drain(..length);
            return Some(request);
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

fn parse(buffer: &[u8]) -> Option<(Request, usize)> {
    let end = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers: Vec<_> = headers
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let request = Request {
        method: first.next()?,
        target: first.next()?,
        headers,
        ..Request::default()
    };
    let length: usize = request
        .header("content-length")
        .first()
        .map_or(0, |length| length.parse().unwrap());
    let body = buffer.get(end..end + length)?;
    let body = String::from_utf8(body.to_vec()).unwrap();
    Some((Request { body, ..request }, end + length))
}
