//! The gate that decides if calls are sent with an account's key.

use tokio::sync::watch;

use crate::domain::Fault;

/// Closed after a 401. The key is first in doubt, until the platform accepts it again or it counts
/// as refused.
#[derive(Debug)]
pub(super) struct Gate(watch::Sender<Option<Fault>>);

impl Gate {
    pub fn open() -> Self {
        Self(watch::Sender::new(None))
    }

    /// The reason why it is closed.
    pub fn why(&self) -> Option<Fault> {
        self.0.borrow().clone()
    }

    pub fn watch(&self) -> watch::Receiver<Option<Fault>> {
        self.0.subscribe()
    }

    /// From now on, the key counts as refused.
    pub fn refuse(&self) {
        self.0.send_if_modified(|why| match why {
            Some(Fault::KeyInDoubt { message }) => {
                *why = Some(Fault::Unauthorized {
                    message: message.clone(),
                });
                true
            }
            _ => false,
        });
    }

    /// Closes or opens the gate after a call with the account's own key. One 401 only puts the key
    /// in doubt. A call that asks about the key (`asks`) gets the 401 itself.
    pub fn record<T>(&self, outcome: Result<T, Fault>, asks: bool) -> Result<T, Fault> {
        match outcome {
            Err(Fault::Unauthorized { message }) => {
                let doubt = Fault::KeyInDoubt {
                    message: message.clone(),
                };
                self.0.send_if_modified(|why| {
                    let is_new = why.is_none();
                    why.get_or_insert_with(|| doubt.clone());
                    is_new
                });
                Err(if asks {
                    Fault::Unauthorized { message }
                } else {
                    doubt
                })
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

/// True if the platform recognized the key. A refusal of something that the key may not do proves
/// this, too.
pub(super) fn proves_acceptance<T>(outcome: &Result<T, Fault>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(Fault::Unsupported { .. }) => false,
        Err(fault) => fault.is_refusal(),
    }
}
