//! The changes that findings suggest, for kernels in either language.

use crate::sync::Memory;

/// The suggested change for a finding.
///
/// It has two renderings: one for kernels in the kernel language, with the PTX of each word in
/// parentheses, and one for PTX that does not come from Rust. The variants are about order, fences,
/// waits, mbarriers, blocks, and copies with their tensor maps.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the text of each variant explains it
pub enum Help {
    /// Advice with the same words in both languages.
    Plain(&'static str),
    RaiseLimit,

    Order(Memory),
    OrderByFlag,
    OrderRanks,
    WidenScope,
    /// Ranks of a team.
    SystemScope {
        from: u32,
        to: u32,
    },
    ReleaseToCluster,
    ReleaseTile,

    FenceWrites(Memory),
    FenceReads,
    FenceGlobalReads,
    FenceOperands,
    FenceAfterAcquire,
    FenceInit {
        unordered: bool,
    },
    FenceRegisters,

    /// The call that waits, in the kernel language.
    WaitForLoad(String),
    /// The call that waits, in the kernel language.
    WaitBeforeEnd(String),
    WaitForParity {
        wanted: u32,
        waited: u32,
        mbarrier: String,
    },
    WaitInTime {
        next: u32,
    },
    WaitForRead,
    WaitForReadBeforeEnd {
        committed: bool,
    },
    WaitForStore,
    WaitForRegisters,
    WaitForOperands,
    WaitForMultiplication,

    Initialise {
        remotely: bool,
    },
    InitialiseOnce,
    SynchroniseInit,
    Invalidate,
    CountArrivals(u32),
    FindArrivals {
        pending: u32,
        expected: u32,
    },
    Announce,
    AnnounceBytes {
        expected: u64,
        copied: u64,
    },

    ReachBarrier,
    KeepBlockAlive,
    LaunchTogether,
    KeepIndexWithin(String),
    UseRanks,

    CopyToOtherBlock,
    CompleteAtReceiver,
    SwapCoordinates,
    MakeMap,
    PublishMap,
    ReleaseMap,
    AcquireMap,
}

impl From<&'static str> for Help {
    fn from(text: &'static str) -> Self {
        Self::Plain(text)
    }
}

/// The language of a kernel.
#[derive(Clone, Copy)]
enum Language {
    Kernel,
    Ptx,
}

/// An instruction, with its name in the kernel language and in PTX.
#[derive(Clone, Copy)]
struct Name(&'static str, &'static str);

const ANNOUNCE: Name = Name("`arrive_expect_tx(..)`", "`mbarrier.arrive.expect_tx`");
const COMMIT: Name = Name("`bulk_commit_group()`", "`cp.async.bulk.commit_group`");
const FENCE: Name = Name("`fence_proxy_async()`", "`fence.proxy.async`");
const FENCE_BLOCK: Name = Name("`fence_proxy_async()`", "`fence.proxy.async.shared::cta`");
const FENCE_GLOBAL: Name = Name("`fence_proxy_async_global()`", "`fence.proxy.async.global`");
const FENCE_INIT: Name = Name("`fence_barrier_init()`", "`fence.mbarrier_init.release.cluster`");
const INIT: Name = Name("`init(..)`", "`mbarrier.init`");
const INVALIDATE: Name = Name("`invalidate()`", "`mbarrier.inval`");
const SYNC_CLUSTER: Name = Name("`sync_cluster()`", "`barrier.cluster.arrive` and `.wait`");
const SYNC_THREADS: Name = Name("`sync_threads()`", "`bar.sync`");
const WAIT_MULTIPLICATION: Name = Name("`flight.wait()`", "`wgmma.wait_group`");
const WAIT_READ: Name = Name("`bulk_wait_group_read::<0>()`", "`cp.async.bulk.wait_group.read`");
const WAIT_ALL_READ: Name = Name("`bulk_wait_group_read::<0>()`", "`cp.async.bulk.wait_group.read 0`");

