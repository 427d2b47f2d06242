//! Single changes that make a kernel correct, as found by the checker.

use crate::ir::{Fence, FencedMemory, Span, Sync};

/// A location in the source.
#[derive(Clone, Copy, Debug)]
pub enum SourceLocation {
    /// Before this statement.
    Before(Span),
    /// After this statement, including everything inside it.
    After(Span),
    /// After this `bulk_commit_group()`, which shares its line with other statements.
    AfterCommit(Span),
    /// At the end of the block that contains this statement.
    AtEnd(Span),
}

impl SourceLocation {
    fn text(self) -> String {
        match self {
            Self::Before(span) => format!("before line {}", span.first_line()),
            Self::After(span) if span.first_line() == span.last_line() => {
                format!("after line {}", span.last_line())
            }
            Self::After(span) => format!("after lines {} to {}", span.first_line(), span.last_line()),
            Self::AfterCommit(span) => {
                format!("right after the `bulk_commit_group()` on line {}", span.first_line())
            }
            Self::AtEnd(span) => format!("at the end of the block that contains line {}", span.first_line()),
        }
    }

    /// Describes the place for lines that are now at `from`. They may be inside the statement that
    /// they are to follow.
    fn text_from(self, from: Span) -> String {
        match self {
            Self::After(span)
                if span.first_line() < from.first_line() && from.last_line() < span.last_line() =>
            {
                format!("after the enclosing block, lines {} to {}", span.first_line(), span.last_line())
            }
            Self::Before(_) | Self::After(_) | Self::AfterCommit(_) | Self::AtEnd(_) => self.text(),
        }
    }
}

/// A change after which the checker accepts the kernel.
#[derive(Clone, Debug)]
pub enum Repair {
    /// A proxy fence.
    Fence(SourceLocation),
    /// A fence after the initialisation of barriers.
    InitFence(SourceLocation),
    /// A rendezvous.
    Barrier(Sync, SourceLocation),
    /// A wait for a barrier. `None` if the barrier has no name, as in a pipeline.
    Wait { barrier: Option<String>, parity: String, at: SourceLocation },
    /// An arrival at a barrier.
    Arrive { barrier: String, at: SourceLocation },
    /// A release of the slot for which a consumer waits at `waited`: by all its threads, or by one
    /// lane after the warp has synchronised.
    Release { waited: Span, by_lane: bool },
    /// A wait until the sources of a thread's stores have been read. If `commit`, it is preceded by
    /// a commit of their group.
    WaitForStores { commit: bool, at: SourceLocation },
    /// A different number of groups that may be pending.
    Pending { at: Span, groups: u32 },
    /// A different initial count of a barrier.
    Count { at: Span, count: u32 },
    /// A different number of announced bytes.
    Bytes { at: Span, more: i64 },
    /// The opposite parity. It is `becomes` if it is the same in every iteration.
    Parity { at: Span, becomes: Option<u32> },
    /// This parity expression.
    ParityOf { at: Span, parity: String },
    /// `arrive_expect_tx` instead of an announcement of bytes only.
    ArriveToo(Span),
    /// A move of an existing statement's lines.
    Move { from: Span, to: SourceLocation },
    /// A move of a statement that shares its line with others.
    MoveOne { step: Movable, from: Span, to: Destination },
}

/// A statement that can be moved.
#[derive(Clone, Copy, Debug)]
pub enum Movable {
    Fence(Fence),
    Barrier(Sync),
    CommitGroup,
    WaitForGroup { read_only: bool },
    Wait,
    Arrive,
    AnnounceAndArrive,
}

/// The destination of a statement, relative to its position.
#[derive(Clone, Copy, Debug)]
pub enum Destination {
    /// Before the preceding statement.
    Earlier,
    /// After the following statement.
    Later,
    /// Out of the enclosing block, to after it.
    AfterBlock,
}

