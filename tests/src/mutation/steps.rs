//! Mutants of a PTX text: each changes one instruction that synchronises.

use std::fmt;

use super::line::Instruction;

/// A change to an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Removes a `bar.sync`, `barrier.sync` or `barrier.arrive`.
    SyncRemoved,
    /// Removes a `bar.warp.sync`.
    WarpSyncRemoved,
    /// Removes a `barrier.cluster.arrive`.
    ClusterArriveRemoved,
    /// Removes a `barrier.cluster.wait`.
    ClusterWaitRemoved,
    /// Makes an arrival at a cluster's barrier no longer release earlier accesses.
    ClusterArriveRelaxed,
    /// Removes a `fence.mbarrier_init`.
    InitFenceRemoved,
    /// Removes any other fence.
    FenceRemoved,
    /// Removes the initialisation of an mbarrier.
    InitRemoved,
    /// Initialises an mbarrier for one arrival more.
    CountRaised,
    /// Initialises an mbarrier for one arrival fewer.
    CountLowered,
    /// Removes the invalidation of an mbarrier.
    InvalRemoved,
    /// Removes an arrival.
    ArriveRemoved,
    /// Duplicates an arrival.
    ArriveTwice,
    /// Removes an `expect_tx`. If it is part of an arrival, the arrival stays.
    ExpectRemoved,
    /// Expects 16 bytes more.
    BytesRaised,
    /// Expects 16 bytes fewer.
    BytesLowered,
    /// Makes an arrival, a wait, an access or a fence order only the threads of its block.
    ScopeNarrowed,
    /// Makes an access that acquires, releases or does both order nothing.
    OrderDropped,
    /// Removes order and scope from an access.
    MadePlain,
    /// Removes a wait for a phase: it counts as over at once.
    WaitRemoved,
    /// Tries a wait for a phase once, and ignores the result.
    TriedOnce,
    /// Waits for the phase of the other parity.
    PhaseFlipped,
    /// Does not commit asynchronous operations to a group.
    CommitRemoved,
    /// Removes a wait for groups.
    GroupWaitRemoved,
    /// Allows one more group to be pending.
    PendingRaised,
    /// Weakens a wait for groups to complete to one for their sources to be read.
    OnlyRead,
    /// Removes a `wgmma.fence`.
    RegisterFenceRemoved,
    /// Removes a `setmaxnreg`.
    RegistersRemoved,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SyncRemoved => "sync removed",
            Self::WarpSyncRemoved => "warp sync removed",
            Self::ClusterArriveRemoved => "cluster arrive removed",
            Self::ClusterWaitRemoved => "cluster wait removed",
            Self::ClusterArriveRelaxed => "cluster arrive relaxed",
            Self::InitFenceRemoved => "init fence removed",
            Self::FenceRemoved => "fence removed",
            Self::InitRemoved => "init removed",
            Self::CountRaised => "arrival count + 1",
            Self::CountLowered => "arrival count - 1",
            Self::InvalRemoved => "inval removed",
            Self::ArriveRemoved => "arrive removed",
            Self::ArriveTwice => "arrive twice",
            Self::ExpectRemoved => "expect_tx removed",
            Self::BytesRaised => "expect_tx + 16",
            Self::BytesLowered => "expect_tx - 16",
            Self::ScopeNarrowed => "scope narrowed",
            Self::OrderDropped => "order dropped",
            Self::MadePlain => "made plain",
            Self::WaitRemoved => "wait removed",
            Self::TriedOnce => "try_wait tried once",
            Self::PhaseFlipped => "phase flipped",
            Self::CommitRemoved => "commit removed",
            Self::GroupWaitRemoved => "wait_group removed",
            Self::PendingRaised => "wait_group N + 1",
            Self::OnlyRead => "wait_group only for reads",
            Self::RegisterFenceRemoved => "wgmma.fence removed",
            Self::RegistersRemoved => "setmaxnreg removed",
        })
    }
}

