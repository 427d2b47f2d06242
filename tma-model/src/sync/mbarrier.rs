//! The counts of an mbarrier.
//!
//! Source: PTX ISA, "mbarrier": "Contents of the mbarrier object", "Phases of the mbarrier object",
//! "Tracking asynchronous operations by the mbarrier object".

use crate::limits::{BARRIER_ARRIVALS, BARRIER_BYTES_EXPECTED};

/// The greatest transaction count, and the least with the sign changed.
const MOST_TX: i64 = BARRIER_BYTES_EXPECTED as i64;

/// An arrive-on operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// By how much the pending count falls.
    pub count: u32,
    /// `.expect_tx`: bytes that the phase expects in addition, from before the arrival.
    pub expect_tx: Option<u32>,
    /// `arrive_drop`: later phases expect `count` fewer.
    pub drop: bool,
    /// `.noComplete`: must not be the last of the phase.
    pub no_complete: bool,
}

impl Arrival {
    /// `mbarrier.arrive`.
    pub const ONE: Self = Self { count: 1, expect_tx: None, drop: false, no_complete: false };
}

/// The phase that a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The one with this parity: of the current and the preceding one.
    Parity(bool),
    /// The one with this number, from 0.
    Number(u32),
}

/// Why an mbarrier does not take an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MbarrierFault {
    /// An initialisation with a count that is not 1 to [`BARRIER_ARRIVALS`].
    InitialCount,
    /// More arrivals than the phase has left.
    TooManyArrivals,
    /// An arrival that counts for none.
    NoArrival,
    /// A wait for a phase that is neither the current nor the preceding one.
    OtherPhase,
    /// The transaction count leaves its range.
    TransactionRange,
    /// The pending count rises above its range.
    PendingRange,
    /// `.noComplete`, but the phase is complete.
    Completes,
    /// A drop that leaves no arrival to expect.
    NoneExpected,
}

/// What an mbarrier counts.
///
/// An operation that is a fault may leave the counts out of their range, as a message shows them.
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
    /// `mbarrier.init`: `count` arrivals complete each phase.
    ///
    /// # Errors
    ///
    /// A count out of its range.
    pub const fn new(count: u32) -> Result<Self, MbarrierFault> {
        if count == 0 || count > BARRIER_ARRIVALS {
            return Err(MbarrierFault::InitialCount);
        }
        let (expected_bytes, received_bytes) = (0, 0);
        Ok(Self { expected: count, pending: count, tx: 0, phase: 0, expected_bytes, received_bytes })
    }

    /// Arrivals that a phase expects.
    pub const fn expected(&self) -> u32 {
        self.expected
    }

    /// Arrivals that the current phase still expects.
    pub const fn pending(&self) -> u32 {
        self.pending
    }

    /// Bytes that the current phase still expects; below zero if they came before they were
    /// expected.
    pub const fn tx(&self) -> i64 {
        self.tx
    }

    /// Complete phases, which is the number of the current one from 0.
    pub const fn phase(&self) -> u32 {
        self.phase
    }

    /// Bytes that the current phase was told to expect.
    pub const fn expected_bytes(&self) -> u64 {
        self.expected_bytes
    }

    /// Bytes that have come in the current phase.
    pub const fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Whether anything has counted in the current phase that it still knows of.
    pub const fn has_counted(&self) -> bool {
        self.pending != self.expected || self.tx != 0
    }

    /// The expect-tx operation.
    ///
    /// # Errors
    ///
    /// More bytes than it can count.
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
    /// More bytes than it can count.
    pub fn complete_tx(&mut self, bytes: u32) -> Result<(), MbarrierFault> {
        self.tx -= i64::from(bytes);
        self.received_bytes += u64::from(bytes);
        if self.tx < -MOST_TX {
            return Err(MbarrierFault::TransactionRange);
        }
        self.complete_if_due();
        Ok(())
    }

    /// The current phase expects one arrival more: `cp.async.mbarrier.arrive` without `.noinc`.
    ///
    /// # Errors
    ///
    /// More arrivals than it can count.
    pub fn expect_arrival(&mut self) -> Result<(), MbarrierFault> {
        if self.pending >= BARRIER_ARRIVALS {
            return Err(MbarrierFault::PendingRange);
        }
        self.pending += 1;
        Ok(())
    }

    /// The arrive-on operation, after its expect-tx.
    ///
    /// # Errors
    ///
    /// What the counts do not allow.
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

    /// A phase is complete when no arrival is pending and no byte: the next one starts with all
    /// arrivals pending.
    fn complete_if_due(&mut self) {
        if self.pending > 0 || self.tx != 0 {
            return;
        }
        self.phase = self.phase.wrapping_add(1);
        self.pending = self.expected;
        (self.expected_bytes, self.received_bytes) = (0, 0);
    }

    /// Whether the phase that is waited for is complete. Source: PTX ISA, "mbarrier.test_wait": a
    /// state is of the current phase or of the one right before it.
    ///
    /// # Errors
    ///
    /// A phase that is neither the current nor the preceding one.
    pub const fn is_complete(&self, awaited: Awaited) -> Result<bool, MbarrierFault> {
        match awaited {
            Awaited::Parity(parity) => Ok((self.phase & 1 == 1) != parity),
            Awaited::Number(number) => match self.phase.wrapping_sub(number) {
                behind @ (0 | 1) => Ok(behind == 1),
                _ => Err(MbarrierFault::OtherPhase),
            },
        }
    }
}

impl Awaited {
    /// How many phases have to be complete for a wait by an agent that knows of `known`: of the two
    /// phases that a parity can mean, the one that the agent knows to be complete, or else the
    /// next.
    pub const fn phases(self, known: u32) -> u32 {
        match self {
            Self::Parity(parity) if (known & 1 == 1) != parity => known,
            Self::Parity(_) => known.saturating_add(1),
            Self::Number(number) => number.saturating_add(1),
        }
    }
}
