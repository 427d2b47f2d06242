//! `cargo xtask editor`: what an editor shows in a kernel, asked of a real rust-analyzer.
//!
//! It works on the macro's expansion: on tokens that it has mended, with a marker at the cursor, of
//! text that no build script has seen. None of that happens in a build.

mod checks;
mod fixture;
mod server;
mod session;

use anyhow::{Result, bail};

use crate::{process, setup::rust_analyzer, workspace};

/// Opens a package with kernels, and makes all checks on it.
pub(crate) fn run() -> Result<()> {
    let program = rust_analyzer::provide()?;
    let folder = fixture::write()?;
    // Not by the editor, which would say less of what goes wrong.
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
