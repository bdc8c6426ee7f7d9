//! A memory limit for the platform lists of one namespace. The author of an Account chooses the
//! server that answers. The limit is therefore for the namespace, not for each account or list.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

/// Each list counts as at least this much, because it is in memory while it is read. This limits
/// the number of lists, too.
pub const LEAST_SHARE: usize = 64 * 1024;
/// Number of answers larger than that which are read at the same time.
const LARGER_ANSWERS: usize = 4;

/// The rooms of all namespaces that have lists.
#[derive(Debug)]
pub struct Rooms {
    limit: usize,
    all: Mutex<HashMap<String, Weak<Room>>>,
}

impl Rooms {
    /// Each room has `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            all: Mutex::default(),
        }
    }

    pub fn of(&self, namespace: &str) -> Arc<Room> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = all.get(namespace).and_then(Weak::upgrade) {
            return room;
        }
        all.retain(|_, room| room.strong_count() > 0);
        let room = Arc::new(Room::new(self.limit));
        all.insert(namespace.to_owned(), Arc::downgrade(&room));
        room
    }
}

/// The memory for the lists of one namespace.
#[derive(Debug)]
pub struct Room {
    limit: usize,
    used: Mutex<usize>,
    /// Permits to have an answer in memory that is larger than [`LEAST_SHARE`], or much larger.
    pub(super) larger: Arc<Semaphore>,
    pub(super) largest: Arc<Semaphore>,
}

impl Default for Room {
    /// Without a limit for kept lists.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl Room {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            used: Mutex::default(),
            larger: Arc::new(Semaphore::new(LARGER_ANSWERS)),
            largest: Arc::new(Semaphore::new(1)),
        }
    }

    pub fn limit(&self) -> usize {
        self.limit
    }
}

/// The part of a room that one list uses. Dropping it frees the memory.
#[derive(Debug)]
pub struct RoomShare {
    room: Arc<Room>,
    bytes: usize,
}

impl RoomShare {
    /// Starts empty.
    pub fn of(room: Arc<Room>) -> Self {
        Self { room, bytes: 0 }
    }

    /// Changes the size to `bytes`, at least [`LEAST_SHARE`]. Returns false and changes nothing if
    /// there is not enough room.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let bytes = bytes.max(LEAST_SHARE);
        let mut used = self
            .room
            .used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let others = used.saturating_sub(self.bytes);
        if bytes > self.bytes && others.saturating_add(bytes) > self.room.limit {
            return false;
        }
        *used = others.saturating_add(bytes);
        self.bytes = bytes;
        true
    }

    /// True if it holds any memory.
    pub fn is_counted(&self) -> bool {
        self.bytes > 0
    }

    pub fn room(&self) -> &Room {
        &self.room
    }
}

impl Drop for RoomShare {
    fn drop(&mut self) {
        let mut used = self
            .room
            .used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *used = used.saturating_sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_one_namespace_share_its_room_and_give_it_back() {
        let rooms = Rooms::new(4 * LEAST_SHARE);
        let list = |namespace| RoomShare::of(rooms.of(namespace));
        let (mut first, mut second, mut elsewhere) = (list("shop"), list("shop"), list("bank"));
        assert!(first.resize(3 * LEAST_SHARE) && second.resize(0));
        assert!(!second.resize(LEAST_SHARE + 1), "there is no more");
        assert!(
            elsewhere.resize(4 * LEAST_SHARE),
            "another namespace has its own"
        );
        assert!(
            first.resize(LEAST_SHARE) && second.resize(3 * LEAST_SHARE),
            "what the first one has given back"
        );
        assert!(!list("shop").resize(0), "each list counts, however small");
        drop((first, second));
        assert!(list("shop").resize(4 * LEAST_SHARE));
    }

    #[test]
    fn a_room_that_nobody_uses_is_not_kept() {
        let rooms = Rooms::new(1);
        for number in 0..100 {
            rooms.of(&format!("namespace-{number}"));
        }
        assert_eq!(rooms.all.lock().unwrap().len(), 1);
    }
}
