//! NaN, infinities, zeros and the extreme finite numbers in every function, on the simulator or on
//! the device that `TMA_DEVICE` names. The table is the one in `docs/special-values.md`.
#![cfg(feature = "llvm")]

mod special {
    pub(crate) mod attention;
    pub(crate) mod conv;
    pub(crate) mod gemm;
}

use std::error::Error;

use tma_runtime::prelude::*;

/// A line of the table: a function, its input and its result.
pub(crate) struct Line {
    function: &'static str,
    given: String,
    wanted: f32,
    found: f32,
}

/// The lines collected for the table.
#[derive(Default)]
pub(crate) struct Table(Vec<Line>);

impl Table {
    /// Records the result of `function` for the input `given`, which should be `wanted`.
    pub(crate) fn line(&mut self, function: &'static str, given: impl Into<String>, wanted: f32, found: f32) {
        self.0.push(Line { function, given: given.into(), wanted, found });
    }

    fn text(&self) -> String {
        let line = |Line { function, given, wanted, .. }: &Line| {
            let wanted = if wanted.is_nan() { f32::NAN } else { *wanted };
            format!("| `{function}` | {given} | {} |\n", number(wanted))
        };
        let head = "| function | given | result |\n| --- | --- | --- |\n".to_owned();
        head + &self.0.iter().map(line).collect::<String>()
    }
}

/// Formats a number as on the page.
pub(crate) fn number(x: f32) -> String {
    match x {
        _ if x.is_nan() => if x.is_sign_negative() { "-NaN" } else { "NaN" }.to_owned(),
        f32::INFINITY => "∞".to_owned(),
        f32::NEG_INFINITY => "-∞".to_owned(),
        _ if x != 0.0 && !(1e-3..1e6).contains(&x.abs()) => format!("{x:.2e}"),
        _ => format!("{x}"),
    }
}

/// Returns the special inputs of the table for an element type with this greatest and least number.
pub(crate) fn special(greatest: f32, least: f32) -> [f32; 9] {
    [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, greatest, -greatest, least, -least]
}

#[test]
fn every_line_of_the_table_holds() -> Result<(), Box<dyn Error>> {
    let device = Device::open()?;
    let mut table = Table::default();
    special::gemm::lines(&device, &mut table)?;
    special::conv::lines(&device, &mut table)?;
    special::attention::lines(&device, &mut table)?;
    let is_same = |line: &&Line| {
        line.wanted.is_nan() && line.found.is_nan() || line.wanted.to_bits() == line.found.to_bits()
    };
    let wrong: Vec<String> = table
        .0
        .iter()
        .filter(|line| !is_same(line))
        .map(|Line { function, given, wanted, found }| format!("{function}: {given}: {found}, not {wanted}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/special-values.md"));
    // The machine with the GPU does not have the sources.
    if std::env::var_os("TMA_DEVICE").is_none() {
        let page = page?;
        assert!(page.contains(&table.text()), "docs/special-values.md should have:\n\n{}", table.text());
    }
    Ok(())
}
