//! Prints the kernel of a PTX file with probes or with limits, for a look and for ptxas:
//! `cargo run -p ptx-probe --example rewrite -- trace|watch FILE ENTRY SHARED_BYTES`.

use ptx_probe::{instrument, ring::Layout, watch::watch};

const USAGE: &str = "trace|watch FILE ENTRY SHARED_BYTES";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, file, entry, shared] = arguments.as_slice() else { return Err(USAGE.into()) };
    let (text, shared, address) = (std::fs::read_to_string(file)?, shared.parse()?, 0x1000_0000);
    let ptx = match what.as_str() {
        "trace" => instrument(&text, entry, shared, address, Layout::of(132, 384)?)?.ptx,
        "watch" => watch(&text, entry, shared, address, 2_000_000_000)?.ptx,
        _ => return Err(USAGE.into()),
    };
    print!("{ptx}");
    Ok(())
}
