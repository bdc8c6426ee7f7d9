//! Whether calls are sent with an account's key.

use tokio::sync::watch;

use crate::domain::Fault;

/// Closed after a 401: first in doubt, until the key is accepted again or counts as refused.
#[derive(Debug)]
pub(super) struct Gate(watch::Sender<Option<Fault>>);

impl Gate {
    pub fn open() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Why it is closed.
    pub fn why(&self) -> Option<Fault> {
        self.0.borrow().clone()
    }

    pub fn watch(&self) -> watch::Receiver<Option<Fault>> {
        self.0.subscribe()
    }

    /// The key counts as refused.
    pub fn refuse(&self) {
        self.0.send_if_modified(|why| match why {
            Some(Fault::KeyInDoubt { message }) => {
                *why = Some(Fault::Unauthorized { message: message.clone() });
                true
            }
            _ => false,
        });
    }

    /// Closes or opens it, as the outcome of a call with the account's own key shows. One 401 is a doubt to everybody but the caller that
    /// asks about the key.
    pub fn note<T>(&self, outcome: Result<T, Fault>, asks: bool) -> Result<T, Fault> {
        match outcome {
            Err(Fault::Unauthorized { message }) => {
                let doubt = Fault::KeyInDoubt { message: message.clone() };
                self.0.send_if_modified(|why| {
                    let news = why.is_none();
                    why.get_or_insert_with(|| doubt.clone());
                    news
                });
                Err(if asks { Fault::Unauthorized { message } } else { doubt })
            }
            outcome => {
                if asks && proves_acceptance(&outcome) {
                    self.0.send_if_modified(|why| why.take().is_some());
                }
                outcome
            }
        }
    }
}

/// Whether the platform knew the key: it also does when it refuses what the key may not do.
pub(super) fn proves_acceptance<T>(outcome: &Result<T, Fault>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(Fault::Unsupported { .. }) => false,
        Err(fault) => fault.is_refusal(),
    }
}