/// A text in which one instruction is changed. The lines keep their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The line, from 1.
    pub line: usize,
    /// The change to the instruction.
    pub change: Change,
    /// The whole text.
    pub ptx: String,
}

/// Returns every mutant of a text; none if nothing in it synchronises.
pub fn mutants(ptx: &str) -> Vec<Mutant> {
    let lines: Vec<_> = ptx.lines().collect();
    let mut all = vec![];
    for (index, line) in lines.iter().enumerate() {
        let Some(instruction) = Instruction::parse(line) else { continue };
        if stops(&lines, index) {
            continue;
        }
        let next = lines[index + 1..].iter().find(|line| !line.trim().is_empty());
        let mut changes = changes(&instruction);
        changes.extend(tried_once(&instruction, next.and_then(|next| Instruction::parse(next)).as_ref()));
        for (change, text) in changes {
            let mut changed = lines.clone();
            changed[index] = &text;
            all.push(Mutant { line: index + 1, change, ptx: changed.join("\n") + "\n" });
        }
    }
    all
}

/// Returns whether a kernel only stops around this line: nothing depends on the fence before a
/// trap, and no thread reaches the wait after it.
fn stops(lines: &[&str], index: usize) -> bool {
    let around = index.checked_sub(1).into_iter().chain([index + 1]);
    around.filter_map(|index| lines.get(index)).any(|line| line.contains("trap;"))
}

/// Returns the changes that apply to an instruction, with the resulting text.
fn changes(of: &Instruction<'_>) -> Vec<(Change, String)> {
    use Change as C;
    let removed = |change| vec![(change, String::new())];
    if of.is("bar.warp") {
        return removed(C::WarpSyncRemoved);
    }
    if of.is("barrier.cluster.wait") {
        return removed(C::ClusterWaitRemoved);
    }
    if of.is("barrier.cluster.arrive") {
        let mut changes = removed(C::ClusterArriveRemoved);
        if !of.has("relaxed") {
            let opcode = of.opcode.replace(".release", "").replace(".arrive", ".arrive.relaxed");
            changes.push((C::ClusterArriveRelaxed, Instruction { opcode: &opcode, ..of.clone() }.text()));
        }
        return changes;
    }
    if of.is("bar") || of.is("barrier") {
        return removed(C::SyncRemoved);
    }
    if of.is("fence.mbarrier_init") {
        return removed(C::InitFenceRemoved);
    }
    if of.is("fence") || of.is("membar") {
        let mut changes = removed(C::FenceRemoved);
        changes.extend(narrowed(of));
        return changes;
    }
    if of.is("ld") || of.is("st") || of.is("atom") || of.is("red") {
        return weakened(of);
    }
    if of.is("mbarrier.init") {
        let mut changes = removed(C::InitRemoved);
        changes.extend(with_last(of, "add.u32", 1).map(|text| (C::CountRaised, text)));
        changes.extend(with_last(of, "sub.u32", 1).map(|text| (C::CountLowered, text)));
        return changes;
    }
    if of.is("mbarrier.inval") {
        return removed(C::InvalRemoved);
    }
    if of.is("mbarrier.arrive") || of.is("mbarrier.arrive_drop") {
        let mut changes = removed(C::ArriveRemoved);
        changes.push((C::ArriveTwice, format!("{0} {0}", of.text())));
        if of.has("expect_tx") {
            changes.push((C::ExpectRemoved, without_bytes(of)));
            changes.extend(bytes(of));
        }
        changes.extend(narrowed(of));
        return changes;
    }
    if of.is("mbarrier.expect_tx") {
        let mut changes = removed(C::ExpectRemoved);
        changes.extend(bytes(of));
        return changes;
    }
    if of.is("mbarrier.try_wait") || of.is("mbarrier.test_wait") {
        let over = of.operands.first().map(|done| format!("{} setp.eq.u32 {done}, 0, 0;", of.guard));
        let mut changes: Vec<_> = over.map(|text| (C::WaitRemoved, text)).into_iter().collect();
        if of.has("parity") {
            // The parity comes after the address; a time limit may follow.
            changes.extend(with_operand(of, 2, "xor.b32", 1).map(|text| (C::PhaseFlipped, text)));
        }
        changes.extend(narrowed(of));
        return changes;
    }
    if of.is("wgmma.fence") {
        return removed(C::RegisterFenceRemoved);
    }
    if of.is("setmaxnreg") {
        return removed(C::RegistersRemoved);
    }
    if of.is("cp.async.commit_group") || of.is("cp.async.bulk.commit_group") || of.is("wgmma.commit_group") {
        return removed(C::CommitRemoved);
    }
    if of.is("cp.async.wait_all") {
        return removed(C::GroupWaitRemoved);
    }
    if of.is("cp.async.mbarrier.arrive") {
        return removed(C::ArriveRemoved);
    }
    if of.is("cp.async.wait_group") || of.is("cp.async.bulk.wait_group") || of.is("wgmma.wait_group") {
        let mut changes = removed(C::GroupWaitRemoved);
        if let Some(pending) = of.operands.first().and_then(|pending| pending.parse::<u32>().ok()) {
            let more = (pending + 1).to_string();
            changes.push((C::PendingRaised, Instruction { operands: vec![&more], ..of.clone() }.text()));
        }
        if of.is("cp.async.bulk.wait_group") && !of.has("read") {
            let opcode = format!("{}.read", of.opcode);
            changes.push((C::OnlyRead, Instruction { opcode: &opcode, ..of.clone() }.text()));
        }
        return changes;
    }
    vec![]
}

