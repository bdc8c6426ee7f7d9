//! Limits how many passes of one kind run at once for each account and namespace. Passes that wait
//! for a slow platform, or for the budget of its account, thus hold up no others. New, changed and
//! unready objects do not queue behind periodic passes over objects that are up to date.
//!
//! An object without a free slot is queued and woken later. It must not hold a future, because
//! kube-runtime polls every pending reconcile whenever one of them makes progress.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kube::{Resource, ResourceExt};

use crate::controller::environment::{Kind, account_of};
use crate::controller::object::Managed;
use crate::controller::pass::label;

/// The slots of all owners.
#[derive(Clone, Debug)]
pub struct Slots {
    each: usize,
    all: Arc<Mutex<All>>,
}

#[derive(Debug, Default)]
struct All {
    owners: HashMap<String, Owned>,
    /// The owner whose slot an object has or waits for.
    owner_of: HashMap<String, String>,
}

/// Dropping a slot frees it.
#[derive(Debug)]
pub struct Slot {
    slots: Slots,
    object: String,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.leave(&self.object);
    }
}

/// Requeues a waiting object.
type Waker = Box<dyn FnOnce() + Send>;

/// The slots of one owner. While objects of a class wait, all slots of that class are taken.
#[derive(Default)]
struct Owned {
    /// The objects that have a slot, or were woken to take one.
    taken: HashMap<String, TakenSlot>,
    /// The waiting objects, each with its place and waker.
    waiting: HashMap<String, (PlaceInLine, Waker)>,
    order: BTreeMap<PlaceInLine, String>,
    last: u64,
}

/// Objects that are not up to date come first, then in order of arrival.
type PlaceInLine = (bool, u64);

#[derive(Clone, Copy)]
struct TakenSlot {
    stands: bool,
    has_come: bool,
}

impl std::fmt::Debug for Owned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owned")
            .field("taken", &self.taken.len())
            .field("waiting", &self.waiting.len())
            .finish()
    }
}

impl Owned {
    fn is_unused(&self) -> bool {
        self.taken.is_empty() && self.waiting.is_empty()
    }

    fn is_free(&self, each: usize, stands: bool) -> bool {
        let standing = || self.taken.values().filter(|taken| taken.stands).count();
        self.taken.len() < each && (!stands || standing() < (each * 3 / 4).max(1))
    }

    /// Returns true if a pass may begin. Otherwise the object waits. If it waited already, it keeps
    /// its place, unless it is no longer up to date.
    fn take(&mut self, each: usize, object: &str, stands: bool, wake: Waker) -> bool {
        if let Some(kept) = self.taken.get_mut(object).filter(|taken| !taken.has_come) {
            kept.has_come = true;
            return true;
        }
        if self.is_free(each, stands) {
            self.taken.insert(
                object.to_owned(),
                TakenSlot {
                    stands,
                    has_come: true,
                },
            );
            return true;
        }
        let keeps_its_place = self
            .waiting
            .get(object)
            .is_some_and(|((stood, _), _)| !stood || stands);
        if !keeps_its_place {
            self.cease_to_wait(object);
            self.last += 1;
            let place = (stands, self.last);
            self.order.insert(place, object.to_owned());
            self.waiting.insert(object.to_owned(), (place, wake));
        }
        false
    }

    fn cease_to_wait(&mut self, object: &str) -> Option<Waker> {
        let (place, wake) = self.waiting.remove(object)?;
        self.order.remove(&place);
        Some(wake)
    }

    /// Gives free slots to waiting objects. Returns their wakers.
    fn pass_on(&mut self, each: usize) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some((&(stands, _), object)) = self.order.first_key_value()
            && self.is_free(each, stands)
        {
            let object = object.clone();
            woken.extend(self.cease_to_wait(&object));
            self.taken.insert(
                object,
                TakenSlot {
                    stands,
                    has_come: false,
                },
            );
        }
        woken
    }
}

impl All {
    /// Removes the object's slot, or its place in the queue. Returns the wakers of objects that get
    /// a slot.
    fn leave(&mut self, each: usize, object: &str) -> Vec<Waker> {
        let Some(owner) = self.owner_of.remove(object) else {
            return Vec::new();
        };
        let Some(owned) = self.owners.get_mut(&owner) else {
            return Vec::new();
        };
        owned.taken.remove(object);
        owned.cease_to_wait(object);
        let woken = owned.pass_on(each);
        if owned.is_unused() {
            self.owners.remove(&owner);
        }
        woken
    }
}

