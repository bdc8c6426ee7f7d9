//! The consumption of a process: processor time, requests to the API server, requests to the
//! platform.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Sub;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dbplane_simulator::Simulator;
use serde::{Deserialize, Serialize};

use super::support::{Error, Result};

/// Requests by kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Requests {
    pub kubernetes_reads: u64,
    /// By verb and resource.
    pub kubernetes_writes: BTreeMap<String, u64>,
    pub platform_lists: u64,
    pub platform_changes: u64,
    /// Requests of both kinds that the platform's rate limit refused.
    pub platform_refused: u64,
}

impl Requests {
    pub fn writes(&self) -> u64 {
        self.kubernetes_writes.values().sum()
    }
}

impl Sub for Requests {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        let earlier = |what: &String| {
            before
                .kubernetes_writes
                .get(what)
                .copied()
                .unwrap_or_default()
        };
        let writes = self
            .kubernetes_writes
            .into_iter()
            .map(|(what, count)| (what.clone(), count - earlier(&what)));
        Self {
            kubernetes_reads: self.kubernetes_reads - before.kubernetes_reads,
            kubernetes_writes: writes.filter(|(_, count)| *count > 0).collect(),
            platform_lists: self.platform_lists - before.platform_lists,
            platform_changes: self.platform_changes - before.platform_changes,
            platform_refused: self.platform_refused - before.platform_refused,
        }
    }
}

/// Counts requests from the API server's audit log and the platform's request log.
#[derive(Debug)]
pub struct Counter {
    audit: BufReader<File>,
    /// The start of a line that is not complete yet.
    line: String,
    platform: u64,
    so_far: Requests,
}

/// Only metadata, and only the operator's requests. The leader's lease is excluded, because it
/// costs the same at every size.
pub fn audit_policy(user: &str) -> String {
    format!(
        "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {{level: None, resources: [{{group: coordination.k8s.io}}]}}
- {{level: Metadata, users: ['{user}']}}
- {{level: None}}
"
    )
}

impl Counter {
    pub fn new(audit: &Path) -> Result<Self> {
        let audit = BufReader::new(File::open(audit)?);
        Ok(Self {
            audit,
            line: String::new(),
            platform: 0,
            so_far: Requests::default(),
        })
    }

    /// The requests so far. Call it regularly, because the platform keeps only the latest requests.
    pub fn count(&mut self, platform: &Simulator) -> Result<Requests> {
        while self.audit.read_line(&mut self.line)? > 0 {
            if !self.line.ends_with('\n') {
                break;
            }
            let line = std::mem::take(&mut self.line);
            self.note(&line)?;
        }
        for entry in platform.requests(self.platform) {
            self.platform = entry.n;
            match entry.method.as_str() {
                "GET" => self.so_far.platform_lists += 1,
                _ => self.so_far.platform_changes += 1,
            }
            self.so_far.platform_refused += u64::from(entry.status == Some(429));
        }
        Ok(self.so_far.clone())
    }

    fn note(&mut self, line: &str) -> Result<()> {
        let entry: serde_json::Value =
            serde_json::from_str(line).map_err(Error::while_doing("reading the audit log"))?;
        let verb = entry["verb"].as_str().unwrap_or_default();
        if ["get", "list", "watch"].contains(&verb) {
            self.so_far.kubernetes_reads += 1;
            return Ok(());
        }
        let object = &entry["objectRef"];
        let part = object["subresource"]
            .as_str()
            .map(|part| format!("/{part}"))
            .unwrap_or_default();
        let what = format!(
            "{verb} {}{part}",
            object["resource"].as_str().unwrap_or_default()
        );
        *self.so_far.kubernetes_writes.entry(what).or_default() += 1;
        Ok(())
    }
}

/// The processor time of all threads of a process.
pub fn processor_time(process: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(PathBuf::from(format!("/proc/{process}/stat")))?;
    // The name in parentheses may contain anything.
    let fields = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace())
        .into_iter()
        .flatten();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// The clock ticks of Linux on all common architectures.
const TICKS_PER_SECOND: u64 = 100;
