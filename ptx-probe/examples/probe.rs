//! Adds probes to the kernel of a PTX file and prints it, for a look and for ptxas:
//! `cargo run -p ptx-probe --example probe -- FILE ENTRY SHARED_BYTES`.

use ptx_probe::{instrument, ring::Layout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, entry, shared] = arguments.as_slice() else { return Err("FILE ENTRY SHARED_BYTES".into()) };
    let text = std::fs::read_to_string(file)?;
    let probed = instrument(&text, entry, shared.parse()?, 0x1000_0000, Layout::of(132, 384)?)?;
    print!("{}", probed.ptx);
    eprintln!("{} probes, {} bytes of shared memory", probed.sites.len(), probed.shared_bytes);
    Ok(())
}
