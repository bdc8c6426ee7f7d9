//! Differences between a compute and its spec, and the change that corrects them. Only declared
//! fields are compared.

use super::declare::DEFAULT_INACTIVITY;
use crate::api::{self, ComputeSpec, IgnoredField, ScaleToZero, Size};
use crate::domain::{
    Compute, ComputeChange, ComputeUnits, PoolingMode, PostgresSettings, Settings, SuspendAfter,
};

/// One declared field that is not in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The field's path in the spec.
    pub field: String,
    /// The difference in words.
    pub text: String,
    /// The declared value in words. The values of database settings may be confidential, so only
    /// their names appear.
    pub declared: String,
    /// The platform reports the field at all.
    pub reported: bool,
    /// Correcting it interrupts connections.
    pub disruptive: bool,
    pub change: ComputeChange,
}

/// All settings that a spec declares, for the creation of a compute.
pub fn declared(spec: &ComputeSpec) -> Settings {
    let (min, max) = limits(spec.size).unzip();
    Settings {
        min,
        max,
        suspend_after: spec.scale_to_zero.as_ref().and_then(suspend_after),
        pooler_enabled: spec.pooler.map(|pooler| pooler.enabled),
        pooler_mode: spec.pooler.and_then(|pooler| pooler.mode).map(pooler_mode),
        postgres: PostgresSettings(spec.postgres_settings.clone()),
        passwordless_access: spec.passwordless_access,
        disabled: spec.disabled,
    }
}

/// The fields in which the compute differs from the spec.
pub fn differences(spec: &ComputeSpec, compute: &Compute) -> Vec<Difference> {
    branch(spec, compute)
        .into_iter()
        .chain(unmet(&enforced(spec), &compute.settings))
        .collect()
}

/// The declared settings without the fields in spec.ignore.
pub fn enforced(spec: &ComputeSpec) -> Settings {
    let mut settings = declared(spec);
    for field in &spec.ignore {
        match field {
            IgnoredField::Size => (settings.min, settings.max) = (None, None),
            IgnoredField::ScaleToZero => settings.suspend_after = None,
            IgnoredField::Pooler => (settings.pooler_enabled, settings.pooler_mode) = (None, None),
            IgnoredField::PostgresSettings => settings.postgres = PostgresSettings::default(),
            IgnoredField::PasswordlessAccess => settings.passwordless_access = None,
            IgnoredField::Disabled => settings.disabled = None,
        }
    }
    settings
}