impl Slots {
    /// `each` is the number of slots per owner.
    pub fn new(each: u16) -> Self {
        Self {
            each: usize::from(each),
            all: Arc::default(),
        }
    }

    /// A slot for a pass over `object`. Without one, `wake` is called when there is one: in order
    /// of arrival within a class.
    pub fn take<K: Kind>(
        &self,
        object: &K::Object,
        wake: impl FnOnce() + Send + 'static,
    ) -> Option<Slot> {
        self.of(
            owner::<K>(object),
            label(object),
            object.stands(),
            Box::new(wake),
        )
    }

    fn of(&self, owner: String, object: String, stands: bool, wake: Waker) -> Option<Slot> {
        let (taken, woken) = self.with(|all| {
            // The object refers to another account now.
            let has_moved = all
                .owner_of
                .get(&object)
                .is_some_and(|before| *before != owner);
            let woken = if has_moved {
                all.leave(self.each, &object)
            } else {
                Vec::new()
            };
            all.owner_of.insert(object.clone(), owner.clone());
            (
                all.owners
                    .entry(owner)
                    .or_default()
                    .take(self.each, &object, stands, wake),
                woken,
            )
        });
        woken.into_iter().for_each(|wake| wake());
        taken.then(|| Slot {
            slots: self.clone(),
            object,
        })
    }

    /// The object with this label is gone, or this version of it gets no pass.
    pub fn leave(&self, object: &str) {
        let woken = self.with(|all| all.leave(self.each, object));
        woken.into_iter().for_each(|wake| wake());
    }

