//! Writes a plan for users.

use std::io::{self, Write};

use crate::cli::screen::one_line;
use crate::plan::{FieldChange, Plan, Planned, PlannedCondition, PlannedStep, Units};

pub fn write(plan: &Plan, wide: bool, out: &mut impl Write) -> io::Result<()> {
    let mut shown = 0;
    for planned in plan
        .resources
        .iter()
        .filter(|planned| wide || is_shown(planned))
    {
        shown += 1;
        resource(planned, wide, out)?;
    }
    if shown > 0 {
        writeln!(out)?;
    }
    writeln!(out, "{}", summary(plan))?;
    writeln!(out, "{}", cost(plan))?;
    for what in &plan.not_read {
        writeln!(out, "Not read: {}", one_line(what))?;
    }
    Ok(())
}

/// True if the plan has anything to show for the resource.
fn is_shown(planned: &Planned) -> bool {
    planned.has_changes() || planned.unknown.is_some() || planned.manifest.is_some()
}

fn resource(planned: &Planned, wide: bool, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}{}", planned.id, of_manifest(planned))?;
    for step in &planned.steps {
        writeln!(out, "  {}", one_line(&step_text(step)))?;
    }
    if planned.gone {
        writeln!(out, "  the resource goes")?;
    }
    if let Some(line) = waits(planned) {
        writeln!(out, "  {}", one_line(&line))?;
    }
    if let Some(unknown) = &planned.unknown {
        writeln!(out, "  unknown: {}", one_line(unknown))?;
    }
    if !planned.has_changes() && planned.unknown.is_none() {
        writeln!(out, "  nothing to do")?;
    }
    if wide {
        for (type_, condition) in [("Ready", &planned.ready), ("Synced", &planned.synced)] {
            if let Some(PlannedCondition {
                status,
                reason,
                message,
            }) = condition
            {
                writeln!(out, "  {type_} {status} {reason}: {}", one_line(message))?;
            }
        }
        if let Some(next) = planned.next {
            writeln!(out, "  looked at again by {next:.0}")?;
        }
    }
    Ok(())
}

fn of_manifest(planned: &Planned) -> &'static str {
    use crate::plan::ManifestChange;
    match planned.manifest {
        Some(ManifestChange::New) => " (new)",
        Some(ManifestChange::Changed) => " (changed)",
        Some(ManifestChange::Unchanged) | None => "",
    }
}

fn waits(planned: &Planned) -> Option<String> {
    let waits = planned.waits.as_ref()?;
    let until = waits
        .until
        .map(|until| format!(" until {until:.0}"))
        .unwrap_or_default();
    Some(format!("waits{until}: {}: {}", waits.reason, waits.message))
}

fn fields(fields: &[FieldChange]) -> String {
    let mut texts = Vec::new();
    for field in fields {
        let (name, after) = (&field.field, &field.after);
        texts.push(match &field.before {
            Some(before) if before != after => format!("{name} {before} → {after}"),
            _ => format!("{name} {after}"),
        });
    }
    texts.join(", ")
}

fn with(text: String, set: &[FieldChange]) -> String {
    if set.is_empty() {
        text
    } else {
        format!("{text}: {}", fields(set))
    }
}

/// The description of a step.
fn step_text(step: &PlannedStep) -> String {
    match step {
        PlannedStep::CreateCompute {
            branch,
            type_,
            fields,
            ..
        } => with(
            format!("create a {type_} compute on branch {branch}"),
            fields,
        ),
        PlannedStep::ChangeCompute {
            compute,
            fields,
            interrupts,
            ..
        } => {
            let end = if *interrupts {
                " (interrupts connections)"
            } else {
                " (no interruption)"
            };
            with(format!("change compute {compute}"), fields) + end
        }
        PlannedStep::RestartCompute { compute, .. } => {
            format!("restart compute {compute} (interrupts connections)")
        }
        PlannedStep::DeleteCompute { compute, .. } => {
            format!("delete compute {compute} (ends connections)")
        }
        PlannedStep::LinkCompute { compute } => format!("link to compute {compute}, which exists"),
        PlannedStep::CreateKey { project } => format!("make an API key for project {project}"),
        PlannedStep::RevokeKey { key } => format!("revoke API key {key}"),
        PlannedStep::WriteSecret { name, new, entries } => {
            let verb = if *new { "create" } else { "write" };
            let entries = if entries.is_empty() {
                String::new()
            } else {
                format!(" ({})", entries.join(", "))
            };
            format!("{verb} Secret {name}{entries}")
        }
        PlannedStep::CreateObject { kind, name } => format!("create {kind} {name}"),
        PlannedStep::ChangeObject { kind, name } => format!("change {kind} {name}"),
        PlannedStep::DeleteObject { kind, name } => format!("delete {kind} {name}"),
    }
}

fn summary(plan: &Plan) -> String {
    let counts = &plan.counts;
    let parts = [
        (counts.computes_created, "to create"),
        (counts.computes_linked, "to link"),
        (counts.computes_changed, "to change"),
        (counts.computes_restarted, "to restart"),
        (counts.computes_deleted, "to delete"),
    ];
    let mut computes = Vec::new();
    for (count, what) in parts {
        if count > 0 {
            computes.push(format!("{count} {what}"));
        }
    }
    let mut all = Vec::new();
    if !computes.is_empty() {
        all.push(format!("computes: {}", computes.join(", ")));
    }
    let others = [
        (counts.keys_created, "API keys to make"),
        (counts.keys_revoked, "API keys to revoke"),
        (counts.secrets_written, "Secrets to write"),
        (counts.interruptions, "interruptions"),
        (counts.waiting, "resources that wait"),
        (counts.replicas_created, "Computes of sets to create"),
        (counts.replicas_deleted, "Computes of sets to delete"),
    ];
    for (count, what) in others {
        if count > 0 {
            all.push(format!("{what}: {count}"));
        }
    }
    if all.is_empty() {
        "Plan: nothing to do.".to_owned()
    } else {
        format!("Plan: {}.", all.join("; "))
    }
}

fn cost(plan: &Plan) -> String {
    match plan.cost {
        Some(cost) if cost.before == cost.after => {
            format!(
                "Compute units, at minimum and maximum: {}, as before.",
                range(cost.after)
            )
        }
        Some(cost) => format!(
            "Compute units, at minimum and maximum: {} before, {} after.",
            range(cost.before),
            range(cost.after)
        ),
        None => "Compute units: not known, since a size is not.".to_owned(),
    }
}

fn range(units: Units) -> String {
    let Units { min, max } = units;
    if min.to_bits() == max.to_bits() {
        format!("{min}")
    } else {
        format!("{min}-{max}")
    }
}
