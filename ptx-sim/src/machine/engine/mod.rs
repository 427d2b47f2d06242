//! The asynchronous engines: operations in flight, the time at which their pieces take effect, and
//! the groups that threads wait for.

mod access;
pub(super) mod counters;
mod groups;
mod operation;
pub(super) mod reduce;
pub(super) mod refusal;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::rc::Rc;

use tma_model::sync::GroupEnd;

pub(super) use access::StartConflict;
pub(super) use groups::Arrival;
pub(super) use operation::{
    AsyncOp, Completion, LaneCopy, OpKind, SharedTarget, Source, Target, TensorBox, Unit, Units,
};

use super::index::{OperationId, PerThread, Shape, ThreadId};
use super::memory::SharedLocation;
use super::mma::WarpgroupId;
use super::random::Random;
use super::types::Actor;
use groups::{BulkState, CopyState};

/// The operations in flight, and simulated time.
#[derive(Debug)]
pub(super) struct Engines {
    shape: Shape,
    /// The number of steps of time so far.
    now: u64,
    events: BinaryHeap<Reverse<Event>>,
    in_flight: BTreeMap<OperationId, InFlight>,
    /// The last operation that was started.
    started: OperationId,
    bulk: PerThread<BulkState>,
    /// The `cp.async` of threads; `None` before the first.
    copies: Option<PerThread<CopyState>>,
}

/// An operation, and the number of its pieces that have yet to take effect.
#[derive(Debug)]
struct InFlight {
    op: Rc<AsyncOp>,
    left: u32,
}

/// An effect that is scheduled for some time.
#[derive(Debug)]
struct Event {
    due: u64,
    /// A random number that decides between events of the same time.
    tie: u64,
    action: DueAction,
}

/// A scheduled effect.
#[derive(Debug)]
pub(super) enum DueAction {
    /// A piece of an operation.
    Piece(Piece),
    /// `cp.async.mbarrier.arrive`.
    Arrival(Arrival),
    /// The read of a multiplication's operands. The number identifies the multiplication in its
    /// warpgroup.
    Operands(WarpgroupId, u32),
}

/// A range of units of an operation.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) operation: OperationId,
    pub(super) units: Range<u32>,
    /// The event's random number. A piece that is read and then written keeps it.
    tie: u64,
    /// The data read from shared memory; `None` if it is yet to be read, or comes from elsewhere.
    pub(super) data: Option<Vec<u8>>,
}

/// The division of an operation into pieces.
#[derive(Clone, Debug)]
pub(super) enum PieceSplit {
    /// At random.
    Random,
    /// One piece.
    Whole,
    /// Pieces that end at these units, all equally slow.
    At { slowness: Slowness, ends: Vec<u32> },
}

/// The magnitude of a delay: from a few steps to very many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slowness(u64);

impl Slowness {
    /// Draws any of them.
    pub(super) fn any(random: &mut Random) -> Self {
        Self(random.below(4))
    }

    /// Draws any of them but the greatest.
    pub(super) fn of_second_half(random: &mut Random) -> Self {
        Self(random.below(3))
    }

    fn delay(self, random: &mut Random) -> u64 {
        const LIMITS: [u64; 4] = [2, 64, 2048, 1 << 20];
        1 + random.below(LIMITS[(self.0 % 4) as usize])
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.tie).cmp(&(other.due, other.tie))
    }
}

