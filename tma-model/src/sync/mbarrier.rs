//! The counts of an mbarrier.
//!
//! Source: PTX ISA, "mbarrier": "Contents of the mbarrier object", "Phases of the mbarrier object",
//! "Tracking asynchronous operations by the mbarrier object".

use crate::limits::{BARRIER_ARRIVALS, BARRIER_BYTES_EXPECTED};

/// The largest transaction count. The smallest is its negative.
const MOST_TX: i64 = BARRIER_BYTES_EXPECTED as i64;

/// An arrive-on operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Amount by which the pending count decreases.
    pub count: u32,
    /// `.expect_tx`: bytes that the phase expects in addition. They count before the arrival does.
    pub expect_tx: Option<u32>,
    /// `arrive_drop`: later phases expect `count` fewer arrivals.
    pub drop: bool,
    /// `.noComplete`: the arrival must not complete the phase.
    pub no_complete: bool,
}

impl Arrival {
    /// A plain `mbarrier.arrive`.
    pub const ONE: Self = Self { count: 1, expect_tx: None, drop: false, no_complete: false };
}

/// The phase that a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedPhase {
    /// The phase with this parity, out of the current and the preceding one.
    Parity(bool),
    /// The phase with this number, from 0.
    Number(u32),
}

/// The reason why an operation on an mbarrier is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MbarrierFault {
    /// An initial count outside of 1 to [`BARRIER_ARRIVALS`].
    InitialCount,
    /// More arrivals than are pending in the phase.
    TooManyArrivals,
    /// An arrival with a count of zero.
    NoArrival,
    /// A wait for a phase that is neither the current nor the preceding one.
    OtherPhase,
    /// The transaction count is out of range.
    TransactionRange,
    /// The pending count exceeds its range.
    PendingRange,
    /// An arrival with `.noComplete` that completes the phase.
    Completes,
    /// A drop after which no arrivals are expected.
    NoneExpected,
}

/// The counts of an mbarrier.
///
/// An operation that fails may leave the counts out of range, so that a message can show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MbarrierCount {
    expected: u32,
    pending: u32,
    tx: i64,
    phase: u32,
    expected_bytes: u64,
    received_bytes: u64,
}

impl MbarrierCount {
    /// `mbarrier.init`: each phase completes after `count` arrivals.
    ///
    /// # Errors
    ///
    /// A count that is out of range.
    pub const fn new(count: u32) -> Result<Self, MbarrierFault> {
        if count == 0 || count > BARRIER_ARRIVALS {
            return Err(MbarrierFault::InitialCount);
        }
        let (expected_bytes, received_bytes) = (0, 0);
        Ok(Self { expected: count, pending: count, tx: 0, phase: 0, expected_bytes, received_bytes })
    }

    /// Returns the number of arrivals that each phase expects.
    pub const fn expected(&self) -> u32 {
        self.expected
    }

    /// Returns the number of arrivals that the current phase still expects.
    pub const fn pending(&self) -> u32 {
        self.pending
    }

    /// Returns the bytes that the current phase still expects. The value is negative if bytes
    /// arrived before they were expected.
    pub const fn tx(&self) -> i64 {
        self.tx
    }

    /// Returns the number of complete phases, which is the number of the current phase from 0.
    pub const fn phase(&self) -> u32 {
        self.phase
    }

    /// Returns the bytes that the current phase was told to expect.
    pub const fn expected_bytes(&self) -> u64 {
        self.expected_bytes
    }

    /// Returns the bytes that have arrived in the current phase.
    pub const fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Returns whether the current phase's counts differ from those at its start. Expected bytes
    /// that have all arrived make no difference.
    pub const fn has_counted(&self) -> bool {
        self.pending != self.expected || self.tx != 0
    }

    /// The expect-tx operation.
    ///
    /// # Errors
    ///
    /// A transaction count that is out of range.
    pub fn expect_tx(&mut self, bytes: u32) -> Result<(), MbarrierFault> {
        self.raise_tx(bytes)?;
        self.complete_if_due();
        Ok(())
    }

