//! The table of statements in the book: it has a row for every kind, and no other.

use std::collections::BTreeSet;
use std::fs;

use tma_codegen::ir::{CopyKind, Fence, MapEdit, Stmt, StmtKind, Sync, visit};

use crate::tree::{root, sources};

/// The rows of `docs/semantics.md`, in order.
const ROWS: [&str; 52] = [
    "assignment",
    "`if`, `match`",
    "`loop`, `while`, `for`",
    "inlined function",
    "`break`, `continue`, `return` of a function",
    "`return` of the kernel",
    "access to a tile or shared array",
    "access to a `Global`",
    "access with an order and a scope",
    "tile copy: load",
    "tile copy: store, reduction",
    "bulk copy",
    "copy to another block",
    "prefetch of a map",
    "operation on an mbarrier",
    "change of a map",
    "acquisition of a map",
    "end of a bulk group",
    "wait for bulk groups",
    "start of a multiplication",
    "wait for a multiplication",
    "accumulator as a left operand",
    "left operand as an accumulator",
    "store of an accumulator",
    "test of a matrix in global memory",
    "store of an accumulator to global memory",
    "reduction of an accumulator's rows",
    "load of an operand",
    "multiplication of a warp",
    "store of a warp's accumulator",
    "change of registers",
    "proxy fence",
    "fence of initialisations",
    "fence of memory",
    "fence of published maps",
    "fence of aliased addresses",
    "`sync_threads`",
    "`sync_warpgroup`",
    "`sync_warp`",
    "`sync_cluster`, `cluster_arrive`, `cluster_wait`",
    "`named_barrier_sync`",
    "`named_barrier_arrive`",
    "`sync_grid`",
    "dependency between grids",
    "`elect_one`",
    "shuffle, vote, match, reduction",
    "`ptx!`",
    "`trap`",
    "`assert!`, `assume`",
    "`printf!`",
    "`trace_span!`",
    "`print_tile`",
];

/// Returns the row of a statement.
fn row(kind: &StmtKind) -> &'static str {
    match kind {
        StmtKind::Assign { .. } => "assignment",
        StmtKind::If { .. } | StmtKind::Match { .. } => "`if`, `match`",
        StmtKind::Loop { .. } | StmtKind::While { .. } | StmtKind::For(_) => "`loop`, `while`, `for`",
        StmtKind::Labelled { .. } => "inlined function",
        StmtKind::Break(_) | StmtKind::Continue(_) | StmtKind::Leave(_) => {
            "`break`, `continue`, `return` of a function"
        }
        StmtKind::Return => "`return` of the kernel",
        StmtKind::TileGet { .. }
        | StmtKind::TileSet { .. }
        | StmtKind::SharedGet { .. }
        | StmtKind::SharedSet { .. } => "access to a tile or shared array",
        StmtKind::GlobalGet { .. } | StmtKind::GlobalSet { .. } => "access to a `Global`",
        StmtKind::Atomic(_) => "access with an order and a scope",
        StmtKind::TileCopy(copy) => match copy.kind {
            CopyKind::Load { .. } | CopyKind::Prefetch => "tile copy: load",
            CopyKind::Store { .. } | CopyKind::Reduce { .. } => "tile copy: store, reduction",
        },
        StmtKind::BulkCopy(_) => "bulk copy",
        StmtKind::RemoteCopy(_) => "copy to another block",
        StmtKind::PrefetchMap(_) => "prefetch of a map",
        StmtKind::Barrier { .. } => "operation on an mbarrier",
        StmtKind::EditMap {
            edit:
                MapEdit::CopyFrom { .. }
                | MapEdit::Address { .. }
                | MapEdit::Extent { .. }
                | MapEdit::Stride { .. }
                | MapEdit::Publish { .. },
            ..
        } => "change of a map",
        StmtKind::AcquireMap { .. } => "acquisition of a map",
        StmtKind::BulkCommitGroup => "end of a bulk group",
        StmtKind::BulkWaitGroup { .. } => "wait for bulk groups",
        StmtKind::Mma(_) => "start of a multiplication",
        StmtKind::MmaWait { .. } => "wait for a multiplication",
        StmtKind::Pack { .. } => "accumulator as a left operand",
        StmtKind::Unpack { .. } => "left operand as an accumulator",
        StmtKind::StoreAccumulator { .. } => "store of an accumulator",
        StmtKind::CheckMatrix(_) => "test of a matrix in global memory",
        StmtKind::StoreMatrix(_) => "store of an accumulator to global memory",
        StmtKind::ReduceRows { .. } => "reduction of an accumulator's rows",
        StmtKind::LoadFragment(_) => "load of an operand",
        StmtKind::MmaSync(_) => "multiplication of a warp",
        StmtKind::StoreWarp(_) => "store of a warp's accumulator",
        StmtKind::SetMaxRegisters { .. } => "change of registers",
        StmtKind::Fence(fence) => match fence {
            Fence::ProxyAsync(_) => "proxy fence",
            Fence::MbarrierInit => "fence of initialisations",
            Fence::Memory => "fence of memory",
            Fence::TensorMapRelease => "fence of published maps",
            Fence::ProxyAlias => "fence of aliased addresses",
        },
        StmtKind::Sync(sync) => match sync {
            Sync::Threads => "`sync_threads`",
            Sync::Warp => "`sync_warp`",
            Sync::Warpgroup => "`sync_warpgroup`",
            Sync::Cluster | Sync::ClusterArrive | Sync::ClusterWait => {
                "`sync_cluster`, `cluster_arrive`, `cluster_wait`"
            }
        },
        StmtKind::NamedBarrierSync { .. } => "`named_barrier_sync`",
        StmtKind::NamedBarrierArrive { .. } => "`named_barrier_arrive`",
        StmtKind::SyncGrid { .. } => "`sync_grid`",
        StmtKind::GridDependency(_) => "dependency between grids",
        StmtKind::ElectOne { .. } => "`elect_one`",
        StmtKind::Warp { .. } => "shuffle, vote, match, reduction",
        StmtKind::Ptx(_) => "`ptx!`",
        StmtKind::Trap => "`trap`",
        StmtKind::Assert { .. } => "`assert!`, `assume`",
        StmtKind::Printf { .. } => "`printf!`",
        StmtKind::TraceSpan { .. } => "`trace_span!`",
        StmtKind::PrintTile { .. } => "`print_tile`",
    }
}

