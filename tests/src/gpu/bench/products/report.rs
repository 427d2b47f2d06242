//! The report of a race: JSON lines, or a table for people.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;

use super::contestants::{Contestant, Role};
use super::precision::Precision;
use crate::gpu::bench::libraries::nvml::State;
use crate::gpu::bench::measure::{Spread, ratio};
use crate::gpu::bench::slices::Measured;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A JSON line per contestant.
    #[default]
    Json,
    /// A table per shape.
    Table,
}

/// All rounds of a contestant at a shape.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// `products/PRECISION/CONTESTANT`.
    pub benchmark: String,
    /// The kind of contestant.
    #[serde(skip)]
    pub role: Role,
    /// M, N and K.
    pub shape: [usize; 3],
    /// The median of the rounds.
    pub tflops: f64,
    /// See [`Spread`].
    pub spread: f64,
    /// The medians of the states that were read in the middle of each slice.
    #[serde(flatten)]
    pub state: Option<State>,
    /// The speeds of all rounds, relative to each library's.
    pub ratios: BTreeMap<String, Ratio>,
    /// The speed of each round in TFLOP/s.
    pub rounds: Vec<f64>,
}

/// A contestant's speed relative to another's, in the same rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// See [`Spread`].
    pub spread: f64,
    /// The ratio in each round.
    pub rounds: Vec<f64>,
}

/// Returns the median and the spread of the speeds.
pub fn of_speeds(rounds: &[Measured]) -> Spread {
    Spread::of(&speeds(rounds))
}

fn speeds(rounds: &[Measured]) -> Vec<f64> {
    rounds.iter().map(|round| round.tflops).collect()
}

/// Computes the ratio of one contestant's rounds to another's.
pub fn ratio_of(rounds: &[Measured], to: &[Measured]) -> Ratio {
    let (figures, to) = (speeds(rounds), speeds(to));
    let Spread { median, width } = ratio(&figures, &to);
    let each = figures.iter().zip(&to).map(|(figure, to)| rounded(figure / to)).collect();
    Ratio { median: rounded(median), spread: rounded(width), rounds: each }
}

/// Returns the line of each contestant, slowest first.
pub fn lines<P: Precision>(
    contestants: &[Contestant<'_, P>],
    measured: &[Vec<Measured>],
    shape: [usize; 3],
) -> Vec<Line> {
    let libraries = || contestants.iter().zip(measured).filter(|(other, _)| other.role == Role::Library);
    let line = |(contestant, rounds): (&Contestant<'_, P>, &Vec<Measured>)| {
        let Spread { median, width } = of_speeds(rounds);
        let others = libraries().filter(|(other, _)| other.name != contestant.name);
        Line {
            benchmark: format!("products/{}/{}", P::NAME, contestant.name),
            role: contestant.role,
            shape,
            tflops: rounded(median),
            spread: rounded(width),
            state: middle(rounds),
            ratios: others.map(|(other, to)| (other.name.clone(), ratio_of(rounds, to))).collect(),
            rounds: rounds.iter().map(|round| rounded(round.tflops)).collect(),
        }
    };
    let mut lines: Vec<_> = contestants.iter().zip(measured).map(line).collect();
    lines.sort_by(|a, b| a.tflops.total_cmp(&b.tflops));
    lines
}

/// Returns the medians of clock, power and temperature.
fn middle(rounds: &[Measured]) -> Option<State> {
    let states: Vec<State> = rounds.iter().map(|round| round.state).collect::<Option<_>>()?;
    let median = |field: fn(&State) -> f64| Spread::of(&states.iter().map(field).collect::<Vec<_>>()).median;
    (!states.is_empty()).then(|| State {
        mhz: median(|state| state.mhz),
        watts: median(|state| state.watts),
        celsius: median(|state| state.celsius),
    })
}

/// Rounds to the significant digits.
pub fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Formats the lines of one shape as a table.
pub fn table(lines: &[Line]) -> String {
    let Some(first) = lines.first() else { return String::new() };
    let [m, n, k] = first.shape;
    let libraries: Vec<&String> = {
        let mut names: Vec<_> = lines.iter().flat_map(|line| line.ratios.keys()).collect();
        names.sort();
        names.dedup();
        names
    };
    let mut head = ["contestant", "TFLOP/s", "spread", "MHz", "W"].map(str::to_owned).to_vec();
    head.extend(libraries.iter().map(|library| format!("of {library}")));
    let row = |line: &Line| {
        let state = |field: fn(&State) -> f64| {
            line.state.as_ref().map_or("-".to_owned(), |state| format!("{:.0}", field(state)))
        };
        let mut cells = vec![
            line.benchmark.trim_start_matches("products/").to_owned(),
            format!("{:.1}", line.tflops),
            format!("{:.3}", line.spread),
            state(|state| state.mhz),
            state(|state| state.watts),
        ];
        let ratio = |library: &&String| {
            let text = |ratio: &Ratio| format!("{:.3} ± {:.3}", ratio.median, ratio.spread / 2.0);
            line.ratios.get(*library).map_or("-".to_owned(), text)
        };
        cells.extend(libraries.iter().map(ratio));
        cells
    };
    let rows: Vec<Vec<String>> = [head].into_iter().chain(lines.iter().map(row)).collect();
    format!("{m} × {n} × {k}\n{}", aligned(&rows))
}

/// Aligns rows in columns: the first to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let text = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| match (column, width(column)) {
            (0, width) => format!("{cell:<width$}"),
            (_, width) => format!("{cell:>width$}"),
        });
        format!("  {}\n", cells.collect::<Vec<_>>().join("  "))
    };
    rows.iter().map(text).collect()
}

