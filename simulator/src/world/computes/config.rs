//! Bodies of create and update requests, and the resulting configuration.

use serde::Deserialize;

use crate::world::Profile;
use crate::world::api::errors::Refusal;
use crate::world::computes::sizes::{Plan, Range, default_range, fits_plan, judge};
use crate::world::model::{ComputeConfig, ComputeDefaults, ComputeKind, ComputeSettings, Project};

/// Allowed suspend timeouts in seconds; -1 is never, 0 the default.
pub(in crate::world) const SUSPEND_RANGE: std::ops::RangeInclusive<i64> = -1..=604_800;
const LONGEST_NAME: usize = 64;

/// The attributes that a request may set. Unknown ones are ignored, and null equals absent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(in crate::world) struct ComputeRequest {
    pub branch_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub region_id: Option<String>,
    pub autoscaling_limit_min_cu: Option<f64>,
    pub autoscaling_limit_max_cu: Option<f64>,
    pub settings: Option<ComputeSettings>,
    pub pooler_enabled: Option<bool>,
    pub pooler_mode: Option<String>,
    pub disabled: Option<bool>,
    pub passwordless_access: Option<bool>,
    pub suspend_timeout_seconds: Option<i64>,
    pub provisioner: Option<String>,
    pub name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Wrapped {
    endpoint: Option<serde_json::Value>,
}

/// Input of the configuration rules besides the request.
#[derive(Debug, Clone, Copy)]
pub(in crate::world) struct Rules {
    pub profile: Profile,
    pub plan: Plan,
}

impl ComputeRequest {
    /// Reads `{"endpoint": {...}}`. In the minimal profile, attributes outside the specification
    /// are unknown too.
    pub fn parse(body: &[u8], profile: Profile) -> Result<Self, Refusal> {
        let wrapped: Wrapped = parse_json(body)?;
        let endpoint = wrapped.endpoint.filter(serde_json::Value::is_object);
        let endpoint = endpoint
            .ok_or_else(|| Refusal::invalid("endpoint is required and must be an object"))?;
        let mut request: Self = serde_json::from_value(endpoint)
            .map_err(|error| Refusal::invalid(format!("endpoint: {error}")))?;
        if !profile.adds() {
            request.suspend_timeout_seconds = None;
            request.provisioner = None;
            request.name = None;
        }
        Ok(request)
    }

    /// The branch and the type of a new compute. The specification requires only the branch, and
    /// its example type is `read_write`. The public API requires both.
    pub fn identity(&self, profile: Profile) -> Result<(String, ComputeKind), Refusal> {
        let branch_id = self.branch_id.clone().filter(|id| !id.is_empty());
        let branch_id =
            branch_id.ok_or_else(|| Refusal::invalid("endpoint.branch_id is required"))?;
        let usual = profile.obeys().then_some(ComputeKind::ReadWrite);
        let kind = self
            .kind()?
            .or(usual)
            .ok_or_else(|| Refusal::invalid("endpoint.type is required"))?;
        Ok((branch_id, kind))
    }

    pub fn kind(&self) -> Result<Option<ComputeKind>, Refusal> {
        match self.kind.as_deref() {
            None => Ok(None),
            Some("read_write") => Ok(Some(ComputeKind::ReadWrite)),
            Some("read_only") => Ok(Some(ComputeKind::ReadOnly)),
            Some(other) => Err(Refusal::invalid(format!(
                "endpoint.type {other:?} is neither read_write nor read_only"
            ))),
        }
    }

    /// Refuses values that are invalid for every compute.
    pub(in crate::world) fn check(&self, region_id: &str) -> Result<(), Refusal> {
        if self
            .region_id
            .as_ref()
            .is_some_and(|region| region != region_id)
        {
            return Err(Refusal::invalid(
                "endpoint.region_id must be the region of the project",
            ));
        }
        if let Some(mode) = self
            .pooler_mode
            .as_ref()
            .filter(|mode| *mode != "transaction")
        {
            return Err(Refusal::invalid(format!(
                "endpoint.pooler_mode {mode:?} is not supported"
            )));
        }
        if self
            .suspend_timeout_seconds
            .is_some_and(|seconds| !SUSPEND_RANGE.contains(&seconds))
        {
            return Err(Refusal::invalid(
                "endpoint.suspend_timeout_seconds must be between -1 and 604800",
            ));
        }
        if self
            .name
            .as_ref()
            .is_some_and(|name| name.is_empty() || name.chars().count() > LONGEST_NAME)
        {
            return Err(Refusal::invalid(
                "endpoint.name must have 1 to 64 characters",
            ));
        }
        Ok(())
    }

    /// True if the request sets a size.
    pub fn has_range(&self) -> bool {
        self.autoscaling_limit_min_cu.is_some() || self.autoscaling_limit_max_cu.is_some()
    }

