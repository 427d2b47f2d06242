//! The types that the front end infers are those that rustc infers, for generated bodies without
//! annotations.
//!
//! More of them: `cargo xtask fuzz --target types --inputs 20000`.

use std::process::Command;

/// The number of bodies, which take some seconds.
const BODIES: usize = 300;

#[test]
fn the_front_end_and_rustc_infer_the_same_types() {
    let mut fuzzer = Command::new(env!("CARGO_BIN_EXE_tma-fuzz"));
    let output = fuzzer.args(["--target", "types", "--inputs", &BODIES.to_string()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(&format!("{BODIES} passed, 0 failed")), "{said}");
    // A generator whose bodies rustc refuses would compare nothing.
    let taken = said.split("rustc takes ").nth(1).and_then(|rest| rest.split(',').next());
    let taken: usize = taken.and_then(|taken| taken.parse().ok()).expect("it says how many rustc takes");
    assert!(taken * 4 > BODIES * 3, "rustc takes only {taken} of {BODIES} bodies");
}
