//! Schedules that are not followed, because they cannot be read or never occur.

use crate::api::{ComputeSpec, Duration, Schedule};
use crate::decide::conditions::Report;
use crate::decide::cron::{Cron, Flaw};
use crate::decide::{Health, Reason, Sync};

/// A schedule of a spec that is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfollowed {
    /// The invalid field, such as `spec.schedules[0].start`.
    pub path: String,
    /// The cause, without quoting the field.
    pub flaw: Flaw,
    /// The effect and its cause, as a sentence.
    pub text: String,
}

/// The schedules of this spec that are not followed; `root` is the path of the spec in its
/// resource.
pub fn unfollowed(spec: &ComputeSpec, root: &str) -> Vec<Unfollowed> {
    let mut found = Vec::new();
    for (index, entry) in spec.schedules.iter().enumerate() {
        let place = format!("{root}.schedules[{index}]");
        let effect = format!("The entry {} of {root}.schedules never applies", entry.name);
        let zone = entry.time_zone.as_deref();
        found.extend(examine(&place, "start", &entry.start, zone, &effect));
        found.extend(
            entry
                .end
                .iter()
                .find_map(|end| examine(&place, "end", end, zone, &effect)),
        );
        if entry.end.is_none() && length(entry).is_none() {
            let flaw = Flaw::Unreadable("its duration cannot be read".to_owned());
            let text = format!("{effect}: its duration cannot be read.");
            found.push(Unfollowed {
                path: format!("{place}.duration"),
                flaw,
                text,
            });
        }
    }
    if let Some(restart) = spec
        .maintenance
        .as_ref()
        .map(|maintenance| &maintenance.restart)
    {
        let place = format!("{root}.maintenance.restart");
        let effect = format!("{root}.maintenance is not followed");
        found.extend(examine(
            &place,
            "schedule",
            &restart.schedule,
            restart.time_zone.as_deref(),
            &effect,
        ));
    }
    if let Some(window) = spec
        .disruption
        .as_ref()
        .and_then(|disruption| disruption.window.as_ref())
    {
        let place = format!("{root}.disruption.window");
        let effect = format!("{place} never opens");
        found.extend(examine(
            &place,
            "schedule",
            &window.schedule,
            window.time_zone.as_deref(),
            &effect,
        ));
    }
    // Start and end share one time zone, so both may report it.
    found.dedup_by(|one, other| one.path == other.path);
    found
}

/// How long an entry without an end applies.
pub(super) fn length(entry: &Schedule) -> Option<std::time::Duration> {
    entry
        .duration
        .as_ref()
        .and_then(Duration::value)
        .filter(|length| !length.is_zero())
}

fn examine(
    place: &str,
    field: &str,
    expression: &str,
    zone: Option<&str>,
    effect: &str,
) -> Option<Unfollowed> {
    let flaw = Cron::examine(expression, zone).err()?;
    let field = if matches!(flaw, Flaw::Zone(_)) {
        "timeZone"
    } else {
        field
    };
    let text = format!("{effect}: {}.", flaw.describe(expression, zone));
    Some(Unfollowed {
        path: format!("{place}.{field}"),
        flaw,
        text,
    })
}

/// Adds the schedules that are not followed to the report of a usable compute. Its other
/// differences stay in the message.
pub(in crate::decide) fn reported(unfollowed: &[Unfollowed], report: Report) -> Report {
    if unfollowed.is_empty() || !matches!(report.health, Health::Ready(..)) {
        return report;
    }
    let known = match &report.sync {
        Sync::Refused(_, message) | Sync::OutOfSync(_, message) => message.clone(),
        Sync::InSync | Sync::Unknown(..) | Sync::NotApplicable => String::new(),
    };
    // A report that waits for a window that never opens already contains this text.
    let texts: Vec<_> = unfollowed
        .iter()
        .map(|it| it.text.as_str())
        .filter(|text| !known.contains(text))
        .collect();
    let texts = texts.join(" ");
    let sync = match &report.sync {
        Sync::Refused(reason, _) => {
            Sync::Refused(*reason, format!("{known} {texts}").trim_end().to_owned())
        }
        _ => Sync::Refused(
            Reason::InvalidSchedule,
            format!("{texts} {known}").trim_end().to_owned(),
        ),
    };
    report.with_sync(sync)
}
