//! Writes the PTX of every kernel in some source files, one file an instance.
//!
//! `cargo run -p tma-codegen --example ptx -- --out DIR --target sm_90a FILE.rs ..`

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use tma_codegen::Target;

#[derive(Parser)]
struct Options {
    /// Where to write; without it PTX goes to standard output.
    #[arg(long)]
    out: Option<PathBuf>,
    /// sm_90, sm_90a, sm_100a or sm_120a.
    #[arg(long, default_value_t)]
    target: Target,
    /// Rust files with kernels.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut written = HashSet::new();
    let failed = options.files.iter().filter(|file| {
        let result = write_kernels(file, &options, &mut written);
        if let Err(error) = &result {
            eprintln!("{}:\n{error}", file.display());
        }
        result.is_err()
    });
    if failed.count() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write_kernels(
    file: &Path,
    options: &Options,
    written: &mut HashSet<PathBuf>,
) -> Result<(), Box<dyn Error>> {
    let source = fs::read_to_string(file)?;
    let here = std::env::current_dir()?;
    let shown = file.strip_prefix(here).unwrap_or(file).to_string_lossy();
    let compiled = tma_codegen::compile(&shown, &source, options.target)?;
    if !compiled.warnings.is_empty() {
        eprintln!("{}", compiled.rendered);
    }
    for ptx in compiled.kernels {
        match &options.out {
            None => println!("{}", ptx.text),
            Some(folder) => {
                fs::create_dir_all(folder)?;
                let path = folder.join(format!("{}.ptx", ptx.entry));
                if !written.insert(path.clone()) {
                    return Err(format!("two kernels are called `{}`: rename one", ptx.name).into());
                }
                fs::write(&path, ptx.text)?;
                println!("{}", path.display());
            }
        }
    }
    Ok(())
}
