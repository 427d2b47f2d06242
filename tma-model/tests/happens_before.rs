//! Compares vector clocks with a plain model: a graph of events, in which an event is known if a
//! path leads from it.

use proptest::prelude::*;
use tma_model::sync::{
    Access, AccessKind, Acquirer, Component, Epoch, FencedMemory, Hazard, Memory, Proxy, Releases,
    Requirement, Scope, View,
};

const AGENTS: u32 = 4;
/// Agents 0 and 1 are in block 0, and agents 2 and 3 in block 1.
const PER_BLOCK: u32 = 2;
const BARRIERS: usize = 3;

/// A step of a random program.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// An agent accesses memory. Others may learn of this event.
    Access(u32),
    /// An agent releases to a barrier.
    Release(u32, usize),
    /// An agent acquires what was released to a barrier, at a scope.
    Acquire(u32, usize, Scope),
    /// A proxy fence.
    Fence(u32, FencedMemory),
}

fn step() -> impl Strategy<Value = Step> {
    let scope = prop_oneof![Just(Scope::Block), Just(Scope::Cluster)];
    let memory = prop_oneof![
        Just(FencedMemory::All),
        Just(FencedMemory::Shared(Scope::Block)),
        Just(FencedMemory::Global)
    ];
    prop_oneof![
        3 => (0..AGENTS).prop_map(Step::Access),
        2 => (0..AGENTS, 0..BARRIERS).prop_map(|(agent, barrier)| Step::Release(agent, barrier)),
        3 => (0..AGENTS, 0..BARRIERS, scope).prop_map(|(agent, barrier, scope)| Step::Acquire(agent, barrier, scope)),
        1 => (0..AGENTS, memory).prop_map(|(agent, memory)| Step::Fence(agent, memory)),
    ]
}

/// An event of the model, with its direct predecessors. Each predecessor has a flag: if it is
/// false, the edge conveys only that the predecessor is over, not its writes.
struct Event {
    agent: u32,
    fences: &'static [Memory],
    after: Vec<(usize, bool)>,
}

#[derive(Default)]
struct Model {
    events: Vec<Event>,
    /// The last event of each agent.
    last: [Option<usize>; AGENTS as usize],
    /// The releases to each barrier.
    released: [Vec<usize>; BARRIERS],
}

impl Model {
    fn add(&mut self, agent: u32, fences: &'static [Memory], mut after: Vec<(usize, bool)>) -> usize {
        after.extend(self.last[agent as usize].map(|last| (last, true)));
        self.events.push(Event { agent, fences, after });
        let event = self.events.len() - 1;
        self.last[agent as usize] = Some(event);
        event
    }

    /// Returns whether a path leads from one event to another. If `seen`, all edges of the path
    /// must convey writes.
    fn leads(&self, from: usize, to: usize, seen: bool) -> bool {
        let before = |&(event, edge): &(usize, bool)| (edge || !seen) && self.leads(from, event, seen);
        from == to || (from < to && self.events[to].after.iter().any(before))
    }

    /// Returns whether a path leads there through a fence of `memory`.
    fn leads_fenced(&self, from: usize, to: usize, memory: Memory, seen: bool) -> bool {
        (from..=to).any(|fence| {
            self.events[fence].fences.contains(&memory)
                && self.leads(from, fence, seen)
                && self.leads(fence, to, seen)
        })
    }
}

/// The state of the implementation under test.
struct Clocks {
    views: Vec<View>,
    released: [[Releases; 2]; BARRIERS],
    acquirer: Acquirer,
}

impl Clocks {
    fn new() -> Self {
        let views = (0..AGENTS).map(|agent| View::new(Component::new(agent), true)).collect();
        Self { views, released: Default::default(), acquirer: Acquirer::default() }
    }

    fn acquire(&mut self, agent: u32, barrier: usize, scope: Scope) {
        for (block, released) in (0..).zip(&mut self.released[barrier]) {
            let same_block = block == agent / PER_BLOCK || scope == Scope::Cluster;
            let acquired = if same_block { released.join() } else { released.join().to_other_block() };
            self.acquirer.acquire(&mut self.views[agent as usize], &acquired);
        }
    }
}