/// The fields in which `seen` differs from `wanted`.
pub fn unmet(wanted: &Settings, seen: &Settings) -> Vec<Difference> {
    [
        sizes(wanted, seen),
        suspension(wanted, seen),
        field(
            "pooler.enabled",
            wanted.pooler_enabled,
            seen.pooler_enabled,
            |settings, value| {
                settings.pooler_enabled = Some(value);
            },
        ),
        field(
            "pooler.mode",
            wanted.pooler_mode.clone(),
            seen.pooler_mode.clone(),
            |settings, value| {
                settings.pooler_mode = Some(value);
            },
        ),
        field(
            "passwordlessAccess",
            wanted.passwordless_access,
            seen.passwordless_access,
            |settings, value| {
                settings.passwordless_access = Some(value);
            },
        ),
        field(
            "disabled",
            wanted.disabled,
            seen.disabled,
            |settings, value| settings.disabled = Some(value),
        ),
        postgres(wanted, seen),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// True if `seen` reports another value of a wanted setting. Ignores database settings. It allocates
/// nothing, because each recorded create is compared with each listed compute.
pub fn contradicts(wanted: &Settings, seen: &Settings) -> bool {
    fn other<T: PartialEq>(wanted: Option<T>, seen: Option<T>) -> bool {
        wanted
            .zip(seen)
            .is_some_and(|(wanted, seen)| wanted != seen)
    }
    other(wanted.min.zip(wanted.max), seen.min.zip(seen.max))
        || wanted
            .suspend_after
            .zip(seen.suspend_after)
            .is_some_and(|(wanted, seen)| !is_same_suspension(wanted, seen))
        || other(wanted.pooler_enabled, seen.pooler_enabled)
        || other(wanted.pooler_mode.as_ref(), seen.pooler_mode.as_ref())
        || other(wanted.passwordless_access, seen.passwordless_access)
        || other(wanted.disabled, seen.disabled)
}

/// The single change that corrects all these differences.
pub fn change(differences: &[&Difference]) -> ComputeChange {
    let mut whole = ComputeChange::default();
    for Difference { change, .. } in differences {
        whole.settings.set(&change.settings);
        if let Some(branch) = &change.branch_id {
            whole.branch_id = Some(branch.clone());
        }
    }
    whole
}

/// The differences in one line: `size is 2, declared is 4; ...`.
pub fn text(differences: &[&Difference]) -> String {
    differences
        .iter()
        .map(|difference| difference.text.as_str())
        .collect::<Vec<_>>()
        .join("; ")
}

/// Returns true if a change interrupts the connections of a compute.
pub fn interrupts(change: &ComputeChange, compute: &Compute) -> bool {
    let moves = change
        .branch_id
        .as_ref()
        .is_some_and(|branch| *branch != compute.branch_id);
    moves
        || unmet(&change.settings, &compute.settings)
            .iter()
            .any(|difference| difference.disruptive)
}

/// Each of these settings and its value in words. The values of database settings may be
/// confidential.
pub fn shown(settings: &Settings) -> Vec<(String, String)> {
    let switch =
        |name: &'static str, value: Option<bool>| value.map(|value| (name, value.to_string()));
    let fields = [
        settings
            .min
            .zip(settings.max)
            .map(|(min, max)| ("size", super::sizes::text(min, max))),
        settings
            .suspend_after
            .map(|after| ("scaleToZero", suspension_text(after))),
        switch("pooler.enabled", settings.pooler_enabled),
        settings
            .pooler_mode
            .as_ref()
            .map(|mode| ("pooler.mode", mode.to_string())),
        switch("passwordlessAccess", settings.passwordless_access),
        switch("disabled", settings.disabled),
    ];
    let fields = fields
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.to_owned(), value));
    let postgres = settings
        .postgres
        .0
        .keys()
        .map(|name| (format!("postgresSettings.{name}"), "not shown".to_owned()));
    fields.chain(postgres).collect()
}