impl Help {
    /// Formats the help for a kernel in PTX.
    pub fn in_ptx(&self) -> String {
        self.text(Language::Ptx)
    }

    /// Formats the help for a kernel in the kernel language, with the PTX in parentheses.
    pub fn in_language(&self) -> String {
        self.text(Language::Kernel)
    }

    fn text(&self, language: Language) -> String {
        let both = |word: &str, ptx: &str| match language {
            Language::Kernel => format!("{word} ({ptx})"),
            Language::Ptx => ptx.to_owned(),
        };
        let name = |Name(word, ptx)| both(word, ptx);
        let either = |words, ptx| match language {
            Language::Kernel => words,
            Language::Ptx => ptx,
        };
        match self {
            Self::Plain(text) => (*text).to_owned(),
            Self::RaiseLimit => format!(
                "raise {} if the kernel merely takes long",
                both("`Device::instruction_limit`", "`LaunchConfig::instruction_limit`")
            ),
            Self::Order(memory) => {
                let (threads, cluster) = (name(SYNC_THREADS), name(SYNC_CLUSTER));
                let rest = match memory {
                    Memory::Shared => String::new(),
                    Memory::Global => format!(
                        " of a cluster; a bulk store must be complete first, {}",
                        both("`bulk_wait_group::<0>()`", "`cp.async.bulk.wait_group 0`")
                    ),
                };
                format!(
                    "insert a barrier of both threads between the two accesses: {threads} within a block, \
                     {cluster} between blocks{rest}"
                )
            }
            Self::OrderByFlag => format!(
                "set a flag in global memory with release semantics after the first access, and read it with \
                 acquire semantics before the second, both at a scope that includes the other thread (or \
                 with {} around relaxed accesses): nothing else orders accesses between clusters",
                both("`fence()`", "`fence.acq_rel.gpu`")
            ),
            Self::OrderRanks => format!(
                "set a flag with release semantics after the first access, and read it with acquire semantics \
                 before the second, both at system scope, {}: nothing else orders accesses of different ranks",
                both("`Scope::System`", "`.sys`")
            ),
            Self::SystemScope { from, to } => format!(
                "device scope does not reach from rank {from} to rank {to}; use system scope, {}, in both \
                 threads",
                both("`Scope::System`", "`.sys`")
            ),
            Self::WidenScope => format!(
                "use the narrowest scope that includes both threads: {} is a block, {} a cluster, {} the \
                 device",
                both("`Scope::Block`", "`.cta`"),
                both("`Scope::Cluster`", "`.cluster`"),
                both("`Scope::Device`", "`.gpu`")
            ),
            Self::ReleaseToCluster => format!(
                "arrive with {} in the thread that wrote, and wait for that{}: with the scope of a block, \
                 {}, an arrival at another block's mbarrier does not publish writes",
                both("`remote(barrier, rank).arrive()`", "`mbarrier.arrive.release.cluster`"),
                either("", " with `.acquire.cluster`"),
                either("as in a pipeline's `release_to(..)`", "the default")
            ),
            Self::ReleaseTile => format!(
                "make the reading threads arrive at an mbarrier, {}, or synchronise all threads, {}, and \
                 wait for that before issuing the load",
                both("`slot.release()` or `empty.arrive()`", "`mbarrier.arrive`"),
                name(SYNC_THREADS)
            ),
            Self::FenceWrites(memory) => format!(
                "insert {} after the writes, before the barrier that orders them with the copy",
                name(match memory {
                    Memory::Shared => FENCE,
                    Memory::Global => FENCE_GLOBAL,
                })
            ),
            Self::FenceReads => format!(
                "insert {} in each thread that has read, after its reads and before it arrives or \
                 synchronises: threads read through the generic proxy, copies write through the \
                 asynchronous one{}",
                name(FENCE_BLOCK),
                either("; the `release` of a pipeline's slot includes this fence", "")
            ),
            Self::FenceGlobalReads => format!(
                "insert {} after the reads, before the barrier that orders them with the copy; reads whose \
                 values were stored to shared memory before that barrier need no fence",
                name(FENCE_GLOBAL)
            ),
            Self::FenceOperands => format!(
                "insert {} in each thread that has written, after its writes and before the barrier that \
                 orders them with the multiplication",
                name(FENCE_BLOCK)
            ),
            Self::FenceAfterAcquire => format!(
                "insert {} in the block that issues the copy, between the acquire and the copy",
                name(FENCE_GLOBAL)
            ),
            Self::FenceInit { unordered } => {
                let rest = if *unordered { ", and synchronise before the copy" } else { "" };
                format!("call {} after the initialisation{rest}", name(FENCE_INIT))
            }
            Self::WaitForLoad(wait) => format!(
                "wait for the phase of the mbarrier that the load completes on before this: {}",
                both(&format!("`{wait}`"), "`mbarrier.try_wait`")
            ),
            Self::WaitForParity { wanted, waited, mbarrier } => {
                let call = format!(", `wait({wanted})`");
                let call = either(call.as_str(), "");
                format!(
                    "wait for parity {wanted}{call}, instead of parity {waited}: the load completes a later \
                     phase of the mbarrier at {mbarrier} than the one waited for"
                )
            }
            Self::WaitBeforeEnd(wait) => format!(
                "wait for the phase before the block ends: {}",
                both(&format!("`{wait}`"), "`mbarrier.try_wait`")
            ),
            Self::WaitForRead => format!(
                "call {} and {} before this, in the thread that issued the store, and then a barrier if this \
                 is another thread",
                name(COMMIT),
                name(WAIT_READ)
            ),
            Self::WaitForReadBeforeEnd { committed: true } => {
                format!("call {} before the thread ends", name(WAIT_ALL_READ))
            }
            Self::WaitForReadBeforeEnd { committed: false } => {
                format!("call {} and {} before the thread ends", name(COMMIT), name(WAIT_ALL_READ))
            }
            Self::WaitForStore => format!(
                "call {} in the thread that issued the store: {} only until the tile is read, not until it \
                 is written",
                both("`bulk_wait_group::<0>()`", "`cp.async.bulk.wait_group`"),
                either("`bulk_wait_group_read` waits", "with `.read` it waits")
            ),
            Self::WaitForRegisters => {
                format!("call {} for the group of the multiplication before this", name(WAIT_MULTIPLICATION))
            }
            Self::WaitForOperands => format!(
                "call {} in the warpgroup that multiplies, before it signals that the operands may be \
                 overwritten",
                name(WAIT_MULTIPLICATION)
            ),
            Self::WaitForMultiplication => format!(
                "use {} before the warps end",
                both("`flight.wait()`", "`wgmma.commit_group` and `wgmma.wait_group 0`")
            ),
            Self::FenceRegisters => format!(
                "use `wgmma.fence` before the first multiplication, and after each use of accumulators or of \
                 A's registers by other instructions{}",
                either("; `mma` begins with it", "")
            ),
            Self::WaitInTime { next } => format!(
                "make the waiting threads arrive after the wait, or synchronise, {}, before the next phase \
                 can complete: an mbarrier distinguishes two phases only, so a wait that comes later waits \
                 for the phase after next; to wait for phase {next} instead, use parity {}",
                name(SYNC_THREADS),
                next & 1
            ),
            Self::Initialise { remotely: false } => format!(
                "initialise it in one thread, {}, and synchronise all threads, {}, before the first use",
                name(INIT),
                name(SYNC_THREADS)
            ),
            Self::Initialise { remotely: true } => format!(
                "initialise it in a thread of its block, {}, and synchronise the blocks, {}, before others \
                 use it",
                name(INIT),
                name(SYNC_CLUSTER)
            ),
            Self::InitialiseOnce => {
                format!("initialise an mbarrier once, in one thread, and {}", Self::Invalidate.text(language))
            }
            Self::SynchroniseInit => format!(
                "synchronise between the initialisation and the use: with {}, or with {} for another block's \
                 mbarrier",
                name(SYNC_THREADS),
                name(SYNC_CLUSTER)
            ),
            Self::Invalidate => {
                format!("call {} before using its memory for anything else", name(INVALIDATE))
            }
            Self::CountArrivals(count) => format!(
                "wait for each phase before any thread arrives in the next one, or raise the count of {} if \
                 more than {count} arrivals belong to a phase",
                both(&format!("`init({count})`"), "`mbarrier.init`")
            ),
            Self::FindArrivals { pending, expected } => {
                let arrivals = if *expected == 1 { "arrival" } else { "arrivals" };
                let are = if *pending == 1 { "is" } else { "are" };
                format!(
                    "check whether a thread does not arrive, the count of {} is too high, or the parity is \
                     wrong: {pending} of {expected} {arrivals} {are} missing",
                    name(INIT)
                )
            }
            Self::Announce => {
                format!("announce the bytes of all copies of each phase with {}", name(ANNOUNCE))
            }
            Self::AnnounceBytes { expected, copied } => format!(
                "announce with {} as many bytes as are copied: the phase expects {expected}, but {copied} were \
                 copied",
                name(ANNOUNCE)
            ),
            Self::ReachBarrier => format!(
                "move the barrier to where all threads reach it, or name the number of threads that do: {}",
                both("`named_barrier_sync(id, threads)`", "`barrier.sync id, threads`")
            ),
            Self::KeepBlockAlive => format!(
                "call {} at the end, so that no block ends while others use its memory",
                name(SYNC_CLUSTER)
            ),
            Self::LaunchTogether => format!(
                "launch blocks that wait for each other together, with a cooperative launch, and let all of \
                 them synchronise{}: no running thread can change this memory any more",
                either(", such as with `sync_grid(..)`", "")
            ),
            Self::KeepIndexWithin(variables) => format!(
                "keep the index within {variables}; with `checked` in its attribute, a kernel stops at the \
                 index itself"
            ),
            Self::UseRanks => format!(
                "use ranks as in {}, from 0: to wrap around, take them modulo the number of blocks",
                both("`cluster_rank()`", "`%cluster_ctarank`")
            ),
            Self::CopyToOtherBlock => format!(
                "copy within a block by threads: {} goes to another block of the cluster",
                both("`bulk_copy_to(..)`", "`cp.async.bulk` from shared memory")
            ),
            Self::CompleteAtReceiver => "use an mbarrier of the block that receives the bytes".to_owned(),
            Self::SwapCoordinates => format!(
                "check whether two coordinates are swapped: they count elements, {}; ignore this if it is \
                 intended, as in a pipeline that loads past the end",
                either("outermost dimension first, as `[row, column]`", "innermost dimension first")
            ),
            Self::MakeMap => format!(
                "make tensor maps on the host, or {}",
                either("in a `SharedMap`", "from 128 zeros with `tensormap.replace` of all fields")
            ),
            Self::PublishMap => format!(
                "copy it to global memory with {}: copies take maps in the kernel's parameters, in constant \
                 or in global memory",
                both("`publish(..)`", "`tensormap.cp_fenceproxy`")
            ),
            Self::ReleaseMap => format!(
                "call {} after the change{}, and then a barrier if another thread acquires",
                both("`map.publish(maps, i)`", "`fence.proxy.tensormap::generic.release.gpu`"),
                either("", ", or `tensormap.cp_fenceproxy` from shared memory")
            ),
            Self::AcquireMap => format!(
                "call {} in this block after the change, and then a barrier if another thread copies",
                both("`maps.acquire(i)`", "`fence.proxy.tensormap::generic.acquire.gpu [map], 128`")
            ),
        }
    }
}
