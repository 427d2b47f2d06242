//! The kernels of a package to compile: with LLVM, or to files that state why there is no code.

use std::env;
use std::path::Path;

use tma_front::check::TargetKernel;

use super::BuildError;
use super::run::PtxFile;
use crate::Checks;

/// The environment variable that disables PTX, with the value `off`.
pub(super) const VARIABLE: &str = "TMA_PTX";

/// Why there is no PTX in a build that needs none.
const OFF: &str = "PTX is disabled (`TMA_PTX=off`)";

/// The producer of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PtxProducer {
    #[cfg(feature = "llvm")]
    Llvm,
    /// None: the PTX file states the reason, which the runtime reports when the kernel is launched.
    None(&'static str),
}

impl PtxProducer {
    /// Returns LLVM if PTX is wanted and LLVM is available.
    pub(super) fn of(is_wanted: bool) -> Self {
        if !is_wanted {
            return Self::None(OFF);
        }
        #[cfg(feature = "llvm")]
        return Self::Llvm;
        #[cfg(not(feature = "llvm"))]
        Self::None("`tma-codegen` was built without its feature `llvm`")
    }

    /// Whether the build needs PTX.
    pub(super) fn is_wanted(self) -> bool {
        self != Self::None(OFF)
    }

    /// Returns the name in fingerprints.
    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "llvm")]
            Self::Llvm => "llvm",
            Self::None(why) => why,
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
    let requested = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok());
    if crate::dump::is_wanted() { 1 } else { requested.unwrap_or(1) }
}

/// Kernels to compile.
pub(super) struct Batch {
    producer: PtxProducer,
    #[cfg(feature = "llvm")]
    emitted: crate::emit::Batch,
}

impl Batch {
    #[cfg_attr(not(feature = "llvm"), expect(unused_variables, reason = "LLVM alone makes these checks"))]
    pub(super) fn new(producer: PtxProducer, checks: Checks) -> Self {
        Self {
            producer,
            #[cfg(feature = "llvm")]
            emitted: crate::emit::Batch::new(checks, jobs()),
        }
    }

    /// Adds a kernel of the file `source`.
    #[cfg_attr(not(feature = "llvm"), expect(unused_variables, reason = "LLVM alone takes kernels"))]
    pub(super) fn add(&mut self, kernel: TargetKernel, source: &Path) {
        match self.producer {
            #[cfg(feature = "llvm")]
            PtxProducer::Llvm => self.emitted.add(kernel, &source.to_string_lossy()),
            PtxProducer::None(_) => {}
        }
    }

    /// Returns the PTX of each kernel, in the order of addition. `destinations` holds the
    /// destinations in the same order.
    pub(super) fn finish(self, destinations: &[PtxFile]) -> Vec<Result<String, BuildError>> {
        match self.producer {
            #[cfg(feature = "llvm")]
            PtxProducer::Llvm => {
                let located = |(destination, result): (&PtxFile, Result<String, _>)| {
                    let (path, line) = (destination.source.clone(), destination.fingerprint.line());
                    result.map_err(|error| BuildError::Backend { path, line, error })
                };
                destinations.iter().zip(self.emitted.finish()).map(located).collect()
            }
            PtxProducer::None(why) => {
                destinations.iter().map(|_| Ok(format!("// no code: {why}\n"))).collect()
            }
        }
    }
}
