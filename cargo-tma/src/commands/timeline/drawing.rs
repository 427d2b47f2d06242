//! A drawing of some rows of a block.

use std::fmt::Write as _;

use super::file::{Kind, Row, Slice, Unit};

/// The rows to draw, and the interval.
#[derive(Debug)]
pub(super) struct Drawing<'a> {
    pub(super) title: &'a str,
    pub(super) rows: Vec<&'a Row>,
    pub(super) unit: Unit,
    pub(super) from: f64,
    pub(super) to: f64,
}

// Lengths in pixels.
const WIDTH: f64 = 900.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 26.0;
const BAR: f64 = 20.0;
const HEAD: f64 = 26.0;
/// The average width of a letter.
const LETTER: f64 = 6.8;
/// The width of the smallest slice that is drawn.
const SMALLEST: f64 = 0.5;

/// Returns the drawing in SVG.
pub(super) fn svg(drawing: &Drawing<'_>) -> String {
    let Drawing { title, rows, unit, from, to } = drawing;
    let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
    let left = 2.0 * MARGIN + LETTER * longest as f64;
    let scale = Scale { left, width: WIDTH - MARGIN - left, from: *from, to: *to };
    let bottom = HEAD + ROW * rows.len() as f64;
    let height = bottom + 2.0 * ROW;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    text(&mut out, [MARGIN, 17.0], title);
    let mut kinds = vec![];
    for (number, row) in rows.iter().enumerate() {
        let top = HEAD + ROW * number as f64;
        text(&mut out, [MARGIN, top + 15.0], &row.name);
        let slices = seen(row, *unit, &scale);
        kinds.extend(slices.iter().map(|slice| slice.kind));
        draw_row(&mut out, &slices, &scale, top);
    }
    axis(&mut out, &scale, bottom, *unit);
    legend(&mut out, &kinds, [left, bottom + ROW]);
    out + "</svg>\n"
}

/// Where a time is drawn.
struct Scale {
    left: f64,
    width: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn x(&self, time: f64) -> f64 {
        self.left + (time - self.from) / (self.to - self.from) * self.width
    }
}

/// Part of a slice that is in the interval, in pixels.
struct Seen<'a> {
    begin: f64,
    end: f64,
    kind: Kind,
    label: &'a str,
}

/// Returns what of a row is in the interval. A warp of a GPU runs between its slices.
fn seen<'a>(row: &'a Row, unit: Unit, scale: &Scale) -> Vec<Seen<'a>> {
    let cut = |begin: f64, end: f64, kind, label| {
        let (begin, end) = (begin.max(scale.from), end.min(scale.to));
        (begin < end).then(|| Seen { begin: scale.x(begin), end: scale.x(end), kind, label })
    };
    let of_slice = |slice: &'a Slice| cut(slice.begin, slice.end, slice.kind, &slice.label);
    let of_warp = match (row.slices.first(), row.slices.last()) {
        (Some(first), Some(last)) if unit == Unit::Microseconds && row.is_warp() => {
            cut(first.begin, last.end, Kind::Runs, "")
        }
        _ => None,
    };
    of_warp.into_iter().chain(row.slices.iter().filter_map(of_slice)).collect()
}

fn draw_row(out: &mut String, slices: &[Seen<'_>], scale: &Scale, top: f64) {
    let mut drawn = scale.left;
    for Seen { begin, end, kind, label } in slices {
        // It would be lost between the pixels.
        if end - begin < SMALLEST && *end < drawn + SMALLEST {
            continue;
        }
        let width = (end - begin).max(SMALLEST);
        // The base of a row is no slice that others could be lost beside.
        if *kind != Kind::Runs {
            drawn = begin + width;
        }
        _ = writeln!(
            out,
            "<rect x=\"{begin:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{}\"{}/>",
            colour(*kind),
            if width > 4.0 { " stroke=\"#ffffff\" stroke-width=\"0.5\"" } else { "" },
        );
        let fits = |label: &&str| LETTER * label.chars().count() as f64 + 6.0 < width;
        let short = if matches!(kind, Kind::Waits | Kind::Stuck) { "waits" } else { "" };
        if let Some(label) = [*label, short].into_iter().filter(|label| !label.is_empty()).find(fits) {
            text(out, [begin + 4.0, top + 15.0], &label.replace('`', ""));
        }
    }
}

fn axis(out: &mut String, scale: &Scale, top: f64, unit: Unit) {
    let step = round_step((scale.to - scale.from) / 8.0);
    let digits = (-step.log10().floor()).max(0.0) as usize;
    let first = (scale.from / step).ceil();
    for number in 0..=8 {
        let tick = (first + f64::from(number)) * step;
        if tick > scale.to {
            break;
        }
        let x = scale.x(tick);
        _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{HEAD}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"#000000\" \
             stroke-opacity=\"0.12\"/>",
            top + 4.0
        );
        let label = format!("{tick:.digits$} {}", unit.name());
        // The last label would stand beyond the edge.
        if x + LETTER * (label.len() as f64) < WIDTH {
            text(out, [x + 2.0, top + 15.0], &label);
        }
    }
}

