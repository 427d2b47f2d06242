//! `losses.svg`: the losses of a run as a picture.
//!
//! The background is transparent and all colours have a middle lightness: the picture can be read on
//! light and on dark pages.

use std::fs;
use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;

use crate::error::TrainError;
use crate::losses::{Line, StepLine, ValidationLine};

/// The name of the file in the output folder.
pub const NAME: &str = "losses.svg";

/// The extents of the picture, in pixels.
const SIZE: (u32, u32) = (960, 540);
/// Points of a line, of which more would not be seen.
const MOST_POINTS: usize = 1000;
/// The share of the steps over which losses are smoothed.
const SMOOTHED_SHARE: usize = 50;

const GREY: RGBColor = RGBColor(128, 128, 128);
const BLUE: RGBColor = RGBColor(56, 132, 230);
const ORANGE: RGBColor = RGBColor(224, 122, 32);

/// A point of the picture: the number of a step, and a loss.
type Point = (f64, f64);

/// The lines of the picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// The losses of steps.
    pub training: Vec<Point>,
    /// Their means, each over some steps.
    pub smoothed: Vec<Point>,
    /// The losses of the held-out text.
    pub validation: Vec<Point>,
}

/// Returns the lines of a picture. Losses that are not finite are left out.
pub fn curve(lines: &[Line]) -> Curve {
    let mut curve = Curve::default();
    let point = |step: u32, loss: Option<f32>| loss.map(|loss| (f64::from(step), f64::from(loss)));
    for line in lines {
        match *line {
            Line::Step(StepLine { step, loss, .. }) => curve.training.extend(point(step, loss)),
            Line::Validation(ValidationLine { step, validation_loss }) => {
                curve.validation.extend(point(step, validation_loss));
            }
        }
    }
    curve.smoothed = thinned(&smoothed(&curve.training));
    curve.training = thinned(&curve.training);
    curve
}

/// Draws the picture, if there are two points.
///
/// # Errors
///
/// [`TrainError::Picture`] and [`TrainError::Write`].
pub fn write(output: &Path, lines: &[Line]) -> Result<(), TrainError> {
    let curve = curve(lines);
    if curve.training.len() + curve.validation.len() < 2 {
        return Ok(());
    }
    let svg = svg(&curve).map_err(|error| TrainError::Picture(error.to_string()))?;
    let (path, partial) = (output.join(NAME), output.join(format!(".{NAME}.partial")));
    fs::write(&partial, svg).map_err(TrainError::writing(&partial))?;
    fs::rename(&partial, &path).map_err(TrainError::writing(&path))
}

/// Returns means over the steps around each one.
fn smoothed(points: &[Point]) -> Vec<Point> {
    let reach = points.len() / SMOOTHED_SHARE / 2;
    // Sums of the losses before each point make the time independent of the reach.
    let mut sums = vec![0.0];
    sums.extend(points.iter().scan(0.0, |sum, (_, loss)| {
        *sum += loss;
        Some(*sum)
    }));
    let mean = |index: usize| {
        let (begin, end) = (index.saturating_sub(reach), (index + reach + 1).min(points.len()));
        (sums[end] - sums[begin]) / (end - begin) as f64
    };
    points.iter().enumerate().map(|(index, (step, _))| (*step, mean(index))).collect()
}

/// Returns points that are evenly spaced among others, with the last one.
fn thinned(points: &[Point]) -> Vec<Point> {
    let stride = points.len().div_ceil(MOST_POINTS).max(1);
    let mut kept: Vec<_> = points.iter().step_by(stride).copied().collect();
    if let (Some(last), true) = (points.last(), stride > 1) {
        kept.push(*last);
    }
    kept
}

/// Returns the ranges of steps and losses.
fn ranges(curve: &Curve) -> (Range<f64>, Range<f64>) {
    let points = || curve.training.iter().chain(&curve.validation);
    let last = points().fold(1.0, |most, (step, _)| step.max(most));
    let low = points().fold(f64::INFINITY, |least, (_, loss)| loss.min(least));
    let high = points().fold(f64::NEG_INFINITY, |most, (_, loss)| loss.max(most));
    let margin = ((high - low) * 0.05).max(1e-3);
    (0.0..last, low - margin..high + margin)
}

/// Returns the picture as text.
fn svg(curve: &Curve) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let font = || ("sans-serif", 15).into_font().color(&GREY);
    let (steps, losses) = ranges(curve);
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(steps, losses)?;
    chart
        .configure_mesh()
        .x_desc("step")
        .y_desc("loss")
        .axis_style(GREY)
        .bold_line_style(GREY.mix(0.25))
        .light_line_style(TRANSPARENT)
        .label_style(font())
        .axis_desc_style(font())
        .x_label_formatter(&|step| rounded(*step))
        .y_label_formatter(&|loss| rounded(*loss))
        .draw()?;
    let lines = [
        ("training", &curve.training, BLUE.mix(0.4).stroke_width(1)),
        ("training, smoothed", &curve.smoothed, BLUE.stroke_width(3)),
        ("validation", &curve.validation, ORANGE.stroke_width(2)),
    ];
    for (name, points, style) in lines.into_iter().filter(|(_, points, _)| !points.is_empty()) {
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    }
    chart.draw_series(curve.validation.iter().map(|point| Circle::new(*point, 4, ORANGE.filled())))?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .legend_area_size(36)
        .label_font(font())
        .draw()?;
    drop(chart);
    area.present()?;
    drop(area);
    Ok(svg)
}

/// Returns the text of a round number, without the digits that only its representation has.
fn rounded(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
