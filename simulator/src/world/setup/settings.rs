//! Settings of a world: durations, limits, and the strictness of the platform.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::world::Profile;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The initial simulated time; absent: now.
    pub start_time: Option<Timestamp>,
    /// Milliseconds to start a compute; at least 1, like the next two.
    pub start_ms: u32,
    /// Milliseconds to suspend a compute.
    pub suspend_ms: u32,
    /// Milliseconds to apply a configuration.
    pub apply_ms: u32,
    /// Seconds of inactivity until a compute is suspended, unless it has its own timeout.
    pub inactivity_seconds: u32,
    /// Refuse changes with 423 while operations are in progress. Absent: only in the public
    /// profile, as the specification moves, restarts and deletes computes in any state. The minimal
    /// profile never refuses.
    pub serialise_operations: Option<bool>,
    /// The scope of the conflict: operations of the same compute or of the same project.
    pub conflict_scope: ConflictScope,
    /// Absent: off only in the minimal profile.
    pub rate_limit: Option<RateLimit>,
    /// Where a personal key must name the organization (`org_id`): in every request for a project
    /// of an organization, or only in the list of projects. Absent: only in the list in the public
    /// profile, in every request in the others.
    pub org_id_with_personal_keys: Option<OrgIdPlace>,
    /// Limit of projects per account (not in the minimal profile).
    pub max_projects: Option<usize>,
    /// Limit of computes per branch (not in the minimal profile).
    pub max_computes_per_branch: Option<usize>,
    /// Interval in seconds at which an idle compute is briefly started to check that it can start
    /// (not in the minimal profile). Absent: never.
    pub availability_check_seconds: Option<u32>,
    /// The domain of the computes' host names.
    pub host_domain: String,
}

/// See [`Settings::conflict_scope`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConflictScope {
    Compute,
    Project,
}

/// See [`Settings::org_id_with_personal_keys`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrgIdPlace {
    Lists,
    Everywhere,
}

/// The allowed requests of an account. They count on the real clock, because clients wait on
/// theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimit {
    pub enabled: bool,
    pub per_minute: u32,
    pub per_second_per_route: u32,
    pub key_creations_per_second: u32,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            enabled: true,
            per_minute: 700,
            per_second_per_route: 40,
            key_creations_per_second: 10,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            start_time: None,
            start_ms: 1000,
            suspend_ms: 500,
            apply_ms: 300,
            inactivity_seconds: 300,
            serialise_operations: None,
            conflict_scope: ConflictScope::Compute,
            rate_limit: None,
            org_id_with_personal_keys: None,
            max_projects: None,
            max_computes_per_branch: None,
            availability_check_seconds: None,
            host_domain: "postgres.example".to_owned(),
        }
    }
}

impl Settings {
    /// The effective limit, if any.
    pub fn rate_limit(&self, profile: Profile) -> Option<RateLimit> {
        match (&self.rate_limit, profile) {
            (Some(limit), _) => limit.enabled.then(|| limit.clone()),
            (None, Profile::Default | Profile::Public) => Some(RateLimit::default()),
            (None, Profile::Minimal) => None,
        }
    }

    /// True if changes are refused while operations are in progress.
    pub fn serialises_operations(&self, profile: Profile) -> bool {
        profile.adds() && self.serialise_operations.unwrap_or(!profile.obeys())
    }

    pub fn org_id_with_personal_keys(&self, profile: Profile) -> OrgIdPlace {
        let usual = if profile.obeys() {
            OrgIdPlace::Everywhere
        } else {
            OrgIdPlace::Lists
        };
        self.org_id_with_personal_keys.unwrap_or(usual)
    }

    /// The inactivity period of a compute without its own timeout.
    pub fn inactivity(&self) -> SignedDuration {
        SignedDuration::from_secs(i64::from(self.inactivity_seconds))
    }
}
