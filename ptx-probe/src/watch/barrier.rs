//! Barriers of the block and of the cluster as counters in shared memory.

use std::fmt::Write as _;

use super::{BEGIN, BLOCK_BARRIERS, Limits, again};
use crate::body::{Instruction, Line};

/// The threads that an instruction at a barrier acts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acts {
    /// All of the warp: PTX's `.aligned`.
    ForWarp,
    ForThread,
}

impl Acts {
    fn of(instruction: &str) -> Self {
        let opcode = instruction.split([' ', '\t']).next().unwrap_or_default();
        if opcode.ends_with(".aligned") { Self::ForWarp } else { Self::ForThread }
    }

    /// Returns the instructions before the lanes are counted or poll. Lanes for which another one
    /// acts go on at the label `over`.
    fn begin(self, over: u32) -> String {
        match self {
            Self::ForWarp => format!("{SYNC_WARP}\t@!%watch_leads bra \twatch_{over};\n"),
            Self::ForThread => String::new(),
        }
    }

    /// Returns the number of threads that arrive.
    fn count(self) -> &'static str {
        match self {
            Self::ForWarp => "%watch_lanes",
            Self::ForThread => "1",
        }
    }

    /// Returns the instructions of each iteration of a polling loop: other lanes of the warp may still
    /// have to run and arrive.
    fn pause(self) -> &'static str {
        match self {
            Self::ForWarp => "",
            Self::ForThread => "\tnanosleep.u32 \t64;\n",
        }
    }

    /// Returns the instructions after a wait.
    fn end(self) -> &'static str {
        match self {
            Self::ForWarp => SYNC_WARP,
            Self::ForThread => "",
        }
    }
}

const SYNC_WARP: &str = "\tbar.warp.sync \t-1;\n";

/// Declares the registers of a barrier that is a counter.
const REGISTERS: &str = "\t.reg .b32 \t%watch_at, %watch_target, %watch_seen, %watch_round;\n";

impl Limits {
    /// Returns the limit at barriers, in nanoseconds. It is a little longer: who waits there usually
    /// waits for a thread that waits elsewhere, which should report first if it is of the same warp.
    fn barrier_budget(&self) -> u64 {
        self.budget + self.budget / 20
    }

    /// Replaces `barrier.arrive`.
    pub(super) fn arrive(&mut self, out: &mut String, instruction: &str) {
        let (number, threads) = barrier_operands(instruction);
        let over = self.label();
        let acts = Acts::of(instruction);
        self.arrive_at(out, acts, number, threads.unwrap_or("%watch_threads"), over);
        _ = write!(out, "watch_{over}:\n\t}}\n");
    }

    /// Opens a block of code, and writes an arrival at a barrier of the block. The thread that
    /// completes the round goes on at the label `over`.
    fn arrive_at(&mut self, out: &mut String, acts: Acts, number: &str, threads: &str, over: u32) {
        let wait = self.label();
        let (begin, count) = (acts.begin(over), acts.count());
        _ = write!(
            out,
            "\t{{\n{REGISTERS}{begin}\tmov.b32 \t%watch_at, {number};
\tshl.b32 \t%watch_at, %watch_at, 3;
\tadd.s32 \t%watch_at, %watch_at, %watch_counters;
\tmov.b32 \t%watch_target, {threads};
\tld.relaxed.cta.shared::cta.u32 \t%watch_round, [%watch_at+4];
\tatom.acq_rel.cta.shared::cta.add.u32 \t%watch_seen, [%watch_at], {count};
\tadd.s32 \t%watch_seen, %watch_seen, {count};
\tsetp.ne.s32 \t%watch_more, %watch_seen, %watch_target;
\t@%watch_more bra \twatch_{wait};
\tmov.b32 \t%watch_seen, 0;
\tst.relaxed.cta.shared::cta.u32 \t[%watch_at], %watch_seen;
\tred.release.cta.shared::cta.add.u32 \t[%watch_at+4], 1;
\tbra \twatch_{over};
watch_{wait}:
"
        );
    }

