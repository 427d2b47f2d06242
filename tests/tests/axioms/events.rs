//! The events of a program, and the relations between them that are the same in each execution.

use tma_model::sync::{MemoryScope, Order};

use crate::program::{Access, Action, Operation, Program, Step};
use crate::relation::{Events, Relation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The write of the initial value of a variable, before the launch.
    Initial(usize),
    Access(Access),
    /// The loads of a loop before the one that ends it. They read anything, and may race.
    MissedPoll(Access),
    Fence,
    /// The arrival of a thread at a barrier.
    Barrier,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// `None` for events before the launch.
    pub(crate) thread: Option<usize>,
    /// The step of the program, if the event is one.
    pub(crate) step: Option<usize>,
    pub(crate) kind: Kind,
}

impl Event {
    /// Returns the variable that the event accesses.
    pub(crate) fn variable(&self) -> Option<usize> {
        match self.kind {
            Kind::Initial(variable) => Some(variable),
            Kind::Access(access) | Kind::MissedPoll(access) => Some(access.variable),
            Kind::Fence | Kind::Barrier => None,
        }
    }

    /// Whether the event has a write that can be read from.
    pub(crate) fn writes(&self) -> bool {
        match self.kind {
            Kind::Initial(_) => true,
            Kind::Access(access) => access.action.writes(),
            Kind::MissedPoll(_) | Kind::Fence | Kind::Barrier => false,
        }
    }

    /// Whether the event reads the value of a write. Loads before the last one of a loop do not
    /// count.
    pub(crate) fn reads(&self) -> bool {
        match self.kind {
            Kind::Access(access) => access.action.reads(),
            Kind::Initial(_) | Kind::MissedPoll(_) | Kind::Fence | Kind::Barrier => false,
        }
    }

    /// Whether the event is an atomic read-modify-write operation.
    pub(crate) fn is_update(&self) -> bool {
        self.reads() && self.writes()
    }

    /// Returns the scope of a strong operation.
    fn scope(&self) -> Option<MemoryScope> {
        match self.kind {
            Kind::Access(access) | Kind::MissedPoll(access) => {
                access.order.is_strong().then_some(access.scope)
            }
            Kind::Fence => Some(MemoryScope::Device),
            Kind::Initial(_) | Kind::Barrier => None,
        }
    }
}

/// The events of a program.
#[derive(Debug)]
pub(crate) struct Outline<'p> {
    pub(crate) program: &'p Program,
    pub(crate) events: Vec<Event>,
    /// PTX ISA, "Program Order"; events before the launch precede all others.
    pub(crate) program_order: Relation,
    /// Pairs of threads at a barrier, in both directions.
    pub(crate) rendezvous: Relation,
    /// Accesses to the same variable, which overlap completely.
    pub(crate) overlapping: Relation,
    /// PTX ISA, "Morally Strong Operations".
    pub(crate) morally_strong: Relation,
    /// For each strong write, the first operations of the release patterns that end with it.
    pub(crate) releases: Vec<Events>,
    /// For each strong read, the last operations of the acquire patterns that begin with it.
    pub(crate) acquires: Vec<Events>,
}

fn events(program: &Program) -> Vec<Event> {
    let initial = |variable| Event { thread: None, step: None, kind: Kind::Initial(variable) };
    let mut all: Vec<_> = (0..program.variables.len()).map(initial).collect();
    for (index, step) in program.steps.iter().enumerate() {
        let mut add = |thread, kind| all.push(Event { thread: Some(thread), step: Some(index), kind });
        match *step {
            Step::Of { thread, operation: Operation::Fence, .. } => add(thread, Kind::Fence),
            Step::Of { thread, operation: Operation::Access(access), .. } => {
                match access.action {
                    Action::Await(_) => add(thread, Kind::MissedPoll(access)),
                    Action::Load | Action::Store(_) | Action::Update(_) => {}
                }
                add(thread, Kind::Access(access));
            }
            Step::Barrier(barrier) => {
                program.members(barrier).into_iter().for_each(|thread| add(thread, Kind::Barrier));
            }
        }
    }
    all
}

impl<'p> Outline<'p> {
    pub(crate) fn of(program: &'p Program) -> Self {
        let events = events(program);
        let pairs = |holds: &dyn Fn(&Event, &Event) -> bool| {
            Relation::of(events.len(), |one, other| holds(&events[one], &events[other]))
        };
        let program_order = Relation::of(events.len(), |one, other| {
            let (first, second) = (events[one].thread, events[other].thread);
            one < other && first == second && first.is_some() || first.is_none() && second.is_some()
        });
        let rendezvous = pairs(&|one, other| {
            one.kind == Kind::Barrier && one.step == other.step && one.thread != other.thread
        });
        let overlapping = pairs(&|one, other| one.variable().is_some() && one.variable() == other.variable());
        let morally_strong = pairs(&|one, other| are_morally_strong(program, one, other));
        // The operations of a thread on a variable before (or after) another one, including it.
        let of_thread = |event: usize, order: &dyn Fn(Order) -> bool, is_before: bool| {
            let belongs = |&other: &usize| {
                let in_order =
                    if is_before { program_order.has(other, event) } else { program_order.has(event, other) };
                match events[other].kind {
                    Kind::Fence => in_order,
                    Kind::Access(access) => {
                        (in_order || other == event) && overlapping.has(event, other) && order(access.order)
                    }
                    Kind::Initial(_) | Kind::MissedPoll(_) | Kind::Barrier => false,
                }
            };
            (0..events.len()).filter(belongs).fold(0, |all, other| all | 1 << other)
        };
        let is_strong = |event: &Event| event.scope().is_some();
        let releases = (0..events.len()).map(|event| match &events[event] {
            write if write.writes() && is_strong(write) => of_thread(event, &Order::releases, true),
            _ => 0,
        });
        let acquires = (0..events.len()).map(|event| match &events[event] {
            read if read.reads() && is_strong(read) => of_thread(event, &Order::acquires, false),
            _ => 0,
        });
        let (releases, acquires) = (releases.collect(), acquires.collect());
        Self { program, program_order, rendezvous, overlapping, morally_strong, releases, acquires, events }
    }

    /// Returns the event of a step that is an operation of one thread.
    pub(crate) fn event_of(&self, step: usize) -> Option<usize> {
        self.events.iter().rposition(|event| event.step == Some(step))
    }

    /// Returns the writes to a variable, the first of which is the initial one.
    pub(crate) fn writes(&self, variable: usize) -> impl Iterator<Item = usize> + '_ {
        let writes = move |event: &usize| {
            let event = &self.events[*event];
            event.writes() && event.variable() == Some(variable)
        };
        (0..self.events.len()).filter(writes)
    }
}

/// PTX ISA, "Morally Strong Operations": both are of one thread, or both are strong with scopes
/// that include the other thread; and if both access memory, they overlap completely.
fn are_morally_strong(program: &Program, one: &Event, other: &Event) -> bool {
    let (Some(first), Some(second)) = (one.thread, other.thread) else { return false };
    let overlap = match (one.variable(), other.variable()) {
        (Some(one), Some(other)) => one == other,
        (None, _) | (_, None) => true,
    };
    let reach = || {
        let (Some(mine), Some(theirs)) = (one.scope(), other.scope()) else { return false };
        program.includes(mine, [first, second]) && program.includes(theirs, [second, first])
    };
    overlap && (first == second || reach())
}
