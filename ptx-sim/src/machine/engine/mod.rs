//! The asynchronous engines: copies under way, and when their pieces take effect.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::Machine;
use super::access::Access;
use super::clock::Epoch;
use super::copy_async::Landings;
use super::counters::CopyKind;
use super::overrun::Issue;
use super::state::Random;
use super::types::{Reduction, Site, ThreadId};
use crate::report::Finding;
use crate::tensor_map::{Element, TensorMap, UNIT, Unit, Walk, convert, fill_unit};

/// A copy under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) who: ThreadId,
    pub(super) site: Site,
    pub(super) shape: Shape,
    pub(super) way: Way,
    pub(super) kind: CopyKind,
    /// What its mbarrier learns, if it has one.
    pub(super) issue: Issue,
    /// Pieces that are still to take effect.
    pub(super) left: u32,
}

/// Which bytes a copy moves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// A box of a tensor map, whose tile is at a shared offset. The map may lie in global memory, at `descriptor`.
    Box { map: u32, descriptor: Option<u64>, at: [i32; 5], offsets: [u16; 3], tile: u32 },
    /// Bytes that lie together, in units of 16: global address and shared offset.
    Line { global: u64, shared: u32 },
}

/// Where a copy goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// Into the shared memory of `block`, with the bytes counted by the mbarrier at `barrier` of the same block.
    In { block: usize, barrier: u32 },
    /// Out of the shared memory of `block`, as a part of bulk group `group`.
    Out { block: usize, group: u32, reduce: Option<(Reduction, Element)> },
    /// From block to block: `to` is where the first byte goes, `moved` bytes after where it comes
    /// from.
    Across {
        from: usize,
        block: usize,
        to: u32,
        moved: u32,
        barrier: u32,
        reduce: Option<(Reduction, Element)>,
    },
}

/// Something that takes effect at its time: units `from..to` of a flight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    due: u64,
    /// Draws between events of one time.
    tie: u64,
    flight: u32,
    from: u32,
    to: u32,
    /// What was read from shared memory; none if it is still to be read.
    data: Option<Vec<u8>>,
}

/// The copies under way.
#[derive(Debug, Default)]
pub(super) struct Engine {
    pub(super) now: u64,
    events: BinaryHeap<Reverse<Event>>,
    /// `cp.async`, which is not in the asynchronous proxy.
    pub(super) landings: Landings,
    /// By number, from 1.
    flights: BTreeMap<u32, Flight>,
    started: u32,
    /// Who issued the `st.async` and `red.async` under way, by number.
    remote: BTreeMap<u32, ThreadId>,
    /// Who the asynchronous clock components are of.
    agents: BTreeMap<u32, ThreadId>,
}

impl Engine {
    /// The thread that issued copy `number`, while it is under way.
    pub(super) fn issuer(&self, number: u32) -> Option<ThreadId> {
        self.flights.get(&number).map(|flight| flight.who).or_else(|| self.remote.get(&number).copied())
    }

    /// The mbarrier that the bytes of copy `number` count at, as block and place, while the copy is under way.
    pub(super) fn completes_on(&self, number: u32) -> Option<(usize, u32)> {
        match self.flights.get(&number)?.way {
            Way::In { block, barrier } | Way::Across { block, barrier, .. } => Some((block, barrier)),
            Way::Out { .. } => None,
        }
    }

    /// The thread that a clock component stands for: of a bulk group, or the last to load to an mbarrier.
    pub(super) fn agent(&self, component: u32) -> Option<ThreadId> {
        self.agents.get(&component).copied()
    }

    pub(super) fn name_agent(&mut self, component: u32, who: ThreadId) {
        self.agents.insert(component, who);
    }

    /// The copies under way by the tensor map at this address of global memory.
    pub(super) fn copies_by(&self, address: u64) -> impl Iterator<Item = &Flight> {
        let by = move |shape| matches!(shape, Shape::Box { descriptor: Some(at), .. } if at == address);
        self.flights.values().filter(move |flight| by(flight.shape))
    }

    /// The number of the next copy.
    pub(super) fn next_number(&self) -> u32 {
        self.started + 1
    }

    /// A number for what is no copy of this engine's, but is in flight like one.
    pub(super) fn number_of(&mut self, who: ThreadId) -> u32 {
        self.started += 1;
        self.remote.insert(self.started, who);
        self.started
    }

    /// What [`number_of`](Self::number_of) gave is not in flight any more.
    pub(super) fn forget(&mut self, number: u32) {
        self.remote.remove(&number);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.events.is_empty() && self.landings.is_empty()
    }