    /// Replaces `barrier.sync`.
    pub(super) fn wait_at_barrier(&mut self, out: &mut String, line: Line<'_>, waits: Instruction<'_>) {
        let site = self.site(line, waits);
        let (number, threads) = barrier_operands(waits.text);
        let (over, poll) = (self.label(), self.label());
        let acts = Acts::of(waits.text);
        self.arrive_at(out, acts, number, threads.unwrap_or("%watch_threads"), over);
        _ = write!(
            out,
            "{BEGIN}watch_{poll}:
{}\tld.acquire.cta.shared::cta.u32 \t%watch_seen, [%watch_at+4];
\tsetp.ne.s32 \t%watch_more, %watch_seen, %watch_round;
\t@%watch_more bra \twatch_{over};
{}\tld.relaxed.cta.shared::cta.u32 \t%watch_seen, [%watch_at];
\tsub.s32 \t%watch_phase, %watch_target, %watch_seen;
\tmov.b32 \t%watch_site, {site};
\tmov.b32 \t%watch_operand, {number};
\tbra \twatch_report;
watch_{over}:
{}\t}}
",
            acts.pause(),
            again(&format!("watch_{poll}"), self.barrier_budget()),
            acts.end(),
        );
    }

    /// Replaces `barrier.cluster.arrive`: counts in the cluster's first block. The thread that
    /// completes the round tells every block, so that each polls memory of its own and may end when
    /// it has been told.
    pub(super) fn arrive_at_cluster(&mut self, out: &mut String, instruction: &str) {
        let (each, over) = (self.label(), self.label());
        let (acts, offset) = (Acts::of(instruction), 8 * BLOCK_BARRIERS);
        let (begin, count) = (acts.begin(over), acts.count());
        _ = write!(
            out,
            "\t{{\n{REGISTERS}\t.reg .b32 \t%watch_rank;
{begin}\tadd.s32 \t%watch_at, %watch_counters, {offset};
\tmapa.shared::cluster.u32 \t%watch_round, %watch_at, 0;
\tatom.acq_rel.cluster.shared::cluster.add.u32 \t%watch_seen, [%watch_round], {count};
\tadd.s32 \t%watch_seen, %watch_seen, {count};
\tmov.u32 \t%watch_rank, %cluster_nctarank;
\tmul.lo.s32 \t%watch_target, %watch_rank, %watch_threads;
\tsetp.ne.s32 \t%watch_more, %watch_seen, %watch_target;
\t@%watch_more bra \twatch_{over};
\tmov.b32 \t%watch_seen, 0;
\tst.relaxed.cluster.shared::cluster.u32 \t[%watch_round], %watch_seen;
\tadd.s32 \t%watch_at, %watch_at, 4;
watch_{each}:
\tadd.s32 \t%watch_rank, %watch_rank, -1;
\tmapa.shared::cluster.u32 \t%watch_round, %watch_at, %watch_rank;
\tred.release.cluster.shared::cluster.add.u32 \t[%watch_round], 1;
\tsetp.gt.s32 \t%watch_more, %watch_rank, 0;
\t@%watch_more bra \twatch_{each};
watch_{over}:
\t}}
"
        );
    }

    /// Replaces `barrier.cluster.wait`.
    pub(super) fn wait_at_cluster(&mut self, out: &mut String, line: Line<'_>, waits: Instruction<'_>) {
        let site = self.site(line, waits);
        let (over, poll, offset) = (self.label(), self.label(), 8 * BLOCK_BARRIERS + 4);
        let acts = Acts::of(waits.text);
        _ = write!(
            out,
            "\t{{\n{REGISTERS}\tadd.s32 \t%watch_at, %watch_counters, {offset};
\tadd.s32 \t%watch_cluster, %watch_cluster, 1;
{}{BEGIN}watch_{poll}:
{}\tld.acquire.cluster.shared::cta.u32 \t%watch_seen, [%watch_at];
\tsub.s32 \t%watch_seen, %watch_seen, %watch_cluster;
\tsetp.ge.s32 \t%watch_more, %watch_seen, 0;
\t@%watch_more bra \twatch_{over};
{}\tmov.b32 \t%watch_site, {site};
\tmov.b32 \t%watch_operand, 0;
\tmov.b32 \t%watch_phase, 0;
\tbra \twatch_report;
watch_{over}:
{}\t}}
",
            acts.begin(over),
            acts.pause(),
            again(&format!("watch_{poll}"), self.barrier_budget()),
            acts.end(),
        );
    }
}

/// Returns the number of a barrier of the block and the number of threads, if it is given.
fn barrier_operands(instruction: &str) -> (&str, Option<&str>) {
    let operands = instruction.split_once([' ', '\t']).map_or("", |(_, operands)| operands);
    match operands.split_once(',') {
        Some((number, threads)) => (number.trim(), Some(threads.trim())),
        None => (operands.trim(), None),
    }
}
