//! Computes and operations.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{
    DecodeError, DecodedList, ListEntry, ListPage, Pagination, SettingsBody, lenient, parse, texts,
    times,
};
use crate::domain::{
    BranchId, Compute, ComputeChange, ComputeId, ComputeState, ComputeUnits, Listed, NameSupport,
    NewCompute, Operation, PoolingMode, PostgresSettings, ProjectId, Role, Settings, Support,
    SuspendAfter,
};
use crate::platform::ChangeAnswer;

/// The type of a primary compute.
const READ_WRITE: &str = "read_write";
/// The only pooler mode that the platform shows.
const TRANSACTION: &str = "transaction";
/// Per compute; PostgreSQL itself has about 400.
const MOST_SETTINGS: usize = 1000;
const LONGEST_SETTING_NAME: usize = 128;
const LONGEST_SETTING: usize = 8 * 1024;

#[derive(Deserialize)]
struct ComputeList {
    endpoints: DecodedList<Compute>,
    #[serde(default, deserialize_with = "lenient")]
    pagination: Option<Pagination>,
}

/// Converted during the read: thousands of entries in both forms would take twice the memory.
impl ListEntry for Compute {
    type Wire = ComputeItem;

    fn of(wire: ComputeItem) -> Result<Self, &'static str> {
        wire.into_compute()
    }
}

#[derive(Deserialize)]
pub(super) struct ComputeItem {
    #[serde(default, deserialize_with = "texts::identifier")]
    id: Option<ComputeId>,
    #[serde(default, deserialize_with = "texts::identifier")]
    project_id: Option<ProjectId>,
    #[serde(default, deserialize_with = "texts::identifier")]
    branch_id: Option<BranchId>,
    #[serde(default, deserialize_with = "texts::shown")]
    region_id: Option<String>,
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    role: Option<String>,
    #[serde(default, deserialize_with = "texts::host")]
    host: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    hosts: Option<Hosts>,
    #[serde(default, deserialize_with = "texts::shown")]
    name: Option<String>,
    #[serde(default, deserialize_with = "state")]
    current_state: Option<ComputeState>,
    #[serde(default, deserialize_with = "state")]
    pending_state: Option<ComputeState>,
    #[serde(default, deserialize_with = "lenient")]
    autoscaling_limit_min_cu: Option<ComputeUnits>,
    #[serde(default, deserialize_with = "lenient")]
    autoscaling_limit_max_cu: Option<ComputeUnits>,
    #[serde(default, deserialize_with = "lenient")]
    suspend_timeout_seconds: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    settings: Option<SettingsItem>,
    #[serde(default, deserialize_with = "lenient")]
    pooler_enabled: Option<bool>,
    #[serde(default, deserialize_with = "texts::shown")]
    pooler_mode: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    passwordless_access: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    disabled: Option<bool>,
    #[serde(default, deserialize_with = "times::time")]
    last_active: Option<Timestamp>,
    #[serde(default, deserialize_with = "times::time")]
    created_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "times::time")]
    updated_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "times::time")]
    started_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Hosts {
    #[serde(default, deserialize_with = "texts::host")]
    read_write_pooled_host: Option<String>,
}

#[derive(Deserialize)]
struct SettingsItem {
    /// Absent if nothing was ever set, on some platforms. `None` if the field has another form.
    #[serde(default = "never_set", deserialize_with = "lenient")]
    pg_settings: Option<BTreeMap<String, SettingText>>,
}

#[expect(clippy::unnecessary_wraps, reason = "the default of a field")]
fn never_set() -> Option<BTreeMap<String, SettingText>> {
    Some(BTreeMap::new())
}

impl SettingsItem {
    fn is_shown(&self) -> bool {
        self.pg_settings.is_some()
    }
}

/// A text, or a number or boolean, which some platforms write instead. Anything else is `None`.
struct SettingText(Option<String>);

impl<'de> Deserialize<'de> for SettingText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match <&RawValue>::deserialize(deserializer)?.get() {
            text if text == "null" || text.starts_with(['[', '{']) => None,
            text if text.starts_with('"') => serde_json::from_str(text).ok(),
            other => Some(other.to_owned()),
        }))
    }
}