    fn with<T>(&self, run: impl FnOnce(&mut All) -> T) -> T {
        run(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The owner of the slots for a pass over `object`: kind, account and namespace. An account is its
/// own owner.
fn owner<K: Kind>(object: &K::Object) -> String {
    let Some(account) = account_of::<K>(object) else {
        return label(object);
    };
    let namespace = object.namespace().unwrap_or_default();
    format!("{} of {account} in {namespace}", K::Object::kind(&()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;
    use crate::controller::compute::Computes;

    fn owner(account: &str, namespace: &str) -> String {
        let spec = json!({
            "accountRef": {"kind": "ClusterAccount", "name": account}, "projectID": "p", "branchID": "br-1", "type": "ReadOnly",
        });
        let compute = json!({"metadata": {"name": "orders", "namespace": namespace, "uid": "uid"}, "spec": spec});
        super::owner::<Computes>(&serde_json::from_value(compute).unwrap())
    }

    /// The slots of one owner, and the woken objects in order.
    struct Desk {
        slots: Slots,
        woken: Arc<Mutex<Vec<&'static str>>>,
    }

    const OWNER: &str = "Compute of Account shop/prod in shop";

    impl Desk {
        fn new(each: u16) -> Self {
            Self {
                slots: Slots::new(each),
                woken: Arc::default(),
            }
        }

        fn ask(&self, object: &'static str, stands: bool) -> Option<Slot> {
            let woken = self.woken.clone();
            self.slots.of(
                OWNER.to_owned(),
                object.to_owned(),
                stands,
                Box::new(move || woken.lock().unwrap().push(object)),
            )
        }

        fn woken(&self) -> Vec<&'static str> {
            std::mem::take(&mut *self.woken.lock().unwrap())
        }
    }

    #[test]
    fn who_waits_holds_up_nobody_of_another_account_or_namespace() {
        let slots = Slots::new(2);
        let ask = |account: &str, namespace: &str, object: &str| {
            slots.of(
                owner(account, namespace),
                object.to_owned(),
                false,
                Box::new(|| {}),
            )
        };
        let _taken = [
            ask("slow", "shop", "a").unwrap(),
            ask("slow", "shop", "b").unwrap(),
        ];
        for number in 0..1000 {
            assert!(
                ask("slow", "shop", &number.to_string()).is_none(),
                "both slots are taken"
            );
        }
        assert!(
            ask("slow", "bank", "a").is_some(),
            "another namespace has its own"
        );
        assert!(
            ask("fast", "shop", "a").is_some(),
            "another account has its own"
        );
    }

    #[test]
    fn a_free_slot_is_kept_for_who_has_waited_longest() {
        let desk = Desk::new(1);
        let first = desk.ask("first", false).unwrap();
        for object in ["second", "third", "second"] {
            assert!(desk.ask(object, false).is_none());
        }
        drop(first);
        assert_eq!(desk.woken(), ["second"]);
        assert!(desk.ask("fourth", false).is_none(), "it is kept");
        let second = desk.ask("second", false).unwrap();
        drop(second);
        assert_eq!(desk.woken(), ["third"]);
    }

    #[test]
    fn what_stands_as_declared_leaves_slots_for_what_does_not() {
        for (each, for_standing) in [(1, 1), (2, 1), (4, 3), (16, 12)] {
            let slots = Slots::new(each);
            let mut taken = Vec::new();
            let mut ask = |number: usize, stands: bool| {
                let slot = slots.of(
                    OWNER.to_owned(),
                    number.to_string(),
                    stands,
                    Box::new(|| {}),
                );
                let is_taken = slot.is_some();
                taken.extend(slot);
                is_taken
            };
            assert_eq!(
                (0..100).filter(|number| ask(*number, true)).count(),
                for_standing,
                "of {each}"
            );
            assert_eq!(
                (100..200).filter(|number| ask(*number, false)).count(),
                usize::from(each) - for_standing
            );
        }
    }

    #[test]
    fn what_is_changed_meanwhile_comes_before_what_only_is_looked_at_again() {
        let desk = Desk::new(1);
        let first = desk.ask("first", false).unwrap();
        for (object, stands) in [
            ("standing", true),
            ("changed", true),
            ("new", false),
            ("changed", false),
        ] {
            assert!(desk.ask(object, stands).is_none());
        }
        drop(first);
        for object in ["new", "changed", "standing"] {
            assert_eq!(desk.woken(), [object]);
            drop(desk.ask(object, false).unwrap());
        }
        assert_eq!(desk.woken(), [""; 0]);
    }

    #[test]
    fn who_does_not_come_for_its_slot_passes_it_on() {
        let desk = Desk::new(1);
        let first = desk.ask("first", false).unwrap();
        assert!(desk.ask("gone", false).is_none() && desk.ask("next", false).is_none());
        drop(first);
        assert_eq!(desk.woken(), ["gone"]);
        desk.slots.leave("gone");
        assert_eq!(desk.woken(), ["next"]);
        desk.slots.leave("next");
        assert!(desk.ask("another", false).is_some());
    }

    #[test]
    fn who_comes_and_goes_often_leaves_nothing_behind() {
        let desk = Desk::new(1);
        let _first = desk.ask("first", false).unwrap();
        for _ in 0..100 {
            assert!(desk.ask("hasty", true).is_none() && desk.ask("hasty", false).is_none());
            desk.slots.leave("hasty");
        }
        assert_eq!(
            desk.slots.with(|all| (
                all.owners[OWNER].order.len(),
                all.owners[OWNER].waiting.len()
            )),
            (0, 0)
        );
    }

    #[test]
    fn who_refers_to_another_account_meanwhile_keeps_no_slot_of_the_former() {
        let desk = Desk::new(1);
        let first = desk.ask("first", false).unwrap();
        assert!(desk.ask("moves", false).is_none() && desk.ask("next", false).is_none());
        drop(first);
        assert_eq!(desk.woken(), ["moves"]);
        let elsewhere = desk.slots.of(
            owner("other", "shop"),
            "moves".to_owned(),
            false,
            Box::new(|| {}),
        );
        assert!(elsewhere.is_some());
        assert_eq!(desk.woken(), ["next"]);
    }

    #[test]
    fn what_nobody_uses_is_not_kept() {
        let slots = Slots::new(1);
        let woken = Arc::new(AtomicUsize::new(0));
        for number in 0..100 {
            let ask = |object: &str| {
                let woken = woken.clone();
                let wake = Box::new(move || {
                    woken.fetch_add(1, Ordering::Relaxed);
                });
                slots.of(format!("account-{number}"), object.to_owned(), false, wake)
            };
            let taken = ask("one");
            assert!(ask("other").is_none());
            drop(taken);
            drop(ask("other").unwrap());
        }
        let kept = slots.with(|all| all.owners.len() + all.owner_of.len());
        assert_eq!((kept, woken.load(Ordering::Relaxed)), (0, 100));
    }
}
