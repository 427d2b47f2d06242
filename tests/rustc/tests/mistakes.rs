//! What rustc says of kernels and of their launches.
//!
//! The kernels in `ui` are compiled by this package's build script, as all under `tests` are.

/// Compares with the `.stderr` beside each file. To accept a change: run with `TRYBUILD=overwrite`.
#[test]
fn mistakes_are_reported_where_they_stand() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/refused/*.rs");
}
