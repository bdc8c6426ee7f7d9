//! Draws the dashboard as a picture: each panel in its place with the data from Prometheus.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use serde_json::Value;

use super::Prometheus;

type Drawn<T> = Result<T, Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A unit of the dashboard's grid in pixels.
const UNIT: (i64, i64) = (58, 26);
const COLUMNS: i64 = 24;
/// The longest shown period in seconds.
const SHOWN: f64 = 300.0;
/// The distance between two points in seconds.
const STEP: f64 = 2.0;
const MOST_LABELS: usize = 8;

/// A line in a panel.
struct Series {
    label: String,
    points: Vec<(f64, f64)>,
}

/// Draws the current dashboard into a file.
pub async fn draw(prometheus: &Prometheus, dashboard: &Value, path: &Path) -> Drawn<()> {
    let panels = dashboard["panels"]
        .as_array()
        .ok_or("the dashboard has no panels")?;
    let rows = panels
        .iter()
        .map(|panel| of_grid(panel, "y") + of_grid(panel, "h"))
        .max()
        .unwrap_or_default();
    let mut answered = Vec::new();
    for panel in panels {
        answered.push((panel, answers(prometheus, panel).await));
    }
    let points = || {
        answered
            .iter()
            .flat_map(|(_, series)| series)
            .flat_map(|series| &series.points)
    };
    let since = points().map(|(at, _)| *at).fold(-STEP, f64::min);
    let size = (
        u32::try_from(COLUMNS * UNIT.0)?,
        u32::try_from(rows * UNIT.1)?,
    );
    let whole = SVGBackend::new(path, size).into_drawing_area();
    whole.fill(&WHITE)?;
    for (panel, series) in answered {
        let (x, y) = (of_grid(panel, "x") * UNIT.0, of_grid(panel, "y") * UNIT.1);
        let (width, height) = (of_grid(panel, "w") * UNIT.0, of_grid(panel, "h") * UNIT.1);
        let cell = |at: i64| i32::try_from(at);
        let area = whole.clone().shrink(
            (cell(x)?, cell(y)?),
            (u32::try_from(width)?, u32::try_from(height)?),
        );
        draw_panel(&area, panel, &series, since)?;
    }
    whole.present()?;
    Ok(())
}

fn of_grid(panel: &Value, field: &str) -> i64 {
    panel["gridPos"][field].as_i64().unwrap_or_default()
}

async fn answers(prometheus: &Prometheus, panel: &Value) -> Vec<Series> {
    let now = jiff::Timestamp::now().as_second() as f64;
    let (start, end) = ((now - SHOWN).to_string(), now.to_string());
    let mut series = Vec::new();
    for target in panel["targets"].as_array().into_iter().flatten() {
        let query = super::as_sent(target["expr"].as_str().unwrap_or_default());
        let parameters = [
            ("query", query.as_str()),
            ("start", &start),
            ("end", &end),
            ("step", "2"),
        ];
        let answer = prometheus
            .ask("query_range", &parameters)
            .await
            .unwrap_or_default();
        let results = answer
            .pointer("/data/result")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        series.extend(results.iter().map(|result| Series {
            label: label(
                target["legendFormat"].as_str().unwrap_or_default(),
                &result["metric"],
            ),
            points: points(&result["values"], now),
        }));
    }
    series
}

/// The legend's format with the values of its labels.
fn label(format: &str, labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    labels.fold(format.to_owned(), |text, (name, value)| {
        let value = value.as_str().unwrap_or_default();
        text.replace(&format!("{{{{{name}}}}}"), value)
    })
}

/// Points as seconds relative to `now` and values.
fn points(values: &Value, now: f64) -> Vec<(f64, f64)> {
    let values = values.as_array().into_iter().flatten();
    let point = |value: &Value| Some((value[0].as_f64()? - now, value[1].as_str()?.parse().ok()?));
    values
        .filter_map(point)
        .filter(|(_, value): &(f64, f64)| value.is_finite())
        .collect()
}

fn draw_panel(area: &Area<'_>, panel: &Value, series: &[Series], since: f64) -> Drawn<()> {
    let title = panel["title"].as_str().unwrap_or_default();
    let unit = panel["fieldConfig"]["defaults"]["unit"]
        .as_str()
        .unwrap_or_default();
    match panel["type"].as_str() {
        Some("row") => {
            area.draw(&Text::new(title, (6, 6), ("sans-serif", 16).into_font()))?;
            Ok(())
        }
        Some("stat") => stat(
            &area.margin(3, 3, 3, 3).titled(title, ("sans-serif", 13))?,
            series,
            unit,
        ),
        _ => lines(
            &area.margin(3, 3, 3, 3).titled(title, ("sans-serif", 13))?,
            series,
            unit,
            since,
        ),
    }
}

fn stat(area: &Area<'_>, series: &[Series], unit: &str) -> Drawn<()> {
    let now = |series: &&Series| series.points.last().is_some_and(|(at, _)| *at > -STEP);
    let present: Vec<&Series> = series.iter().filter(now).collect();
    for (number, series) in present.iter().take(MOST_LABELS).enumerate() {
        let value = series.points.last().map_or(0.0, |(_, value)| *value);
        let text = format!("{}  {}", shown(value, unit), series.label);
        area.draw(&Text::new(
            text,
            (10, i32::try_from(number * 18)? + 4),
            ("sans-serif", 14).into_font(),
        ))?;
    }
    if present.is_empty() {
        area.draw(&Text::new(
            "none",
            (10, 4),
            ("sans-serif", 14).into_font().color(&BLACK.mix(0.5)),
        ))?;
    }
    Ok(())
}

fn lines(area: &Area<'_>, series: &[Series], unit: &str, since: f64) -> Drawn<()> {
    let most = series
        .iter()
        .flat_map(|series| &series.points)
        .map(|(_, value)| *value)
        .fold(0.0, f64::max);
    let top = if most > 0.0 { most * 1.15 } else { 1.0 };
    let mut chart = ChartBuilder::on(area)
        .margin(4)
        .x_label_area_size(16)
        .y_label_area_size(50)
        .build_cartesian_2d(since..0.0, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_labels(4)
        .y_labels(4)
        .x_label_formatter(&|at| format!("{at} s"))
        .y_label_formatter(&|value| shown(*value, unit))
        .draw()?;
    for (number, series) in series.iter().enumerate() {
        let color = Palette99::pick(number).to_rgba();
        let line = chart.draw_series(LineSeries::new(
            series.points.iter().copied(),
            color.stroke_width(1),
        ))?;
        if number < MOST_LABELS {
            line.label(&series.label).legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 10, y)], color.stroke_width(2))
            });
        }
    }
    if !series.is_empty() {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .label_font(("sans-serif", 10))
            .background_style(WHITE.mix(0.7))
            .draw()?;
    }
    Ok(())
}

fn shown(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => format!("{:.0} MiB", value / 1_048_576.0),
        "percentunit" => format!("{:.1} %", value * 100.0),
        "dateTimeFromNow" => format!(
            "{:.0} s ago",
            jiff::Timestamp::now().as_second() as f64 - value / 1000.0
        ),
        "s" if value < 1.0 => format!("{:.0} ms", value * 1000.0),
        "s" => format!("{value:.0} s"),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}