/// Formats the summaries as a table.
pub fn table_of(summaries: &[Summary]) -> String {
    let head = ["contestant", "of", "shapes", "geometric mean", "least"].map(str::to_owned).to_vec();
    let row = |summary: &Summary| {
        let name = summary.benchmark.trim_start_matches("products/").to_owned();
        let [mean, least] = [summary.geometric_mean, summary.least].map(|ratio| format!("{ratio:.3}"));
        vec![name, summary.against.clone(), summary.shapes.to_string(), mean, least]
    };
    let rows: Vec<_> = [head].into_iter().chain(summaries.iter().map(row)).collect();
    aligned(&rows)
}

/// Whether a contestant reaches a target.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// `products/PRECISION`.
    pub benchmark: String,
    /// M, N and K.
    pub shape: [usize; 3],
    /// The name of the target: `example` or `fastest_dense`.
    pub target: &'static str,
    /// The contestant that is judged.
    pub contestant: String,
    /// The median of the ratios to cuBLAS.
    pub ratio: f64,
    /// See [`Spread`].
    pub spread: f64,
    /// The least ratio that is required.
    pub wanted: f64,
}

impl Verdict {
    /// Returns whether the target is reached.
    pub fn is_met(&self) -> bool {
        self.ratio >= self.wanted
    }

    /// Returns the line for people.
    pub fn text(&self) -> String {
        let Self { contestant, ratio, wanted, .. } = self;
        let verdict = if self.is_met() { "met" } else { "missed" };
        format!("  {contestant} reaches {ratio:.3} of cublas; {wanted:.2} is wanted: {verdict}")
    }
}

/// A contestant's speeds relative to a library's over several shapes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// `products/PRECISION/CONTESTANT`.
    pub benchmark: String,
    /// The library.
    pub against: String,
    /// The number of shapes.
    pub shapes: usize,
    /// The geometric mean of the medians.
    pub geometric_mean: f64,
    /// The smallest of the medians.
    pub least: f64,
}

/// Returns a summary for each pair of a library and another contestant that were compared at all of
/// the shapes, if there is more than one.
pub fn summaries(lines: &[Line]) -> Vec<Summary> {
    let mut shapes: Vec<_> = lines.iter().map(|line| line.shape).collect();
    shapes.sort_unstable();
    shapes.dedup();
    let mut medians: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.role != Role::Library) {
        for (library, ratio) in &line.ratios {
            medians.entry((&line.benchmark, library)).or_default().push(ratio.median);
        }
    }
    let everywhere =
        medians.into_iter().filter(|(_, medians)| medians.len() == shapes.len() && shapes.len() > 1);
    let summary = |((benchmark, against), medians): ((&str, &str), Vec<f64>)| Summary {
        benchmark: benchmark.to_owned(),
        against: against.to_owned(),
        shapes: medians.len(),
        geometric_mean: rounded(
            (medians.iter().map(|median| median.ln()).sum::<f64>() / medians.len() as f64).exp(),
        ),
        least: medians.iter().copied().fold(f64::INFINITY, f64::min),
    };
    everywhere.map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::super::precision::Bf16;
    use super::*;

    fn measured(tflops: [f64; 3]) -> Vec<Measured> {
        let state = State { mhz: 1500.0, watts: 690.4, celsius: 60.0 };
        tflops.map(|tflops| Measured { tflops, state: Some(state) }).to_vec()
    }

    fn race(shape: [usize; 3], kernel: [f64; 3]) -> Vec<Line> {
        let contestant = |name, role| Contestant::<Bf16>::new(name, role, |_, _| Ok(()));
        let contestants = [contestant("cublas", Role::Library), contestant("mine", Role::Kernel)];
        lines(&contestants, &[measured([600.0, 610.0, 605.0]), measured(kernel)], shape)
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let lines = race([64, 128, 256], [660.0, 549.0, 605.0]);
        let ratio = &lines[1].ratios["cublas"];
        assert_eq!((ratio.median, &ratio.rounds[..]), (1.0, &[1.1, 0.9, 1.0][..]));
        assert!(lines[0].ratios.is_empty(), "no library is compared with itself");
    }

    #[test]
    fn a_json_line_has_rounds_ratios_clock_and_power() {
        let line = serde_json::to_value(&race([64, 128, 256], [660.0; 3])[1]).unwrap();
        assert_eq!(line["benchmark"], "products/bf16/mine");
        assert_eq!((&line["mhz"], &line["watts"]), (&1500.0.into(), &690.4.into()));
        assert_eq!(line["rounds"].as_array().map(Vec::len), Some(3));
        assert_eq!(line["ratios"]["cublas"]["rounds"].as_array().map(Vec::len), Some(3));
    }

    #[test]
    fn the_table_has_a_row_a_contestant_and_a_column_a_library() {
        let text = table(&race([64, 128, 256], [660.0; 3]));
        let wanted = "64 × 128 × 256
  contestant   TFLOP/s  spread   MHz    W      of cublas
  bf16/cublas    605.0   0.017  1500  690              -
  bf16/mine      660.0   0.000  1500  690  1.091 ± 0.008
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn only_what_met_at_every_shape_is_summed_up() {
        let mut all = race([64; 3], [605.0; 3]);
        all.extend(race([128; 3], [605.0 * 4.0; 3]));
        let [summary] = &summaries(&all)[..] else { panic!("one pair met") };
        let table = table_of(&summaries(&all));
        let last: Vec<_> = table.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["bf16/mine", "cublas", "2", "2.000", "1.000"]);
        assert_eq!((summary.shapes, summary.geometric_mean, summary.least), (2, 2.0, 1.0));
        assert_eq!(summaries(&all[..2]), [], "a single shape is no summary");
        all.truncate(3);
        assert_eq!(summaries(&all), []);
    }
}