#[test]
fn the_book_has_a_row_for_every_statement() {
    let page = fs::read_to_string(root().join("docs/semantics.md")).expect("a page of the book");
    let rows: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
    assert_eq!(rows, ["statement", "---"].into_iter().chain(ROWS).collect::<Vec<_>>());
}

/// Calls `f` for every statement of the kernels of the tree.
fn for_each_statement(f: &mut impl FnMut(&Stmt)) {
    for path in ["examples/src", "tests/src/kernels"].iter().flat_map(|folder| sources(&root().join(folder)))
    {
        let source = fs::read_to_string(&path).expect("a source file");
        let Ok(accepted) = tma_codegen::check("kernels.rs", &source) else { continue };
        for checked in &accepted.kernels {
            visit::for_each_stmt(&checked.kernel.kernel().body, &mut |stmt| f(stmt));
        }
    }
}

/// The kernels of the tree have a statement of nearly every row, each of which is in the table.
#[test]
fn every_statement_of_the_tree_has_a_row() {
    let mut seen = BTreeSet::new();
    for_each_statement(&mut |stmt| _ = seen.insert(row(&stmt.kind)));
    let unknown: Vec<_> = seen.iter().filter(|row| !ROWS.contains(row)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not in the table");
    let unseen: Vec<_> = ROWS.iter().filter(|row| !seen.contains(*row)).collect();
    assert!(unseen.len() <= 3, "no kernel has {unseen:?}");
}

/// The facts of a statement refer to its own operands, and each operand to at most one fact.
#[test]
fn facts_share_out_the_operands_of_their_statement() {
    for_each_statement(&mut |stmt| {
        let facts = stmt.facts();
        let objects = facts.accesses.iter().filter_map(|access| access.object.shared());
        let named: Vec<_> = objects.chain(facts.controls).map(std::ptr::from_ref).collect();
        let operands = visit::operands(&stmt.kind).into_iter().map(std::ptr::from_ref);
        let operands: BTreeSet<_> = operands.collect();
        let distinct: BTreeSet<_> = named.iter().copied().collect();
        assert!(distinct.is_subset(&operands), "an operand of another statement: {:?}", stmt.kind);
        assert_eq!(distinct.len(), named.len(), "an operand in two facts: {:?}", stmt.kind);
    });
}
