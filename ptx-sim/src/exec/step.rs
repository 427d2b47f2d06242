//! One warp's turn: instructions of a group of lanes, one after the other.

use super::alu::bits;
use super::groups::Group;
use super::observe::Count;
use super::spin;
use super::warp::Warp;
use super::{Context, float, lanes_of, memory, numbers};
use crate::isa::{Guard, Inst, Op, Row};
use crate::machine::{Machine, Site, Stop, WaitingFor};
use crate::printed::Printed;
use crate::report::{Finding, FindingKind};

/// What a warp has at hand in its turn.
pub(crate) struct Turn<'t, 'p> {
    pub(crate) context: &'t Context<'p>,
    pub(crate) machine: &'t mut Machine,
    pub(crate) printed: &'t mut Printed,
    /// One of each instruction, or none if nothing is counted.
    pub(crate) counts: &'t mut [Count],
    /// Whether anything is counted or put on a timeline.
    pub(crate) observed: bool,
    /// Counts what may matter to lanes that wait in loops.
    pub(crate) changes: &'t mut u64,
}

/// Where the lanes of a group are after an instruction.
pub(crate) enum Flow {
    /// All at the next one.
    Next,
    /// Those that took part at `target`, the others at the next one.
    Jump(u32),
    /// Those that took part at places of their own, the others at the next one.
    Scatter(Vec<(u32, u32)>),
    /// Those that took part have ended.
    Exit,
    /// These lanes stay, the others go on.
    Wait { stay: u32, what: WaitingFor },
    /// Those that took part at `target`, where they wait until something changes; the others at the next one.
    Spin { target: u32, what: WaitingFor, site: Site },
    /// At the next one, and the turn is over.
    Yield,
}

impl Turn<'_, '_> {
    /// Runs up to `budget` instructions. The answer is whether anything went on.
    pub(crate) fn run(&mut self, warp: &mut Warp, budget: u32) -> Result<bool, Stop> {
        warp.groups.age();
        let Some((mut group, mut alone)) = warp.groups.next() else { return Ok(false) };
        let mut limit = warp.groups.lowest_running();
        let mut divided = !warp.groups.is_empty();
        let mut moved = false;
        for _ in 0..budget {
            if divided {
                group.mask |= if warp.groups.any_at(group.pc) { warp.groups.join(group.pc) } else { 0 };
                if group.pc > limit && !alone {
                    warp.groups.add(group.pc, group.mask, None);
                    let Some(next) = warp.groups.next() else { return Ok(moved) };
                    (group, alone) = next;
                    limit = warp.groups.lowest_running();
                    continue;
                }
            }
            let Some(inst) = self.context.program.code.get(group.pc as usize) else {
                return self.beyond_the_code(warp, group);
            };
            let active = match inst.guard {
                None => group.mask,
                Some(guard) => group.mask & self.holds(warp, guard),
            };
            warp.warp_instructions += 1;
            warp.thread_instructions += u64::from(active.count_ones());
            if self.observed {
                self.count(warp, inst, group.pc, active);
            }
            let flow = if active == 0 { Flow::Next } else { self.execute(warp, inst, group.pc, active)? };
            if self.observed {
                self.record(warp, inst, group.pc, active, &flow);
            }
            *self.changes += u64::from(active != 0 && spin::changes(&inst.op, &flow, active));
            let flow = match flow {
                Flow::Jump(target) if target <= group.pc => self.jump_back(warp, group.pc, target, active),
                flow => flow,
            };
            match flow {
                Flow::Next => {
                    group.pc += 1;
                    moved = true;
                    // The lanes that wait are joined wherever they are met; the limit changes only where groups do.
                    if divided {
                        limit = warp.groups.lowest_running();
                        divided = !warp.groups.is_empty();
                    }
                    continue;
                }
                Flow::Jump(target) if active == group.mask => {
                    group.pc = target;
                    moved = true;
                    continue;
                }
                Flow::Yield => {
                    warp.groups.add(group.pc + 1, group.mask, None);
                    return Ok(true);
                }
                Flow::Wait { stay, .. } => moved |= stay != group.mask,
                Flow::Jump(_) | Flow::Scatter(_) | Flow::Exit | Flow::Spin { .. } => moved = true,
            }
            self.part(warp, group, active, flow, inst.site);
            let Some(next) = warp.groups.next() else { return Ok(moved) };
            (group, alone) = next;
            limit = warp.groups.lowest_running();
            divided = !warp.groups.is_empty();
        }
        warp.groups.add(group.pc, group.mask, None);
        Ok(moved)
    }