impl Repair {
    /// Returns the instruction for the change.
    pub(super) fn text(&self) -> String {
        let insert = |words: &str, at: &SourceLocation| format!("insert `{words}` {}", at.text());
        let step = match self {
            Self::Fence(at) => insert("fence_proxy_async();", at),
            Self::InitFence(at) => insert("fence_barrier_init();", at),
            Self::Barrier(sync, at) => insert(word(*sync), at),
            Self::Wait { barrier: Some(barrier), parity, at } => {
                insert(&format!("{barrier}.wait({parity});"), at)
            }
            Self::Wait { barrier: None, parity, at } => {
                format!("wait for parity {parity} of the copy's barrier {}", at.text())
            }
            Self::Arrive { barrier, at } => insert(&format!("{barrier}.arrive();"), at),
            Self::Release { waited, by_lane: false } => format!(
                "release the slot of the wait on line {}, with `slot.release()` in each thread at the end of \
                 that block",
                waited.first_line()
            ),
            Self::Release { waited, by_lane: true } => format!(
                "release the slot of the wait on line {} at the end of that block: `sync_warp(); if \
                 lane_idx() == 0 {{ slot.release(); }}`",
                waited.first_line()
            ),
            Self::WaitForStores { commit: false, at } => insert("bulk_wait_group_read::<0>();", at),
            Self::WaitForStores { commit: true, at } => {
                insert("bulk_commit_group(); bulk_wait_group_read::<0>();", at)
            }
            Self::Pending { at, groups } => {
                let noun = if *groups == 1 { "group" } else { "groups" };
                let line = at.first_line();
                format!("wait with `::<{groups}>` on line {line}, until at most {groups} {noun} are pending")
            }
            Self::Count { at, count } => {
                format!("initialise it with `init({count})` on line {}", at.first_line())
            }
            Self::Bytes { at, more } => format!(
                "announce {} {} bytes on line {}",
                more.unsigned_abs(),
                if *more > 0 { "more" } else { "fewer" },
                at.first_line()
            ),
            Self::Parity { at, becomes: Some(parity) } => {
                format!("wait for parity {parity} on line {}", at.first_line())
            }
            Self::Parity { at, becomes: None } => {
                format!("wait for the opposite parity on line {}", at.first_line())
            }
            Self::ParityOf { at, parity } => {
                format!("wait for parity `{parity}` on line {}", at.first_line())
            }
            Self::ArriveToo(at) => format!(
                "use `arrive_expect_tx(..)` on line {}, which announces the bytes and arrives",
                at.first_line()
            ),
            Self::Move { from, to } => {
                let (first, last) = (from.first_line(), from.last_line());
                let lines = match first == last {
                    true => format!("line {first}"),
                    false => format!("lines {first} to {last}"),
                };
                format!("move {lines} {}", to.text_from(*from))
            }
            Self::MoveOne { step, from, to } => {
                let to = match to {
                    Destination::Earlier => "before the previous statement",
                    Destination::Later => "after the next statement",
                    Destination::AfterBlock => "after the enclosing block",
                };
                format!("move the {} on line {} {to}", step.word(), from.first_line())
            }
        };
        format!("{step}; the kernel is then accepted")
    }

    /// Returns the wait that this gives another parity.
    pub fn wrong_parity(&self) -> Option<Span> {
        if let Self::Parity { at, .. } | Self::ParityOf { at, .. } = self { Some(*at) } else { None }
    }
}

impl Movable {
    /// Returns the statement as written in the source.
    const fn word(self) -> &'static str {
        match self {
            Self::Fence(Fence::MbarrierInit) => "`fence_barrier_init()`",
            Self::Fence(Fence::ProxyAsync(FencedMemory::Shared(_))) => "`fence_proxy_async()`",
            Self::Fence(Fence::ProxyAsync(FencedMemory::Global)) => "`fence_proxy_async_global()`",
            Self::Fence(Fence::ProxyAsync(FencedMemory::All)) => "proxy fence",
            Self::Fence(Fence::Memory) => "`fence()`",
            Self::Fence(Fence::TensorMapRelease | Fence::ProxyAlias) => "fence",
            Self::Barrier(Sync::Threads) => "`sync_threads()`",
            Self::Barrier(Sync::Warp) => "`sync_warp()`",
            Self::Barrier(Sync::Warpgroup) => "`sync_warpgroup()`",
            Self::Barrier(Sync::Cluster) => "`sync_cluster()`",
            Self::Barrier(Sync::ClusterArrive) => "`cluster_arrive()`",
            Self::Barrier(Sync::ClusterWait) => "`cluster_wait()`",
            Self::CommitGroup => "`bulk_commit_group()`",
            Self::WaitForGroup { read_only: true } => "`bulk_wait_group_read`",
            Self::WaitForGroup { read_only: false } => "`bulk_wait_group`",
            Self::Wait => "`wait`",
            Self::Arrive => "`arrive`",
            Self::AnnounceAndArrive => "`arrive_expect_tx`",
        }
    }
}

/// Returns a rendezvous as written in the source.
fn word(sync: Sync) -> &'static str {
    match sync {
        Sync::Threads => "sync_threads();",
        Sync::Warp => "sync_warp();",
        Sync::Warpgroup => "sync_warpgroup();",
        Sync::Cluster => "sync_cluster();",
        Sync::ClusterArrive => "cluster_arrive();",
        Sync::ClusterWait => "cluster_wait();",
    }
}
