//! Groups of threads that are followed together, and how they are split.

use std::collections::BTreeMap;
use std::rc::Rc;

use tma_front::check::uniform::is_of_warp;
use tma_front::ir::{Kernel, StmtKind, Sync};
use tma_front::limits::{WARP_THREADS, WARPGROUP_THREADS};
use tma_front::quick::QuickMap;

use super::code::{Op, Steps};
use super::lanes::Lanes;
use super::run::{Run, StepResult, Stop};
use super::state::Agent;
use super::to_u32;

/// Returns the initial groups: warps, warpgroups or the whole block, depending on which threads
/// operate together.
pub(super) fn first(kernel: &Kernel, code: &Steps<'_>) -> Vec<Rc<[u32]>> {
    let threads = to_u32(kernel.launch.thread_count());
    let (mut of_warp, mut of_warpgroup) = (false, false);
    for step in code.steps() {
        let Op::Do(stmt) = &step.op else { continue };
        let is_apart = is_of_warp(&stmt.kind) && !code.slice.is_whole_warp(stmt.id);
        of_warp |= is_apart || matches!(stmt.kind, StmtKind::Sync(Sync::Warp) | StmtKind::Warp { .. });
        of_warpgroup |= matches!(
            stmt.kind,
            StmtKind::Sync(Sync::Warpgroup)
                | StmtKind::Mma(_)
                | StmtKind::MmaWait { .. }
                | StmtKind::StoreAccumulator { .. }
                | StmtKind::SetMaxRegisters { .. }
        );
    }
    let size = if of_warp {
        WARP_THREADS
    } else if of_warpgroup {
        WARPGROUP_THREADS
    } else {
        threads
    };
    let all: Vec<u32> = (0..threads).collect();
    all.chunks(size.max(1) as usize).map(Rc::from).collect()
}

/// Splits all groups by these classes of threads. Returns false if they were split already.
pub(super) fn refine(groups: &mut Vec<Rc<[u32]>>, classes: &[Vec<u32>]) -> bool {
    let before = groups.len();
    let mut class_of = QuickMap::default();
    for (index, class) in classes.iter().enumerate() {
        class.iter().for_each(|&thread| _ = class_of.entry(thread).or_insert(index));
    }
    let mut refined: Vec<Rc<[u32]>> = vec![];
    for group in groups.iter() {
        // Threads of no class come last.
        let mut parts: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for &thread in group.iter() {
            parts.entry(class_of.get(&thread).copied().unwrap_or(usize::MAX)).or_default().push(thread);
        }
        refined.extend(parts.into_values().map(Rc::from));
    }
    *groups = refined;
    groups.len() > before
}

impl Run<'_, '_> {
    /// Returns the value that all threads of the group share. Otherwise the group is split.
    pub(super) fn uniform<T: Copy + PartialEq>(&self, lanes: &Lanes<T>) -> StepResult<T> {
        lanes.uniform().ok_or_else(|| {
            self.notes_classes(lanes);
            self.split_alone(&lanes.classes())
        })
    }

    /// Records that the kernel distinguishes threads of the group by thread index. Returns whether
    /// it does.
    pub(super) fn notes_classes<T: Copy + PartialEq>(&self, lanes: &Lanes<T>) -> bool {
        let classes = lanes.classes();
        if !classes.is_empty() {
            self.findings.thread_classes.borrow_mut().push(self.threads_of(&classes));
        }
        !classes.is_empty()
    }

    /// Returns the threads of these classes of the group.
    fn threads_of(&self, classes: &[Vec<usize>]) -> Vec<Vec<u32>> {
        let threads = &self.agent().threads;
        classes.iter().map(|class| class.iter().map(|&lane| threads[lane]).collect()).collect()
    }

    /// Splits the group into these classes, and no other group. If numbers distinguish the threads
    /// of other groups, that shows when they get here.
    pub(super) fn split_alone(&self, classes: &[Vec<usize>]) -> Stop {
        Stop::Split { classes: self.threads_of(classes), alone: true }
    }

    /// Splits the group into these classes. Groups that look the same and are in the same loop are
    /// split likewise: warps that multiply elect a thread each, and would be split one after the
    /// other.
    pub(super) fn split(&self, classes: &[Vec<usize>]) -> Stop {
        let me = self.agent();
        let role = |agent: &Agent| self.input.code.step(agent.at).loops.first().copied();
        let is_warpgroup = me.threads.len() == WARPGROUP_THREADS as usize;
        let is_alike = |agent: &&Agent| {
            let mut both = me.threads.iter().zip(agent.threads.iter());
            let distance = agent.threads[0].abs_diff(me.threads[0]);
            agent.threads.len() == me.threads.len()
                && distance.is_multiple_of(WARP_THREADS)
                && both.all(|(a, b)| a.abs_diff(*b) == distance)
                && (distance == 0 || role(me) == role(agent) && (role(me).is_some() || is_warpgroup))
        };
        let alike: Vec<_> = self.state.agents.iter().filter(is_alike).map(|agent| &agent.threads).collect();
        let class = |class: &Vec<usize>| {
            let of = |threads: &&Rc<[u32]>| class.iter().map(|&lane| threads[lane]).collect::<Vec<_>>();
            alike.iter().flat_map(of).collect()
        };
        Stop::Split { classes: classes.iter().map(class).collect(), alone: false }
    }

    /// Splits the group into warps.
    pub(super) fn split_by_warp(&self) -> Stop {
        let (mut warps, mut first) = (vec![], 0);
        for warp in self.agent().threads.chunk_by(|a, b| a / WARP_THREADS == b / WARP_THREADS) {
            warps.push((first..first + warp.len()).collect());
            first += warp.len();
        }
        self.split(&warps)
    }

    /// Splits the group into threads.
    pub(super) fn split_all(&self) -> Stop {
        let classes = self.agent().threads.iter().map(|&thread| vec![thread]).collect();
        Stop::Split { classes, alone: false }
    }
}
