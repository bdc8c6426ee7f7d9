//! Which of the further calls this platform lacks: learned from its answers, and forgotten after a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::Fault;

/// Answers in the place of a platform that was seen not to offer a read.
#[derive(Debug)]
pub(super) struct Verdicts {
    lifetime: Duration,
    lacking: Mutex<HashMap<String, (Instant, Fault)>>,
}

impl Verdicts {
    pub fn new(lifetime: Duration) -> Self {
        Self { lifetime, lacking: Mutex::default() }
    }

    /// The outcome of `call`, a read of the collection at `segments`, which is not made while the platform is known to
    /// lack it. Such a collection is never absent as an object, so 404 means that the platform does not offer the call.
    pub async fn ask<T>(&self, segments: &[&str], call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let key = segments.join("/");
        if let Some(fault) = self.known(&key) {
            return Err(fault);
        }
        let fault = match call.await {
            Ok(answer) => return Ok(answer),
            Err(Fault::NotFound { message }) => Fault::Unsupported { status: 404, message },
            Err(fault) => fault,
        };
        if matches!(fault, Fault::Unsupported { .. }) {
            let mut lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
            lacking.insert(key, (Instant::now(), fault.clone()));
        }
        Err(fault)
    }

    fn known(&self, key: &str) -> Option<Fault> {
        let mut lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        lacking.retain(|_, (seen, _)| seen.elapsed() < self.lifetime);
        lacking.get(key).map(|(_, fault)| fault.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn not_found() -> Result<(), Fault> {
        Err(Fault::NotFound { message: "404".to_owned() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_lacking_call_is_asked_for_again_after_a_while() {
        let verdicts = Verdicts::new(Duration::from_secs(600));
        let fault = verdicts.ask(&["keys"], not_found()).await.unwrap_err();
        assert_eq!(fault.kind(), "unsupported");
        tokio::time::advance(Duration::from_secs(599)).await;
        assert_eq!(verdicts.ask(&["keys"], async { Ok(()) }).await.unwrap_err(), fault);
        assert_eq!(verdicts.ask(&["other"], async { Ok(1) }).await, Ok(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(verdicts.ask(&["keys"], async { Ok(2) }).await, Ok(2));
    }

    #[tokio::test]
    async fn other_faults_are_not_remembered() {
        let verdicts = Verdicts::new(Duration::from_secs(600));
        let busy = || async { Err(Fault::Server { status: 500, message: String::new() }) };
        assert!(verdicts.ask::<()>(&["keys"], busy()).await.is_err());
        assert_eq!(verdicts.ask(&["keys"], async { Ok(1) }).await, Ok(1));
    }
}
