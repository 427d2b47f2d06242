//! The instructions that have probes.

use tma_model::span::{SpanEdge, SpanMark};

use crate::text::Source;

/// An instruction with a probe, or a mark.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The kind of instruction.
    pub kind: SiteKind,
    /// Its line in the PTX before the probes were added, counted from 1.
    pub ptx_line: u32,
    /// Its text.
    pub instruction: String,
    /// The line of the kernel that it comes from.
    pub source: Option<Source>,
}

/// The kind of a [`Site`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteKind {
    /// It may wait. Its record is an interval.
    Wait(Awaited),
    /// It issues a copy.
    Copy(Direction),
    /// It closes a group of copies from shared memory (`cp.async.bulk.commit_group`).
    CommitCopies,
    /// It closes a group of multiplications (`wgmma.commit_group`).
    CommitMultiplications,
    /// It marks an end of a span that the kernel names (`trace_span!`).
    Span(SpanEdge),
}

impl Site {
    /// Returns the name of the span that it marks.
    pub fn span(&self) -> Option<&str> {
        SpanMark::in_line(&self.instruction).map(|mark| mark.name)
    }
}

/// The subject of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A phase of an mbarrier. The record has its address.
    Mbarrier,
    /// A barrier of the block. The record has its number.
    Barrier,
    /// The cluster's barrier.
    Cluster,
    /// A value in global memory, polled in a loop.
    Memory,
    /// All groups of copies but the last `pending`, or with `read` until they have been read.
    BulkGroups {
        /// The number of groups that may be incomplete.
        pending: u32,
        /// Whether it suffices that the sources have been read.
        read: bool,
    },
    /// All groups of multiplications but the last.
    MultiplyGroups(u32),
    /// Registers for the warpgroup (`setmaxnreg.inc`).
    Registers,
    /// The previous grids (`griddepcontrol.wait`).
    Grids,
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From global to shared memory. The record has the address of the mbarrier that counts it.
    Load,
    /// From shared to global memory. The record has the source's address.
    Store,
    /// The same, combined with what is there.
    Reduction,
    /// To the shared memory of another block. The record has the address of the mbarrier.
    BetweenBlocks,
    /// From global memory into the L2 cache.
    Prefetch,
}

/// Returns the kind of an instruction, and the operand that its record has.
///
/// `instruction` is without a predicate and the semicolon. The opcodes are those of the PTX ISA's
/// chapter "Parallel Synchronization and Communication Instructions", and of its sections on
/// asynchronous copies and `wgmma`.
pub(crate) fn classify(instruction: &str) -> Option<(SiteKind, Option<&str>)> {
    let (opcode, operands) = instruction.split_once([' ', '\t']).unwrap_or((instruction, ""));
    let number = || operands.trim().parse::<u32>().ok();
    let wait = |awaited| Some((SiteKind::Wait(awaited), None));
    if opcode.starts_with("mbarrier.try_wait") {
        Some((SiteKind::Wait(Awaited::Mbarrier), bracket(operands, 0)))
    } else if opcode.starts_with("ld.acquire.gpu.global") || opcode.starts_with("ld.acquire.sys.global") {
        wait(Awaited::Memory)
    } else if opcode.starts_with("barrier.cluster.wait") {
        wait(Awaited::Cluster)
    } else if opcode.starts_with("barrier.sync") || opcode.starts_with("bar.sync") {
        Some((SiteKind::Wait(Awaited::Barrier), operands.split(',').next().map(str::trim)))
    } else if opcode.starts_with("cp.async.bulk.wait_group") {
        let (pending, read) = (number()?, opcode.ends_with(".read"));
        wait(Awaited::BulkGroups { pending, read })
    } else if opcode.starts_with("wgmma.wait_group") {
        wait(Awaited::MultiplyGroups(number()?))
    } else if opcode.starts_with("setmaxnreg.inc") {
        wait(Awaited::Registers)
    } else if opcode == "griddepcontrol.wait" {
        wait(Awaited::Grids)
    } else if opcode.starts_with("cp.async.bulk.commit_group") {
        Some((SiteKind::CommitCopies, None))
    } else if opcode.starts_with("wgmma.commit_group") {
        Some((SiteKind::CommitMultiplications, None))
    } else if opcode.starts_with("cp.async.bulk.prefetch") {
        Some((SiteKind::Copy(Direction::Prefetch), None))
    } else if opcode.starts_with("cp.reduce.async.bulk") {
        if opcode.contains(".shared::cluster") {
            return Some((SiteKind::Copy(Direction::BetweenBlocks), bracket(operands, 2)));
        }
        Some((SiteKind::Copy(Direction::Reduction), bracket(operands, 1)))
    } else if opcode.starts_with("cp.async.bulk") {
        if opcode.contains(".global.shared::cta") {
            Some((SiteKind::Copy(Direction::Store), bracket(operands, 1)))
        } else if opcode.contains(".shared::cluster.shared::cta") {
            Some((SiteKind::Copy(Direction::BetweenBlocks), bracket(operands, 2)))
        } else {
            Some((SiteKind::Copy(Direction::Load), bracket(operands, 2)))
        }
    } else {
        None
    }
}

