//! A walk over everything that the rest of an execution depends on.

use tma_model::sync::{Clock, Component, Epoch, StatePart};

use crate::check::protocol::lanes::Lanes;
use crate::check::protocol::memory::Record;
use crate::check::protocol::memory::global::{GlobalLocation, GlobalRecord};
use crate::check::protocol::run::Run;
use crate::check::protocol::state::{
    Agent, Block, Counter, Mbarrier, PartialWarp, RegisterChange, Rendezvous, RendezvousKind, TensorCore,
    WarpArrival, WarpRendezvous,
};
use crate::check::protocol::term::Term;
use crate::check::protocol::value::{SharedAddr, Value};
use crate::limits::WARPGROUP_THREADS;

/// A visitor of the parts of a state.
pub(super) trait Visit {
    fn number(&mut self, number: u32);
    /// Visits a step that a clock may be asked about.
    fn step(&mut self, step: Epoch);
    /// Visits all steps up to one.
    fn up_to(&mut self, step: Epoch);
    /// Visits the groups of an agent that waits distinguish, given the last of them.
    fn group(&mut self, last: Epoch);
    fn clock(&mut self, clock: &Clock);
    /// Visits accesses, whose order does not matter.
    fn records(&mut self, records: &[Record]);

    fn part(&mut self, part: StatePart<'_>) {
        match part {
            StatePart::Clock(clock) => self.clock(clock),
            StatePart::Step(step) => self.step(step),
            StatePart::UpTo(step) => self.up_to(step),
            StatePart::Number(number) => self.number(number as u32),
        }
    }

    fn term(&mut self, term: Term) {
        self.number(term.number());
    }
}