/// Makes a loop that waits, `again: try_wait done, ..; @!done bra again;`, end after one try.
fn tried_once(of: &Instruction<'_>, next: Option<&Instruction<'_>>) -> Option<(Change, String)> {
    let waits = of.is("mbarrier.try_wait") || of.is("mbarrier.test_wait");
    let done = of.operands.first()?;
    let repeats = |next: &&Instruction<'_>| next.is("bra") && next.guard == format!("@!{done}");
    // The branch stays but is never taken, so that line numbers do not change.
    next.filter(repeats).filter(|_| waits)?;
    Some((Change::TriedOnce, format!("{} setp.eq.u32 {done}, 0, 0;", of.text())))
}

/// Narrows an operation that orders threads of the cluster, device or system to those of its block.
fn narrowed(of: &Instruction<'_>) -> Option<(Change, String)> {
    let opcode = [".cluster", ".gpu", ".sys"].into_iter().find_map(|scope| {
        ORDERS.into_iter().find_map(|order| replaced(of, &format!("{order}{scope}"), &format!("{order}.cta")))
    })?;
    Some((Change::ScopeNarrowed, Instruction { opcode: &opcode, ..of.clone() }.text()))
}

/// The orders of accesses and fences, in the form before a scope.
const ORDERS: [&str; 4] = [".relaxed", ".acquire", ".release", ".acq_rel"];

/// Returns the opcode with some of its modifiers replaced by others, if it has them.
fn replaced(of: &Instruction<'_>, modifiers: &str, by: &str) -> Option<String> {
    let (before, after) = of.opcode.split_once(modifiers)?;
    (after.is_empty() || after.starts_with('.')).then(|| format!("{before}{by}{after}"))
}

/// Returns an access with an order and a scope in weaker forms: with a narrower scope, without the
/// order, and without both.
fn weakened(of: &Instruction<'_>) -> Vec<(Change, String)> {
    let Some(order) = ORDERS.into_iter().find(|order| of.has(&order[1..])) else { return vec![] };
    let dropped = replaced(of, order, ".relaxed").filter(|_| order != ".relaxed");
    let is_plain = of.is("ld") || of.is("st");
    let plain = [".cta", ".cluster", ".gpu", ".sys"]
        .into_iter()
        .find_map(|scope| replaced(of, &format!("{order}{scope}"), ""))
        .filter(|_| is_plain);
    let with = |change, opcode: String| (change, Instruction { opcode: &opcode, ..of.clone() }.text());
    narrowed(of)
        .into_iter()
        .chain(dropped.map(|opcode| with(Change::OrderDropped, opcode)))
        .chain(plain.map(|opcode| with(Change::MadePlain, opcode)))
        .collect()
}