impl Engines {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            now: 0,
            events: BinaryHeap::new(),
            in_flight: BTreeMap::new(),
            started: OperationId(0),
            bulk: PerThread::new(shape, |_| BulkState::default()),
            copies: None,
        }
    }

    /// Returns the number of the next operation.
    pub(super) fn next_number(&self) -> OperationId {
        OperationId(self.started.0 + 1)
    }

    /// Starts an operation, and returns the number of its pieces.
    pub(super) fn start(&mut self, op: AsyncOp, split: PieceSplit, random: &mut Random) -> u32 {
        let operation = self.next_number();
        self.started = operation;
        let units = op.units.len();
        let pieces = match split {
            PieceSplit::Random => {
                let slowness = Slowness::any(random);
                let pieces = (1 + random.below(8) as u32).min(units);
                let mut from = 0;
                for piece in 1..=pieces {
                    let rest = units - from - (pieces - piece);
                    let to =
                        if piece == pieces { units } else { from + 1 + random.below(rest.into()) as u32 };
                    self.piece(operation, from..to, slowness, random);
                    from = to;
                }
                pieces
            }
            PieceSplit::Whole => {
                let slowness = Slowness::any(random);
                self.piece(operation, 0..units, slowness, random);
                1
            }
            PieceSplit::At { slowness, ends } => {
                let mut from = 0;
                for &to in &ends {
                    self.piece(operation, from..to, slowness, random);
                    from = to;
                }
                debug_assert_eq!(from, units, "each unit is in a piece");
                ends.len() as u32
            }
        };
        if pieces > 0 {
            self.in_flight.insert(operation, InFlight { op: Rc::new(op), left: pieces });
        }
        pieces
    }

    fn piece(&mut self, operation: OperationId, units: Range<u32>, slowness: Slowness, random: &mut Random) {
        debug_assert!(units.start < units.end, "a piece has units");
        let delay = slowness.delay(random);
        let tie = random.next();
        self.schedule(delay, tie, DueAction::Piece(Piece { operation, units, tie, data: None }));
    }

    /// Schedules an effect at a random time.
    pub(super) fn schedule_randomly(&mut self, action: DueAction, slowness: Slowness, random: &mut Random) {
        let delay = slowness.delay(random);
        self.schedule(delay, random.next(), action);
    }

    fn schedule(&mut self, delay: u64, tie: u64, action: DueAction) {
        self.events.push(Reverse(Event { due: self.now + delay, tie, action }));
    }

    /// Schedules the write of a piece that has been read.
    pub(super) fn read(&mut self, piece: Piece, data: Vec<u8>, random: &mut Random) {
        let delay = Slowness::of_second_half(random).delay(random);
        self.schedule(delay, piece.tie, DueAction::Piece(Piece { data: Some(data), ..piece }));
    }

    /// Returns the operation with this number, if it is in flight.
    pub(super) fn get(&self, operation: OperationId) -> Option<&Rc<AsyncOp>> {
        self.in_flight.get(&operation).map(|in_flight| &in_flight.op)
    }

    /// Records that a piece of an operation has taken effect. Returns whether it was the last.
    pub(super) fn piece_done(&mut self, operation: OperationId) -> bool {
        let Some(in_flight) = self.in_flight.get_mut(&operation) else { return false };
        debug_assert!(in_flight.left > 0, "an operation in flight has pieces left");
        in_flight.left = in_flight.left.saturating_sub(1);
        let is_last = in_flight.left == 0;
        if is_last {
            self.in_flight.remove(&operation);
        }
        is_last
    }

    /// Returns the thread that issued an operation, if it is in flight.
    pub(super) fn issuer(&self, operation: OperationId) -> Option<ThreadId> {
        self.get(operation).map(|op| op.issuer.thread)
    }

    /// Returns the mbarrier that counts the bytes of an asynchronous-proxy copy, if it is in
    /// flight.
    pub(super) fn completes_on(&self, operation: OperationId) -> Option<SharedLocation> {
        let op = self.get(operation).filter(|op| op.is_in_async_proxy())?;
        match op.completes {
            Completion::Mbarrier(location) => Some(location),
            Completion::BulkGroup(_) | Completion::Batches => None,
        }
    }

    /// Returns the issuer of a copy that may still read the tensor map at this address of global
    /// memory.
    pub(super) fn reader_of_map(&self, address: u64) -> Option<Actor> {
        let by_map = |op: &&Rc<AsyncOp>| match &op.units {
            Units::Box(tensor) => tensor.descriptor == Some(address),
            Units::Line { .. } | Units::Lanes(_) => false,
        };
        let reads = |op: &&Rc<AsyncOp>| match op.completes {
            Completion::BulkGroup(group) => !self.has_read(op.issuer.thread, group.count()),
            Completion::Mbarrier(_) | Completion::Batches => true,
        };
        let all = self.in_flight.values().map(|in_flight| &in_flight.op);
        all.filter(by_map).find(reads).map(|op| op.issuer)
    }

    /// Returns whether the bulk groups of a thread up to `last` have been read.
    fn has_read(&self, thread: ThreadId, last: u32) -> bool {
        self.bulk[thread].groups.is_done(last, GroupEnd::Read)
    }

    /// Returns whether nothing is scheduled.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.events.is_empty()
    }

    /// Takes the next effect, if it is due.
    pub(super) fn pop_due(&mut self) -> Option<DueAction> {
        if self.events.peek()?.0.due > self.now {
            return None;
        }
        self.events.pop().map(|event| event.0.action)
    }

    /// Lets `steps` of time pass. Effects that become due take place with the next step.
    pub(super) fn pass(&mut self, steps: u64) {
        self.now += steps;
    }

    /// Advances time to the next event. Returns false if there is none.
    pub(super) fn skip(&mut self) -> bool {
        let next = self.events.peek().map(|event| event.0.due);
        self.now = self.now.max(next.unwrap_or(0));
        next.is_some()
    }
}
