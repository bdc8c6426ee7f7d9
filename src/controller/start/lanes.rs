//! A lane for each namespace: its passes take turns on one task, so they occupy at most one thread.
//! Another namespace waits for one turn of this one, not for each of its passes.

use std::cell::Cell;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, RemoteHandle};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

/// After this time, the remaining passes of the namespace wait for the next turn.
const TURN: Duration = Duration::from_millis(2);

/// Clones share the same lanes.
#[derive(Clone, Debug, Default)]
pub struct Lanes(Arc<Mutex<HashMap<String, UnboundedSender<BoxFuture<'static, ()>>>>>);

impl Lanes {
    /// Runs `pass` in the lane of `namespace`. Dropping the handle cancels the pass. A panic of the
    /// pass reaches the task that awaits the handle.
    pub fn run<T: Send + 'static>(
        &self,
        namespace: &str,
        pass: impl Future<Output = T> + Send + 'static,
    ) -> RemoteHandle<T> {
        let (pass, handle) = pass.remote_handle();
        self.add(namespace, pass.boxed());
        handle
    }

    fn add(&self, namespace: &str, pass: BoxFuture<'static, ()>) {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = lanes.entry(namespace.to_owned()).or_insert_with(|| {
            let (sender, added) = unbounded_channel();
            let lane = Lane {
                passes: FuturesUnordered::new(),
                added,
                lanes: self.clone(),
                of: namespace.to_owned(),
            };
            tokio::spawn(lane);
            sender
        });
        // A lane removes itself under the lock, so a lane that is found here receives what is sent.
        let _ = sender.send(pass);
    }
}

thread_local! {
    /// When the current turn on this thread began.
    static TURN_BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The unfinished passes of one namespace. The task ends when there are none.
struct Lane {
    passes: FuturesUnordered<InTurns>,
    added: UnboundedReceiver<BoxFuture<'static, ()>>,
    lanes: Lanes,
    of: String,
}

/// A pass that yields when the turn of its namespace is used up.
struct InTurns(BoxFuture<'static, ()>);

impl Future for InTurns {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if TURN_BEGAN
            .get()
            .is_some_and(|began| began.elapsed() >= TURN)
        {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.0.as_mut().poll(context)
    }
}

impl Future for Lane {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        while let Poll::Ready(Some(pass)) = this.added.poll_recv(context) {
            this.passes.push(InTurns(pass));
        }
        TURN_BEGAN.set(Some(Instant::now()));
        loop {
            match Pin::new(&mut this.passes).poll_next(context) {
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        let mut lanes = this.lanes.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !this.added.is_empty() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        lanes.remove(&this.of);
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use futures::future::join_all;

    use super::*;

    /// A pass that computes for longer than a turn, `times` times, and counts each.
    async fn computes(times: usize, count: Arc<AtomicUsize>) {
        for _ in 0..times {
            thread::sleep(TURN * 2);
            count.fetch_add(1, Ordering::SeqCst);
            goes_on_later().await;
        }
    }

    /// Wakes itself directly. With tokio's `yield_now` it would wait until the runtime has looked
    /// for events, and other lanes would wait for that too.
    fn goes_on_later() -> impl Future<Output = ()> {
        let mut is_later = false;
        poll_fn(move |context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut is_later, true) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
    }

    #[tokio::test]
    async fn who_waits_does_so_for_one_turn_of_another_namespace_and_not_for_each_of_its_passes() {
        let lanes = Lanes::default();
        let counts: [Arc<AtomicUsize>; 2] = Default::default();
        let greedy: Vec<_> = (0..50)
            .map(|_| lanes.run("greedy", computes(5, counts[0].clone())))
            .collect();
        let (of_greedy, of_modest) = (counts[0].clone(), counts[1].clone());
        let modest = lanes.run("modest", async move {
            computes(5, of_modest).await;
            of_greedy.load(Ordering::SeqCst)
        });
        let of_greedy = modest.await;
        assert!(
            (1..=10).contains(&of_greedy),
            "{of_greedy} turns of another namespace, for 5"
        );
        join_all(greedy).await;
        assert_eq!(counts.map(|count| count.load(Ordering::SeqCst)), [250, 5]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn passes_of_one_namespace_occupy_one_thread() {
        let lanes = Lanes::default();
        let (now, most): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
        let passes: Vec<_> = (0..20)
            .map(|_| {
                let (now, most) = (now.clone(), most.clone());
                lanes.run("shop", async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::sleep(TURN);
                    now.fetch_sub(1, Ordering::SeqCst);
                })
            })
            .collect();
        join_all(passes).await;
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_pass_that_waits_holds_up_no_other_and_one_that_nobody_waits_for_ends() {
        let lanes = Lanes::default();
        let held = Arc::new(());
        let holds = held.clone();
        let waits = lanes.run("shop", async move {
            let _holds = holds;
            std::future::pending::<()>().await;
        });
        assert_eq!(lanes.run("shop", async { 7 }).await, 7);
        drop(waits);
        assert_eq!(lanes.run("shop", async { 8 }).await, 8);
        while Arc::strong_count(&held) > 1 || !lanes.0.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_panic_is_one_of_who_waits_for_the_pass() {
        let lanes = Lanes::default();
        let ended =
            std::panic::AssertUnwindSafe(lanes.run("shop", async { panic!("of one pass") }))
                .catch_unwind()
                .await;
        assert!(ended.is_err());
        assert_eq!(lanes.run("shop", async { 7 }).await, 7);
    }
}