    fn raise_tx(&mut self, bytes: u32) -> Result<(), MbarrierFault> {
        self.tx += i64::from(bytes);
        self.expected_bytes += u64::from(bytes);
        if self.tx > MOST_TX { Err(MbarrierFault::TransactionRange) } else { Ok(()) }
    }

    /// The complete-tx operation.
    ///
    /// # Errors
    ///
    /// A transaction count that is out of range.
    pub fn complete_tx(&mut self, bytes: u32) -> Result<(), MbarrierFault> {
        self.tx -= i64::from(bytes);
        self.received_bytes += u64::from(bytes);
        if self.tx < -MOST_TX {
            return Err(MbarrierFault::TransactionRange);
        }
        self.complete_if_due();
        Ok(())
    }

    /// Makes the current phase expect one more arrival: `cp.async.mbarrier.arrive` without
    /// `.noinc`.
    ///
    /// # Errors
    ///
    /// A pending count that is out of range.
    pub fn expect_arrival(&mut self) -> Result<(), MbarrierFault> {
        if self.pending >= BARRIER_ARRIVALS {
            return Err(MbarrierFault::PendingRange);
        }
        self.pending += 1;
        Ok(())
    }

    /// The arrive-on operation, preceded by its expect-tx.
    ///
    /// # Errors
    ///
    /// An arrival that the counts do not allow.
    pub fn arrive(&mut self, arrival: Arrival) -> Result<(), MbarrierFault> {
        if let Some(bytes) = arrival.expect_tx {
            self.raise_tx(bytes)?;
        }
        if arrival.count == 0 {
            return Err(MbarrierFault::NoArrival);
        }
        let Some(pending) = self.pending.checked_sub(arrival.count) else {
            return Err(MbarrierFault::TooManyArrivals);
        };
        self.pending = pending;
        if arrival.drop {
            self.expected = self.expected.saturating_sub(arrival.count);
            if self.expected == 0 {
                return Err(MbarrierFault::NoneExpected);
            }
        }
        let phase = self.phase;
        self.complete_if_due();
        if arrival.no_complete && self.phase != phase { Err(MbarrierFault::Completes) } else { Ok(()) }
    }

    /// Completes the phase if no arrivals and no bytes are pending. The next phase starts with all
    /// arrivals pending.
    fn complete_if_due(&mut self) {
        if self.pending > 0 || self.tx != 0 {
            return;
        }
        self.phase = self.phase.wrapping_add(1);
        self.pending = self.expected;
        (self.expected_bytes, self.received_bytes) = (0, 0);
    }

    /// Returns whether the awaited phase is complete. Source: PTX ISA, "mbarrier.test_wait": a
    /// state belongs to the current phase or to the one immediately before it.
    ///
    /// # Errors
    ///
    /// A phase that is neither the current nor the preceding one.
    pub const fn is_complete(&self, awaited: AwaitedPhase) -> Result<bool, MbarrierFault> {
        match awaited {
            AwaitedPhase::Parity(parity) => Ok((self.phase & 1 == 1) != parity),
            AwaitedPhase::Number(number) => match self.phase.wrapping_sub(number) {
                behind @ (0 | 1) => Ok(behind == 1),
                _ => Err(MbarrierFault::OtherPhase),
            },
        }
    }
}

impl AwaitedPhase {
    /// Returns how many phases must be complete for the wait to succeed, for an agent that knows
    /// `known` phases to be complete. A parity can stand for two phases: the last one that the
    /// agent knows to be complete, if that has the parity, and otherwise the next one.
    pub const fn phases(self, known: u32) -> u32 {
        match self {
            Self::Parity(parity) if (known & 1 == 1) != parity => known,
            Self::Parity(_) => known.saturating_add(1),
            Self::Number(number) => number.saturating_add(1),
        }
    }
}
