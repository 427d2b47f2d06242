//! Limits the waits of the kernel of a PTX file and prints it, for a look and for ptxas:
//! `cargo run -p ptx-probe --example watch -- FILE ENTRY SHARED_BYTES`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, entry, shared] = arguments.as_slice() else { return Err("FILE ENTRY SHARED_BYTES".into()) };
    let text = std::fs::read_to_string(file)?;
    let watched = ptx_probe::watch::watch(&text, entry, shared.parse()?, 0x1000_0000, 2_000_000_000)?;
    print!("{}", watched.ptx);
    eprintln!("{} waits, {} bytes of shared memory", watched.sites.len(), watched.shared_bytes);
    Ok(())
}
