//! Findings, built from the errors and races that the components of a machine detect.

mod conflict;
mod deadlock;
mod global;
mod names;
mod outside;
mod overrun;

use std::sync::Arc;

use tma_model::sync::Epoch;

pub(super) use conflict::LaterAccess;
pub use names::SharedName;

use super::global::TeamLayout;
use super::index::{BlockRank, Shape, ThreadId};
use super::types::{Action, Actor, MachineConfig, Site};
use crate::report::{Finding, Findings, Party, Stop};

/// The help for addresses in the reserved part of shared memory.
pub(super) const RESERVED: &str = "take addresses from variables, with `mov` or `cvta`, instead of counting \
    from 0: the first 1024 bytes of each block's shared memory are reserved for the system";

/// The findings of a cluster, and the data needed to describe them.
#[derive(Debug)]
pub(super) struct Diagnostics {
    findings: Findings,
    /// Observations that need not be mistakes.
    notes: Findings,
    shape: Shape,
    /// The rank of the device, if a team runs the kernel.
    rank: Option<u32>,
    /// Index in the grid of each block, by rank in the cluster.
    blocks: Vec<[u32; 3]>,
    names: Arc<[SharedName]>,
    /// `.loc` of each PTX line.
    lines: Arc<[Option<(u32, u32)>]>,
}

impl Diagnostics {
    pub(super) fn new(shape: Shape, config: &MachineConfig) -> Self {
        Self {
            findings: Findings::default(),
            notes: Findings::default(),
            shape,
            rank: TeamLayout::new(config).rank(config.cluster),
            blocks: config.blocks.clone(),
            names: Arc::clone(&config.names),
            lines: Arc::clone(&config.lines),
        }
    }

    /// Records a finding.
    pub(super) fn report(&mut self, finding: Finding) {
        self.findings.add(finding);
    }

    /// Records an observation that need not be a mistake.
    pub(super) fn note(&mut self, note: Finding) {
        self.notes.add(note);
    }

    /// Records the finding that stops the cluster.
    pub(super) fn stop(&mut self, finding: Finding) -> Stop {
        self.findings.stop(finding)
    }

    /// Records that `invariant` is violated at `action`, a bug of the simulator.
    #[cold]
    pub(super) fn bug(&mut self, action: Action, invariant: &str) -> Stop {
        let party = self.party(action);
        self.stop(Finding::internal(invariant).with(party))
    }

    /// Returns the number of findings, counting equal ones once.
    pub(super) fn len(&self) -> usize {
        self.findings.len()
    }

    /// Takes the notes.
    pub(super) fn take_notes(&mut self) -> Findings {
        std::mem::take(&mut self.notes)
    }

    /// Returns all findings.
    pub(super) fn finish(self) -> Findings {
        self.findings
    }

    /// Returns the rank of the device, if a team runs the kernel.
    pub(super) fn rank(&self) -> Option<u32> {
        self.rank
    }

    /// Returns the index in the grid of a block.
    pub(super) fn block(&self, rank: BlockRank) -> [u32; 3] {
        self.blocks.get(rank.index()).copied().unwrap_or_default()
    }

    /// Returns a thread in the form in which findings refer to it.
    pub(super) fn party(&self, action: Action) -> Party {
        let Action { thread, site, does } = action;
        Party { rank: self.rank, block: self.block(thread.block), thread, site, does }
    }

    /// Returns the thread that took a step, at a PTX line. `None` if the step does not belong to a
    /// thread.
    pub(super) fn actor(&self, step: Epoch, ptx_line: u32) -> Option<Actor> {
        self.shape.thread(step).map(|thread| self.actor_at(thread, ptx_line))
    }

    /// Returns a thread at a PTX line, with the source line from `.loc`.
    pub(super) fn actor_at(&self, thread: ThreadId, ptx_line: u32) -> Actor {
        let source = self.lines.get(ptx_line as usize).copied().flatten();
        Actor { thread, site: Site { ptx_line, source } }
    }
}
