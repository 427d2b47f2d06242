//! The memory of this process.

use std::fs;

/// The resident set of this process over time, in KiB. Empty where the system does not tell it.
#[derive(Clone, Debug, Default)]
pub struct Resident {
    samples: Vec<u64>,
}

impl Resident {
    /// Adds the present size.
    pub(crate) fn measure(&mut self) {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number: Option<u64> = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        self.samples.extend(number);
    }

    /// Returns the first and the last size.
    pub fn ends(&self) -> Option<[u64; 2]> {
        Some([*self.samples.first()?, *self.samples.last()?])
    }

    /// Returns the greatest size in each of so many parts of the time.
    pub fn peaks(&self, parts: usize) -> Vec<u64> {
        let part = self.samples.len().div_ceil(parts.max(1)).max(1);
        self.samples.chunks(part).filter_map(|samples| samples.iter().max().copied()).collect()
    }
}
