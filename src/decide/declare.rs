//! Derives the spec that declares a compute as it is: the reverse of [`drift`](super::drift).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::api::{self, Autoscaling, Duration, Pooler, ScaleToZero, Size};
use crate::domain::{ComputeUnits, PoolingMode, PostgresSettings, Settings, SuspendAfter};

/// The platform's default inactivity period, in seconds.
pub const DEFAULT_INACTIVITY: u32 = 300;

/// The settings of a fresh compute without any choice by a user. The size is absent: the platform
/// documents no default, because plan and project decide it.
fn fresh() -> Settings {
    Settings {
        suspend_after: Some(SuspendAfter::Default),
        pooler_enabled: Some(false),
        pooler_mode: Some(PoolingMode::Transaction),
        passwordless_access: Some(true),
        disabled: Some(false),
        ..Settings::default()
    }
}

/// The settings that a user has visibly chosen: everything that differs from a fresh compute.
pub fn beyond_defaults(seen: &Settings) -> Settings {
    let fresh = fresh();
    let suspend_after = match seen.suspend_after {
        Some(SuspendAfter::Seconds(DEFAULT_INACTIVITY)) => None,
        _ => chosen(&seen.suspend_after, &fresh.suspend_after),
    };
    let pooler_enabled = chosen(&seen.pooler_enabled, &fresh.pooler_enabled);
    let pooler_mode = match pooler_enabled {
        Some(_) => chosen(&seen.pooler_mode, &fresh.pooler_mode),
        None => None,
    };
    Settings {
        suspend_after,
        pooler_mode,
        pooler_enabled,
        passwordless_access: chosen(&seen.passwordless_access, &fresh.passwordless_access),
        disabled: chosen(&seen.disabled, &fresh.disabled),
        ..seen.clone()
    }
}

fn chosen<T: Clone + PartialEq>(seen: &Option<T>, fresh: &Option<T>) -> Option<T> {
    if seen == fresh { None } else { seen.clone() }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_to_zero: Option<ScaleToZero>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooler: Option<Pooler>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub postgres_settings: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passwordless_access: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

/// The fields that declare these settings. A pooler mode that a spec cannot express is left to the
/// platform.
pub fn fields(settings: &Settings) -> Fields {
    let PostgresSettings(postgres_settings) = settings.postgres.clone();
    Fields {
        size: settings
            .min
            .zip(settings.max)
            .map(|(min, max)| size(min, max)),
        scale_to_zero: settings.suspend_after.map(scale_to_zero),
        pooler: settings.pooler_enabled.map(|enabled| Pooler {
            enabled,
            mode: settings.pooler_mode.as_ref().and_then(mode),
        }),
        postgres_settings,
        passwordless_access: settings.passwordless_access,
        disabled: settings.disabled,
    }
}

fn size(min: ComputeUnits, max: ComputeUnits) -> Size {
    if min == max {
        Size {
            fixed: Some(max),
            autoscaling: None,
        }
    } else {
        Size {
            fixed: None,
            autoscaling: Some(Autoscaling { min, max }),
        }
    }
}

fn scale_to_zero(suspend_after: SuspendAfter) -> ScaleToZero {
    let after = |seconds| ScaleToZero {
        after: Some(duration(seconds)),
        never: None,
    };
    match suspend_after {
        SuspendAfter::Never => ScaleToZero {
            after: None,
            never: Some(true),
        },
        SuspendAfter::Default => after(DEFAULT_INACTIVITY),
        SuspendAfter::Seconds(seconds) => after(seconds),
    }
}

/// In the notation of Kubernetes, without units that are zero: `1h30m`.
fn duration(seconds: u32) -> Duration {
    let parts = [
        (seconds / 3600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let text: String = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    Duration(if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    })
}

fn mode(mode: &PoolingMode) -> Option<api::PoolerMode> {
    match mode {
        PoolingMode::Transaction => Some(api::PoolerMode::Transaction),
        PoolingMode::Other(_) => None,
    }
}

#[cfg(test)]
mod tests;
