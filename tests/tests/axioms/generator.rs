//! Random programs: idioms of synchronisation, with occasional mistakes.

use tma_model::sync::{Memory, MemoryScope, Order};
use tma_tests::rng::Rng;

use crate::events::Outline;
use crate::executions::combinations;
use crate::program::{Access, Action, Barrier, Guard, Operation, Place, Program, Step, Update, Variable};
use crate::relation::MOST_EVENTS;

/// The largest number of steps of a thread.
const MOST_STEPS: usize = 5;
/// The largest number of combinations of reads-from, since larger programs would take too long.
const MOST_COMBINATIONS: usize = 1500;

/// Generates the program of a seed.
pub(crate) fn program(seed: u64) -> Program {
    let rng = Rng::new(seed);
    loop {
        let program = Writer::new(&rng).write();
        let is_small = Outline::of(&program).events.len() <= MOST_EVENTS;
        if is_small && program.steps.len() > 1 && combinations(&program) <= MOST_COMBINATIONS {
            return program;
        }
    }
}

/// A program under construction.
struct Writer<'d> {
    rng: &'d Rng,
    program: Program,
    /// The numbers of the next steps that get a mistake.
    faults: Vec<usize>,
    pushed: usize,
    /// The value of the next store: each writes another one.
    value: u32,
    guard: Option<Guard>,
}

/// Draws the threads, and the number of blocks of a cluster.
fn places(rng: &Rng) -> (Vec<Place>, Option<u32>) {
    let at = |block, warp, lane| Place { block, warp, lane };
    let threads = *rng.one_of(&[2, 2, 2, 3, 3, 4]);
    let numbers = 0..threads;
    match rng.below(12) {
        0..4 => (numbers.map(|thread| at(thread, 0, 0)).collect(), None),
        4..8 => (numbers.map(|thread| at(0, thread, 0)).collect(), None),
        8 => (numbers.map(|thread| at(thread / 2, thread % 2, 0)).collect(), None),
        9 => (numbers.map(|thread| at(thread / 2, 0, thread % 2 * 7)).collect(), None),
        10 => (numbers.map(|thread| at(thread, 0, 0)).collect(), Some(2)),
        _ => (numbers.map(|thread| at(thread / 2, thread % 2, 0)).collect(), Some(2)),
    }
}

impl<'d> Writer<'d> {
    fn new(rng: &'d Rng) -> Self {
        let (places, cluster) = places(rng);
        let is_one_block = places.iter().all(|place| place.block == 0);
        let variable = |_| {
            let memory = if is_one_block && rng.once_in(2) { Memory::Shared } else { Memory::Global };
            Variable { memory, block: 0 }
        };
        let variables = (0..2 + rng.below(2)).map(variable).collect();
        let faults = (0..rng.below(4).min(2)).map(|_| rng.below(8)).collect();
        let program = Program { places, cluster, variables, steps: vec![] };
        Self { rng, program, faults, pushed: 0, value: 0, guard: None }
    }

    fn write(mut self) -> Program {
        for _ in 0..1 + self.rng.below(2) {
            match self.rng.below(13) {
                0..3 => self.message(),
                3 => self.passed_on(),
                4 => self.chain(),
                5 => self.last_one(),
                6 => self.claim(),
                7..9 => self.exchange(),
                9 => self.ticket(),
                10 => self.store_buffering(),
                _ => self.anything(),
            }
            self.guard = None;
        }
        self.program
    }

    /// Draws `N` threads, which are different if there are enough.
    fn threads<const N: usize>(&self) -> [usize; N] {
        let count = self.program.places.len();
        let first = self.rng.below(count);
        std::array::from_fn(|index| (first + index) % count)
    }

    fn variables<const N: usize>(&self) -> [usize; N] {
        let count = self.program.variables.len();
        let first = self.rng.below(count);
        std::array::from_fn(|index| (first + index) % count)
    }

    /// Draws a scope that includes these threads.
    fn scope(&self, threads: [usize; 2]) -> MemoryScope {
        let scopes: Vec<_> =
            MemoryScope::ALL.into_iter().filter(|&scope| self.program.includes(scope, threads)).collect();
        // Often the narrowest one.
        if self.rng.once_in(2) { scopes[0] } else { *self.rng.one_of(&scopes) }
    }