impl ComputeItem {
    /// `Err` is the missing field. A compute without identity, branch or type cannot be placed.
    fn into_compute(self) -> Result<Compute, &'static str> {
        let support = self.support();
        let pg_settings = self.settings.and_then(|settings| settings.pg_settings);
        let settings = Settings {
            min: self.autoscaling_limit_min_cu,
            max: self.autoscaling_limit_max_cu,
            suspend_after: self.suspend_timeout_seconds.map(SuspendAfter::of_seconds),
            pooler_enabled: self.pooler_enabled,
            pooler_mode: self.pooler_mode.map(PoolingMode::from),
            postgres: postgres(pg_settings.unwrap_or_default()).ok_or("settings.pg_settings")?,
            passwordless_access: self.passwordless_access,
            disabled: self.disabled,
        };
        Ok(Compute {
            id: self.id.ok_or("id")?,
            project_id: self.project_id.unwrap_or_default(),
            branch_id: self.branch_id.ok_or("branch_id")?,
            region: self.region_id,
            role: role(&self.role.ok_or("type")?),
            host: self.host,
            pooled_host: self.hosts.and_then(|hosts| hosts.read_write_pooled_host),
            name: self.name,
            current_state: self.current_state.unwrap_or_else(no_state),
            pending_state: self.pending_state,
            settings,
            last_active: self.last_active,
            created_at: self.created_at,
            updated_at: self.updated_at,
            started_at: self.started_at,
            support,
        })
    }

    /// Suspend timeouts or start times show that the platform has the larger dialect, with names.
    fn support(&self) -> Support {
        let scale_to_zero = self.suspend_timeout_seconds.is_some();
        let names = match (&self.name, scale_to_zero || self.started_at.is_some()) {
            (Some(_), _) => NameSupport::Kept,
            (None, true) => NameSupport::Offered,
            (None, false) => NameSupport::Unseen,
        };
        Support {
            names,
            scale_to_zero,
            settings: self.settings.as_ref().is_some_and(SettingsItem::is_shown),
        }
    }
}

/// Null, absent or empty is no state. A value that is not a text is an unknown state.
fn state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ComputeState>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    Ok(match serde_json::from_str::<Option<String>>(raw) {
        Ok(word) => word
            .filter(|word| !word.is_empty())
            .map(|word| texts::cleaned(word).into()),
        Err(_) => Some(no_state()),
    })
}

fn no_state() -> ComputeState {
    ComputeState::Other("unknown".to_owned())
}

fn role(wire: &str) -> Role {
    match wire {
        READ_WRITE => Role::Primary,
        _ => Role::Replica,
    }
}

/// Unaltered, because they are sent back when one of them changes. `None` if they are too large.
fn postgres(settings: BTreeMap<String, SettingText>) -> Option<PostgresSettings> {
    let texts = settings
        .into_iter()
        .filter_map(|(name, SettingText(text))| Some((name, text?)));
    let settings: BTreeMap<_, _> = texts.collect();
    let fits = settings
        .iter()
        .all(|(name, text)| name.len() <= LONGEST_SETTING_NAME && text.len() <= LONGEST_SETTING);
    (fits && settings.len() <= MOST_SETTINGS).then_some(PostgresSettings(settings))
}

/// Sets the project if the answer does not name one.
fn place(compute: &mut Compute, project: &ProjectId) {
    if compute.project_id.is_empty() {
        compute.project_id = project.clone();
    }
}

/// The answer to GET /projects/{project}/endpoints.
pub(in crate::platform::http) fn computes(
    body: &[u8],
    project: &ProjectId,
) -> Result<ListPage<Compute>, DecodeError> {
    let list: ComputeList = parse(body)?;
    let mut page = ListPage::of(list.endpoints, list.pagination);
    page.items
        .iter_mut()
        .for_each(|compute| place(compute, project));
    Ok(page)
}

#[derive(Deserialize)]
struct AnswerItem {
    #[serde(default)]
    endpoint: Option<ComputeItem>,
    #[serde(default, deserialize_with = "lenient")]
    operations: Option<DecodedList<OperationItem>>,
}

#[derive(Deserialize)]
struct OperationItem {
    id: String,
    #[serde(default, deserialize_with = "lenient")]
    endpoint_id: Option<ComputeId>,
    action: String,
    status: String,
    #[serde(default, deserialize_with = "lenient")]
    failures_count: Option<u32>,
    #[serde(default, deserialize_with = "lenient")]
    error: Option<String>,
    #[serde(default, deserialize_with = "times::time")]
    created_at: Option<Timestamp>,
}

impl OperationItem {
    fn into_operation(self) -> Operation {
        Operation {
            id: self.id,
            compute_id: self.endpoint_id,
            action: self.action,
            status: self.status,
            failures: self.failures_count,
            error: self.error.filter(|error| !error.is_empty()),
        }
    }
}

impl ListEntry for OperationItem {
    type Wire = Self;