/// Returns 1, 2 or 5 times a power of ten, at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= least)
        .unwrap_or(least)
}

fn legend(out: &mut String, kinds: &[Kind], at: [f64; 2]) {
    let [mut x, top] = at;
    for kind in Kind::ALL.into_iter().filter(|kind| kinds.contains(kind)) {
        _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{}\"/>",
            top + 4.0,
            colour(kind)
        );
        text(out, [x + 17.0, top + 15.0], kind.name());
        x += 40.0 + LETTER * kind.name().len() as f64;
    }
}

fn text(out: &mut String, at: [f64; 2], text: &str) {
    let [x, y] = at;
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"#222222\">{text}</text>");
}

fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Runs => "#7fb77e",
        Kind::Waits => "#f0d9a8",
        Kind::Stuck => "#e0736f",
        Kind::Copies => "#9dc3e6",
        Kind::Multiplies => "#b9a3dc",
        Kind::Span => "#e6b8a2",
        Kind::Phase => "#d5d9de",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(slices: Vec<Slice>) -> Row {
        Row { name: "warp 0".to_owned(), slices }
    }

    fn wait(begin: f64, end: f64) -> Slice {
        Slice { begin, end, kind: Kind::Waits, label: "`full[0]`".to_owned() }
    }

    #[test]
    fn slices_are_cut_at_the_interval() {
        let row = row(vec![wait(0.0, 30.0), wait(90.0, 200.0)]);
        let drawing = Drawing { title: "k", rows: vec![&row], unit: Unit::Steps, from: 100.0, to: 150.0 };
        let text = svg(&drawing);
        assert_eq!(text.matches("#f0d9a8").count(), 2, "one slice and the legend: {text}");
        // It begins before the interval and ends after it.
        let whole = WIDTH - MARGIN - (2.0 * MARGIN + LETTER * 6.0);
        assert!(text.contains(&format!("width=\"{whole:.1}\" height=\"{BAR}\"")), "{text}");
        assert!(text.contains(">full[0]<"), "{text}");
    }

    #[test]
    fn slices_of_less_than_a_pixel_are_drawn_once() {
        let row = row((0..100_000).map(|at| wait(f64::from(at), f64::from(at) + 0.5)).collect());
        let drawing = Drawing { title: "k", rows: vec![&row], unit: Unit::Microseconds, from: 0.0, to: 1e5 };
        assert!(svg(&drawing).lines().count() < 2000);
    }

    #[test]
    fn short_intervals_have_labels_that_differ() {
        let row = row(vec![wait(0.0, 30.0)]);
        let drawing =
            Drawing { title: "k", rows: vec![&row], unit: Unit::Microseconds, from: 20.0, to: 20.4 };
        let text = svg(&drawing);
        assert!(text.contains(">20.05 µs<") && text.contains(">20.10 µs<"), "{text}");
        let shortest = Drawing { from: 1.0, to: 1.0 + f64::EPSILON, ..drawing };
        assert!(svg(&shortest).lines().count() < 40);
    }

    #[test]
    fn steps_of_the_axis_are_round() {
        assert_eq!([0.3, 1.0, 12.0, 60.0].map(round_step), [0.5, 1.0, 20.0, 100.0]);
    }
}