    /// Puts the lanes of a group where an instruction has sent them.
    fn part(&mut self, warp: &mut Warp, group: Group, active: u32, flow: Flow, site: Site) {
        let next = group.pc + 1;
        match flow {
            Flow::Next | Flow::Yield => warp.groups.add(next, group.mask, None),
            Flow::Jump(target) => {
                warp.groups.add(target, active, None);
                warp.groups.add(next, group.mask & !active, None);
            }
            Flow::Scatter(places) => {
                for (pc, lanes) in places {
                    warp.groups.add(pc, lanes, None);
                }
                warp.groups.add(next, group.mask & !active, None);
            }
            Flow::Exit => {
                warp.live &= !active;
                for lane in lanes_of(active) {
                    self.machine.exit(warp.actor(lane, site));
                }
                warp.groups.add(next, group.mask & !active, None);
                // Whoever waits for lanes of this warp may now have all that there are.
                warp.groups.wake(*self.changes, |_, _| true);
            }
            Flow::Spin { target, what, site } => {
                warp.groups.add_spinning(target, active, (what, site), *self.changes);
                warp.groups.add(next, group.mask & !active, None);
            }
            Flow::Wait { stay, what } => {
                warp.groups.add(group.pc, stay, Some((what, site)));
                warp.groups.add(next, group.mask & !stay, None);
            }
        }
    }

    /// The lanes in which a predicate holds.
    #[inline]
    pub(crate) fn holds(&self, warp: &Warp, guard: Guard) -> u32 {
        let lanes = self.context.lanes(&warp.registers, guard.row);
        let mut mask = 0;
        for (lane, value) in lanes.iter().enumerate() {
            mask |= ((value & 1) as u32) << lane;
        }
        if guard.negated { !mask } else { mask }
    }

    #[inline]
    fn lanes(&self, warp: &Warp, row: Row) -> super::alu::Lanes {
        *self.context.lanes(&warp.registers, row)
    }

