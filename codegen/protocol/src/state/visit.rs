//! The parts of an execution.
//!
//! There is one list of them, which takes each struct apart without `..`. So a field that is added
//! does not compile until it is visited here, or has a reason not to be. The normal form, the
//! memory of a state and the renaming of terms are visitors.

use std::rc::Rc;

use tma_front::limits::{WARP_THREADS, WARPGROUP_THREADS};
use tma_model::sync::{Clock, Component, Epoch, StatePart};

use super::{
    Agent, Block, Counter, Execution, Mbarrier, PartialWarp, RegisterChange, Rendezvous, RendezvousKind,
    Stores, TensorCore, WarpArrival, WarpRendezvous,
};
use crate::facts::Facts;
use crate::lanes::Lanes;
use crate::memory::global::{GlobalLocation, GlobalRecord};
use crate::memory::{Memory, Record, Site};
use crate::rendezvous::WARP_NUMBER_STRIDE;
use crate::term::Term;
use crate::value::{SharedAddr, Value};

/// A part of an execution.
pub(crate) enum ExecutionPart<'a> {
    Number(u32),
    Term(&'a mut Term),
    /// A step that a clock may be asked about.
    Step(Epoch),
    /// All steps up to one.
    UpTo(Epoch),
    /// The groups of an agent that waits distinguish, given the last of them.
    Group(Epoch),
    Clock(&'a Clock),
    /// Accesses, whose order does not matter.
    Records(&'a [Record]),
    Facts(&'a Facts),
}

/// A visitor of the parts of an execution.
pub(crate) trait Visit {
    fn part(&mut self, part: ExecutionPart<'_>);

    fn number(&mut self, number: u32) {
        self.part(ExecutionPart::Number(number));
    }

    fn numbers<const N: usize>(&mut self, numbers: [u32; N]) {
        numbers.into_iter().for_each(|number| self.number(number));
    }

    /// Visits a number that may be missing. None of those that are visited so is `u32::MAX`.
    fn option(&mut self, number: Option<u32>) {
        self.number(number.unwrap_or(u32::MAX));
    }

    fn step(&mut self, component: Component, count: u32) {
        self.part(ExecutionPart::Step(Epoch::new(component, count)));
    }

    fn group(&mut self, component: Component, last: u32) {
        self.part(ExecutionPart::Group(Epoch::new(component, last)));
    }

    fn sync(&mut self, part: StatePart<'_>) {
        self.part(match part {
            StatePart::Clock(clock) => ExecutionPart::Clock(clock),
            StatePart::Step(step) => ExecutionPart::Step(step),
            StatePart::UpTo(step) => ExecutionPart::UpTo(step),
            StatePart::Number(number) => ExecutionPart::Number(number as u32),
        });
    }
}

impl Execution {
    /// Visits everything that the rest of the execution depends on.
    pub(crate) fn visit(&mut self, to: &mut impl Visit) {
        let Self {
            facts,
            agents,
            blocks,
            globals,
            cluster,
            grid,
            components,
            // Symbols are numbered in the order in which they are visited here, so their count
            // follows from the terms.
            symbols: _,
            // Which group goes first makes no difference, by D1 to D6.
            current: _,
            // Only compared with earlier counts, since when a state was continued.
            event_count: _,
            // A proof takes none.
            decisions: _,
            // No step reads it.
            history: _,
        } = self;
        to.number(*components);
        for agent in agents.iter_mut() {
            visit_agent(agent, blocks, to);
            if let Some(round) = agent.arrived_round {
                let block = &blocks[agent.block];
                let rendezvous = match agent.rendezvous {
                    RendezvousKind::Grid => Some(&*grid),
                    RendezvousKind::Named(id) => block.named.get(&id),
                    RendezvousKind::Warp(warp, at) => block.warps.get(&(warp, at)),
                };
                to.number(u32::from(rendezvous.is_some_and(|rendezvous| rendezvous.round > round)));
            }
            if let Some(round) = agent.cluster_round {
                to.number(cluster.round - round);
            }
        }
        blocks.iter_mut().for_each(|block| visit_block(block, agents, to));
        to.number(globals.len() as u32);
        globals.iter_mut().for_each(|record| visit_global(record, to));
        [cluster, grid].into_iter().for_each(|rendezvous| visit_rendezvous(rendezvous, agents, to));
        to.part(ExecutionPart::Facts(facts));
    }
}

fn visit_agent(agent: &mut Agent, blocks: &[Block], to: &mut impl Visit) {
    let Agent {
        // The number of the group determines these.
        block,
        threads,
        at,
        locals,
        counters,
        view,
        waited,
        // They decide the order of turns, and when to widen. Arrivals compare them, see there.
        iterations: _,
        is_done,
        // Its rendezvous is visited behind the group.
        arrived_round,
        // The step at which the group waits determines it.
        rendezvous: _,
        pending_release,
        // It decides what to widen. Its terms are those of an earlier iteration, and one that is
        // renamed has changed.
        loop_changes: _,
        cluster_round,
        stores,
        multiplications,
        acquired,
        cluster_sync,
        failed_polls,
    } = agent;
    let inside = u32::from(arrived_round.is_some()) << 1 | u32::from(cluster_round.is_some()) << 2;
    to.numbers([*at as u32, u32::from(*is_done) | inside, *failed_polls]);
    to.option(cluster_sync.map(|stmt| stmt.0));
    to.number(acquired.len() as u32);
    acquired.iter().for_each(|param| to.number(param.0));
    // The warps of a warpgroup wait for each other's multiplications, even after the end of one.
    let warpgroup = threads.first().map_or(0, |thread| thread / WARPGROUP_THREADS);
    match blocks.get(*block).and_then(|block| block.tensor_cores.get(&warpgroup)) {
        Some(core) => to.group(core.component, *multiplications),
        None => to.number(*multiplications),
    }
    // Nothing else of a group that has ended is asked for.
    if *is_done {
        return;
    }
    locals.iter_mut().for_each(|value| visit_value(value, blocks, to));
    for counter in counters {
        to.number(u32::from(counter.is_some()));
        if let Some(Counter { value, end, step, scalar }) = counter {
            [value, end, step].into_iter().for_each(|lanes| visit_terms(lanes, to));
            to.number(*scalar as u32);
        }
    }
    view.visit_state(&mut |part| to.sync(part));
    to.number(u32::from(pending_release.is_some()));
    if let Some(knowledge) = pending_release {
        knowledge.visit_state(&mut |part| to.sync(part));
    }
    to.part(ExecutionPart::UpTo(Epoch::new(view.epoch().component(), *waited)));
    let Stores { groups, component, written, open } = stores;
    to.option(component.map(Component::number));
    to.option(written.map(Component::number));
    for (group, pieces) in groups.state() {
        match component {
            Some(component) => to.group(*component, group),
            None => to.number(group),
        }
        if let Some(written) = written {
            to.group(*written, group);
        }
        to.numbers(pieces);
    }
    to.number(open.len() as u32);
    if let Some(component) = component {
        open.iter().for_each(|(group, _)| to.step(*component, *group));
    }
}

fn visit_value(value: &mut Value, blocks: &[Block], to: &mut impl Visit) {
    match value {
        Value::Unknown => to.number(0),
        Value::Number(lanes) => {
            to.number(1);
            visit_terms(lanes, to);
        }
        Value::Address(SharedAddr { block, at, remote }) => {
            to.number(2 + u32::from(*remote));
            visit_lanes(block, |block| *block as u32, to);
            visit_lanes(at, |at| *at, to);
        }
        Value::OneOf { block, start, end } => to.numbers([6, *block as u32, *start, *end]),
        Value::Token { block, at, phase } => {
            to.numbers([4, *block as u32, *at]);
            match blocks.get(*block).and_then(|block| block.mbarriers.get(at)) {
                Some(mbarrier) => to.number(phases_behind(mbarrier.count.phase(), *phase)),
                None => to.number(*phase),
            }
        }
        Value::Array(all) => {
            to.numbers([5, all.len() as u32]);
            replace_shared(all, |part| visit_value(part, blocks, to));
        }
    }
}

fn visit_terms(lanes: &mut Lanes<Term>, to: &mut impl Visit) {
    match lanes {
        Lanes::Same(term) => to.part(ExecutionPart::Term(term)),
        Lanes::Each(all) => {
            to.number(u32::MAX);
            if replace_shared(all, |term| to.part(ExecutionPart::Term(term)))
                && let Some(joined) = Lanes::of(all.to_vec())
            {
                *lanes = joined;
            }
        }
    }
}

fn visit_lanes<T>(lanes: &Lanes<T>, number: impl Fn(&T) -> u32, to: &mut impl Visit) {
    match lanes {
        Lanes::Same(value) => to.number(number(value)),
        Lanes::Each(all) => {
            to.number(u32::MAX);
            all.iter().for_each(|value| to.number(number(value)));
        }
    }
}

/// Replaces values that several states may share. Returns whether any has changed.
fn replace_shared<T: Clone + PartialEq>(all: &mut Rc<[T]>, mut replace: impl FnMut(&mut T)) -> bool {
    let mut changed: Option<Vec<T>> = None;
    for (index, old) in all.iter().enumerate() {
        let mut new = old.clone();
        replace(&mut new);
        if changed.is_some() || new != *old {
            changed.get_or_insert_with(|| all.to_vec())[index] = new;
        }
    }
    let has_changed = changed.is_some();
    if let Some(changed) = changed {
        *all = changed.into();
    }
    has_changed
}

fn visit_block(block: &mut Block, agents: &[Agent], to: &mut impl Visit) {
    let Block {
        memory: Memory { records },
        mbarriers,
        numbers,
        named,
        warps,
        tensor_cores,
        free_registers,
        registers,
        changes,
        remote_uses,
    } = block;
    // The lengths show where the next parts begin.
    let lengths =
        [mbarriers.len(), numbers.len(), named.len(), warps.len(), tensor_cores.len(), registers.len()];
    to.numbers(lengths.map(|length| length as u32));
    to.part(ExecutionPart::Records(records));
    for (at, mbarrier) in mbarriers {
        to.number(*at);
        visit_mbarrier(mbarrier, to);
    }
    for (at, term) in numbers {
        to.number(*at);
        to.part(ExecutionPart::Term(term));
    }
    for (id, rendezvous) in named {
        to.number(*id);
        visit_rendezvous(rendezvous, agents, to);
    }
    for ((warp, at), rendezvous) in warps {
        to.number(*warp);
        visit_warp_rendezvous(*at, to);
        visit_rendezvous(rendezvous, agents, to);
    }
    for (warpgroup, TensorCore { component, folded, issues }) in tensor_cores {
        to.number(*warpgroup);
        to.step(*component, *folded);
        to.number(issues.len() as u32);
        issues.iter_mut().for_each(|issues| issues.visit_state(&mut |part| to.sync(part)));
    }
    to.number(*free_registers);
    registers.iter().for_each(|(warpgroup, held)| to.numbers([*warpgroup, *held]));
    to.number(changes.len() as u32);
    // Sites in the program are for messages.
    for RegisterChange { increase, amount, step, past, site: _ } in changes {
        to.numbers([u32::from(*increase), *amount]);
        to.part(ExecutionPart::Step(*step));
        to.part(ExecutionPart::Clock(past));
    }
    to.number(remote_uses.len() as u32);
    remote_uses.iter().for_each(|(step, _)| to.part(ExecutionPart::Step(*step)));
}

fn visit_warp_rendezvous(at: WarpRendezvous, to: &mut impl Visit) {
    let numbers = match at {
        WarpRendezvous::Sync => [0, 0, 0],
        WarpRendezvous::Elect => [1, 0, 0],
        WarpRendezvous::Shuffle(op) => [2, op as u32, 0],
        WarpRendezvous::Vote(op) => [3, op as u32, 0],
        WarpRendezvous::Match(op, bytes) => [4, op as u32, bytes],
        WarpRendezvous::Reduce(op, scalar) => [5, op as u32, scalar as u32],
        WarpRendezvous::At(stmt) => [6, stmt.0, 0],
    };
    to.numbers(numbers);
}

fn visit_global(record: &mut GlobalRecord, to: &mut impl Visit) {
    let GlobalRecord { param, access, step, at, site } = record;
    let access = (access.proxy as u32) << 3 | (access.kind as u32) << 1 | u32::from(access.strong);
    to.numbers([param.0, access, site.stmt.0, site.agent as u32]);
    to.part(ExecutionPart::Step(*step));
    match at {
        GlobalLocation::Elements(lanes, length) => {
            to.number(0);
            to.option(*length);
            visit_terms(lanes, to);
        }
        // The tensor map determines how many coordinates there are, and the extents.
        GlobalLocation::Box(all, _) => {
            to.number(1);
            all.iter_mut().for_each(|term| to.part(ExecutionPart::Term(term)));
        }
        GlobalLocation::Anywhere => to.number(2),
    }
}

fn visit_mbarrier(mbarrier: &mut Mbarrier, to: &mut impl Visit) {
    let Mbarrier {
        count,
        order,
        component,
        // The component of `init_step` says which group it was, and the rest is for messages.
        init: _,
        init_step,
        fenced,
        observed,
        remote,
        load,
        // These are for messages.
        announced: _,
        arrived: _,
        completer: _,
        // For messages. Where it is set, a reason undecided is recorded as well.
        multi_phase: _,
        late_announcements,
        last_uses,
    } = mbarrier;
    to.numbers([late_announcements.len() as u32, last_uses.len() as u32]);
    late_announcements
        .iter()
        .map(|(step, _)| step)
        .chain(last_uses.values())
        .for_each(|step| to.part(ExecutionPart::Step(*step)));
    let phase = count.phase();
    to.numbers([phase & 1, count.expected(), count.pending(), count.tx() as u32, u32::from(*remote)]);
    to.number(u32::from(load.is_some()) << 1 | u32::from(fenced.is_some()));
    // A wait distinguishes the last complete phase from the one before it, and both from all
    // others.
    for step in [phase.saturating_sub(1), phase, phase + 1] {
        to.step(*component, step);
    }
    to.number(phases_behind(phase, *observed));
    let load = load.map_or(0, |(load, _)| phases_behind(phase + 1, load) << 1 | u32::from(load > *observed));
    to.number(load);
    [Some(*init_step), *fenced].into_iter().flatten().for_each(|step| to.part(ExecutionPart::Step(step)));
    order.visit_state(&mut |part| to.sync(part));
}

fn visit_rendezvous(rendezvous: &mut Rendezvous, agents: &[Agent], to: &mut impl Visit) {
    let Rendezvous {
        round,
        arrived,
        warps,
        partial_warps,
        component,
        expected,
        first,
        arrivals,
        releases,
        released,
        operands,
        result,
    } = rendezvous;
    to.numbers([*arrived, warps.len() as u32, partial_warps.len() as u32]);
    warps.iter().for_each(|warp| to.number(*warp));
    for (warp, PartialWarp { stmt, agents }) in partial_warps {
        to.numbers([*warp, agents.len() as u32, stmt.0]);
        agents.iter().for_each(|agent| to.number(*agent as u32));
    }
    to.option(component.map(Component::number));
    if let Some(component) = component {
        to.step(*component, *round);
    }
    to.option(*expected);
    to.option(first.map(|first| first.stmt.0));
    to.number(arrivals.len() as u32);
    arrivals.iter().for_each(|arrival| visit_arrival(arrival, agents, to));
    releases.visit_state(&mut |part| to.sync(part));
    released.visit_state(&mut |part| to.sync(part));
    to.number(operands.len() as u32);
    operands.iter_mut().for_each(|operand| visit_operand(operand, to));
    to.number(result.len() as u32);
    replace_shared(result, |operand| visit_operand(operand, to));
}

fn visit_arrival(arrival: &WarpArrival, agents: &[Agent], to: &mut impl Visit) {
    let WarpArrival { warp, site: Site { agent, stmt, iteration: _ }, iterations, aligned } = arrival;
    to.numbers([*warp, stmt.0, u32::from(*aligned)]);
    // The other groups of the warp have to arrive in the same iterations: so many from now on, or
    // if they may yet enter a loop, that one.
    let (block, first) = (agents[*agent].block, *warp % WARP_NUMBER_STRIDE * WARP_THREADS);
    let is_of_warp = |thread: &u32| (first..first + WARP_THREADS).contains(thread);
    for (number, other) in agents.iter().enumerate() {
        if number == *agent || other.is_done || other.block != block || !other.threads.iter().any(is_of_warp)
        {
            continue;
        }
        for (of, iteration) in iterations.iter() {
            let depth = other.iterations.iter().position(|(around, _)| around == of);
            if let Some(depth) = depth {
                to.number(iteration.wrapping_sub(other.iterations[depth].1));
            }
            if depth != Some(0) {
                to.number(*iteration);
            }
        }
    }
}

fn visit_operand(operand: &mut (u32, Option<Term>), to: &mut impl Visit) {
    let (thread, term) = operand;
    to.number(*thread);
    match term {
        Some(term) => to.part(ExecutionPart::Term(term)),
        None => to.option(None),
    }
}

/// Returns how far `phase` is ahead of `other`. A distance of 2 stands for all greater ones.
fn phases_behind(phase: u32, other: u32) -> u32 {
    phase.wrapping_sub(other).min(2)
}

/// A visitor of terms alone. Those of facts are replaced by `Facts::rewritten`, which may drop
/// some.
struct TermReplacement<F>(F);

impl<F: FnMut(Term) -> Term> Visit for TermReplacement<F> {
    fn part(&mut self, part: ExecutionPart<'_>) {
        if let ExecutionPart::Term(term) = part {
            *term = (self.0)(*term);
        }
    }
}

impl Execution {
    /// Replaces all terms, except in facts.
    pub(crate) fn map_terms(&mut self, replace: impl FnMut(Term) -> Term) {
        self.visit(&mut TermReplacement(replace));
    }

    /// Calls `f` with all terms, except those in facts.
    pub(crate) fn for_each_term(&mut self, mut f: impl FnMut(Term)) {
        self.map_terms(|term| {
            f(term);
            term
        });
    }
}
