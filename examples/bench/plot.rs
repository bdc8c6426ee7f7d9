//! Draws the figures of a run's JSON file as curves in SVG.

use std::path::Path;

use plotters::prelude::*;
use serde::Deserialize;

use super::stages::Run;
use super::support::{Error, Result};

/// The part of the JSON file that is needed.
#[derive(Debug, Deserialize)]
struct Figures {
    runs: Vec<Run>,
}

/// A name, and the value of a run.
type Curve = (&'static str, fn(&Run) -> f64);

/// The pictures: file, title and curves.
const PICTURES: [(&str, &str, &[Curve]); 5] = [
    (
        "time.svg",
        "seconds until all are created",
        &[
            ("dbplane", |run| run.creating.after),
            ("the Kubernetes writes alone", |run| run.creating.floor),
        ],
    ),
    (
        "processor.svg",
        "seconds of processor time",
        &[
            ("creating all", |run| run.creating.processor),
            ("a restart", |run| run.restart.processor),
            ("a bare list and decode", |run| run.restart.floor),
        ],
    ),
    (
        "memory.svg",
        "resident MiB",
        &[
            ("after creating all", |run| run.resident_kib as f64 / 1024.0),
            ("after a restart", |run| {
                run.restart.resident_kib as f64 / 1024.0
            }),
        ],
    ),
    (
        "latency.svg",
        "milliseconds from apply to POST of one that comes alone",
        &[
            ("behind all others, median", |run| {
                run.singles_behind.median * 1000.0
            }),
            ("behind all others, worst of 50", |run| {
                run.singles_behind.worst * 1000.0
            }),
            ("in an empty cluster, median", |run| {
                run.singles_alone.median * 1000.0
            }),
        ],
    ),
    (
        "requests.svg",
        "requests while creating all",
        &[
            ("writes to Kubernetes", |run| {
                run.creating.requests.writes() as f64
            }),
            ("changes on the platform", |run| {
                run.creating.requests.platform_changes as f64
            }),
            ("lists of the platform", |run| {
                run.creating.requests.platform_lists as f64
            }),
        ],
    ),
];

pub fn draw(json: &Path, folder: &Path) -> Result<()> {
    let read = serde_json::from_str(&std::fs::read_to_string(json)?);
    let Figures { runs } = read.map_err(Error::while_doing("reading the figures"))?;
    std::fs::create_dir_all(folder)?;
    for (file, what, curves) in PICTURES {
        let drawn = picture(&folder.join(file), what, curves, &runs);
        drawn.map_err(|error| Error::new(format!("drawing {file}: {error}")))?;
    }
    println!("drawn into {}", folder.display());
    Ok(())
}

/// Both axes are logarithmic, so a cost that is linear in the number of Computes has a slope of
/// one.
fn picture(
    path: &Path,
    what: &str,
    curves: &[Curve],
    runs: &[Run],
) -> Result<(), Box<dyn std::error::Error>> {
    let sizes = runs.iter().map(|run| run.size as f64);
    let values = || {
        runs.iter()
            .flat_map(|run| curves.iter().map(|(_, of)| of(run)))
    };
    let (least, most) = (
        values().fold(f64::MAX, f64::min),
        values().fold(0.0, f64::max),
    );
    let (smallest, largest) = (
        sizes.clone().fold(f64::MAX, f64::min),
        sizes.fold(0.0, f64::max),
    );
    let area = SVGBackend::new(path, (640, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (smallest * 0.8..largest * 1.25).log_scale(),
            (least.max(0.001) * 0.7..most * 1.5).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("Computes")
        .y_desc(what)
        .light_line_style(WHITE)
        .draw()?;
    for (number, (name, of)) in curves.iter().enumerate() {
        let color = Palette99::pick(number).to_rgba();
        let points = || runs.iter().map(|run| (run.size as f64, of(run).max(0.001)));
        chart
            .draw_series(LineSeries::new(points(), color.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
        chart.draw_series(points().map(|point| Circle::new(point, 3, color.filled())))?;
    }
    let mut labels = chart.configure_series_labels();
    labels
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}