/// The scheduled settings in which `then` differs from `before`: `size 4, scaleToZero never`.
pub fn changes(before: &ComputeSpec, then: &ComputeSpec) -> String {
    let (before, then) = (declared(before), declared(then));
    let size = then
        .min
        .zip(then.max)
        .filter(|size| before.min.zip(before.max) != Some(*size));
    let size = size.map(|(min, max)| format!("size {}", super::sizes::text(min, max)));
    let suspension = then
        .suspend_after
        .filter(|after| before.suspend_after != Some(*after));
    let suspension = suspension.map(|after| format!("scaleToZero {}", suspension_text(after)));
    size.into_iter()
        .chain(suspension)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The smallest and the largest size.
pub fn limits(size: Option<Size>) -> Option<(ComputeUnits, ComputeUnits)> {
    let size = size?;
    size.fixed
        .map(|fixed| (fixed, fixed))
        .or_else(|| size.autoscaling.map(|range| (range.min, range.max)))
}

fn suspend_after(scale: &ScaleToZero) -> Option<SuspendAfter> {
    match (&scale.after, scale.never) {
        (Some(after), _) => after
            .value()
            .and_then(|length| u32::try_from(length.as_secs()).ok())
            .map(SuspendAfter::Seconds),
        (None, Some(true)) => Some(SuspendAfter::Never),
        (None, _) => None,
    }
}

fn pooler_mode(mode: api::PoolerMode) -> PoolingMode {
    match mode {
        api::PoolerMode::Transaction => PoolingMode::Transaction,
    }
}

fn branch(spec: &ComputeSpec, compute: &Compute) -> Option<Difference> {
    (compute.branch_id != spec.branch_id).then(|| Difference {
        field: "branchID".into(),
        text: differs("branchID", &compute.branch_id, &spec.branch_id),
        declared: spec.branch_id.to_string(),
        reported: true,
        disruptive: true,
        change: ComputeChange {
            branch_id: Some(spec.branch_id.clone()),
            ..ComputeChange::default()
        },
    })
}

fn sizes(wanted: &Settings, seen: &Settings) -> Option<Difference> {
    let (min, max) = wanted.min.zip(wanted.max)?;
    let in_force = seen
        .min
        .zip(seen.max)
        .map(|(min, max)| super::sizes::text(min, max));
    let declared = super::sizes::text(min, max);
    ((seen.min, seen.max) != (Some(min), Some(max))).then(|| Difference {
        field: "size".into(),
        text: differs("size", &or_not_reported(in_force), &declared),
        declared,
        reported: seen.min.zip(seen.max).is_some(),
        disruptive: true,
        // Both limits are always sent together: the platform checks a single one against the
        // present value of the other.
        change: of_settings(|settings| (settings.min, settings.max) = (Some(min), Some(max))),
    })
}

fn is_same_suspension(wanted: SuspendAfter, seen: SuspendAfter) -> bool {
    wanted == seen
        || (wanted, seen)
            == (
                SuspendAfter::Seconds(DEFAULT_INACTIVITY),
                SuspendAfter::Default,
            )
}

fn suspension(wanted: &Settings, seen: &Settings) -> Option<Difference> {
    let after = wanted.suspend_after?;
    let in_force = seen
        .suspend_after
        .is_some_and(|seen| is_same_suspension(after, seen));
    let (now, declared) = (
        or_not_reported(seen.suspend_after.map(suspension_text)),
        suspension_text(after),
    );
    (!in_force).then(|| Difference {
        field: "scaleToZero".into(),
        text: differs("scaleToZero", &now, &declared),
        declared,
        reported: seen.suspend_after.is_some(),
        disruptive: false,
        change: of_settings(|settings| settings.suspend_after = Some(after)),
    })
}

fn suspension_text(after: SuspendAfter) -> String {
    match after {
        SuspendAfter::Default => "the platform's default".into(),
        SuspendAfter::Never => "never".into(),
        SuspendAfter::Seconds(seconds) => format!("after {seconds}s"),
    }
}

fn field<T: PartialEq + std::fmt::Display>(
    name: &str,
    wanted: Option<T>,
    seen: Option<T>,
    set: impl FnOnce(&mut Settings, T),
) -> Option<Difference> {
    let wanted = wanted.filter(|wanted| seen.as_ref() != Some(wanted))?;
    Some(Difference {
        field: name.into(),
        reported: seen.is_some(),
        text: differs(
            name,
            &or_not_reported(seen.map(|seen| seen.to_string())),
            &wanted.to_string(),
        ),
        declared: wanted.to_string(),
        disruptive: false,
        change: of_settings(|settings| set(settings, wanted)),
    })
}

fn postgres(wanted: &Settings, seen: &Settings) -> Option<Difference> {
    let differing: Vec<&str> = wanted
        .postgres
        .0
        .iter()
        .filter(|(name, value)| seen.postgres.0.get(*name) != Some(value))
        .map(|(name, _)| name.as_str())
        .collect();
    let names = differing.join(", ");
    (!names.is_empty()).then(|| Difference {
        field: "postgresSettings".into(),
        text: format!("postgresSettings differ: {names}"),
        declared: names,
        reported: true,
        disruptive: false,
        // Undeclared settings are sent with their present values, because the platform may replace
        // the whole map.
        change: of_settings(|settings| {
            settings.postgres = seen.postgres.clone();
            settings.postgres.0.extend(wanted.postgres.0.clone());
        }),
    })
}

fn of_settings(set: impl FnOnce(&mut Settings)) -> ComputeChange {
    let mut change = ComputeChange::default();
    set(&mut change.settings);
    change
}

fn differs(field: &str, seen: &str, declared: &str) -> String {
    format!("{field} is {seen}, declared is {declared}")
}

fn or_not_reported(value: Option<String>) -> String {
    value.unwrap_or_else(|| "not reported".into())
}

#[cfg(test)]
mod tests;