    /// Starts a copy of `units` units, cut into pieces; gives the number of pieces.
    pub(super) fn start(&mut self, mut flight: Flight, units: u32, random: &mut Random) -> u32 {
        self.started += 1;
        let number = self.started;
        let slowness = random.below(4);
        let pieces = (1 + random.below(8) as u32).min(units);
        let mut from = 0;
        for piece in 1..=pieces {
            let to = if piece == pieces {
                units
            } else {
                from + 1 + random.below((units - from - (pieces - piece)).into()) as u32
            };
            let event = Event {
                due: self.now + delay(slowness, random),
                tie: random.next(),
                flight: number,
                from,
                to,
                data: None,
            };
            self.events.push(Reverse(event));
            from = to;
        }
        flight.left = pieces;
        self.flights.insert(number, flight);
        pieces
    }

    /// The next event, if its time has come.
    fn due(&mut self) -> Option<Event> {
        if self.events.peek()?.0.due > self.now {
            return None;
        }
        self.events.pop().map(|event| event.0)
    }

    /// Lets `steps` of time go by; what is then due takes effect with the next step.
    pub(super) fn pass(&mut self, steps: u64) {
        self.now += steps;
    }

    /// Lets time go on to the next event; false if there is none.
    pub(super) fn skip(&mut self) -> bool {
        let next =
            self.events.peek().map(|event| event.0.due).into_iter().chain(self.landings.next_due()).min();
        self.now = self.now.max(next.unwrap_or(0));
        next.is_some()
    }
}

/// How many steps something takes: a few, or very many.
pub(super) fn delay(slowness: u64, random: &mut Random) -> u64 {
    const LIMITS: [u64; 4] = [2, 64, 2048, 1 << 20];
    1 + random.below(LIMITS[(slowness % 4) as usize])
}

impl Shape {
    /// The unit `number`. `maps` are those that are known, of which none is ever forgotten: a box
    /// is made of one of them.
    pub(super) fn unit(&self, maps: &[TensorMap], number: u32) -> Unit {
        match *self {
            Self::Box { map, at, offsets, tile, .. } => {
                Walk::new(&maps[map as usize], at, offsets).unit(number, tile)
            }
            Self::Line { global, shared } => Unit {
                shared: shared + number * UNIT,
                global: Some(global.wrapping_add(u64::from(number * UNIT))),
                from: 0,
                to: UNIT,
            },
        }
    }
}

impl Machine {
    /// Lets a step of time go by for the asynchronous engines. To be called between steps of threads. True if anything
    /// took effect, so that who waited may go on.
    #[inline]
    pub fn advance(&mut self) -> bool {
        if self.engine.is_idle() {
            return false;
        }
        self.engine.now += 1;
        self.run_due()
    }

    /// Lets all that is due take effect; true if there was any.
    pub(super) fn run_due(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.engine.due() {
            any = true;
            let Some(flight) = self.engine.flights.get(&event.flight).cloned() else {
                self.report(Finding::internal("a piece of a copy takes effect that is not under way"));
                continue;
            };
            let access = Access { who: flight.who, site: flight.site, does: "issued the copy" };
            match (flight.way, &event.data) {
                (Way::In { block, barrier }, _) => {
                    self.bring(access, &flight.shape, block, &event);
                    self.count_piece(access, &flight, (block, barrier), &event, 0);
                }
                (Way::Out { block, .. } | Way::Across { from: block, .. }, None) => {
                    self.pick_up(block, &flight, event);
                    continue;
                }
                (Way::Out { group, reduce, .. }, Some(data)) => {
                    self.put_down(access, &flight.shape, reduce, &event, data);
                    let index = self.index(flight.who);
                    let group = self.threads[index].bulk.group(group);
                    group.to_write = group.to_write.saturating_sub(1);
                }
                (Way::Across { block, to, moved, barrier, reduce, .. }, Some(data)) => {
                    let at = (to + event.from * UNIT) as usize;
                    let target = &mut self.blocks[block].data[at..at + data.len()];
                    match reduce {
                        None => target.copy_from_slice(data),
                        Some((with, element)) => super::reduce::reduce_bytes(target, data, with, element),
                    }
                    self.count_piece(access, &flight, (block, barrier), &event, moved);
                }
            }
            self.piece_done(event.flight);
        }
        self.land_copies() || any
    }

