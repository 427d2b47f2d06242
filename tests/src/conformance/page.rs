//! The table of the cases in the book.

use tma_runtime::spec::{Scalar, TileSwizzle};

use super::{Case, Operation};

/// The layouts, one per column.
const LAYOUTS: [(TileSwizzle, &str); 6] = [
    (TileSwizzle::None, "no swizzle"),
    (TileSwizzle::B32, "32 bytes"),
    (TileSwizzle::B64, "64 bytes"),
    (TileSwizzle::B128, "128 bytes"),
    (TileSwizzle::Interleave16, "interleave 16"),
    (TileSwizzle::Interleave32, "interleave 32"),
];

/// Returns the page of the book, with the number of edges for each operation, rank, element and
/// layout.
pub fn table(cases: &[Case]) -> String {
    let heads = LAYOUTS.map(|(_, head)| head).join(" | ");
    let mut text = format!(
        "\n{} cases:\n\n| operation | rank | element | {heads} |\n| --- | --- | --- |{}\n",
        cases.len(),
        " --- |".repeat(LAYOUTS.len())
    );
    let row_of = |case: &Case| (name(case.operation), case.rank(), case.map.element);
    let mut rows: Vec<(String, usize, Scalar)> = vec![];
    for row in cases.iter().map(row_of) {
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    for row in rows {
        let cells = LAYOUTS.map(|(layout, _)| {
            let here = cases.iter().filter(|case| case.map.swizzle == layout && row_of(case) == row);
            match here.count() {
                0 => " |".to_owned(),
                count => format!(" {count} |"),
            }
        });
        let (operation, rank, element) = row;
        text += &format!("| {operation} | {rank} | `{element}` |{}\n", cells.concat());
    }
    text
}

/// Returns the name of the operation. All steps have one name.
fn name(operation: Operation) -> String {
    match operation {
        Operation::SteppedLoad(_) => "load, steps 2 to 8".to_owned(),
        Operation::SteppedStore(_) => "store, steps 2 to 8".to_owned(),
        operation => operation.to_string(),
    }
}
