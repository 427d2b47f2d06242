//! The picture of losses.

use std::fs;

use anyhow::{Context, Result};
use roxmltree::Document;
use tma_train::curve;
use tma_train::losses::{Line, StepLine, ValidationLine};

fn step(step: u32, loss: f32) -> Line {
    Line::Step(StepLine {
        step,
        loss: loss.is_finite().then_some(loss),
        gradient_norm: None,
        skipped: false,
        learning_rate: 0.1,
        tokens: 8,
        seconds: 1.0,
        tokens_per_second: 8.0,
        share_of_peak: None,
    })
}

fn validation(step: u32, loss: f32) -> Line {
    Line::Validation(ValidationLine { step, validation_loss: Some(loss) })
}

/// Returns a run whose loss falls from 5 to 1, with a loss that is not finite.
fn lines() -> Vec<Line> {
    let steps = (1..=400).map(|i| step(i, if i == 77 { f32::NAN } else { 5.0 - i as f32 / 100.0 }));
    steps.chain([validation(100, 4.5), validation(400, 1.5)]).collect()
}

/// Returns the points of a line, in pixels.
fn points(text: &str) -> Result<Vec<(f64, f64)>> {
    let pairs = text.split_whitespace().map(|pair| {
        let (x, y) = pair.split_once(',').context("a point has two numbers")?;
        Ok((x.parse()?, y.parse()?))
    });
    pairs.collect()
}

#[test]
fn points_are_where_losses_are() -> Result<()> {
    let output = tempfile::tempdir()?;
    curve::write(output.path(), &lines())?;
    let svg = fs::read_to_string(output.path().join(curve::NAME))?;
    let document = Document::parse(&svg)?;
    let with = |name: &'static str| document.descendants().filter(move |node| node.has_tag_name(name));
    let line_of = |width: &str| {
        let mut lines = with("polyline").filter(|node| node.attribute("stroke-width") == Some(width));
        let longest = lines.by_ref().map(|node| node.attribute("points").unwrap_or_default());
        points(longest.max_by_key(|points| points.len()).context("there is such a line")?)
    };
    // The lines of 399 steps, thin and smoothed, and that of two validations.
    let line = line_of("1")?;
    assert_eq!([line.len(), line_of("3")?.len(), line_of("2")?.len()], [399, 399, 2]);
    assert!(line.is_sorted_by(|one, next| one.0 <= next.0 && one.1 <= next.1), "steps grow, losses fall");

    // The losses 4.5 and 1.5 are an eighth and seven eighths of the way from 5 to 1; the first step's
    // is 4.99.
    let circles: Vec<(f64, f64)> = with("circle")
        .map(|node| {
            Ok((node.attribute("cx").unwrap_or("").parse()?, node.attribute("cy").unwrap_or("").parse()?))
        })
        .collect::<Result<_>>()?;
    assert_eq!(circles.len(), 2);
    let (first, last) = (line[0], line[line.len() - 1]);
    for ((x, y), (at, down)) in circles.into_iter().zip([(99.0 / 399.0, 0.49 / 3.99), (1.0, 3.49 / 3.99)]) {
        assert!((x - (first.0 + at * (last.0 - first.0))).abs() <= 1.0, "{x}");
        assert!((y - (first.1 + down * (last.1 - first.1))).abs() <= 1.0, "{y}");
    }
    Ok(())
}

#[test]
fn axes_have_round_numbers_and_names() -> Result<()> {
    let output = tempfile::tempdir()?;
    curve::write(output.path(), &lines())?;
    let svg = fs::read_to_string(output.path().join(curve::NAME))?;
    let document = Document::parse(&svg)?;
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    let texts: Vec<_> = texts.filter_map(|node| Some(node.text()?.trim().to_owned())).collect();
    for wanted in ["step", "loss", "training", "training, smoothed", "validation", "100", "400", "2", "4"] {
        assert!(texts.iter().any(|text| text == wanted), "{wanted} is not in {texts:?}");
    }
    let longest = texts.iter().filter(|text| text.parse::<f64>().is_ok()).map(String::len).max();
    assert!(longest.is_some_and(|digits| digits <= 4), "{texts:?}");
    Ok(())
}

#[test]
fn many_steps_are_thinned() {
    let lines: Vec<_> = (1..=123_457).map(|i| step(i, 1.0 + (i % 2) as f32)).collect();
    let curve = curve::curve(&lines);
    for points in [&curve.training, &curve.smoothed] {
        assert!((500..=1001).contains(&points.len()), "{}", points.len());
        assert_eq!(points.last().map(|point| point.0), Some(123_457.0));
    }
    assert!(curve.smoothed.iter().all(|(_, loss)| (loss - 1.5).abs() < 0.001));
}

#[test]
fn a_picture_wants_two_points() -> Result<()> {
    let output = tempfile::tempdir()?;
    for lines in [vec![], vec![step(1, 3.0)], vec![step(1, f32::NAN), step(2, 3.0)]] {
        curve::write(output.path(), &lines)?;
        assert!(!output.path().join(curve::NAME).exists());
    }
    // Losses that are all the same have a picture as well.
    curve::write(output.path(), &[step(1, 3.0), step(2, 3.0)])?;
    assert!(output.path().join(curve::NAME).exists());
    Ok(())
}
