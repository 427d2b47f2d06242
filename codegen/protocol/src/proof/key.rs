//! The normal form of a state. Two states with the same normal form continue alike.
//!
//! Steps count up forever, but a clock is only ever asked whether it knows a step. So only those
//! steps of an agent are numbered, in order, that something in the state refers to or may reach,
//! and a clock is described by the last of them that it knows. Locations in the program matter
//! where a rendezvous or an access compares them. The order in which groups take turns does not
//! matter.

use tma_front::ir::{Stmt, StmtKind};
use tma_front::quick::QuickMap;
use tma_model::sync::{Clock, Component, Epoch};

use crate::code::Op;
use crate::explore::input::Input;
use crate::facts::Facts;
use crate::lanes::Lanes;
use crate::memory::Record;
use crate::memory::region::Region;
use crate::state::Execution;
use crate::state::visit::{ExecutionPart, Visit};
use crate::to_u32;

/// A normal form.
type Key = Vec<u32>;

/// Returns the normal form of a state. States are equal if their normal forms are.
pub(super) fn of(input: &Input<'_>, state: &mut Execution) -> Key {
    // This also joins releases, so that clocks keep their identities.
    let mut steps = ReferencedSteps { of: vec![], pending: most_pending(input) };
    state.visit(&mut steps);
    for counts in &mut steps.of {
        counts.sort_unstable();
        counts.dedup();
    }
    let mut form =
        NormalForm { steps, out: vec![], clocks: QuickMap::default(), contents: QuickMap::default() };
    state.visit(&mut form);
    form.out
}

/// Returns how many groups a wait may leave open.
fn most_pending(input: &Input<'_>) -> u32 {
    let pending = |op: &Op<'_>| {
        if let Op::Do(Stmt { kind: StmtKind::BulkWaitGroup { pending, .. }, .. }) = op {
            return Some(*pending);
        }
        None
    };
    let stores = input.code.steps().filter_map(|step| pending(&step.op)).max().unwrap_or(0);
    stores.max(input.kernel.flights().most_pending())
}

/// The steps of each agent that a state refers to, in order.
struct ReferencedSteps {
    of: Vec<Vec<u32>>,
    /// How many groups a wait may leave open.
    pending: u32,
}

impl ReferencedSteps {
    fn note(&mut self, agent: Component, count: u32) {
        let agent = agent.number() as usize;
        if self.of.len() <= agent {
            self.of.resize(agent + 1, vec![]);
        }
        self.of[agent].push(count);
    }

    /// Returns the position of the last of these steps up to `step`, counted from the end.
    fn position(&self, step: Epoch) -> Option<u32> {
        let of_agent = self.of.get(step.component().number() as usize)?;
        let up_to = of_agent.partition_point(|count| *count <= step.count());
        (up_to > 0).then(|| (of_agent.len() - up_to) as u32)
    }
}

impl Visit for ReferencedSteps {
    fn part(&mut self, part: ExecutionPart<'_>) {
        match part {
            ExecutionPart::Step(step) => self.note(step.component(), step.count()),
            ExecutionPart::Group(last) => {
                let first = last.count().saturating_sub(self.pending + 1);
                (first..=last.count() + 1).for_each(|count| self.note(last.component(), count));
            }
            ExecutionPart::Records(records) => {
                records.iter().for_each(|record| self.note(record.step.component(), record.step.count()));
            }
            ExecutionPart::Number(_)
            | ExecutionPart::Term(_)
            | ExecutionPart::UpTo(_)
            | ExecutionPart::Clock(_)
            | ExecutionPart::Facts(_) => {}
        }
    }
}

/// A normal form in construction.
struct NormalForm {
    steps: ReferencedSteps,
    out: Key,
    /// The numbers of the clocks that were written, by identity and by contents.
    clocks: QuickMap<usize, u32>,
    contents: QuickMap<Vec<u32>, u32>,
}

impl NormalForm {
    fn wide(&mut self, number: i128) {
        let bytes = number.to_le_bytes();
        for part in bytes.chunks_exact(4) {
            self.out.push(part.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte)));
        }
    }

    fn clock(&mut self, clock: &Clock) {
        if let Some(&known) = self.clocks.get(&clock.storage_id()) {
            self.out.push(known);
            return;
        }
        let known = clock.steps().filter(|step| step.count() > 0);
        let position = |step: Epoch| Some([step.component().number(), self.steps.position(step)?]);
        let content: Vec<u32> = known.filter_map(position).flatten().collect();
        let next = to_u32(self.contents.len());
        let number = *self.contents.entry(content.clone()).or_insert(next);
        self.clocks.insert(clock.storage_id(), number);
        self.out.push(number);
        if number == next {
            self.out.push(content.len() as u32);
            self.out.extend(content);
        }
    }

    fn records(&mut self, records: &[Record]) {
        let form = |record: &Record| {
            let access = record.access;
            // Accesses by one statement in one step are joined. Earlier steps get no more accesses.
            let position = self.steps.position(record.step);
            let stmt = if position == Some(0) { record.site.stmt.0 } else { u32::MAX };
            let mut form = vec![
                stmt,
                (access.proxy as u32) << 3 | (access.kind as u32) << 1 | u32::from(access.strong),
                record.threads as u32,
                record.step.component().number(),
                position.unwrap_or(u32::MAX),
            ];
            region(&record.region, &mut form);
            form
        };
        let mut all: Vec<_> = records.iter().map(form).collect();
        all.sort_unstable();
        self.out.push(all.len() as u32);
        all.into_iter().for_each(|form| self.out.extend(form));
    }

    fn facts(&mut self, facts: &Facts) {
        for (term, kind, numbers) in facts.listed() {
            self.out.extend([term.number(), kind]);
            numbers.into_iter().for_each(|number| self.wide(number));
        }
    }
}

impl Visit for NormalForm {
    fn part(&mut self, part: ExecutionPart<'_>) {
        match part {
            ExecutionPart::Number(number) => self.out.push(number),
            ExecutionPart::Term(term) => self.out.push(term.number()),
            ExecutionPart::Step(step) | ExecutionPart::UpTo(step) | ExecutionPart::Group(step) => {
                let position = self.steps.position(step).unwrap_or(u32::MAX);
                self.out.extend([step.component().number(), position]);
            }
            ExecutionPart::Clock(clock) => self.clock(clock),
            ExecutionPart::Records(records) => self.records(records),
            ExecutionPart::Facts(facts) => self.facts(facts),
        }
    }
}

fn region(region: &Region, into: &mut Vec<u32>) {
    match region {
        Region::All(ranges) => {
            into.extend([0, ranges.len() as u32]);
            ranges.iter().for_each(|range| into.extend([range.start, range.end]));
        }
        Region::Each(Lanes::Same(at), bytes) => into.extend([1, *at, *bytes]),
        Region::Each(Lanes::Each(all), bytes) => {
            into.extend([2, *bytes, all.len() as u32]);
            into.extend(all.iter());
        }
        Region::Many(owners) => {
            let range = region.hull();
            into.extend([3, range.start, range.end, owners.each().count() as u32]);
            owners.each().for_each(|(range, lane)| into.extend([range.start, lane]));
        }
        Region::Shared { ranges, rows, threads } => {
            into.extend([4, *rows, threads.start, threads.end, ranges.len() as u32]);
            ranges.iter().for_each(|range| into.extend([range.start, range.end]));
        }
        Region::Some(range) => into.extend([5, range.start, range.end]),
    }
}
