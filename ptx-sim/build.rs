//! Tells the library whether it is optimised, which no `cfg` says.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Cargo sets it for build scripts, from the profile that the library is compiled with.
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=PTX_SIM_OPT_LEVEL={level}");
}
