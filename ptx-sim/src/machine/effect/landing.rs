//! The effects of asynchronous operations. All of them land here.

use std::rc::Rc;

use tma_model::sync::{Arrival as ArriveOn, Epoch, Knowledge, Scope};

use crate::machine::Machine;
use crate::machine::engine::{
    Arrival, AsyncOp, Completion, DueAction, LaneCopy, Piece, SharedTarget, Slowness, Source, Target, Unit,
    Units, reduce,
};
use crate::machine::memory::{IN_FLIGHT, SharedLocation};
use crate::machine::types::Action;
use crate::report::{Finding, FindingKind};
use crate::tensor_map::{TensorMap, convert, fill_unit};

/// The most bytes of a unit.
const UNIT: usize = crate::tensor_map::UNIT as usize;

impl Machine {
    /// Lets a step of time pass for the asynchronous engines. To be called between steps of
    /// threads. Returns true if anything took effect, so that waiting threads may go on.
    #[inline]
    pub fn advance(&mut self) -> bool {
        if self.engines.is_idle() {
            return false;
        }
        self.engines.pass(1);
        self.run_due()
    }

    /// Lets time pass up to the next piece of an operation, when no thread can go on. Returns false
    /// if none is in flight.
    pub fn let_time_pass(&mut self) -> bool {
        let any = self.engines.skip();
        if any {
            self.timeline.skipped();
            self.run_due();
        }
        any
    }

    /// Lets everything that is due take effect. Returns whether there was anything.
    fn run_due(&mut self) -> bool {
        let mut any = false;
        while let Some(due) = self.engines.pop_due() {
            any = true;
            match due {
                DueAction::Piece(piece) => self.take_effect(piece),
                DueAction::Arrival(arrival) => self.arrive_delayed(&arrival),
                DueAction::Operands(warpgroup, number) => self.read_operands(warpgroup, number),
            }
        }
        any
    }

    /// Reads or writes a piece of an operation, or does both.
    fn take_effect(&mut self, piece: Piece) {
        let Some(op) = self.engines.get(piece.operation).map(Rc::clone) else {
            let lost = "a piece of a copy takes effect that is not in flight";
            return self.report(Finding::internal(lost));
        };
        match (op.reads, &piece.data) {
            (Source::Shared { rank, .. }, None) => {
                let shared = &self.memory.shared[rank];
                let mut data = Vec::with_capacity(op.units.bytes(piece.units.clone()) as usize);
                op.units.for_each(piece.units.clone(), |_, unit| {
                    data.extend_from_slice(shared.bytes(unit.shared, unit.bytes as usize));
                });
                return self.was_read(&op, piece, data);
            }
            (Source::Shared { .. }, Some(data)) => {
                let mut rest = data.as_slice();
                op.units.for_each(piece.units.clone(), |_, unit| {
                    let (bytes, more) = rest.split_at_checked(unit.bytes as usize).unwrap_or((rest, &[]));
                    self.put(&op, &unit, bytes);
                    rest = more;
                });
                debug_assert!(rest.is_empty(), "what was read is written");
            }
            (Source::Global | Source::Value(_), _) => {
                op.units.for_each(piece.units.clone(), |number, unit| {
                    let bytes = self.fetch(&op, number, &unit);
                    self.put(&op, &unit, &bytes[..unit.bytes as usize]);
                });
            }
        }
        self.complete(&op, &piece);
        if self.engines.piece_done(piece.operation) {
            self.timeline.landed(piece.operation);
        }
    }

    /// Handles a piece that was read from shared memory, and is to be written later.
    fn was_read(&mut self, op: &AsyncOp, piece: Piece, data: Vec<u8>) {
        match op.completes {
            Completion::BulkGroup(group) => self.engines.group_read(op.issuer.thread, group),
            Completion::Mbarrier(_) | Completion::Batches => {}
        }
        self.timeline.read(piece.operation);
        self.engines.read(piece, data, &mut self.random);
    }

    /// Returns the bytes of a unit whose source is not shared memory.
    fn fetch(&mut self, op: &AsyncOp, number: u32, unit: &Unit) -> [u8; UNIT] {
        match (op.reads, &op.units) {
            (Source::Value(bytes), _) => bytes,
            (Source::Global | Source::Shared { .. }, Units::Box(tensor)) => {
                self.fetch_boxed(op.issued(op.issuer.thread), &tensor.map, unit)
            }
            (Source::Global | Source::Shared { .. }, Units::Line { .. }) => {
                let mut bytes = [0; UNIT];
                self.fetch_inside(op.issued(op.issuer.thread), unit, &mut bytes);
                bytes
            }
            (Source::Global | Source::Shared { .. }, Units::Lanes(lanes)) => {
                let lane = &lanes[number as usize];
                self.fetch_lane(op.issued(lane.thread), lane)
            }
        }
    }

    fn fetch_boxed(&mut self, action: Action, map: &TensorMap, unit: &Unit) -> [u8; UNIT] {
        let mut bytes = fill_unit(map);
        self.fetch_inside(action, unit, &mut bytes);
        let (from, to) = unit.inside;
        convert(map.element, &mut bytes[from as usize..to as usize]);
        bytes
    }

    /// Reads the bytes of a unit that lie in the tensor from global memory.
    fn fetch_inside(&mut self, action: Action, unit: &Unit, bytes: &mut [u8; UNIT]) {
        let (Some((start, _)), (from, to)) = (unit.range(), unit.inside) else { return };
        match self.memory.global.read(start, &mut bytes[from as usize..to as usize]) {
            Ok(()) => self.check_written(action, start, (to - from).into()),
            Err(fault) => self.fault_in_flight(action, start, to - from, fault),
        }
    }

