//! rustc's messages about kernels and their launches.
//!
//! The kernels in `ui` are compiled by this package's build script, as all under `tests` are.

use std::env;
use std::process::Command;

/// Compares with the `.stderr` beside each file.
#[test]
fn mistakes_are_reported_where_they_stand() {
    const ACCEPTS: &str = "TRYBUILD";
    if tma_golden::blesses() && env::var_os(ACCEPTS).is_none() {
        // trybuild reads its variable from the environment, which a process inherits.
        let mut again = Command::new(env::current_exe().expect("the test knows its program"));
        let status = again.args(env::args().skip(1)).env(ACCEPTS, "overwrite").status();
        assert!(status.expect("the program starts again").success());
        return;
    }
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/refused/*.rs");
}