    fn next_value(&mut self) -> u32 {
        self.value += 1;
        self.value
    }

    /// Adds a step of a thread, unless the thread has too many. Returns the index of the step.
    fn push(&mut self, thread: usize, operation: Operation) -> Option<usize> {
        let is_wrong = self.faults.contains(&self.pushed);
        self.pushed += 1;
        let mut operation = self.in_shared_memory(operation);
        if is_wrong {
            operation = self.spoilt(operation)?;
        }
        let own = self.program.steps.iter().filter(|step| match step {
            Step::Of { thread: of, .. } => *of == thread,
            Step::Barrier(barrier) => self.program.members(*barrier).contains(&thread),
        });
        if own.count() >= MOST_STEPS {
            return None;
        }
        let is_own = |guard: &Guard| match self.program.steps[guard.step] {
            Step::Of { thread: of, .. } => of == thread,
            Step::Barrier(_) => false,
        };
        let is_dropped = is_wrong && self.rng.once_in(4);
        let guard = self.guard.filter(|guard| is_own(guard) && !is_dropped);
        self.program.steps.push(Step::Of { thread, operation, guard });
        Some(self.program.steps.len() - 1)
    }

    /// Narrows the scope to one that shared memory has.
    fn in_shared_memory(&self, operation: Operation) -> Operation {
        match operation {
            Operation::Access(access) if self.program.variables[access.variable].memory == Memory::Shared => {
                Operation::Access(Access { scope: access.scope.min(MemoryScope::Cluster), ..access })
            }
            Operation::Access(_) | Operation::Fence => operation,
        }
    }

    /// Adds a mistake to a step. `None` removes the step.
    fn spoilt(&self, operation: Operation) -> Option<Operation> {
        let Operation::Access(access) = operation else { return None };
        let is_poll = match access.action {
            Action::Await(_) => true,
            Action::Load | Action::Store(_) | Action::Update(_) => false,
        };
        match (self.rng.below(4), access.action) {
            (0, Action::Load | Action::Store(_)) => {
                Some(Operation::Access(Access { order: Order::Weak, ..access }))
            }
            (0 | 1, _) if access.order.is_strong() => {
                Some(Operation::Access(Access { order: Order::Relaxed, ..access }))
            }
            (2, _) => Some(Operation::Access(Access { scope: MemoryScope::Block, ..access })),
            _ if is_poll => Some(operation),
            _ => None,
        }
    }

    fn access(&mut self, thread: usize, access: Access) -> Option<usize> {
        self.push(thread, Operation::Access(access))
    }

    fn weak(&mut self, thread: usize, variable: usize, action: Action) -> Option<usize> {
        self.access(thread, Access { variable, action, order: Order::Weak, scope: MemoryScope::Device })
    }

    /// Adds a plain store of a new value.
    fn write_weakly(&mut self, thread: usize, variable: usize) {
        let value = self.next_value();
        self.weak(thread, variable, Action::Store(value));
    }

    /// Adds a strong access that releases to another thread: by its own order, or by a fence before
    /// it.
    fn release(&mut self, [from, to]: [usize; 2], variable: usize, action: Action) -> Option<usize> {
        let scope = self.scope([from, to]);
        let is_fenced = self.rng.once_in(3);
        if is_fenced {
            self.push(from, Operation::Fence);
        }
        let order = if is_fenced { Order::Relaxed } else { Order::Release };
        self.access(from, Access { variable, action, order, scope })
    }

    /// Adds a strong access that acquires from another thread: by its own order, or by a fence
    /// after it. The following steps of the thread may require that it has read a value.
    fn acquire(&mut self, [from, to]: [usize; 2], variable: usize, action: Action, value: u32) {
        let scope = self.scope([from, to]);
        let is_fenced = self.rng.once_in(3);
        let order = if is_fenced { Order::Relaxed } else { Order::Acquire };
        let step = self.access(to, Access { variable, action, order, scope });
        if let Some(step) = step {
            self.guard = match action {
                Action::Await(_) => None,
                Action::Load | Action::Store(_) | Action::Update(_) => Some(Guard { step, value }),
            };
        }
        if is_fenced {
            self.push(to, Operation::Fence);
        }
    }

