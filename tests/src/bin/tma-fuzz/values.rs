//! The target `values`: generated kernels on the simulator, compared with the same text as plain
//! Rust.

use std::path::PathBuf;

use tma_tests::differential::Batch;

use crate::Input;

/// The number of kernels per input: few, so that an input ends in time.
const KERNELS: usize = 50;

/// An endless source of batches, which starts at the seed.
pub(crate) struct Values {
    seed: u64,
    folder: PathBuf,
}

impl Values {
    pub(crate) fn new(seed: u64) -> Self {
        // Far from the seeds of the tests.
        Self { seed: seed << 40, folder: std::env::temp_dir().join("tma-fuzz-values") }
    }

    /// Returns the next kernels.
    pub(crate) fn next(&mut self) -> Input<'_> {
        self.seed += 1;
        let (seed, folder) = (self.seed, &self.folder);
        let run = move || {
            let batch = Batch::new(seed, KERNELS, folder).unwrap_or_else(|error| panic!("{error:#}"));
            let failures = batch.failures();
            let all: Vec<_> = failures.iter().map(ToString::to_string).collect();
            assert!(failures.is_empty(), "{} kernels differ:\n{}", failures.len(), all.join("\n"));
            true
        };
        Input { text: format!("{KERNELS} kernels of seed {seed}"), run: Box::new(run) }
    }
}