/// Runs a program on both, and after each step compares what each agent knows of each access.
fn compare(program: &[Step]) -> Result<(), TestCaseError> {
    let (mut model, mut clocks) = (Model::default(), Clocks::new());
    let mut accesses: Vec<(usize, Epoch)> = Vec::new();
    for &step in program {
        match step {
            Step::Access(agent) => {
                let event = model.add(agent, &[], Vec::new());
                accesses.push((event, clocks.views[agent as usize].epoch()));
            }
            Step::Release(agent, barrier) => {
                let event = model.add(agent, &[], Vec::new());
                model.released[barrier].push(event);
                let block = (agent / PER_BLOCK) as usize;
                clocks.released[barrier][block].release(&mut clocks.views[agent as usize]);
            }
            Step::Acquire(agent, barrier, scope) => {
                let seen = |event: usize| {
                    scope == Scope::Cluster || model.events[event].agent / PER_BLOCK == agent / PER_BLOCK
                };
                let after = model.released[barrier].iter().map(|&event| (event, seen(event))).collect();
                model.add(agent, &[], after);
                clocks.acquire(agent, barrier, scope);
            }
            Step::Fence(agent, memory) => {
                model.add(agent, memory.memories(), Vec::new());
                clocks.views[agent as usize].fence_async(memory.memories());
            }
        }
        for view in &clocks.views {
            let Some(now) = model.last[view.epoch().component().number() as usize] else { continue };
            for &(event, epoch) in &accesses {
                let known = [
                    view.follows(epoch),
                    view.knows_complete(epoch),
                    view.is_visible_to_async(epoch, Memory::Shared),
                    view.is_visible_to_async(epoch, Memory::Global),
                    view.has_fenced_read(epoch, Memory::Shared),
                    view.has_fenced_read(epoch, Memory::Global),
                ];
                let wanted = [
                    model.leads(event, now, true),
                    model.leads(event, now, false),
                    model.leads_fenced(event, now, Memory::Shared, true),
                    model.leads_fenced(event, now, Memory::Global, true),
                    model.leads_fenced(event, now, Memory::Shared, false),
                    model.leads_fenced(event, now, Memory::Global, false),
                ];
                prop_assert_eq!(known, wanted, "event {} in {:?}", event, view);
            }
        }
    }
    judge(&model, &clocks, &accesses)
}

/// Compares the hazards between each access and the current operation of each agent.
fn judge(model: &Model, clocks: &Clocks, accesses: &[(usize, Epoch)]) -> Result<(), TestCaseError> {
    let earlier = Access::weak(Proxy::Generic, AccessKind::Write);
    let later = Access::weak(Proxy::Async, AccessKind::Read);
    prop_assert_eq!(earlier.before(later), Requirement::VisibleAndFenced);
    for view in &clocks.views {
        let Some(now) = model.last[view.epoch().component().number() as usize] else { continue };
        for &(event, epoch) in accesses {
            let missing = earlier.before(later).missing(epoch, view, Memory::Shared);
            let wanted = if !model.leads(event, now, false) {
                Some(Hazard::Unordered)
            } else if !model.leads(event, now, true) {
                Some(Hazard::ScopeTooNarrow)
            } else if !model.leads_fenced(event, now, Memory::Shared, true) {
                Some(Hazard::NoProxyFence)
            } else {
                None
            };
            prop_assert_eq!(missing, wanted);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn clocks_match_reachability(program in prop::collection::vec(step(), 1..32)) {
        compare(&program)?;
    }
}

#[test]
fn many_releases_are_joined_into_one() {
    let mut releases = Releases::default();
    let mut views: Vec<_> = (0..100).map(|agent| View::new(Component::new(agent), true)).collect();
    let epochs: Vec<_> = views.iter().map(View::epoch).collect();
    views.iter_mut().for_each(|view| releases.release(view));
    let mut reader = View::new(Component::new(100), true);
    assert!(!reader.follows(epochs[50]));
    Acquirer::default().acquire(&mut reader, &releases.join());
    assert!(epochs.iter().all(|&epoch| reader.follows(epoch)));
    assert!(views.iter().all(|view| !reader.follows(view.epoch())), "what follows a release is a new step");
}

#[test]
fn an_inactive_view_acquires_and_releases_nothing() {
    let (mut one, mut other) = (View::new(Component::new(0), false), View::new(Component::new(1), false));
    let mut releases = Releases::default();
    releases.release(&mut one);
    Acquirer::default().acquire(&mut other, &releases.join());
    assert!(!other.follows(one.epoch()) && other.knows().is_empty());
}
