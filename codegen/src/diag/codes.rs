//! The codes of the compiler's errors and warnings. Each has a page of its name in `docs/errors`,
//! with a kernel that breaks just this rule and one that does not, both of which are tested.

use std::fmt;

macro_rules! codes {
    ($($(#[doc = $rule:literal])+ $name:ident = $code:literal $(($severity:ident))?,)+) => {
        /// The rule that a kernel breaks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[doc = $rule])+ $name,)+
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &[Code] = &[$(Code::$name),+];

            /// The code itself, such as `TMA0201`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $code,)+
                }
            }

            /// Whether it stops a kernel.
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

/// What becomes of a kernel that a code is said of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// It is not compiled.
    Error,
    /// It is compiled all the same.
    Warning,
}

codes! {
    /// A statement or item that kernels do not have.
    UnsupportedStatement = "TMA0001",
    /// An expression that kernels do not have.
    UnsupportedExpression = "TMA0002",
    /// A pattern that kernels do not have.
    UnsupportedPattern = "TMA0003",
    /// A type that kernels do not have.
    UnsupportedType = "TMA0004",
    /// A function that cannot be a kernel or a device function.
    Signature = "TMA0005",
    /// An attribute with an option that it does not have, or that is malformed.
    Attribute = "TMA0006",
    /// A device function that calls itself.
    Recursion = "TMA0007",
    /// `shared()` in a loop or a branch, or without a type.
    SharedPlace = "TMA0008",
    /// A format string or message that the GPU cannot print.
    Format = "TMA0009",
    /// Const generics without named instances, or instances that do not fit them.
    Instances = "TMA0010",
    /// A kernel in an `impl` or a trait.
    KernelPlace = "TMA0011",
    /// A kernel that is too large once its functions are inlined and its loops unrolled.
    KernelSize = "TMA0014",
    /// Shared memory that a kernel does not use.
    UnusedShared = "TMA0015" (warning),

    /// A name that is not known.
    UnknownName = "TMA0101",
    /// A value of another type than is wanted.
    TypeMismatch = "TMA0102",
    /// A method or field that the type does not have.
    UnknownMethod = "TMA0103",
    /// Too many or too few arguments.
    ArgumentCount = "TMA0104",
    /// A value that is no constant where one is wanted.
    NotConstant = "TMA0105",
    /// A conversion that does not exist.
    InvalidCast = "TMA0106",
    /// An operator that the type does not have.
    InvalidOperator = "TMA0107",
    /// An assignment to what cannot be changed.
    NotAssignable = "TMA0108",
    /// A literal outside the range of its type.
    LiteralRange = "TMA0109",
    /// A type that cannot be inferred.
    CannotInfer = "TMA0110",
    /// A constant expression that has no value.
    ConstantValue = "TMA0111",
    /// `break` or `continue` outside a loop, or with a label that no loop has.
    LoopControl = "TMA0112",
    /// A `match` that leaves values out.
    MatchNotExhaustive = "TMA0113",
    /// A name that means something else here than in the kernel language.
    OtherMeaning = "TMA0120",
    /// A path to what kernels do not have.
    ForeignPath = "TMA0121",
    /// Words of the kernel language that nothing imports.
    MissingPrelude = "TMA0122",

    /// A box extent outside 1..=256.
    BoxExtent = "TMA0201",
    /// A box whose innermost dimension is not a multiple of 16 bytes.
    BoxInnerBytes = "TMA0202",
    /// A box whose innermost dimension is longer than the swizzle's span.
    SwizzleSpan = "TMA0203",
    /// Coordinates that are more or fewer than the tile's dimensions.
    CoordinateCount = "TMA0204",
    /// A tile that is not the one its tensor map moves.
    TileMismatch = "TMA0205",
    /// More shared memory than a block has.
    SharedBudget = "TMA0206",
    /// A block with no threads or with too many.
    ThreadCount = "TMA0207",
    /// A constant index outside of what it picks from.
    IndexRange = "TMA0208",
    /// An arrival count or transaction count that an mbarrier cannot hold.
    BarrierCount = "TMA0209",
    /// A named barrier that does not exist, or threads that are not whole warps.
    NamedBarrier = "TMA0210",
    /// An element type that a tensor map or an operation does not have.
    ElementType = "TMA0211",
    /// Launch bounds that the hardware cannot keep.
    LaunchBounds = "TMA0212",
    /// More bytes of parameters than a launch carries.
    ParameterBytes = "TMA0213",
    /// A parity that is neither 0 nor 1.
    Parity = "TMA0214",
    /// A reduction of a warp that lanes are missing of.
    PartialWarp = "TMA0215",
    /// A pipeline without stages, or whose stages hold something else than tiles.
    Pipeline = "TMA0230",

    /// An innermost coordinate of a copy that is not a multiple of 16 bytes.
    InnerCoordinate = "TMA0221",
    /// A store or reduction that starts before the tensor.
    StoreCoordinate = "TMA0222",
    /// A reduction that the copy engine does not have for the element type.
    ReduceElement = "TMA0223",
    /// A fraction of a cache policy that is not above 0 and at most 1.
    CacheFraction = "TMA0224",
    /// An interleaved tile that no copy moves.
    Interleave = "TMA0225",
    /// A coordinate of 2^31 or more.
    CoordinateRange = "TMA0226",
    /// An instruction that the chip does not have which the build is for.
    TargetFeature = "TMA0227",

    /// A cluster with no blocks or with too many.
    ClusterSize = "TMA0231",
    /// A word about clusters in a kernel that has none.
    NoCluster = "TMA0232",
    /// A block that the cluster does not have, or a mask of none.
    ClusterBlock = "TMA0233",
    /// A sliced load whose slices are not the tile, or do not begin where they may.
    SlicedLoad = "TMA0234",
    /// A block's tile of a map whose tiles have more dimensions than a grid.
    BlockTile = "TMA0238",

    /// A bulk copy that does not begin or end at a multiple of 16 bytes.
    BulkUnit = "TMA0241",
    /// An im2col offset that does not fit its bits.
    Im2colOffset = "TMA0242",
    /// A field of a tensor map set to what the copy engine does not take.
    MapField = "TMA0243",
    /// A vector of elements that no instruction moves, or that begins beside a multiple of its
    /// length.
    VectorAccess = "TMA0244",

    /// An accumulator, or an operand of a multiplication, of a shape that the tensor cores do not
    /// take.
    MmaShape = "TMA0251",
    /// Elements that the tensor cores do not multiply, or do not add to such an accumulator.
    MmaElement = "TMA0252",
    /// A multiplication that is not waited for, or not on every path.
    OpenFlight = "TMA0253",
    /// An element of an accumulator whose index is not known when the kernel is compiled.
    AccumulatorIndex = "TMA0254",
    /// A call of a function in a kernel with tensor cores.
    MmaCall = "TMA0255",
    /// A number of registers that a warpgroup cannot ask for.
    Registers = "TMA0256",
    /// Tensor cores in a block that is not made of warpgroups.
    Warpgroups = "TMA0257",
    /// A tile in several panels whose rows are not a multiple of 8.
    PanelRows = "TMA0258",
    /// A part of a tile that is no tile.
    TilePart = "TMA0259",
    /// Metadata that is not what a sparse operand has.
    SparseMetadata = "TMA0260",

    /// A part of a tile that begins beside a chunk of 16 bytes, where a warp loads or stores none.
    FragmentStart = "TMA0261",

    /// A tile that is too large to be printed.
    PrintedTile = "TMA0270",

    /// More warpgroups that meet on their own than barriers that are left for them.
    WarpgroupBarriers = "TMA0263",
    /// What a warpgroup does together, where its threads may have parted.
    Divergent = "TMA0264",
    /// Registers that a block does not have for its warpgroups.
    RegisterPool = "TMA0265",

    /// Threads that wait for what never comes.
    Deadlock = "TMA0701",
    /// A phase of a barrier that expects other bytes than are copied.
    PhaseBytes = "TMA0702",
    /// Arrivals or initialisations that a barrier does not take.
    PhaseArrivals = "TMA0703",
    /// Two accesses to shared memory that nothing orders.
    SharedRace = "TMA0704",
    /// A read of what a copy brings, without a wait for it.
    ReadBeforeWait = "TMA0705",
    /// Shared memory filled or written while it may still be in use.
    EarlyRefill = "TMA0706",
    /// Accesses of threads and of the asynchronous proxy without a fence between.
    MissingFence = "TMA0707",
    /// A barrier used where its initialisation need not be visible.
    BarrierInit = "TMA0708",
    /// A wait that may be overrun by a later phase.
    Overrun = "TMA0709",
    /// A copy that nobody waits for.
    OpenCopy = "TMA0710",
    /// Shared memory of a block that may have ended.
    BlockGone = "TMA0711",
    /// Threads that do not come to a meeting as others do.
    PartedMeeting = "TMA0712",
    /// An exception from the protocol's rules for which no reason is given.
    TrustedReason = "TMA0720",

    /// The build script made no PTX for this kernel.
    MissingPtx = "TMA0901",
    /// LLVM, or a file, failed while PTX was made.
    Backend = "TMA0902",
    /// A path that cargo cannot be told to watch.
    Unwatchable = "TMA0904",
    /// Kept PTX that is not that of the kernel as it is now.
    KeptPtx = "TMA0905",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