    /// Draws a load of a flag, or a loop of them. Lanes of one warp do not wait for each other.
    fn look(&self, value: u32) -> Action {
        let places = &self.program.places;
        let share = |one: &Place| {
            places.iter().filter(|other| (other.block, other.warp) == (one.block, one.warp)).count() > 1
        };
        if self.rng.once_in(3) && !places.iter().any(share) { Action::Await(value) } else { Action::Load }
    }

    /// Adds a datum and its flag.
    fn message(&mut self) {
        let threads @ [from, to] = self.threads();
        let [data, flag] = self.variables();
        self.write_weakly(from, data);
        let value = self.next_value();
        self.release(threads, flag, Action::Store(value));
        let look = self.look(value);
        self.acquire(threads, flag, look, value);
        if self.rng.once_in(4) {
            self.write_weakly(to, data);
        } else {
            self.weak(to, data, Action::Load);
        }
    }

    /// Adds a message that the second thread passes on to a third.
    fn passed_on(&mut self) {
        let [first, second, third] = self.threads();
        let [data, one, other] = self.variables();
        self.write_weakly(first, data);
        let value = self.next_value();
        self.release([first, second], one, Action::Store(value));
        let look = self.look(value);
        self.acquire([first, second], one, look, value);
        let value = self.next_value();
        self.release([second, third], other, Action::Store(value));
        self.guard = None;
        let look = self.look(value);
        self.acquire([second, third], other, look, value);
        self.weak(third, data, Action::Load);
    }

    /// Adds a release sequence through an atomic operation of a third thread.
    fn chain(&mut self) {
        let [first, second, third] = self.threads();
        let [data, flag] = self.variables();
        self.write_weakly(first, data);
        self.release([first, third], flag, Action::Update(Update::Add));
        let scope = self.scope([first, third]).max(self.scope([second, third]));
        let action = Action::Update(Update::Add);
        self.access(second, Access { variable: flag, action, order: Order::Relaxed, scope });
        let look = self.look(2);
        self.acquire([first, third], flag, look, 2);
        self.weak(third, data, Action::Load);
    }

    /// Adds a counter, and a thread that reads the data of the others if it is counted last.
    fn last_one(&mut self) {
        let threads @ [one, other] = self.threads();
        let [data, count] = self.variables();
        self.write_weakly(one, data);
        let scope = self.scope(threads);
        for thread in threads {
            let is_fenced = self.rng.once_in(3);
            let order = if is_fenced { Order::Relaxed } else { Order::AcqRel };
            if is_fenced {
                self.push(thread, Operation::Fence);
            }
            let action = Action::Update(Update::Add);
            let step = self.access(thread, Access { variable: count, action, order, scope });
            if is_fenced {
                self.push(thread, Operation::Fence);
            }
            self.guard = if thread == other { step.map(|step| Guard { step, value: 1 }) } else { None };
        }
        self.weak(other, data, Action::Load);
    }

    /// Adds threads that claim a datum, and release it or keep it.
    fn claim(&mut self) {
        let threads = self.threads();
        let [data, owner] = self.variables();
        let scope = self.scope(threads);
        for thread in threads {
            let new = self.next_value();
            let action = match self.rng.below(3) {
                0 => Action::Update(Update::Swap(new)),
                _ => Action::Update(Update::CompareExchange { current: 0, new }),
            };
            let order = *self.rng.one_of(&[Order::AcqRel, Order::Acquire, Order::Relaxed]);
            let step = self.access(thread, Access { variable: owner, action, order, scope });
            self.guard = step.map(|step| Guard { step, value: 0 });
            self.write_weakly(thread, data);
            if self.rng.once_in(2) {
                self.release(threads, owner, Action::Store(0));
            }
            self.guard = None;
        }
    }

