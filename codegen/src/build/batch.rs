//! The kernels of a package to compile: with LLVM, or to files that state why there is no code.

use std::env;
use std::path::Path;

use super::BuildError;
use super::run::Place;
use crate::Checks;
use crate::check::TargetKernel;

/// The environment variable that disables PTX, with the value `off`.
pub(super) const VARIABLE: &str = "TMA_PTX";

/// The producer of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    #[cfg(feature = "llvm")]
    Llvm,
    /// None: the PTX file states the reason, which the runtime reports when the kernel is launched.
    Nobody(&'static str),
}

impl Maker {
    /// Returns LLVM if PTX is wanted and LLVM is available.
    pub(super) fn of(is_wanted: bool) -> Self {
        if !is_wanted {
            return Self::Nobody("the build was asked for none (`TMA_PTX=off`)");
        }
        #[cfg(feature = "llvm")]
        return Self::Llvm;
        #[cfg(not(feature = "llvm"))]
        Self::Nobody("`tma-codegen` was built without its feature `llvm`")
    }

    /// Returns the name in fingerprints.
    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "llvm")]
            Self::Llvm => "llvm",
            Self::Nobody(why) => why,
        }
    }
}

/// Whether the environment allows PTX.
pub(super) fn is_wanted() -> bool {
    env::var(VARIABLE).as_deref() != Ok("off")
}

/// Returns the number of threads to use. Cargo passes it to build scripts in `NUM_JOBS` (The Cargo
/// Book, "Environment Variables"). A single thread is used for dumps, to keep them in the order of
/// the kernels.
#[cfg(feature = "llvm")]
fn jobs() -> usize {
    let told = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok());
    if crate::dump::is_wanted() { 1 } else { told.unwrap_or(1) }
}

/// Kernels to compile.
pub(super) struct Batch {
    maker: Maker,
    #[cfg(feature = "llvm")]
    emitted: crate::emit::Batch,
}

impl Batch {
    #[cfg_attr(not(feature = "llvm"), expect(unused_variables, reason = "LLVM alone makes these checks"))]
    pub(super) fn new(maker: Maker, checks: Checks) -> Self {
        Self {
            maker,
            #[cfg(feature = "llvm")]
            emitted: crate::emit::Batch::new(checks, jobs()),
        }
    }

    /// Adds a kernel of the file `source`.
    #[cfg_attr(not(feature = "llvm"), expect(unused_variables, reason = "LLVM alone takes kernels"))]
    pub(super) fn add(&mut self, kernel: TargetKernel, source: &Path) {
        match self.maker {
            #[cfg(feature = "llvm")]
            Maker::Llvm => self.emitted.add(kernel, &source.to_string_lossy()),
            Maker::Nobody(_) => {}
        }
    }

    /// Returns the PTX of each kernel, in the order of addition. `places` holds the destinations in
    /// the same order.
    pub(super) fn finish(self, places: &[Place]) -> Vec<Result<String, BuildError>> {
        match self.maker {
            #[cfg(feature = "llvm")]
            Maker::Llvm => {
                let placed = |(place, result): (&Place, Result<String, _>)| {
                    let (path, line) = (place.source.clone(), place.fingerprint.line());
                    result.map_err(|error| BuildError::Backend { path, line, error })
                };
                places.iter().zip(self.emitted.finish()).map(placed).collect()
            }
            Maker::Nobody(why) => places.iter().map(|_| Ok(format!("// no code: {why}\n"))).collect(),
        }
    }
}