    /// The configuration of a new compute.
    pub fn create(
        &self,
        project: &Project,
        branch_id: String,
        rules: Rules,
    ) -> Result<ComputeConfig, Refusal> {
        let base = ComputeConfig {
            branch_id,
            range: initial_range(&project.defaults, rules),
            settings: ComputeSettings::default(),
            pooler_enabled: false,
            disabled: false,
            passwordless_access: true,
            suspend_timeout_seconds: 0,
            provisioner: project.provisioner.clone(),
            name: None,
        };
        // A new compute has no current size to validate a single bound against.
        let request = match (self.autoscaling_limit_min_cu, self.autoscaling_limit_max_cu) {
            (Some(min), None) => Self {
                autoscaling_limit_max_cu: Some(min.max(base.range.max.cu())),
                ..self.clone()
            },
            (None, Some(max)) => Self {
                autoscaling_limit_min_cu: Some(max.min(base.range.min.cu())),
                ..self.clone()
            },
            _ => self.clone(),
        };
        request.apply(&base, &project.region_id, rules)
    }

    /// The configuration after the request; attributes that it lacks stay unchanged.
    pub fn apply(
        &self,
        old: &ComputeConfig,
        region_id: &str,
        rules: Rules,
    ) -> Result<ComputeConfig, Refusal> {
        self.check(region_id)?;
        let or_old =
            |new: &Option<String>, old: &String| new.clone().unwrap_or_else(|| old.clone());
        Ok(ComputeConfig {
            branch_id: or_old(&self.branch_id, &old.branch_id),
            range: self.range(old.range, rules)?,
            settings: self
                .settings
                .as_ref()
                .map_or_else(|| old.settings.clone(), |new| merge(&old.settings, new)),
            pooler_enabled: self.pooler_enabled.unwrap_or(old.pooler_enabled),
            disabled: self.disabled.unwrap_or(old.disabled),
            passwordless_access: self.passwordless_access.unwrap_or(old.passwordless_access),
            suspend_timeout_seconds: self.suspend_timeout(old.suspend_timeout_seconds, rules)?,
            provisioner: or_old(&self.provisioner, &old.provisioner),
            name: self.name.clone().or_else(|| old.name.clone()),
        })
    }

    /// Validates each given bound against the other one, given or stored.
    pub(in crate::world) fn range(&self, old: Range, rules: Rules) -> Result<Range, Refusal> {
        match (self.autoscaling_limit_min_cu, self.autoscaling_limit_max_cu) {
            (None, None) => Ok(old),
            (min, max) => {
                let (min, max) = (min.unwrap_or(old.min.cu()), max.unwrap_or(old.max.cu()));
                judge(min, max, rules.plan, rules.profile).map_err(Refusal::SizeRefused)
            }
        }
    }

    /// The specification ties scale to zero to no plan. In the public profile, the Free plan
    /// silently ignores the setting, and Launch can only turn scale to zero off and on.
    pub(in crate::world) fn suspend_timeout(&self, old: i64, rules: Rules) -> Result<i64, Refusal> {
        match (self.suspend_timeout_seconds, rules.plan) {
            (None, _) => Ok(old),
            (Some(seconds), _) if rules.profile.obeys() => Ok(seconds),
            (Some(_), Plan::Free) => Ok(old),
            (Some(seconds), _) if seconds == old => Ok(old),
            (Some(seconds @ (-1 | 0 | 300)), Plan::Launch) => Ok(seconds),
            (Some(_), Plan::Launch) => Err(Refusal::SuspendNotAllowed),
            (Some(seconds), Plan::Scale) => Ok(seconds),
        }
    }
}

/// A given group of settings replaces the old group; other groups stay.
fn merge(old: &ComputeSettings, new: &ComputeSettings) -> ComputeSettings {
    ComputeSettings {
        pg_settings: new.pg_settings.clone().or_else(|| old.pg_settings.clone()),
        pgbouncer_settings: new
            .pgbouncer_settings
            .clone()
            .or_else(|| old.pgbouncer_settings.clone()),
        preload_libraries: new
            .preload_libraries
            .clone()
            .or_else(|| old.preload_libraries.clone()),
    }
}

/// The size of a compute that is created without one: the project's default, if the plan allows it.
pub(in crate::world) fn initial_range(defaults: &ComputeDefaults, rules: Rules) -> Range {
    let allowed =
        |range: &Range| !rules.profile.obeys() || fits_plan(*range, rules.plan, rules.profile);
    defaults
        .range
        .filter(allowed)
        .unwrap_or_else(|| default_range(rules.plan, rules.profile))
}

/// Parses a JSON body; 400 if it is missing, malformed or of another shape.
pub(in crate::world) fn parse_json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    if body.is_empty() {
        Err(Refusal::invalid("a JSON body is required"))
    } else {
        serde_json::from_slice(body)
            .map_err(|error| Refusal::invalid(format!("the body is not valid: {error}")))
    }
}
