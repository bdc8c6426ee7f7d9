//! The client for all requests to the API server except those for the Lease. It does not retry by
//! itself: kube's own retries, which take minutes, are off. While the API server is unavailable,
//! one request at a time probes it.

use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{Method, Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tower::service_fn;
use tracing::{info, warn};

use super::explained;
use crate::decide::circuit::{self, Admission, Circuit, ServerAnswer};
use crate::leadership::Leadership;

/// How long a request waits for its turn. By then the observation of the pass may be stale, so the
/// pass has to start over.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A client that sends each request once, whatever the answer. The Lease uses one of its own, which
/// never waits.
///
/// # Errors
/// As `Client::try_from`.
pub fn client_without_retries(mut config: Config) -> kube::Result<Client> {
    config.default_retry = false;
    Client::try_from(config)
}

/// The same for all other requests. While the API server is unavailable, one request probes it for
/// all. While the leadership is suspended, no write is sent. After `stop`, no request waits any
/// more.
///
/// # Errors
/// As `Client::try_from`.
pub fn client(
    config: Config,
    leadership: &Leadership,
    stop: &CancellationToken,
) -> kube::Result<Client> {
    Ok(in_turn(client_without_retries(config)?, leadership, stop))
}

fn in_turn(inner: Client, leadership: &Leadership, stop: &CancellationToken) -> Client {
    let (namespace, expires) = (inner.default_namespace().to_owned(), *inner.valid_until());
    // Reads and writes are separate because an API server may reject only writes: a served read
    // proves nothing about them.
    let (reads, writes) = (
        RequestTurns::new(&Leadership::default(), stop),
        RequestTurns::new(leadership, stop),
    );
    let service = service_fn(move |request: Request<Body>| {
        let turns = if request.method() == Method::GET {
            &reads
        } else {
            &writes
        };
        let (turns, inner) = (turns.clone(), inner.clone());
        async move { turns.send(&inner, request).await }
    });
    Client::new(service, namespace).with_valid_until(expires)
}

/// True if the API server did not answer or is overloaded, so nothing is wrong with the request
/// itself.
pub fn is_unavailable(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => circuit::is_unavailable(status.code),
        kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

/// The request was not sent.
#[derive(Debug, thiserror::Error)]
#[error("it is unavailable ({0})")]
struct Unavailable(String);

/// The requests of one kind, reads or writes, with their turns. Clones share them.
#[derive(Clone)]
struct RequestTurns {
    state: watch::Sender<ApiServerState>,
    began: Instant,
    leadership: Leadership,
    stop: CancellationToken,
}

#[derive(Default)]
struct ApiServerState {
    circuit: Circuit,
    /// The reason why it is unavailable, for messages.
    cause: String,
}

impl RequestTurns {
    fn new(leadership: &Leadership, stop: &CancellationToken) -> Self {
        let (leadership, stop) = (leadership.clone(), stop.clone());
        Self {
            state: watch::Sender::default(),
            began: Instant::now(),
            leadership,
            stop,
        }
    }

    async fn send(&self, inner: &Client, request: Request<Body>) -> kube::Result<Response<Body>> {
        let asks = self.turn().await.map_err(unsent)?;
        if self.leadership.is_suspended() && !self.stop.is_cancelled() {
            let cause = "this process could not renew its lease";
            if asks {
                self.answered(asks, ServerAnswer::Unavailable(None), cause.to_owned());
            }
            return Err(unsent(Unavailable(cause.to_owned())));
        }
        let answer = inner.send(request).await;
        if let Some((answer, cause)) = shown(&answer) {
            self.answered(asks, answer, cause);
        }
        answer
    }

    /// Waits until the request may be sent. Returns true if it is the probe.
    async fn turn(&self) -> Result<bool, Unavailable> {
        let deadline = Instant::now() + LONGEST_WAIT;
        let mut changes = self.state.subscribe();
        loop {
            let mut admission = Admission::Pass;
            let now = self.began.elapsed();
            self.state.send_if_modified(|state| {
                admission = state.circuit.admit(now);
                false
            });
            let until = match admission {
                Admission::Pass => return Ok(false),
                Admission::Probe => return Ok(true),
                Admission::Wait(until) => self.began + until,
            };
            if Instant::now() >= deadline {
                return Err(Unavailable(self.state.borrow().cause.clone()));
            }
            tokio::select! {
                () = sleep_until(until.min(deadline)) => {}
                _ = changes.wait_for(|state| state.circuit == Circuit::Available) => {}
                () = self.stop.cancelled() => return Ok(false),
            }
        }
    }

    fn answered(&self, asked: bool, answer: ServerAnswer, cause: String) {
        let now = self.began.elapsed();
        self.state.send_if_modified(|state| {
            let before = state.circuit;
            state.circuit.answered(asked, answer, now);
            let changes = (before == Circuit::Available) != (state.circuit == Circuit::Available);
            match state.circuit {
                Circuit::Available if changes => info!("the API server is available again"),
                Circuit::Available => {}
                Circuit::Unavailable { .. } if changes => {
                    warn!(
                        error = cause,
                        "the API server is unavailable; it is asked once a second until it is back"
                    );
                    state.cause = cause;
                }
                Circuit::Unavailable { .. } if asked => state.cause = cause,
                Circuit::Unavailable { .. } => {}
            }
            changes
        });
    }
}

fn unsent(unavailable: Unavailable) -> kube::Error {
    kube::Error::Service(Box::new(unavailable))
}

/// The state of the API server that an answer shows, with the cause for messages.
fn shown(answer: &kube::Result<Response<Body>>) -> Option<(ServerAnswer, String)> {
    match answer {
        Ok(response) if circuit::is_unavailable(response.status().as_u16()) => {
            let named = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.parse().ok());
            let cause = format!("it answers {}", response.status());
            Some((
                ServerAnswer::Unavailable(named.map(Duration::from_secs)),
                cause,
            ))
        }
        Ok(_) => Some((ServerAnswer::Served, String::new())),
        Err(error) if is_unavailable(error) => {
            Some((ServerAnswer::Unavailable(None), explained(error)))
        }
        // This process could not send the request, for example because its credentials cannot be
        // read.
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::time::sleep;

    use super::*;
    use crate::clock;

    /// An API server that answers writes with a status, and reads with 200.
    #[derive(Default)]
    struct FakeServer {
        status: AtomicU16,
        writes: AtomicUsize,
        reads: AtomicUsize,
    }

    impl FakeServer {
        fn client(self: &Arc<Self>, retry_after: Option<u64>) -> Client {
            let server = self.clone();
            let answer = move |request: Request<Body>| {
                let read = request.method() == Method::GET;
                let count = if read { &server.reads } else { &server.writes };
                count.fetch_add(1, Ordering::SeqCst);
                let status = if read {
                    200
                } else {
                    server.status.load(Ordering::SeqCst)
                };
                let mut answer = Response::builder().status(status);
                if let Some(seconds) = retry_after
                    && status != 200
                {
                    answer = answer.header(RETRY_AFTER, seconds);
                }
                async move { Ok::<_, kube::Error>(answer.body(Body::empty()).unwrap()) }
            };
            Client::new(service_fn(answer), "shop")
        }

        fn answers(&self, status: u16) {
            self.status.store(status, Ordering::SeqCst);
        }
    }

    fn request(method: Method) -> Request<Body> {
        Request::builder()
            .method(method)
            .uri("/")
            .body(Body::empty())
            .unwrap()
    }

    /// Retries until it is served, as passes do.
    async fn served(client: Client) -> Instant {
        loop {
            match client.send(request(Method::PATCH)).await {
                Ok(answer) if answer.status() == 200 => return Instant::now(),
                Ok(_) => {}
                Err(error) => {
                    assert!(
                        is_unavailable(&error) && explained(&error).contains("503"),
                        "{error:?}"
                    );
                }
            }
            sleep(circuit::PROBE_PAUSE).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_write_a_second_asks_for_all_and_all_go_on_when_it_is_served() {
        let server = Arc::new(FakeServer::default());
        server.answers(503);
        let client = in_turn(
            server.client(None),
            &Leadership::default(),
            &CancellationToken::new(),
        );
        assert_eq!(client.default_namespace(), "shop");
        let all: Vec<_> = (0..50)
            .map(|_| tokio::spawn(served(client.clone())))
            .collect();
        for _ in 0..60 {
            sleep(Duration::from_secs(1)).await;
            assert_eq!(
                client.send(request(Method::GET)).await.unwrap().status(),
                200,
                "reads are served"
            );
        }
        let refused = server.writes.load(Ordering::SeqCst);
        assert!(
            (50..=50 + 62).contains(&refused),
            "{refused} requests in 60 s"
        );
        server.answers(200);
        let end = Instant::now();
        let last = join_all(all)
            .await
            .into_iter()
            .map(Result::unwrap)
            .max()
            .unwrap();
        assert!(
            last - end <= Duration::from_secs(3),
            "the last one goes on after {:?}",
            last - end
        );
        assert_eq!(server.reads.load(Ordering::SeqCst), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_the_api_server_names_is_obeyed() {
        let server = Arc::new(FakeServer::default());
        server.answers(429);
        let client = in_turn(
            server.client(Some(3)),
            &Leadership::default(),
            &CancellationToken::new(),
        );
        let begun = Instant::now();
        assert_eq!(
            client.send(request(Method::PATCH)).await.unwrap().status(),
            429
        );
        server.answers(200);
        assert_eq!(
            client.send(request(Method::PATCH)).await.unwrap().status(),
            200
        );
        assert!(
            begun.elapsed() >= Duration::from_secs(3),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(server.writes.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn nothing_is_written_while_the_lease_is_not_renewed() {
        let server = Arc::new(FakeServer::default());
        server.answers(200);
        let (leadership, stop) = (Leadership::elected(), CancellationToken::new());
        let client = in_turn(server.client(None), &leadership, &stop);
        leadership.extend(clock::since_boot());
        let refused = client.send(request(Method::PATCH)).await.unwrap_err();
        assert!(
            is_unavailable(&refused) && explained(&refused).contains("lease"),
            "{refused:?}"
        );
        assert_eq!(
            client.send(request(Method::GET)).await.unwrap().status(),
            200
        );
        leadership.extend(clock::since_boot() + LONGEST_WAIT);
        assert_eq!(
            client.send(request(Method::PATCH)).await.unwrap().status(),
            200
        );
        leadership.extend(clock::since_boot());
        stop.cancel();
        assert_eq!(
            client.send(request(Method::PATCH)).await.unwrap().status(),
            200,
            "keys are saved"
        );
        assert_eq!(server.writes.load(Ordering::SeqCst), 2);
    }

    /// The process then saves keys that exist only in memory, with its own pauses.
    #[tokio::test(start_paused = true)]
    async fn nothing_waits_once_the_process_is_to_stop() {
        let server = Arc::new(FakeServer::default());
        server.answers(503);
        let stop = CancellationToken::new();
        let client = in_turn(server.client(Some(60)), &Leadership::default(), &stop);
        client.send(request(Method::PATCH)).await.unwrap();
        stop.cancel();
        let begun = Instant::now();
        assert_eq!(
            client.send(request(Method::PATCH)).await.unwrap().status(),
            503
        );
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