    /// Adds threads that take tickets, and write if they have a certain one.
    fn ticket(&mut self) {
        let threads = self.threads();
        let [data, tickets] = self.variables();
        let scope = self.scope(threads);
        for thread in threads {
            let (action, order) = (Action::Update(Update::Add), Order::Relaxed);
            let step = self.access(thread, Access { variable: tickets, action, order, scope });
            let value = self.rng.below(2) as u32;
            self.guard = step.map(|step| Guard { step, value });
            self.write_weakly(thread, data);
            self.guard = None;
        }
    }

    /// Adds threads that write, synchronise at a barrier, and read each other's values.
    fn exchange(&mut self) {
        let threads @ [one, other] = self.threads();
        let variables @ [first, second] = self.variables();
        let is_both = self.rng.once_in(2);
        self.write_weakly(one, first);
        if is_both {
            self.write_weakly(other, second);
        }
        self.barrier(threads);
        self.weak(other, first, Action::Load);
        if is_both {
            self.weak(one, second, Action::Load);
        }
        if self.rng.once_in(3) {
            self.barrier(threads);
            self.write_weakly(other, variables[self.rng.below(2)]);
        }
    }

    /// Adds a barrier of two threads, if there is one; it is rarely missing.
    fn barrier(&mut self, threads: [usize; 2]) {
        let [one, other] = threads.map(|thread| self.program.places[thread]);
        let block = one.block;
        let of_cluster = self.program.cluster.map(|_| Barrier::Cluster);
        let barrier = if one.block != other.block {
            of_cluster
        } else if one.warp == other.warp {
            Some(*self.rng.one_of(&[Barrier::Warp { block, warp: one.warp }, Barrier::Threads { block }]))
        } else {
            let warps = [one.warp.min(other.warp), one.warp.max(other.warp)];
            let all = [Barrier::Named { block, warps }, Barrier::Threads { block }];
            Some(*self.rng.one_of(&all))
        };
        let is_missing = self.rng.once_in(10);
        self.program.steps.extend(barrier.filter(|_| !is_missing).map(Step::Barrier));
    }

    /// Adds two threads that write, and then read each other's variable.
    fn store_buffering(&mut self) {
        let threads @ [one, other] = self.threads();
        let [first, second] = self.variables();
        for (thread, mine, theirs) in [(one, first, second), (other, second, first)] {
            let scope = self.scope(threads);
            let value = self.next_value();
            let order = *self.rng.one_of(&[Order::Relaxed, Order::Release]);
            self.access(thread, Access { variable: mine, action: Action::Store(value), order, scope });
            if self.rng.once_in(3) {
                self.push(thread, Operation::Fence);
            }
            let order = *self.rng.one_of(&[Order::Relaxed, Order::Acquire]);
            self.access(thread, Access { variable: theirs, action: Action::Load, order, scope });
        }
    }

    /// Adds strong accesses of all kinds.
    fn anything(&mut self) {
        for _ in 0..3 + self.rng.below(6) {
            let threads @ [thread, _] = self.threads();
            let [variable] = self.variables();
            let scope = self.scope(threads);
            let (new, current) = (self.next_value(), self.rng.below(3) as u32);
            let (action, orders) = match self.rng.below(8) {
                0..3 => (Action::Load, &[Order::Relaxed, Order::Acquire][..]),
                3..6 => (Action::Store(new), &[Order::Relaxed, Order::Release][..]),
                kind => {
                    let update = match (kind, self.rng.below(2)) {
                        (6, _) => Update::Add,
                        (_, 0) => Update::Swap(new),
                        _ => Update::CompareExchange { current, new },
                    };
                    let orders = &[Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel][..];
                    (Action::Update(update), orders)
                }
            };
            let order = *self.rng.one_of(orders);
            let step = self.access(thread, Access { variable, action, order, scope });
            if self.rng.once_in(6) {
                self.push(thread, Operation::Fence);
            }
            if let Some(step) = step.filter(|_| action.reads() && self.rng.once_in(4)) {
                let value = self.rng.below(self.value as usize + 1) as u32;
                self.guard = Some(Guard { step, value });
                let [variable] = self.variables();
                let next = *self.rng.one_of(&[Action::Load, Action::Store(new)]);
                self.weak(thread, variable, next);
                self.guard = None;
            }
        }
    }
}