    fn piece_done(&mut self, number: u32) {
        if let Some(flight) = self.engine.flights.get_mut(&number) {
            flight.left = flight.left.saturating_sub(1);
            if flight.left == 0 {
                self.engine.flights.remove(&number);
                self.record_landing(number);
            }
        }
    }

    /// Units of a load arrive.
    fn bring(&mut self, access: Access, shape: &Shape, block: usize, event: &Event) {
        let maps = self.maps.all();
        let map = match *shape {
            Shape::Box { map, .. } => maps.get(map as usize),
            Shape::Line { .. } => None,
        };
        let (fill, element) = (map.map(fill_unit), map.map(|map| map.element));
        for unit in (event.from..event.to).map(|number| shape.unit(&maps, number)) {
            let mut bytes = fill.unwrap_or_default();
            if let Some(global) = unit.global {
                let inside = &mut bytes[unit.from as usize..unit.to as usize];
                let start = global.wrapping_add(unit.from.into());
                if let Err(fault) = self.config.global.read(start, inside) {
                    // The copy is on its way: the fault is recorded, and the rest goes on.
                    let _ = self.global_fault(access, start, unit.to - unit.from, fault);
                } else {
                    self.check_written(access, start, (unit.to - unit.from).into());
                }
            }
            if let Some(element) = element {
                convert(element, &mut bytes[unit.from as usize..unit.to as usize]);
            }
            let at = unit.shared as usize;
            self.blocks[block].data[at..at + UNIT as usize].copy_from_slice(&bytes);
        }
    }

    /// Units of `flight` that have landed `moved` bytes after their place in its shape count for their mbarrier, in whose current phase
    /// they are.
    fn count_piece(
        &mut self,
        access: Access,
        flight: &Flight,
        (block, barrier): (usize, u32),
        event: &Event,
        moved: u32,
    ) {
        let (maps, shape) = (self.maps.all(), &flight.shape);
        let Some(mbarrier) = self.blocks[block].mbarriers.at(barrier) else { return };
        let phase = mbarrier.phase.saturating_add(1);
        mbarrier.under_way = mbarrier.under_way.saturating_sub(1);
        mbarrier.last_load = Some((phase, access.who, access.site));
        let done = Epoch::new(mbarrier.component, phase);
        mbarrier.note_issue(&flight.issue);
        let counted = mbarrier.complete_tx((event.to - event.from) * UNIT);
        if self.config.checks.order {
            self.engine.name_agent(done.component(), access.who);
            for unit in (event.from..event.to).map(|number| shape.unit(&maps, number)) {
                let at = unit.shared.wrapping_add(moved);
                self.blocks[block].shadow.landed(at, UNIT, event.flight, done);
            }
        }
        self.counted_at(access, block, barrier);
        if let Err(refusal) = counted {
            let _: Result<(), _> = self.refused(access, block, barrier, refusal);
        }
    }

    /// Units of a store are read, and will be written later.
    fn pick_up(&mut self, block: usize, flight: &Flight, event: Event) {
        let maps = self.maps.all();
        let mut data = Vec::with_capacity(((event.to - event.from) * UNIT) as usize);
        for unit in (event.from..event.to).map(|number| flight.shape.unit(&maps, number)) {
            let at = unit.shared as usize;
            data.extend_from_slice(&self.blocks[block].data[at..at + UNIT as usize]);
        }
        if let Way::Out { group, .. } = flight.way {
            let index = self.index(flight.who);
            let group = self.threads[index].bulk.group(group);
            group.to_read = group.to_read.saturating_sub(1);
        }
        self.record_read(event.flight);
        let slowness = self.random.below(3);
        let due = self.engine.now + delay(slowness, &mut self.random);
        self.engine.events.push(Reverse(Event { due, data: Some(data), ..event }));
    }

    /// Units of a store are written. Units that start in the tensor are written as a whole, also beyond its end. No document
    /// says so: seen on an H200 with driver 580.
    fn put_down(
        &mut self,
        access: Access,
        shape: &Shape,
        reduce: Option<(Reduction, Element)>,
        event: &Event,
        data: &[u8],
    ) {
        let maps = self.maps.all();
        let units = (event.from..event.to).map(|number| shape.unit(&maps, number));
        for (unit, bytes) in units.zip(data.chunks(UNIT as usize)) {
            let Some(global) = unit.global else { continue };
            let done = match reduce {
                None => self.config.global.write(global, bytes),
                Some((with, element)) => {
                    super::reduce::reduce(&self.config.global, global, bytes, with, element)
                }
            };
            if let Err(fault) = done {
                let _ = self.global_fault(access, global, UNIT, fault);
            }
        }
    }
}
