//! Loads PTX files and says what is wrong with them:
//! `cargo run -p ptx-sim --example load -- FILE.ptx ..`

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut refused = 0;
    let mut kernels = 0;
    for path in std::env::args().skip(1) {
        let loaded = std::fs::read_to_string(&path)
            .map_err(|error| error.to_string())
            .and_then(|text| ptx_sim::Module::load(&text).map_err(|error| error.to_string()));
        match loaded {
            Ok(module) => kernels += module.kernels().count(),
            Err(error) => {
                eprintln!("{path}: {error}");
                refused += 1;
            }
        }
    }
    println!("{kernels} kernels loaded, {refused} files refused");
    if refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
