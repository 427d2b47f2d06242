//! The kernels of a package that LLVM compiles, or of which a file says why nobody does.

use std::env;
use std::path::Path;

use super::BuildError;
use super::run::Place;
use crate::Checks;
use crate::check::TargetKernel;

/// The variable by which a build script is asked for no PTX, by the value `off`.
pub(super) const VARIABLE: &str = "TMA_PTX";

/// Who makes PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    #[cfg(feature = "llvm")]
    Llvm,
    /// Nobody: the file says why, and the runtime repeats it when the kernel is launched.
    Nobody(&'static str),
}

impl Maker {
    /// LLVM, if PTX is wanted.
    pub(super) fn of(is_wanted: bool) -> Self {
        if !is_wanted {
            return Self::Nobody("the build was asked for none (`TMA_PTX=off`)");
        }
        #[cfg(feature = "llvm")]
        return Self::Llvm;
        #[cfg(not(feature = "llvm"))]
        Self::Nobody("`tma-codegen` was built without its feature `llvm`")
    }

    /// Its name in fingerprints.
    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "llvm")]
            Self::Llvm => "llvm",
            Self::Nobody(why) => why,
        }
    }
}

/// Whether the environment wants PTX.
pub(super) fn is_wanted() -> bool {
    env::var(VARIABLE).as_deref() != Ok("off")
}

/// How many threads may work: cargo tells build scripts by `NUM_JOBS` (The Cargo Book, "Environment
/// Variables"). What is dumped comes in the order of the kernels, from one.
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

    /// The PTX of each kernel, which go to these places in the order in which they were added.
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