    fn execute(&mut self, warp: &mut Warp, inst: &Inst, pc: u32, active: u32) -> Result<Flow, Stop> {
        let (site, context) = (inst.site, self.context);
        match &inst.op {
            Op::One(f, d, a) => {
                let a = self.lanes(warp, *a);
                f(&mut warp.registers[d.0 as usize], &a, active);
            }
            Op::Two(f, d, [a, b]) => {
                let (a, b) = (self.lanes(warp, *a), self.lanes(warp, *b));
                f(&mut warp.registers[d.0 as usize], &a, &b, active);
            }
            Op::Three(f, d, [a, b, c]) => {
                let (a, b, c) = (self.lanes(warp, *a), self.lanes(warp, *b), self.lanes(warp, *c));
                f(&mut warp.registers[d.0 as usize], &a, &b, &c, active);
            }
            Op::Load(access) => return self.load(warp, access, active, site),
            Op::Store(access) => return self.store(warp, access, active, site),
            Op::Branch(target) => return Ok(Flow::Jump(*target)),
            Op::Compare { compared, comparison, of, combine, truth, d, opposite } => {
                let what = (*compared, *comparison, *of);
                numbers::compare(self, warp, active, what, *combine, *truth, [*d, *opposite]);
            }
            Op::ComparePair { ty, flush, comparison, of, combine, truth, d } => {
                let what = (*ty, *flush, *comparison, *of);
                numbers::compare_pair(self, warp, active, what, *combine, *truth, *d);
            }
            Op::Lop3(table, d, of) => {
                numbers::each(context, warp, active, (*d, *of), |[a, b, c]| bits::table(a, b, c, *table));
            }
            Op::Insert(width, d, of) => {
                let insert = |[a, b, c, e]: [u64; 4]| bits::insert(a, b, c, e, *width);
                numbers::each(context, warp, active, (*d, *of), insert);
            }
            Op::Float { op, ty, mode, pair, d, of } => {
                numbers::each(context, warp, active, (*d, *of), |operands| match pair {
                    true => float::apply_packed(*op, *ty, *mode, operands),
                    false => float::apply(*op, *ty, *mode, operands),
                });
            }
            Op::Carry(carry, d, of) => numbers::carry(context, warp, active, *carry, (*d, *of)),
            Op::Convert(conversion, d, a) => {
                let convert = |[a]: [u64; 1]| numbers::convert_one(conversion, a);
                numbers::each(context, warp, active, (*d, [*a]), convert);
            }
            Op::ConvertPair(conversion, d, of) => {
                let convert = |[a, b]: [u64; 2]| numbers::convert_pair(*conversion, a, b);
                numbers::each(context, warp, active, (*d, *of), convert);
            }
            Op::Pack(bits, d, parts) => numbers::pack(context, warp, active, *bits, (*d, parts)),
            Op::Unpack(bits, parts, a) => numbers::unpack(context, warp, active, *bits, (parts, *a)),
            Op::PendingCount { d, state } => {
                let count = |[state]: [u64; 1]| Machine::mbarrier_pending_count(state).into();
                numbers::each(context, warp, active, (*d, [*state]), count);
            }
            Op::ActiveMask(d) => numbers::each(context, warp, active, (*d, []), |[]| active.into()),
            Op::Clock { d, wide } => {
                let now = numbers::clock(warp, *wide);
                numbers::each(context, warp, active, (*d, []), |[]| now);
            }
            Op::Window { d, a, window, to_generic } => {
                let window = if *to_generic { *window } else { window.wrapping_neg() };
                numbers::each(context, warp, active, (*d, [*a]), |[a]| a.wrapping_add(window));
            }
            Op::IsSpace { d, a, space, constant } => {
                let own = warp.block;
                let is_space = |[a]: [u64; 1]| self.is_space(own, *space, *constant, a).into();
                numbers::each(context, warp, active, (*d, [*a]), is_space);
            }
            Op::MapToRank { d, address, rank, generic } => {
                let mapped = |[address, rank]: [u64; 2]| memory::mapped(address, rank, *generic);
                numbers::each(context, warp, active, (*d, [*address, *rank]), mapped);
            }
            Op::RankOf { d, address, generic } => {
                let own = warp.block;
                let rank = |[address]: [u64; 1]| memory::rank_at(address, *generic, own);
                numbers::each(context, warp, active, (*d, [*address]), rank);
            }
            Op::Atomic { op, memory, order, bytes, d, address, of } => {
                self.atomic(warp, active, (*op, *memory, *order, *bytes), *d, *address, *of, site)?;
            }
            Op::AtomicVector(vector) => self.atomic_vector(warp, active, vector, site)?,
            Op::WideAtomic(wide) => self.wide_atomic(warp, active, wide, site)?,
            Op::CacheLine { address, discards } => {
                self.cache_line(warp, active, *address, *discards, site)?;
            }
            Op::BranchIndexed(index, targets) => {
                return self.branch_indexed(warp, active, *index, targets, site);
            }
            Op::Call(start, link) => {
                numbers::each(context, warp, active, (*link, []), |[]| u64::from(pc + 1));
                return Ok(Flow::Jump(*start));
            }
            Op::Return(link) => return Ok(self.back(warp, active, *link)),
            Op::Trap => {
                let (lane, message) = (active.trailing_zeros(), "the kernel has run into a `trap`");
                return self.fail(warp, lane, site, message, FindingKind::Trap);
            }
            Op::Printf { format, args, result } => {
                self.printf(warp, active, *format, *args, *result, site)?;
            }
            Op::AssertFail { message, file, line, function } => {
                return self.assert_fail(warp, active, [*message, *file, *line, *function], site);
            }
            Op::Exit => return Ok(Flow::Exit),
            Op::Nothing => {}
            Op::Yield => return Ok(Flow::Yield),
            Op::CopyLocal { from, to, bytes } => self.copy_local(warp, active, *from, *to, *bytes),
            Op::BlockBarrier(barrier) => return self.block_barrier(warp, active, barrier, site),
            Op::ClusterArrive { order, aligned } => {
                for lane in lanes_of(active) {
                    self.machine.cluster_arrive(warp.actor(lane, site), *order, *aligned)?;
                }
            }
            Op::ClusterWait(order) => return self.cluster_wait(warp, active, *order, site),
            Op::Collective { mask, what } => return self.collective(warp, active, (*mask, what), site),
            Op::Mbarrier { space, address, op } => {
                return self.mbarrier(warp, active, *space, *address, op, site);
            }
            Op::Fence(kind) => {
                lanes_of(active).for_each(|lane| self.machine.fence(warp.thread(lane), *kind));
            }
            Op::CopyAsync(code) => self.copy_async(warp, active, code, site)?,
            Op::CopyAsyncCommit => {
                lanes_of(active).for_each(|lane| self.machine.copy_async_commit(warp.thread(lane)));
            }
            Op::CopyAsyncWait(pending) => return self.copy_async_wait(warp, active, *pending),
            Op::CopyAsyncArrive { space, address, no_increment } => {
                self.copy_async_arrive(warp, active, (*space, *address), *no_increment, site)?;
            }
            Op::Tensor(code) => self.tensor(warp, active, code, site)?,
            Op::Map(code) => return self.map(warp, active, code, site),
            Op::Bulk(code) => self.bulk(warp, active, code, site)?,
            Op::Remote(code) => self.remote(warp, active, code, site)?,
            Op::BulkCommit => {
                lanes_of(active).for_each(|lane| self.machine.bulk_commit(warp.thread(lane)));
            }
            Op::BulkWait { pending, read } => return self.bulk_wait(warp, active, *pending, *read),
        }
        Ok(Flow::Next)
    }

    /// Records that a lane cannot go on.
    pub(crate) fn fail<T>(
        &mut self,
        warp: &Warp,
        lane: u32,
        site: Site,
        message: impl Into<String>,
        kind: FindingKind,
    ) -> Result<T, Stop> {
        let party = self.machine.party(warp.thread(lane), site, "was here");
        self.machine.stop(Finding::new(kind, message).with(party))
    }

    /// Records that lanes are where there is no code.
    #[cold]
    fn beyond_the_code<T>(&mut self, warp: &Warp, group: Group) -> Result<T, Stop> {
        let last = self.context.program.code.last().map(|inst| inst.site).unwrap_or_default();
        let party = self.machine.party(warp.thread(group.mask.trailing_zeros()), last, "ran beyond");
        self.machine.stop(Finding::internal("a warp has run beyond the end of its code").with(party))
    }
}
