//! Compares an mbarrier's counts with a plain model, which counts the events of a phase in
//! unbounded numbers.

use proptest::prelude::*;
use tma_model::limits::{BARRIER_ARRIVALS, BARRIER_BYTES_EXPECTED};
use tma_model::sync::{Arrival, AwaitedPhase, MbarrierCount, MbarrierFault};

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(Arrival),
    ExpectTx(u32),
    CompleteTx(u32),
    ExpectArrival,
}

/// A few bytes, or so many that a few of these leave the range.
fn bytes() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0..4_u32, 1 => BARRIER_BYTES_EXPECTED / 2..=BARRIER_BYTES_EXPECTED, 1 => any::<u32>()]
}

fn step() -> impl Strategy<Value = Step> {
    let flag = || prop::bool::weighted(0.1);
    let expect_tx = prop::option::weighted(0.3, bytes());
    let arrival = (prop_oneof![9 => 1..3_u32, 1 => 0..6_u32], expect_tx, flag(), flag());
    prop_oneof![
        4 => arrival.prop_map(|(count, expect_tx, drop, no_complete)| {
            Step::Arrive(Arrival { count, expect_tx, drop, no_complete })
        }),
        2 => bytes().prop_map(Step::ExpectTx),
        3 => bytes().prop_map(Step::CompleteTx),
        1 => Just(Step::ExpectArrival),
    ]
}

/// An mbarrier as described in the PTX ISA.
struct Model {
    /// Arrivals that each phase expects when it starts.
    expected: i128,
    /// Arrivals of the current phase: expected, and received.
    added: i128,
    arrived: i128,
    /// Bytes of the current phase: expected, and received.
    bytes: (i128, i128),
    complete: u128,
}

impl Model {
    fn new(count: u32) -> Self {
        Self { expected: count.into(), added: count.into(), arrived: 0, bytes: (0, 0), complete: 0 }
    }

    fn pending(&self) -> i128 {
        self.added - self.arrived
    }

    fn tx(&self) -> i128 {
        self.bytes.0 - self.bytes.1
    }

    fn is_in_range(&self) -> bool {
        self.tx().abs() < 1 << 20
    }

    /// Ends the phase if nothing is pending, and returns whether it has ended.
    fn end_phase(&mut self) -> bool {
        let ends = self.pending() == 0 && self.tx() == 0;
        if ends {
            (self.added, self.arrived, self.bytes) = (self.expected, 0, (0, 0));
            self.complete += 1;
        }
        ends
    }

    fn apply(&mut self, step: Step) -> Result<(), MbarrierFault> {
        match step {
            Step::Arrive(arrival) => {
                self.bytes.0 += i128::from(arrival.expect_tx.unwrap_or(0));
                if !self.is_in_range() {
                    return Err(MbarrierFault::TransactionRange);
                }
                if arrival.count == 0 {
                    return Err(MbarrierFault::NoArrival);
                }
                self.arrived += i128::from(arrival.count);
                if self.pending() < 0 {
                    return Err(MbarrierFault::TooManyArrivals);
                }
                self.expected -= if arrival.drop { arrival.count.into() } else { 0 };
                if self.expected <= 0 {
                    return Err(MbarrierFault::NoneExpected);
                }
                let ends = self.end_phase();
                return if ends && arrival.no_complete { Err(MbarrierFault::Completes) } else { Ok(()) };
            }
            Step::ExpectTx(bytes) => self.bytes.0 += i128::from(bytes),
            Step::CompleteTx(bytes) => self.bytes.1 += i128::from(bytes),
            Step::ExpectArrival => {
                self.added += 1;
                return if self.pending() < 1 << 20 { Ok(()) } else { Err(MbarrierFault::PendingRange) };
            }
        }
        if !self.is_in_range() {
            return Err(MbarrierFault::TransactionRange);
        }
        self.end_phase();
        Ok(())
    }
}

fn apply(count: &mut MbarrierCount, step: Step) -> Result<(), MbarrierFault> {
    match step {
        Step::Arrive(arrival) => count.arrive(arrival),
        Step::ExpectTx(bytes) => count.expect_tx(bytes),
        Step::CompleteTx(bytes) => count.complete_tx(bytes),
        Step::ExpectArrival => count.expect_arrival(),
    }
}

/// An initial count: mostly small, sometimes close to the limit.
fn first_count() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 1..5_u32, 1 => BARRIER_ARRIVALS - 2..=BARRIER_ARRIVALS]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]

    /// Compares up to the first fault, which would end a launch.
    #[test]
    fn counts_are_those_of_the_model(first in first_count(), program in prop::collection::vec(step(), 0..40)) {
        let (mut count, mut model) = (MbarrierCount::new(first).unwrap(), Model::new(first));
        for step in program {
            let (found, wanted) = (apply(&mut count, step), model.apply(step));
            prop_assert_eq!(found, wanted, "{:?}", step);
            if found.is_err() {
                break;
            }
            let counted = (i128::from(count.pending()), i128::from(count.tx()), u128::from(count.phase()));
            prop_assert_eq!(counted, (model.pending(), model.tx(), model.complete));
            prop_assert_eq!(i128::from(count.expected()), model.expected);
            let bytes = (i128::from(count.expected_bytes()), i128::from(count.received_bytes()));
            prop_assert_eq!(bytes, model.bytes);
            prop_assert!(count.pending() > 0 || count.tx() != 0, "a complete phase is over at once");
            let parity = count.phase() & 1 == 1;
            prop_assert_eq!(count.is_complete(AwaitedPhase::Parity(parity)), Ok(false));
            prop_assert_eq!(count.is_complete(AwaitedPhase::Parity(!parity)), Ok(true));
        }
    }

    /// A wait is for the phase that its agent knows to be complete, or for the next one.
    #[test]
    fn a_parity_means_the_phase_that_is_known_or_the_next(known in 0..1000_u32, parity in any::<bool>()) {
        let phases = AwaitedPhase::Parity(parity).phases(known);
        prop_assert!(phases == known || phases == known + 1);
        // After `phases` complete phases, the last has number `phases - 1`, and thus this parity.
        prop_assert_eq!(phases.wrapping_sub(1) & 1 == 1, parity);
    }
}

#[test]
fn an_initial_count_is_in_its_range() {
    assert_eq!(MbarrierCount::new(0), Err(MbarrierFault::InitialCount));
    assert!(MbarrierCount::new(1).is_ok() && MbarrierCount::new(BARRIER_ARRIVALS).is_ok());
    assert_eq!(MbarrierCount::new(BARRIER_ARRIVALS + 1), Err(MbarrierFault::InitialCount));
}

#[test]
fn the_pending_count_has_a_range() {
    let mut count = MbarrierCount::new(BARRIER_ARRIVALS).unwrap();
    assert_eq!(count.expect_arrival(), Err(MbarrierFault::PendingRange));
    count.arrive(Arrival::ONE).unwrap();
    assert_eq!(count.expect_arrival(), Ok(()));
}

#[test]
fn a_state_is_of_the_current_phase_or_the_one_before() {
    let mut count = MbarrierCount::new(1).unwrap();
    assert_eq!(count.is_complete(AwaitedPhase::Number(0)), Ok(false));
    count.arrive(Arrival::ONE).unwrap();
    assert_eq!(count.is_complete(AwaitedPhase::Number(0)), Ok(true));
    count.arrive(Arrival::ONE).unwrap();
    assert_eq!(count.is_complete(AwaitedPhase::Number(0)), Err(MbarrierFault::OtherPhase));
    assert_eq!(count.is_complete(AwaitedPhase::Number(3)), Err(MbarrierFault::OtherPhase));
}