/// Visits everything that the rest of an execution depends on, except facts.
pub(super) fn walk(run: &mut Run<'_, '_>, to: &mut impl Visit) {
    let Run { agents, blocks, globals, cluster, grid, components, .. } = run;
    to.number(*components);
    for agent in agents.iter_mut() {
        walk_agent(agent, blocks, to);
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
    for block in blocks.iter_mut() {
        walk_block(block, to);
    }
    to.number(globals.len() as u32);
    globals.iter().for_each(|record| walk_global(record, to));
    [cluster, grid].into_iter().for_each(|rendezvous| walk_rendezvous(rendezvous, to));
}

fn walk_global(record: &GlobalRecord, to: &mut impl Visit) {
    let GlobalRecord { param, access, step, at, site } = record;
    let access = (access.proxy as u32) << 3 | (access.kind as u32) << 1 | u32::from(access.strong);
    [param.0, access, site.stmt.0, site.agent as u32].into_iter().for_each(|number| to.number(number));
    to.step(*step);
    match at {
        GlobalLocation::Elements(lanes, length) => {
            to.number(length.unwrap_or(u32::MAX));
            walk_terms(lanes, to);
        }
        GlobalLocation::Box(all, _) => all.iter().for_each(|term| to.term(*term)),
        GlobalLocation::Anywhere => to.number(u32::MAX),
    }
}

fn walk_agent(agent: &Agent, blocks: &[Block], to: &mut impl Visit) {
    let Agent {
        block,
        threads,
        at,
        locals,
        counters,
        view,
        waited,
        iterations: _,
        is_done,
        arrived_round,
        rendezvous: _,
        pending_release,
        loop_changes: _,
        cluster_round,
        stores,
        multiplications,
        acquired,
        cluster_sync,
        failed_polls,
    } = agent;
    to.number(*at as u32);
    to.number(
        u32::from(*is_done)
            | u32::from(arrived_round.is_some()) << 1
            | u32::from(cluster_round.is_some()) << 2,
    );
    to.number(*failed_polls);
    to.number(cluster_sync.map_or(u32::MAX, |stmt| stmt.0));
    to.number(acquired.len() as u32);
    acquired.iter().for_each(|param| to.number(param.0));
    if *is_done {
        return;
    }
    locals.iter().for_each(|value| walk_value(value, blocks, to));
    for counter in counters {
        to.number(u32::from(counter.is_some()));
        if let Some(Counter { value, end, step, scalar }) = counter {
            [value, end, step].into_iter().for_each(|lanes| walk_terms(lanes, to));
            to.number(*scalar as u32);
        }
    }
    view.visit_state(&mut |part| to.part(part));
    to.number(u32::from(pending_release.is_some()));
    pending_release.iter().for_each(|knowledge| knowledge.visit_state(&mut |part| to.part(part)));
    to.up_to(Epoch::new(view.epoch().component(), *waited));
    let component = stores.component.map_or(u32::MAX, Component::number);
    to.number(component);
    to.number(stores.written.map_or(u32::MAX, Component::number));
    for (group, pieces) in stores.groups.state() {
        match stores.component {
            Some(component) => to.group(Epoch::new(component, group)),
            None => to.number(group),
        }
        if let Some(written) = stores.written {
            to.group(Epoch::new(written, group));
        }
        pieces.into_iter().for_each(|number| to.number(number));
    }
    to.number(stores.open.len() as u32);
    if let Some(component) = stores.component {
        stores.open.iter().for_each(|(group, _)| to.step(Epoch::new(component, *group)));
    }
    let warpgroup = threads.first().map_or(0, |thread| thread / WARPGROUP_THREADS);
    match blocks.get(*block).and_then(|block| block.tensor_cores.get(&warpgroup)) {
        Some(core) => to.group(Epoch::new(core.component, *multiplications)),
        None => to.number(*multiplications),
    }
}

fn walk_value(value: &Value, blocks: &[Block], to: &mut impl Visit) {
    match value {
        Value::Unknown => to.number(0),
        Value::Number(lanes) => {
            to.number(1);
            walk_terms(lanes, to);
        }
        Value::Address(SharedAddr { block, at, remote }) => {
            to.number(2 + u32::from(*remote));
            walk_lanes(block, |block| *block as u32, to);
            walk_lanes(at, |at| *at, to);
        }
        Value::OneOf { block, start, end } => {
            [6, *block as u32, *start, *end].into_iter().for_each(|number| to.number(number));
        }
        Value::Token { block, at, phase } => {
            to.number(4);
            [*block as u32, *at].into_iter().for_each(|number| to.number(number));
            match blocks.get(*block).and_then(|block| block.mbarriers.get(at)) {
                Some(mbarrier) => to.number(phases_behind(mbarrier.count.phase(), *phase)),
                None => to.number(*phase),
            }
        }
        Value::Array(all) => {
            [5, all.len() as u32].into_iter().for_each(|number| to.number(number));
            all.iter().for_each(|part| walk_value(part, blocks, to));
        }
    }
}

fn walk_terms(lanes: &Lanes<Term>, to: &mut impl Visit) {
    match lanes {
        Lanes::Same(term) => to.term(*term),
        Lanes::Each(all) => {
            to.number(u32::MAX);
            all.iter().for_each(|term| to.term(*term));
        }
    }
}

fn walk_lanes<T>(lanes: &Lanes<T>, number: impl Fn(&T) -> u32, to: &mut impl Visit) {
    match lanes {
        Lanes::Same(value) => to.number(number(value)),
        Lanes::Each(all) => {
            to.number(u32::MAX);
            all.iter().for_each(|value| to.number(number(value)));
        }
    }
}

fn walk_block(block: &mut Block, to: &mut impl Visit) {
    let Block {
        memory,
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
    lengths.into_iter().for_each(|length| to.number(length as u32));
    to.records(&memory.records);
    for (at, mbarrier) in mbarriers {
        to.number(*at);
        walk_mbarrier(mbarrier, to);
    }
    for (at, term) in numbers {
        to.number(*at);
        to.term(*term);
    }
    for (id, rendezvous) in named {
        to.number(*id);
        walk_rendezvous(rendezvous, to);
    }
    for ((warp, at), rendezvous) in warps {
        to.number(*warp);
        walk_warp_rendezvous(*at, to);
        walk_rendezvous(rendezvous, to);
    }
    for (warpgroup, core) in tensor_cores {
        to.number(*warpgroup);
        let TensorCore { component, folded, issues } = core;
        to.step(Epoch::new(*component, *folded));
        to.number(issues.len() as u32);
        issues.iter_mut().for_each(|issues| issues.visit_state(&mut |part| to.part(part)));
    }
    to.number(*free_registers);
    registers
        .iter()
        .for_each(|(warpgroup, held)| [warpgroup, held].into_iter().for_each(|number| to.number(*number)));
    to.number(changes.len() as u32);
    for RegisterChange { increase, amount, step, past, site: _ } in changes {
        [u32::from(*increase), *amount].into_iter().for_each(|number| to.number(number));
        to.step(*step);
        to.clock(past);
    }
    to.number(remote_uses.len() as u32);
    remote_uses.iter().for_each(|(step, _)| to.step(*step));
}

fn walk_warp_rendezvous(at: WarpRendezvous, to: &mut impl Visit) {
    let numbers = match at {
        WarpRendezvous::Sync => [0, 0, 0],
        WarpRendezvous::Elect => [1, 0, 0],
        WarpRendezvous::Shuffle(op) => [2, op as u32, 0],
        WarpRendezvous::Vote(op) => [3, op as u32, 0],
        WarpRendezvous::Match(op, bytes) => [4, op as u32, bytes],
        WarpRendezvous::Reduce(op, scalar) => [5, op as u32, scalar as u32],
        WarpRendezvous::At(stmt) => [6, stmt.0, 0],
    };
    numbers.into_iter().for_each(|number| to.number(number));
}

fn walk_mbarrier(mbarrier: &mut Mbarrier, to: &mut impl Visit) {
    let Mbarrier {
        count,
        order,
        component,
        init: _,
        init_step,
        fenced,
        observed,
        remote,
        load,
        announced: _,
        arrived: _,
        completer: _,
        multi_phase: _,
        late_announcements,
        last_uses,
    } = mbarrier;
    [late_announcements.len() as u32, last_uses.len() as u32]
        .into_iter()
        .for_each(|number| to.number(number));
    late_announcements.iter().map(|(step, _)| step).chain(last_uses.values()).for_each(|step| to.step(*step));
    to.number(count.phase() & 1);
    [count.expected(), count.pending(), count.tx() as u32, u32::from(*remote)]
        .into_iter()
        .for_each(|number| to.number(number));
    to.number(u32::from(load.is_some()) << 1 | u32::from(fenced.is_some()));
    let phase = count.phase();
    // A wait distinguishes the last complete phase from the one before it, and both from all
    // others.
    for step in [phase.saturating_sub(1), phase, phase + 1] {
        to.step(Epoch::new(*component, step));
    }
    to.number(phases_behind(phase, *observed));
    let load = load.map_or(0, |(load, _)| phases_behind(phase + 1, load) << 1 | u32::from(load > *observed));
    to.number(load);
    [Some(*init_step), *fenced].into_iter().flatten().for_each(|step| to.step(step));
    order.visit_state(&mut |part| to.part(part));
}

fn walk_rendezvous(rendezvous: &mut Rendezvous, to: &mut impl Visit) {
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
    [*arrived, warps.len() as u32, partial_warps.len() as u32]
        .into_iter()
        .for_each(|number| to.number(number));
    warps.iter().for_each(|warp| to.number(*warp));
    for (warp, PartialWarp { stmt, agents }) in partial_warps {
        [*warp, agents.len() as u32, stmt.0].into_iter().for_each(|number| to.number(number));
        agents.iter().for_each(|agent| to.number(*agent as u32));
    }
    to.number(component.map_or(u32::MAX, Component::number));
    if let Some(component) = component {
        to.step(Epoch::new(*component, *round));
    }
    to.number(expected.unwrap_or(u32::MAX));
    to.number(first.map_or(u32::MAX, |first| first.stmt.0));
    to.number(arrivals.len() as u32);
    for WarpArrival { warp, site, aligned } in arrivals {
        [*warp, site.stmt.0, u32::from(*aligned)].into_iter().for_each(|number| to.number(number));
    }
    releases.visit_state(&mut |part| to.part(part));
    released.visit_state(&mut |part| to.part(part));
    for pairs in [&operands[..], &result[..]] {
        to.number(pairs.len() as u32);
        for (thread, term) in pairs {
            to.number(*thread);
            to.number(term.map_or(u32::MAX, Term::number));
        }
    }
}

/// Returns how far `phase` is ahead of `other`. A distance of 2 stands for all greater ones.
fn phases_behind(phase: u32, other: u32) -> u32 {
    phase.wrapping_sub(other).min(2)
}