    fn fetch_lane(&mut self, action: Action, lane: &LaneCopy) -> [u8; UNIT] {
        let (mut now, from) = ([0; UNIT], lane.global);
        if let Err(fault) = self.memory.global.read(from, &mut now[..lane.read as usize])
            && lane.read > 0
        {
            self.fault_in_flight(action, from, lane.read, fault);
        }
        if now != lane.before {
            let message = format!("global memory at {from:#x} is written while `cp.async` may still read it");
            let finding = Finding::new(FindingKind::InFlight, message)
                .with(self.diagnostics.party(action))
                .help("wait in the writing thread until the copy is complete");
            self.report(finding);
        }
        now
    }

    /// Writes a unit.
    fn put(&mut self, op: &AsyncOp, unit: &Unit, bytes: &[u8]) {
        match op.writes {
            Target::Shared(target) => {
                let destination = self.memory.shared[target.rank].bytes_mut(target.offset(unit), bytes.len());
                match op.combination {
                    None => destination.copy_from_slice(bytes),
                    Some(combination) => reduce::reduce_bytes(destination, bytes, combination),
                }
            }
            // Units that start in the tensor are written as a whole, even beyond its end. This is
            // not documented; it was observed on an H200 with driver 580.
            Target::Global { .. } => {
                let Some(global) = unit.global else { return };
                let written = match op.combination {
                    None => self.memory.global.write(global, bytes),
                    Some(combination) => reduce::reduce(&self.memory.global, global, bytes, combination),
                };
                if op.combination.is_none() {
                    self.memory.accesses.keep_bytes(global, bytes);
                }
                if let Err(fault) = written {
                    self.fault_in_flight(op.issued(op.issuer.thread), global, unit.bytes, fault);
                }
            }
        }
    }

    /// Records that a piece of an operation has taken effect, for the mbarrier or the groups that
    /// track it.
    fn complete(&mut self, op: &AsyncOp, piece: &Piece) {
        match (op.completes, op.writes) {
            (Completion::Mbarrier(location), Target::Shared(target)) => {
                self.count_piece(op, piece, location, target);
            }
            (Completion::Mbarrier(_), Target::Global { .. }) => {
                debug_assert!(false, "an mbarrier counts what goes to shared memory");
            }
            (Completion::BulkGroup(group), _) => self.engines.group_written(op.issuer.thread, group),
            (Completion::Batches, _) => {
                for part in op.thread_parts().filter(|part| piece.units.contains(&part.units.start)) {
                    if let Some(batch) = part.done {
                        let arrivals = self.engines.copy_landed(part.thread, batch);
                        self.schedule_arrivals(arrivals);
                    }
                }
            }
        }
    }

    /// Counts a piece of an operation at its mbarrier, in the current phase.
    fn count_piece(&mut self, op: &AsyncOp, piece: &Piece, location: SharedLocation, target: SharedTarget) {
        let Some(mbarrier) = self.barriers.mbarrier_mut(location) else { return };
        let done = mbarrier.next_phase();
        let reads_global = match op.reads {
            Source::Global => true,
            Source::Shared { .. } | Source::Value(_) => false,
        };
        if reads_global && !self.memory.accesses.is_off() {
            let ranges = op.ranges(piece.units.clone());
            self.memory.accesses.landed(op.issuer.thread, piece.operation.0, done, ranges);
        }
        mbarrier.piece_counts(op.issuer, &op.issue);
        let bytes = op.units.bytes(piece.units.clone());
        let counted = mbarrier.change(|count| count.complete_tx(bytes));
        if self.order.is_checked() {
            self.order.name_agent(done.component(), op.issuer.thread);
            let shadow = &mut self.memory.shared[target.rank].shadow;
            let in_flight = Epoch::new(IN_FLIGHT, piece.operation.0);
            op.units.for_each(piece.units.clone(), |_, unit| {
                shadow.landed(target.offset(&unit), unit.bytes, in_flight, done);
            });
        }
        let action = op.issued(op.issuer.thread);
        self.counted_at(action, location);
        // The copy continues regardless: the finding is recorded, and the other pieces still land.
        let _ = self.accepted(action, location, counted);
    }

    /// Schedules the arrivals of `cp.async.mbarrier.arrive`.
    pub(super) fn schedule_arrivals(&mut self, arrivals: Vec<Arrival>) {
        for arrival in arrivals {
            let slowness = Slowness::of_second_half(&mut self.random);
            self.engines.schedule_randomly(DueAction::Arrival(arrival), slowness, &mut self.random);
        }
    }

    /// Executes a delayed arrival. It releases the copies, and nothing else that the thread has
    /// done.
    fn arrive_delayed(&mut self, arrival: &Arrival) {
        let Arrival { actor, location, batch, issue } = arrival;
        let action = actor.does("had its copies arrive");
        let Some(mbarrier) = self.barriers.mbarrier_mut(*location) else { return };
        mbarrier.piece_counts(*actor, issue);
        let mut copies = Knowledge::default();
        copies.learn(*batch);
        // `cp.async.mbarrier.arrive` is restricted to mbarriers of the thread's own block.
        mbarrier.order.arrivals(true, Scope::Block).add(&copies);
        let arrived = mbarrier.change(|count| count.arrive(ArriveOn::ONE));
        self.counted_at(action, *location);
        let _ = self.accepted(action, *location, arrived);
    }

    /// Records a fault of a copy in flight, which continues regardless.
    #[cold]
    fn fault_in_flight(
        &mut self,
        action: Action,
        address: u64,
        bytes: u32,
        fault: crate::machine::GlobalFault,
    ) {
        let _stop = self.global_fault(action, address, bytes, fault);
    }
}
