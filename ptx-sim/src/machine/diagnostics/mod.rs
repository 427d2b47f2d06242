//! From what the parts of a machine refuse or find in no order to findings that say why.

mod conflict;
mod deadlock;
mod global;
mod names;
mod outside;
mod overrun;

use std::sync::Arc;

use tma_model::sync::Epoch;

pub(super) use conflict::Act;
pub use names::SharedName;

use super::index::{BlockRank, Shape, ThreadId};
use super::types::{Action, Actor, MachineConfig, Site};
use crate::report::{Finding, Findings, Party, Stop};

/// What keeps a block's shared memory for the others.
pub(super) const STAY: &str = "let no block end before the others are done with it: [[`sync_cluster()`||`barrier.cluster.arrive` and `.wait`]] at the end";

/// Where a block's shared memory begins.
pub(super) const RESERVED: &str = "the system keeps the first 1024 bytes of each block's shared memory: take addresses from variables, by `mov` or `cvta`, instead of counting from 0";

/// What a cluster's run has found, and what it takes to say it.
#[derive(Debug)]
pub(super) struct Diagnostics {
    findings: Findings,
    /// What is no mistake for certain.
    notes: Findings,
    shape: Shape,
    /// Index in the grid of each block, by rank.
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
            blocks: config.blocks.clone(),
            names: Arc::clone(&config.names),
            lines: Arc::clone(&config.lines),
        }
    }

    /// Records a finding.
    pub(super) fn report(&mut self, finding: Finding) {
        self.findings.add(finding);
    }

    /// Records what is no mistake for certain.
    pub(super) fn note(&mut self, note: Finding) {
        self.notes.add(note);
    }

    /// Records the finding for which the kernel cannot go on.
    pub(super) fn stop(&mut self, finding: Finding) -> Stop {
        self.findings.stop(finding)
    }

    /// Records that `invariant` does not hold where `action` is done.
    #[cold]
    pub(super) fn bug(&mut self, action: Action, invariant: &str) -> Stop {
        let party = self.party(action);
        self.stop(Finding::internal(invariant).with(party))
    }

    /// How many findings there are, like ones counted once.
    pub(super) fn len(&self) -> usize {
        self.findings.len()
    }

    /// What was noted.
    pub(super) fn take_notes(&mut self) -> Findings {
        std::mem::take(&mut self.notes)
    }

    /// All that was found.
    pub(super) fn finish(self) -> Findings {
        self.findings
    }

    /// Index in the grid of a block.
    pub(super) fn block(&self, rank: BlockRank) -> [u32; 3] {
        self.blocks.get(rank.index()).copied().unwrap_or_default()
    }

    /// A thread as a finding names it.
    pub(super) fn party(&self, action: Action) -> Party {
        let Action { who, site, does } = action;
        Party { block: self.block(who.block), who, site, does }
    }

    /// The thread whose step it is, if it is one's, at a PTX line.
    pub(super) fn actor(&self, step: Epoch, ptx_line: u32) -> Option<Actor> {
        self.shape.thread(step).map(|who| self.actor_at(who, ptx_line))
    }

    /// A thread at a PTX line, with what `.loc` says of it.
    pub(super) fn actor_at(&self, who: ThreadId, ptx_line: u32) -> Actor {
        let source = self.lines.get(ptx_line as usize).copied().flatten();
        Actor { who, site: Site { ptx_line, source } }
    }
}