    fn of(wire: Self) -> Result<Self, &'static str> {
        Ok(wire)
    }
}

/// The answer to a change of a compute. Unreadable operations in it are dropped.
pub(in crate::platform::http) fn answer(
    body: &[u8],
    project: &ProjectId,
) -> Result<ChangeAnswer, DecodeError> {
    let item: AnswerItem = parse(body)?;
    let compute = item.endpoint.map(|item| {
        let mut compute = item
            .into_compute()
            .map_err(|field| DecodeError::missing("endpoint", field))?;
        place(&mut compute, project);
        Ok(compute)
    });
    let operations = item.operations.unwrap_or_default().items.into_iter();
    Ok(ChangeAnswer {
        compute: compute.transpose()?,
        operations: operations.map(OperationItem::into_operation).collect(),
    })
}

#[derive(Deserialize)]
struct OperationList {
    operations: DecodedList<OperationItem>,
}

/// The answer to GET /projects/{project}/operations, newest first.
pub(in crate::platform::http) fn operations(body: &[u8]) -> Result<Listed<Operation>, DecodeError> {
    let DecodedList {
        mut items,
        unreadable,
        ..
    } = parse::<OperationList>(body)?.operations;
    items.sort_by_key(|operation| Reverse(operation.created_at));
    Ok(Listed::new(
        items
            .into_iter()
            .map(OperationItem::into_operation)
            .collect(),
        unreadable.into(),
    ))
}

/// The body of a create: `{"endpoint": {…}}`, without undeclared members.
#[derive(Serialize)]
pub(in crate::platform::http) struct CreateBody<'a> {
    endpoint: NewAttributes<'a>,
}

#[derive(Serialize)]
struct NewAttributes<'a> {
    branch_id: &'a BranchId,
    #[serde(rename = "type")]
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(flatten)]
    attributes: ComputeAttributes<'a>,
}

impl<'a> CreateBody<'a> {
    /// `replica` is this platform's name for a read replica.
    pub fn new(new: &'a NewCompute, replica: &'a str) -> Self {
        let role = match new.role {
            Role::Primary => READ_WRITE,
            Role::Replica => replica,
        };
        Self {
            endpoint: NewAttributes {
                branch_id: &new.branch_id,
                role,
                name: new.name.as_deref(),
                attributes: ComputeAttributes::from(&new.settings),
            },
        }
    }
}

/// The body of an update: `{"endpoint": {…}}`, with the changed members only.
#[derive(Serialize)]
pub(in crate::platform::http) struct ChangeBody<'a> {
    endpoint: ChangedAttributes<'a>,
}

#[derive(Serialize)]
struct ChangedAttributes<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    branch_id: Option<&'a BranchId>,
    #[serde(flatten)]
    attributes: ComputeAttributes<'a>,
}

impl<'a> From<&'a ComputeChange> for ChangeBody<'a> {
    fn from(change: &'a ComputeChange) -> Self {
        Self {
            endpoint: ChangedAttributes {
                branch_id: change.branch_id.as_ref(),
                attributes: ComputeAttributes::from(&change.settings),
            },
        }
    }
}

#[derive(Serialize)]
struct ComputeAttributes<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    autoscaling_limit_min_cu: Option<ComputeUnits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    autoscaling_limit_max_cu: Option<ComputeUnits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspend_timeout_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<SettingsBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pooler_enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pooler_mode: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    passwordless_access: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled: Option<bool>,
}

impl<'a> From<&'a Settings> for ComputeAttributes<'a> {
    fn from(settings: &'a Settings) -> Self {
        let pg_settings = &settings.postgres.0;
        Self {
            // A platform validates each limit against the other, so both are sent together.
            autoscaling_limit_min_cu: settings.min.or(settings.max),
            autoscaling_limit_max_cu: settings.max.or(settings.min),
            suspend_timeout_seconds: settings.suspend_after.map(|after| match after {
                SuspendAfter::Default => 0,
                SuspendAfter::Never => -1,
                SuspendAfter::Seconds(seconds) => i64::from(seconds),
            }),
            settings: (!pg_settings.is_empty()).then_some(SettingsBody { pg_settings }),
            pooler_enabled: settings.pooler_enabled,
            pooler_mode: settings.pooler_mode.as_ref().map(|mode| match mode {
                PoolingMode::Transaction => TRANSACTION,
                PoolingMode::Other(word) => word,
            }),
            passwordless_access: settings.passwordless_access,
            disabled: settings.disabled,
        }
    }
}

#[cfg(test)]
mod tests;
