//! `cargo xtask editor`: checks the behaviour of a real rust-analyzer in a kernel.
//!
//! rust-analyzer works on the macro's expansion of tokens that it has repaired, with a marker at
//! the cursor, from text that no build script has seen. None of that happens in a build.

mod checks;
mod fixture;
mod server;
mod session;

use anyhow::{Result, bail};

use tma_setup::process;

use crate::{setup::rust_analyzer, workspace};

/// Opens a package with kernels, and runs all checks on it.
pub(crate) fn run() -> Result<()> {
    let program = rust_analyzer::provide()?;
    let folder = fixture::write()?;
    // Checked here first, because the editor's error messages are less detailed.
    process::run(workspace::cargo().current_dir(&folder).args(["check", "--quiet"]))?;
    println!("Loading {}", folder.display());
    let mut session = session::Session::open(&program, &folder)?;
    let mut failed = 0;
    for (name, check) in checks::ALL {
        match check(&mut session) {
            Ok(()) => println!("ok      {name}"),
            Err(error) => {
                failed += 1;
                println!("FAILED  {name}: {error:#}");
            }
        }
        session.restore()?;
    }
    if failed > 0 {
        bail!("{failed} of {} checks failed", checks::ALL.len());
    }
    Ok(())
}