/// Returns the text in the bracket of this number, counted from 0.
fn bracket(operands: &str, number: usize) -> Option<&str> {
    let text = operands.split('[').nth(number + 1)?;
    Some(text.split_once(']')?.0.trim())
}

/// Returns the instruction that loads an operand into `register`: a register, a number or an
/// address, either with an offset or without.
pub(crate) fn load_operand(register: &str, operand: &str) -> String {
    match operand.split_once('+') {
        Some((base, offset)) if base.starts_with('%') => {
            format!("\tadd.s32 \t{register}, {base}, {offset};\n")
        }
        _ => format!("\tmov.b32 \t{register}, {operand};\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_the_compiler_have_kinds_and_operands() {
        use SiteKind::{CommitCopies, CommitMultiplications, Copy, Wait};
        let group = |pending, read| Wait(Awaited::BulkGroups { pending, read });
        for (instruction, kind, operand) in [
            (
                "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [%r94], %r95",
                Wait(Awaited::Mbarrier),
                Some("%r94"),
            ),
            ("barrier.sync.aligned 0", Wait(Awaited::Barrier), Some("0")),
            ("barrier.sync %r260, %r261", Wait(Awaited::Barrier), Some("%r260")),
            ("barrier.cluster.wait.acquire.aligned", Wait(Awaited::Cluster), None),
            ("cp.async.bulk.wait_group.read 1", group(1, true), None),
            ("cp.async.bulk.wait_group 0", group(0, false), None),
            ("wgmma.wait_group.sync.aligned 1", Wait(Awaited::MultiplyGroups(1)), None),
            ("setmaxnreg.inc.sync.aligned.u32 232", Wait(Awaited::Registers), None),
            ("griddepcontrol.wait", Wait(Awaited::Grids), None),
            ("ld.acquire.gpu.global.u32 %now, [%rd1]", Wait(Awaited::Memory), None),
            ("cp.async.bulk.commit_group", CommitCopies, None),
            ("wgmma.commit_group.sync.aligned", CommitMultiplications, None),
            (
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster \
                 [%r1], [%rd2, {%r3, %r4}], [%r5], %rs6",
                Copy(Direction::Load),
                Some("%r5"),
            ),
            (
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2], %r3, [%r4+8]",
                Copy(Direction::Load),
                Some("%r4+8"),
            ),
            (
                "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], %r3, [%r4]",
                Copy(Direction::BetweenBlocks),
                Some("%r4"),
            ),
            (
                "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r11, %r10}], [%r56]",
                Copy(Direction::Store),
                Some("%r56"),
            ),
            (
                "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd1, {%r1, %r2}], [%r3]",
                Copy(Direction::Reduction),
                Some("%r3"),
            ),
            (
                "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%rd1, {%r1}]",
                Copy(Direction::Prefetch),
                None,
            ),
        ] {
            assert_eq!(classify(instruction), Some((kind, operand)), "{instruction}");
        }
        for other in [
            "add.s32 %r1, %r2, %r3",
            "mbarrier.arrive.shared::cta.b64 _, [%r57]",
            "griddepcontrol.launch_dependents",
            "ret",
        ] {
            assert_eq!(classify(other), None, "{other}");
        }
    }
}
