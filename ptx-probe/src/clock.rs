//! From the clocks of multiprocessors to one time.
//!
//! `%clock64` counts cycles of one multiprocessor, precisely, from an origin of its own.
//! `%globaltimer` counts nanoseconds on all of them, but in coarse steps. Each warp reads both at
//! its beginning and its end. All pairs together give the length of a cycle, and the pairs of a
//! multiprocessor its origin, as the mean over their steps.

use std::collections::BTreeMap;

use crate::ring::{Header, Stamp};

/// The length of a cycle in nanoseconds if no warp ran long enough to measure it: 1.755 GHz, the
/// boost clock of an H100 PCIe.
const USUAL_CYCLE: f64 = 1.0 / 1.755;

/// The time of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Nanoseconds per cycle.
    pub(crate) cycle: f64,
    /// The time at which each multiprocessor's cycles began, in nanoseconds after `zero`.
    origins: BTreeMap<u32, f64>,
}

impl Clock {
    /// Fits the clocks to the stamps of warps.
    pub(crate) fn fit<'h>(headers: impl Iterator<Item = &'h Header> + Clone) -> Self {
        let ended = headers.clone().filter(|header| header.end.cycles > header.begin.cycles);
        let (cycles, nanoseconds) = ended.fold((0_u64, 0_u64), |(cycles, nanoseconds), header| {
            let Header { begin, end, .. } = header;
            let passed = end.nanoseconds.saturating_sub(begin.nanoseconds);
            (cycles + (end.cycles - begin.cycles), nanoseconds + passed)
        });
        let measured = nanoseconds as f64 / cycles.max(1) as f64;
        let cycle = if measured > 0.0 { measured } else { USUAL_CYCLE };
        let zero = headers.clone().map(|header| header.begin.nanoseconds).min().unwrap_or(0);
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for header in headers {
            for stamp in [header.begin, header.end] {
                let Stamp { cycles, nanoseconds } = stamp;
                if nanoseconds >= zero && cycles > 0 {
                    let (sum, count) = sums.entry(header.multiprocessor).or_default();
                    *sum += (nanoseconds - zero) as f64 - cycles as f64 * cycle;
                    *count += 1.0;
                }
            }
        }
        let origins = sums.into_iter().map(|(multiprocessor, (sum, count))| (multiprocessor, sum / count));
        Self { cycle, origins: origins.collect() }
    }

    /// Returns a moment of a multiprocessor in nanoseconds.
    pub(crate) fn at(&self, multiprocessor: u32, cycles: u64) -> f64 {
        self.origins.get(&multiprocessor).copied().unwrap_or(0.0) + cycles as f64 * self.cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiprocessors_with_different_origins_agree() {
        // Cycles of half a nanosecond; the coarse clock ticks every 32 ns.
        let header = |multiprocessor: u32, start: u64, length: u64| {
            let origin = 1_000_000 * u64::from(multiprocessor + 1);
            let stamp = |time: u64| Stamp { cycles: origin + 2 * time, nanoseconds: 5_000 + time / 32 * 32 };
            Header { begin: stamp(start), end: stamp(start + length), multiprocessor, count: 0, shared: 0 }
        };
        let headers: Vec<_> = (0..64).map(|i| header(i % 2, 37 * u64::from(i), 100_000)).collect();
        let clock = Clock::fit(headers.iter());
        assert!((clock.cycle - 0.5).abs() < 1e-3, "{}", clock.cycle);
        let [a, b] = [0, 1].map(|number| clock.at(number, 1_000_000 * u64::from(number + 1) + 2 * 50_000));
        assert!((a - b).abs() < 32.0, "{a} {b}");
    }
}
