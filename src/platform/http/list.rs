//! Reads a list with all its pages, within limits.

use std::collections::HashSet;

use super::HttpPlatform;
use super::exchange::{Body, Call};
use super::wire::{DecodeError, ListPage, MOST_ENTRIES};
use crate::domain::{Fault, Listed, UnreadableEntry};

/// More pages than this count as an endless list.
const MOST_PAGES: usize = 100;
/// Limit in bytes for one list with all its pages: about 8,000 computes as the platform writes
/// them. dbplane reads several accounts at the same time, and keeps the list of each project.
const LARGEST_LIST: usize = 8 * 1024 * 1024;

/// The parameters of a list.
pub(super) struct List<'a> {
    /// The content of the list, for messages.
    pub of: String,
    /// The advice to users if the list is too large.
    pub remedy: &'static str,
    pub segments: &'a [&'a str],
    /// Sent from the second page on.
    pub limit: Option<&'a str>,
}

impl List<'_> {
    fn too_large(&self) -> Fault {
        let Self { of, remedy, .. } = self;
        let mib = LARGEST_LIST / 1024 / 1024;
        let message = format!(
            "the list of {of} has more than {mib} MiB or {MOST_ENTRIES} entries, so dbplane reads nothing of it. {remedy}"
        );
        Fault::TooLarge { message }
    }
}

impl HttpPlatform {
    /// Reads all pages, up to an empty page or one without a cursor. The first request has no
    /// paging parameters, so a platform without paging gets only that one. The last page may repeat
    /// a cursor if that cursor leads only to known entries.
    pub(super) async fn pages<T>(
        &self,
        list: List<'_>,
        read: impl Fn(&[u8]) -> Result<ListPage<T>, DecodeError>,
        id: impl Fn(&T) -> String,
    ) -> Result<Listed<T>, Fault> {
        let (mut items, mut unreadable, mut ids) = (Vec::new(), Vec::new(), HashSet::new());
        let (mut cursors, mut repeated) = (HashSet::new(), false);
        let (mut bytes, mut entries) = (0, 0);
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let body = self
                .page(&list, cursor.as_deref(), LARGEST_LIST - bytes)
                .await?;
            let page = read(&body).map_err(|error| self.undecodable(error))?;
            bytes += body.len();
            drop(body);
            entries += page.entries;
            if entries > MOST_ENTRIES {
                return Err(list.too_large());
            }
            let ListPage {
                items: shown,
                unreadable: others,
                entries: count,
                cursor: next,
            } = page;
            let on_page: Vec<String> = shown
                .iter()
                .map(&id)
                .chain(others.iter().filter_map(|entry| entry.id.clone()))
                .collect();
            if on_page.iter().collect::<HashSet<_>>().len() < on_page.len() {
                return Err(self
                    .exchange
                    .unreadable("id", "two entries of the list have the same one"));
            }
            let new_ids = on_page
                .into_iter()
                .filter(|id| ids.insert(id.clone()))
                .count();
            if repeated && new_ids > 0 {
                return Err(self
                    .exchange
                    .unreadable("pagination", "a repeated cursor leads to further entries"));
            }
            if !repeated {
                items.extend(shown);
                unreadable.extend(others);
            }
            match next {
                Some(next) if !repeated && count > 0 => {
                    repeated = !cursors.insert(next.clone());
                    cursor = Some(next);
                }
                _ => return Ok(together(items, unreadable, &id)),
            }
        }
        Err(self
            .exchange
            .unreadable("pagination", "the list does not end"))
    }

    /// The body of one page, of at most `left` bytes.
    async fn page(
        &self,
        list: &List<'_>,
        cursor: Option<&str>,
        left: usize,
    ) -> Result<Body, Fault> {
        let mut query: Vec<(&str, &str)> = Vec::new();
        if let Some(cursor) = cursor {
            self.further_request().await;
            query.push(("cursor", cursor));
            query.extend(list.limit.map(|limit| ("limit", limit)));
        }
        let call = Call {
            query: &query,
            largest: left,
            ..Call::get(list.segments)
        };
        self.exchange
            .send(call)
            .await?
            .map_err(|fault| match fault {
                Fault::TooLarge { .. } => list.too_large(),
                fault => fault,
            })
    }
}

/// Joins all pages. An entry that is readable on one page and unreadable on another counts as
/// unreadable.
fn together<T>(
    mut items: Vec<T>,
    mut unreadable: Vec<UnreadableEntry>,
    id: impl Fn(&T) -> String,
) -> Listed<T> {
    unreadable.sort();
    unreadable.dedup_by(|one, other| one.id.is_some() && one.id == other.id);
    if !unreadable.is_empty() {
        let unreadable_ids: HashSet<&String> = unreadable
            .iter()
            .filter_map(|entry| entry.id.as_ref())
            .collect();
        items.retain(|item| !unreadable_ids.contains(&id(item)));
    }
    Listed::new(items, unreadable.into())
}
