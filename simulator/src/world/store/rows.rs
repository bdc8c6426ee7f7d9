//! Converts a world to rows of a store (only the changed ones) and back.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use crate::world::api::message::decode;
use crate::world::model::{Compute, Key, Operation, Project};
use crate::world::{Head, Profile, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    Head,
    Projects,
    Computes,
    Operations,
    Keys,
}

impl Table {
    /// The name of the table in the store.
    pub fn name(self) -> &'static str {
        match self {
            Table::Head => "head",
            Table::Projects => "projects",
            Table::Computes => "computes",
            Table::Operations => "operations",
            Table::Keys => "keys",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        let all = [
            Table::Head,
            Table::Projects,
            Table::Computes,
            Table::Operations,
            Table::Keys,
        ];
        all.into_iter().find(|table| table.name() == name)
    }
}

/// A row in JSON; `None` removes it.
#[derive(Debug, Clone)]
pub struct Row {
    pub table: Table,
    pub key: String,
    pub value: Option<Vec<u8>>,
}

/// Errors of saved rows.
#[derive(Debug, Error)]
pub enum RestoreError {
    #[error("the saved world has no head")]
    NoHead,
    #[error("a saved row of {table} cannot be read: {error}")]
    Unreadable {
        table: &'static str,
        error: serde_json::Error,
    },
}

impl World {
    /// The rows that changed since the last call; all rows in the case of a new world.
    pub fn take_changes(&mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (id, project) in self.projects.take_touched() {
            rows.push(row(Table::Projects, id, project));
        }
        for ((project, id), compute) in self.computes.take_touched() {
            rows.push(row(Table::Computes, format!("{project}/{id}"), compute));
        }
        for ((project, number), operation) in self.operations.take_touched() {
            rows.push(row(
                Table::Operations,
                format!("{project}/{number}"),
                operation,
            ));
        }
        for (id, key) in self.keys.take_touched() {
            rows.push(row(Table::Keys, id.to_string(), key));
        }
        if !rows.is_empty() || std::mem::take(&mut self.head_touched) {
            rows.push(row(Table::Head, String::new(), Some(&self.head)));
        }
        rows
    }

    /// Clears the record of changed rows, for worlds that are not saved.
    pub fn forget_changes(&mut self) {
        self.projects.forget_touched();
        self.computes.forget_touched();
        self.operations.forget_touched();
        self.keys.forget_touched();
        self.head_touched = false;
    }

    /// Restores a world from saved rows. The profile may differ from the one at the time of saving.
    pub fn restore(
        rows: impl IntoIterator<Item = (Table, Vec<u8>)>,
        profile: Profile,
    ) -> Result<Self, RestoreError> {
        let mut head: Option<Head> = None;
        let mut world = Self::bare(profile);
        for (table, value) in rows {
            match table {
                Table::Head => head = Some(read(table, &value)?),
                Table::Projects => {
                    let project: Project = read(table, &value)?;
                    world.projects.restore(project.id.clone(), project);
                }
                Table::Computes => {
                    let compute: Compute = read(table, &value)?;
                    world
                        .computes
                        .restore((compute.project_id.clone(), compute.id.clone()), compute);
                }
                Table::Operations => {
                    let operation: Operation = read(table, &value)?;
                    world
                        .operations
                        .restore((operation.project_id.clone(), operation.number), operation);
                }
                Table::Keys => world.keys.restore(read::<Key>(table, &value)?),
            }
        }
        world.head = head.ok_or(RestoreError::NoHead)?;
        Ok(world)
    }

    /// Removes possible secrets from a path: tokens, and anything longer than an id.
    pub fn redact_path(&self, path: &str) -> String {
        const LONGEST_ID: usize = 60;
        let shown = |segment: &str| {
            if segment.len() > LONGEST_ID || self.keys.is_token(&decode(segment)) {
                "(hidden)".to_owned()
            } else {
                segment.to_owned()
            }
        };
        path.split('/').map(shown).collect::<Vec<_>>().join("/")
    }

    /// An empty world.
    pub(in crate::world) fn bare(profile: Profile) -> Self {
        Self {
            profile,
            head: Head::default(),
            projects: Default::default(),
            computes: Default::default(),
            operations: Default::default(),
            keys: Default::default(),
            now: Timestamp::MIN,
            head_touched: false,
            meters: Default::default(),
            agenda: Default::default(),
            failures: Vec::new(),
            answered: 0,
            clock_off: SignedDuration::ZERO,
        }
    }
}

fn row<T: serde::Serialize>(table: Table, key: String, value: Option<&T>) -> Row {
    // Records are plain structs, so serialization cannot fail.
    Row {
        table,
        key,
        value: value.and_then(|value| serde_json::to_vec(value).ok()),
    }
}

fn read<T: serde::de::DeserializeOwned>(table: Table, value: &[u8]) -> Result<T, RestoreError> {
    serde_json::from_slice(value).map_err(|error| RestoreError::Unreadable {
        table: table.name(),
        error,
    })
}
