//! The codes of the compiler's errors and warnings. Each has a page of the same name in
//! `docs/errors`, with a kernel that breaks only this rule and one that follows it. Both kernels
//! are tested.

use std::fmt;

use tma_model::rule::Rule;

macro_rules! codes {
    ($($(#[doc = $rule:literal])+ $name:ident $(($severity:ident))? = $code:expr,)+) => {
        /// A rule that a kernel can break.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[doc = $rule])+ $name,)+
        }

        impl Code {
            /// All codes, in order.
            pub const ALL: &[Code] = &[$(Code::$name),+];

            /// Returns the code as text, such as `TMA0201`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $code,)+
                }
            }

            /// Returns whether the code stops compilation.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Code::$name => severity!($($severity)?),)+
                }
            }
        }
    };
}

macro_rules! severity {
    () => {
        Severity::Error
    };
    (warning) => {
        Severity::Warning
    };
}

/// The effect of a code on the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The kernel is not compiled.
    Error,
    /// The kernel is compiled nevertheless.
    Warning,
}

codes! {
    /// A statement or item that kernels do not support.
    UnsupportedStatement = "TMA0001",
    /// An expression that kernels do not support.
    UnsupportedExpression = "TMA0002",
    /// A pattern that kernels do not support.
    UnsupportedPattern = "TMA0003",
    /// A type that kernels do not support.
    UnsupportedType = "TMA0004",
    /// A function that cannot be a kernel or device function.
    Signature = "TMA0005",
    /// An unknown or malformed attribute option.
    Attribute = "TMA0006",
    /// A recursive device function.
    Recursion = "TMA0007",
    /// `shared()` in a loop or branch, or without a type.
    MisplacedShared = "TMA0008",
    /// A format string or message that the GPU cannot print.
    Format = "TMA0009",
    /// Generics without named instances, or instances that do not match them.
    Instances = "TMA0010",
    /// A kernel in an `impl` or a trait.
    MisplacedKernel = "TMA0011",
    /// A kernel that is too large once expanded.
    KernelSize = "TMA0014",
    /// Shared memory that a kernel does not use.
    UnusedShared(warning) = "TMA0015",
    /// A register array that is indexed at run time, and so is in local memory.
    LocalArray(warning) = "TMA0016",

    /// An unknown name.
    UnknownName = "TMA0101",
    /// A value of the wrong type.
    TypeMismatch = "TMA0102",
    /// An unknown method or field.
    UnknownMethod = "TMA0103",
    /// The wrong number of arguments.
    ArgumentCount = "TMA0104",
    /// A value that must be a constant.
    NotConstant = "TMA0105",
    /// A conversion that does not exist.
    InvalidCast = "TMA0106",
    /// An operator that the type does not support.
    InvalidOperator = "TMA0107",
    /// An assignment to something immutable.
    NotAssignable = "TMA0108",
    /// A literal out of range for its type.
    LiteralRange = "TMA0109",
    /// A type that cannot be inferred.
    CannotInfer = "TMA0110",
    /// A constant expression that cannot be evaluated.
    ConstantValue = "TMA0111",
    /// `break` or `continue` outside a loop, or with a label that no loop has.
    LoopControl = "TMA0112",
    /// A `match` that is not exhaustive.
    MatchNotExhaustive = "TMA0113",
    /// A name that means something else here than in the kernel language.
    OtherMeaning = "TMA0120",
    /// A path to something that kernels do not support.
    ForeignPath = "TMA0121",
    /// Names of the kernel language that are not imported.
    MissingPrelude = "TMA0122",

    /// A box extent outside 1..=256.
    BoxExtent = "TMA0201",
    /// A box whose innermost dimension is not a multiple of 16 bytes.
    BoxInnerBytes = "TMA0202",
    /// A box with rows longer than the swizzle's span, but not a multiple of it.
    SwizzleSpan = "TMA0203",
    /// The wrong number of coordinates.
    CoordinateCount = "TMA0204",
    /// A tile that differs from its tensor map's.
    TileMismatch = "TMA0205",
    /// More shared memory than a block has.
    SharedBudget = "TMA0206",
    /// A block with no threads or with too many.
    ThreadCount = "TMA0207",
    /// A constant index out of bounds.
    IndexRange = "TMA0208",
    /// An arrival count or transaction count that an mbarrier cannot hold.
    BarrierCount = "TMA0209",
    /// A named barrier that does not exist, or a thread count that is not whole warps.
    NamedBarrier = "TMA0210",
    /// An element type that tensor maps do not support.
    ElementType = "TMA0211",
    /// Launch bounds that the hardware cannot meet.
    LaunchBounds = "TMA0212",
    /// More bytes of parameters than a launch can pass.
    ParameterBytes = "TMA0213",
    /// A parity that is neither 0 nor 1.
    Parity = "TMA0214",
    /// A warp reduction with missing lanes.
    PartialWarp = "TMA0215",
    /// Shared memory that cannot be reused, or not as this type.
    Reuse = "TMA0216",
    /// A pipeline without stages, or with stages that are not tiles.
    Pipeline = "TMA0230",

    /// An innermost coordinate that is not a multiple of 16 bytes.
    InnerCoordinate = "TMA0221",
    /// A store that starts before the tensor.
    StoreCoordinate = "TMA0222",
    /// A reduction that the element type does not support.
    ReduceElement = "TMA0223",
    /// A cache policy whose fraction is not in (0, 1].
    CacheFraction = "TMA0224",
    /// An interleaved tile that cannot be copied.
    Interleave = "TMA0225",
    /// A coordinate of 2^31 or more.
    CoordinateRange = "TMA0226",
    /// An instruction that the build's target does not have.
    TargetFeature = "TMA0227",

    /// A cluster with no blocks or with too many.
    ClusterSize = "TMA0231",
    /// A cluster operation in a kernel without clusters.
    NoCluster = "TMA0232",
    /// A block rank outside the cluster.
    ClusterBlock = "TMA0233",
    /// A sliced load whose slices do not make up the tile, or are misaligned.
    SlicedLoad = "TMA0234",
    /// The block's tile of a map with more than three dimensions.
    BlockTile = "TMA0238",

    /// A bulk copy that does not begin or end at a multiple of 16 bytes.
    BulkUnit = "TMA0241",
    /// An im2col offset that does not fit its bits.
    Im2colOffset = "TMA0242",
    /// A tensor map field set to a value that the copy engine does not support.
    MapField = "TMA0243",
    /// A vector that no instruction can move, or that does not start at a multiple of its length.
    VectorAccess = "TMA0244",
    /// A memory order or a scope that an access cannot have.
    AccessOrder = "TMA0245",
    /// A non-coherent load of memory that the kernel writes.
    NonCoherentLoad = "TMA0246",
    /// The scope of an access to another rank's memory.
    PeerScope = "TMA0247",

    /// An accumulator or operand shape that tensor cores do not support.
    MmaShape = "TMA0251",
    /// An element type that tensor cores do not support.
    MmaElement = "TMA0252",
    /// A multiplication that is never waited for.
    OpenFlight = "TMA0253",
    /// An accumulator index that is not a compile-time constant.
    AccumulatorIndex = "TMA0254",
    /// A register count that a warpgroup cannot request.
    Registers = "TMA0256",
    /// A warpgroup operation in an incomplete warpgroup.
    Warpgroups = "TMA0257",
    /// A tile in several panels whose rows are not a multiple of 8.
    PanelRows = "TMA0258",
    /// A part of a tile that is not a tile.
    TilePart = "TMA0259",
    /// Metadata that does not match its sparse operand.
    SparseMetadata = "TMA0260",

    /// A part of a tile that does not start at a 16-byte chunk, which warp loads and stores
    /// require.
    FragmentStart = "TMA0261",

    /// A tile that is too large to print.
    PrintedTile = "TMA0270",

    /// More warpgroups to synchronise than there are free barriers.
    WarpgroupBarriers = "TMA0263",
    /// A warpgroup operation where threads may have diverged.
    Divergent = "TMA0264",
    /// More registers for the warpgroups than the block has.
    RegisterPool = "TMA0265",

    /// A template that is not found.
    NoTemplate = "TMA0271",
    /// A function that replaces none in its template, or one that may not be replaced.
    ClosedFunction = "TMA0272",
    /// A replacement that cannot be called like the function that it replaces.
    ReplacementSignature = "TMA0273",
    /// A selection of instances that the template does not have.
    TemplateInstance = "TMA0274",
    /// An import that kernels cannot use.
    Import = "TMA0275",

    /// A `ptx!` whose template and operands do not match.
    Ptx = "TMA0280",

    /// A wait that never ends.
    Deadlock = Rule::Deadlock.code(),
    /// A barrier that expects a different number of bytes than is copied.
    PhaseBytes = Rule::Bytes.code(),
    /// Invalid arrivals or initialisations of a barrier.
    PhaseArrivals = Rule::Count.code(),
    /// A data race in shared memory.
    SharedRace = Rule::Race.code(),
    /// A read of copied data without a wait.
    ReadBeforeWait = Rule::ReadBeforeWait.code(),
    /// Shared memory that is refilled while it may be in use.
    EarlyRefill = Rule::Refill.code(),
    /// A missing proxy fence between threads and copies.
    MissingFence = Rule::Fence.code(),
    /// A barrier whose initialisation may not be visible.
    BarrierInit = Rule::NotVisible.code(),
    /// A wait that may be overrun.
    Overrun = Rule::Overrun.code(),
    /// A copy that is never waited for.
    OpenCopy = Rule::Leak.code(),
    /// An access to the shared memory of a block that may have ended.
    BlockGone = Rule::BlockGone.code(),
    /// A rendezvous that not all of its threads reach in the same way.
    DivergentBarrier = Rule::Divergence.code(),
    /// A loop that polls memory with plain reads.
    PlainPoll = "TMA0713",
    /// Unordered accesses of several blocks to the same global memory.
    UnorderedBlocks = "TMA0714",
    /// An exemption from the protocol's rules without a reason.
    TrustedReason = "TMA0720",

    /// A kernel without PTX from the build script.
    MissingPtx = "TMA0901",
    /// An LLVM or file error while compiling PTX.
    Backend = "TMA0902",
    /// A path that cargo cannot watch for changes.
    Unwatchable = "TMA0904",
    /// Saved PTX that does not belong to the current version of the kernel.
    KeptPtx = "TMA0905",
}

impl Code {
    /// Returns the code of a rule of synchronisation.
    pub const fn of(rule: Rule) -> Self {
        match rule {
            Rule::Deadlock => Self::Deadlock,
            Rule::Bytes => Self::PhaseBytes,
            Rule::Count => Self::PhaseArrivals,
            Rule::Race => Self::SharedRace,
            Rule::ReadBeforeWait => Self::ReadBeforeWait,
            Rule::Refill => Self::EarlyRefill,
            Rule::Fence => Self::MissingFence,
            Rule::NotVisible => Self::BarrierInit,
            Rule::Overrun => Self::Overrun,
            Rule::Leak => Self::OpenCopy,
            Rule::BlockGone => Self::BlockGone,
            Rule::Divergence => Self::DivergentBarrier,
        }
    }

    /// Returns the rule of synchronisation that a kernel with this code breaks, if it is one.
    pub fn rule(self) -> Option<Rule> {
        match self {
            // A race as well, but found without following threads.
            Self::UnorderedBlocks => Some(Rule::Race),
            code => Rule::ALL.into_iter().find(|rule| Self::of(*rule) == code),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