fn bytes(of: &Instruction<'_>) -> Vec<(Change, String)> {
    let more = with_last(of, "add.u32", 16).map(|text| (Change::BytesRaised, text));
    let fewer = with_last(of, "sub.u32", 16).map(|text| (Change::BytesLowered, text));
    more.into_iter().chain(fewer).collect()
}

/// Returns `mbarrier.arrive.expect_tx` as a plain arrival.
fn without_bytes(of: &Instruction<'_>) -> String {
    let opcode = of.opcode.replace(".expect_tx", "");
    let operands = of.operands[..of.operands.len().saturating_sub(1)].to_vec();
    Instruction { guard: of.guard, opcode: &opcode, operands }.text()
}

/// Returns the instruction with its last operand changed by `operation` and `by`.
fn with_last(of: &Instruction<'_>, operation: &str, by: u32) -> Option<String> {
    with_operand(of, of.operands.len().checked_sub(1)?, operation, by)
}

/// Returns the instruction with an operand changed by `operation` and `by`, in a separate register.
fn with_operand(of: &Instruction<'_>, at: usize, operation: &str, by: u32) -> Option<String> {
    let mut changed = of.clone();
    let old = std::mem::replace(changed.operands.get_mut(at)?, "%mutated");
    Some(format!("{{ .reg .b32 %mutated; {operation} %mutated, {old}, {by}; {} }}", changed.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the changed lines of all mutants of a text of one or two lines.
    fn changed(ptx: &str) -> Vec<(Change, String)> {
        let line = |mutant: Mutant| mutant.ptx.lines().nth(mutant.line - 1).unwrap_or_default().to_owned();
        mutants(ptx).into_iter().map(|mutant| (mutant.change, line(mutant))).collect()
    }

    fn kinds(ptx: &str) -> Vec<Change> {
        mutants(ptx).iter().map(|mutant| mutant.change).collect()
    }

    #[test]
    fn what_takes_no_operands_is_removed() {
        for (line, change) in [
            ("barrier.sync.aligned 0;", Change::SyncRemoved),
            ("bar.sync 1, 64;", Change::SyncRemoved),
            ("bar.warp.sync 0xffffffff;", Change::WarpSyncRemoved),
            ("barrier.cluster.wait.acquire.aligned;", Change::ClusterWaitRemoved),
            ("fence.mbarrier_init.release.cluster;", Change::InitFenceRemoved),
            ("fence.proxy.async.shared::cta;", Change::FenceRemoved),
            ("membar.gl;", Change::FenceRemoved),
            ("mbarrier.inval.shared::cta.b64 [%r1];", Change::InvalRemoved),
            ("cp.async.bulk.commit_group;", Change::CommitRemoved),
            ("cp.async.commit_group;", Change::CommitRemoved),
        ] {
            assert_eq!(changed(line), [(change, String::new())], "{line}");
        }
    }

    #[test]
    fn numbers_are_changed_in_a_register_of_their_own() {
        let all = changed("mbarrier.init.shared::cta.b64 [%r1], %r2;");
        let plus = "{ .reg .b32 %mutated; add.u32 %mutated, %r2, 1; mbarrier.init.shared::cta.b64 [%r1], %mutated; }";
        assert_eq!(all[0], (Change::InitRemoved, String::new()));
        assert_eq!(all[1], (Change::CountRaised, plus.to_owned()));
        assert_eq!(all[2], (Change::CountLowered, plus.replace("add", "sub")));
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn an_arrival_with_bytes_loses_itself_its_bytes_or_some_of_them() {
        use Change::*;
        let all = changed("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;");
        let plain = "mbarrier.arrive.shared::cta.b64 _, [%r1];".to_owned();
        assert_eq!(all[2], (ExpectRemoved, plain));
        let kinds: Vec<_> = all.iter().map(|(change, _)| *change).collect();
        assert_eq!(kinds, [ArriveRemoved, ArriveTwice, ExpectRemoved, BytesRaised, BytesLowered]);
        assert!(all[4].1.contains("sub.u32 %mutated, 64, 16;"), "{}", all[4].1);
    }

    #[test]
    fn a_wait_is_left_out_tried_once_or_made_for_the_other_phase() {
        use Change::*;
        let wait = "mbarrier.try_wait.parity.shared::cta.b64 %done, [%r1], %r2;";
        assert_eq!(kinds(&format!("{wait}\n@!%done bra wait_0;")), [WaitRemoved, PhaseFlipped, TriedOnce]);
        // Another register, or no branch: the result is used in another way.
        assert_eq!(kinds(&format!("{wait}\n@!%p1 bra wait_0;")), [WaitRemoved, PhaseFlipped]);
        assert_eq!(kinds(wait), [WaitRemoved, PhaseFlipped]);
    }

    #[test]
    fn the_scope_of_the_cluster_is_narrowed() {
        let all = changed("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];");
        let narrowed = "mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r1];".to_owned();
        assert_eq!(all.last(), Some(&(Change::ScopeNarrowed, narrowed)));
        let all = changed("mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r1], %r2;");
        let narrowed = "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], %r2;".to_owned();
        assert_eq!(all.last(), Some(&(Change::ScopeNarrowed, narrowed)));
        assert!(!kinds("mbarrier.arrive.shared::cluster.b64 _, [%r1];").contains(&Change::ScopeNarrowed));
    }

    #[test]
    fn an_access_with_an_order_is_weakened() {
        use Change::*;
        let all = changed("ld.acquire.gpu.global.b32 %r1, [%rd1];");
        let now = |change, opcode: &str| (change, format!("{opcode} %r1, [%rd1];"));
        let weaker = [
            now(ScopeNarrowed, "ld.acquire.cta.global.b32"),
            now(OrderDropped, "ld.relaxed.gpu.global.b32"),
            now(MadePlain, "ld.global.b32"),
        ];
        assert_eq!(all, weaker);
        assert_eq!(kinds("st.relaxed.cta.shared.b32 [%r1], %r2;"), [MadePlain]);
        assert_eq!(kinds("atom.acq_rel.sys.global.add.u32 %r1, [%rd1], 1;"), [ScopeNarrowed, OrderDropped]);
        assert_eq!(kinds("red.relaxed.gpu.global.add.u32 [%rd1], 1;"), [ScopeNarrowed]);
        assert_eq!(kinds("fence.acq_rel.gpu;"), [FenceRemoved, ScopeNarrowed]);
    }

    #[test]
    fn a_wait_for_groups_is_left_out_or_weakened() {
        let all = changed("cp.async.bulk.wait_group 1;");
        assert_eq!(all[1], (Change::PendingRaised, "cp.async.bulk.wait_group 2;".to_owned()));
        assert_eq!(all[2], (Change::OnlyRead, "cp.async.bulk.wait_group.read 1;".to_owned()));
        assert_eq!(changed("cp.async.bulk.wait_group.read 0;").len(), 2);
    }

    #[test]
    fn an_arrival_at_the_cluster_is_relaxed() {
        let all = changed("barrier.cluster.arrive.release.aligned;");
        let relaxed = "barrier.cluster.arrive.relaxed.aligned;".to_owned();
        assert_eq!(all[1], (Change::ClusterArriveRelaxed, relaxed));
    }

    #[test]
    fn nothing_else_is_touched() {
        let ptx = "ld.shared.b32 %r1, [%r2];\nbra done;\ndone:\ncp.async.bulk.prefetch.L2.global [%rd1], 16;\nret;\n";
        assert_eq!(mutants(ptx), []);
    }
}
