//! The settings of a world: times, limits, and how strict the platform is.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Profile;

/// Settings of a world; everything has a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where the simulated clock begins; absent: now.
    pub start_time: Option<Timestamp>,
    /// Milliseconds that starting a compute takes; at least 1, like the next two.
    pub start_ms: u32,
    /// Milliseconds that suspending takes.
    pub suspend_ms: u32,
    /// Milliseconds that applying a configuration takes.
    pub apply_ms: u32,
    /// Seconds without activity after which a compute is suspended unless it says otherwise.
    pub inactivity_seconds: u32,
    /// Refuse changes with 423 while operations are under way. Absent: in the public profile only, as the specification has
    /// a compute moved, restarted and deleted in any state. The minimal profile never does.
    pub serialise_operations: Option<bool>,
    /// What conflicts then: operations of the same compute, or of the same project.
    pub conflict_scope: ConflictScope,
    /// Absent: off in the minimal profile only.
    pub rate_limit: Option<RateLimit>,
    /// Whether a personal key must name the organization (`org_id`) in every request for an organization's project,
    /// or in the list of projects only. Absent: in the list only in the public profile, in every request in the others.
    pub org_id_with_personal_keys: Option<OrgIdPlace>,
    /// How many projects an account may have (not in the minimal profile).
    pub max_projects: Option<usize>,
    /// How many computes a branch may have (not in the minimal profile).
    pub max_computes_per_branch: Option<usize>,
    /// Every so many seconds an idle compute is started for a moment, to see whether it starts (not in the minimal profile); absent: never.
    pub availability_check_seconds: Option<u32>,
    /// The domain under which computes have their host names.
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

/// How many requests an account may make. Counted on the real clock, because clients wait on theirs.
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
        Self { enabled: true, per_minute: 700, per_second_per_route: 40, key_creations_per_second: 10 }
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
    /// The limit in force, if any.
    pub fn rate_limit(&self, profile: Profile) -> Option<RateLimit> {
        match (&self.rate_limit, profile) {
            (Some(limit), _) => limit.enabled.then(|| limit.clone()),
            (None, Profile::Default | Profile::Public) => Some(RateLimit::default()),
            (None, Profile::Minimal) => None,
        }
    }

    /// Whether changes are refused while operations are under way.
    pub fn serialises_operations(&self, profile: Profile) -> bool {
        profile.adds() && self.serialise_operations.unwrap_or(!profile.obeys())
    }

    /// Where a personal key has to name the organization.
    pub fn org_id_with_personal_keys(&self, profile: Profile) -> OrgIdPlace {
        let usual = if profile.obeys() { OrgIdPlace::Everywhere } else { OrgIdPlace::Lists };
        self.org_id_with_personal_keys.unwrap_or(usual)
    }

    /// The inactivity period of a compute that does not set its own.
    pub fn inactivity(&self) -> SignedDuration {
        SignedDuration::from_secs(i64::from(self.inactivity_seconds))
    }
}
