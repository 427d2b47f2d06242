//! The definitions, accesses, synchronisation and control flow of each statement.
//!
//! Analyses read this description instead of listing statements. It is modelled on Cranelift's
//! table of opcode facts, as the simulator's description of instructions is.

mod table;

use super::{Atomic, Expr, Flow, For, Kernel, LocalId, ParamId, Ptx, Stmt, Type, WarpOp};
use crate::target::Feature;

/// The properties of a statement.
#[derive(Clone, Debug)]
pub struct Facts<'k> {
    /// The control flow after it.
    pub flow: Flow<'k>,
    /// The locals that it assigns.
    pub defines: Vec<Definition<'k>>,
    /// The memory that it accesses, other than the counter of `sync_grid`.
    pub accesses: Vec<MemoryAccess<'k>>,
    /// The operands, other than locations of accesses, on which control flow, integers and
    /// synchronisation depend: conditions, counts, parities, masks.
    pub controls: Vec<&'k Expr>,
    /// The part of its effect that other threads can observe.
    pub effect: Effect,
    /// The threads that execute it together.
    pub group: Option<Group>,
    /// The operation's name in the kernel language, if its group must certainly not have diverged
    /// and must certainly pass the same operands. The protocol checker follows other operations.
    pub uniform: Option<&'static str>,
    /// Its part in synchronisation.
    pub synchronization: Synchronization,
    /// The feature that it needs and that not every target has, and the operation of the kernel
    /// language that needs it.
    pub needs: Option<(Feature, &'static str)>,
}

/// An assignment to a local.
#[derive(Clone, Copy, Debug)]
pub struct Definition<'k> {
    /// The local.
    pub local: LocalId,
    /// The indices of the element that is assigned; empty for the whole local.
    pub index: &'k [Expr],
    /// The value.
    pub value: DefinedValue<'k>,
}

/// The origin of an assigned value.
#[derive(Clone, Copy, Debug)]
pub enum DefinedValue<'k> {
    /// An expression.
    Expr(&'k Expr),
    /// Each value of a range, in turn.
    Range(&'k For),
    /// A weak load.
    Load,
    /// A strong access.
    Atomic(&'k Atomic),
    /// The phase of an mbarrier at the time of the operation.
    Phase,
    /// The election of a thread.
    Election,
    /// The values of the warp's lanes.
    Lanes(&'k Expr, &'k WarpOp),
    /// A matrix, of which each thread holds some elements.
    Matrix,
    /// A value that instructions of the kernel's own compute.
    Ptx(&'k Ptx),
}

/// An access to memory.
#[derive(Clone, Debug)]
pub struct MemoryAccess<'k> {
    /// The object that is accessed.
    pub object: MemoryObject<'k>,
    /// The index or coordinates of the first element. Empty if the whole object counts as accessed.
    pub at: Vec<&'k Expr>,
    /// The number of elements.
    pub elements: Elements<'k>,
    /// The unit that accesses memory.
    pub by: Accessor,
    /// Whether it changes memory.
    pub writes: bool,
    /// Whether it has an order and a scope.
    pub is_strong: bool,
}

/// An object in memory.
#[derive(Clone, Copy, Debug)]
pub enum MemoryObject<'k> {
    /// A tile or array in shared memory.
    Shared(&'k Expr),
    /// An mbarrier.
    Mbarrier(&'k Expr),
    /// A tensor map in shared memory.
    Map(&'k Expr),
    /// The global memory of a parameter.
    Global(ParamId),
}

/// A number of elements.
#[derive(Clone, Copy, Debug)]
pub enum Elements<'k> {
    /// Those of the stored value.
    Stored(&'k Type),
    /// Those of the local that receives the loaded value.
    Loaded(LocalId),
    /// One.
    One,
    /// The value of an expression.
    Counted(&'k Expr),
    /// Unknown.
    Unknown,
}

/// The unit that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accessor {
    /// Loads and stores of threads.
    Threads,
    /// The copy engine, through the asynchronous proxy.
    Copy,
    /// Instructions of mbarriers, tensor maps and tensor cores.
    Other,
}

/// The part of an effect that other threads can observe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// None: it changes variables of the thread, or where the thread continues.
    Local,
    /// Weak loads of elements.
    Loads,
    /// Weak stores of elements.
    Stores,
    /// A strong access.
    Strong,
    /// The exchange of values between lanes.
    Exchanges,
    /// The order of memory accesses.
    Orders,
    /// Anything else.
    Visible,
}

/// Threads that execute a statement together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Those of a warp.
    Warp,
    /// Those of the team whose registers hold this local, each warp by itself.
    TeamOf(LocalId),
    /// Those of a warpgroup.
    Warpgroup,
    /// Those of a named barrier.
    Named,
    /// Those of the block.
    Block,
    /// Those of the cluster.
    Cluster,
    /// Those of the grid.
    Grid,
}

/// The part of a statement in synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronization {
    /// None.
    None,
    /// Arrives, orders accesses, or starts or commits an asynchronous operation.
    Signals,
    /// Waits, or asks whether it would have to.
    Waits(Wait),
    /// Synchronises with other grids.
    Grids,
}

/// The event that a statement waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The phase of an mbarrier with a parity.
    Phase,
    /// The phase of an mbarrier with a token.
    Token,
    /// All threads of the statement's group.
    Threads,
    /// The values of the other lanes.
    Lanes,
    /// Registers that other warpgroups release.
    Registers,
    /// Multiplications of the warpgroup.
    Multiplications,
    /// Bulk groups of the thread.
    BulkGroups,
}

impl<'k> MemoryObject<'k> {
    /// Returns the object, if it is in shared memory.
    pub fn shared(self) -> Option<&'k Expr> {
        match self {
            Self::Shared(object) | Self::Mbarrier(object) | Self::Map(object) => Some(object),
            Self::Global(_) => None,
        }
    }

    /// Returns the parameter, if the object is in global memory.
    pub fn global(self) -> Option<ParamId> {
        if let Self::Global(param) = self { Some(param) } else { None }
    }
}

impl Elements<'_> {
    /// Returns the number, if it is known.
    pub fn count(self, kernel: &Kernel) -> Option<u32> {
        let of_value = |ty: &Type| ty.elements().map_or(1, |(_, len)| len);
        match self {
            Self::Stored(ty) => Some(of_value(ty)),
            Self::Loaded(dest) => Some(of_value(&kernel.local(dest).ty)),
            Self::One => Some(1),
            Self::Counted(count) => count.as_int().and_then(|count| u32::try_from(count).ok()),
            Self::Unknown => None,
        }
    }
}

impl<'k> MemoryAccess<'k> {
    fn new(object: MemoryObject<'k>, by: Accessor, writes: bool) -> Self {
        Self { object, at: vec![], elements: Elements::Unknown, by, writes, is_strong: false }
    }

    fn mbarrier(barrier: &'k Expr) -> Self {
        Self::new(MemoryObject::Mbarrier(barrier), Accessor::Other, true)
    }

    fn of(self, at: Vec<&'k Expr>, elements: Elements<'k>) -> Self {
        Self { at, elements, ..self }
    }
}

impl<'k> Facts<'k> {
    /// A statement that is assumed to have an effect that others can observe.
    fn visible() -> Self {
        Self {
            flow: Flow::Fallthrough,
            defines: vec![],
            accesses: vec![],
            controls: vec![],
            effect: Effect::Visible,
            group: None,
            uniform: None,
            synchronization: Synchronization::None,
            needs: None,
        }
    }

    fn flow(flow: Flow<'k>) -> Self {
        Self { flow, effect: Effect::Local, ..Self::visible() }
    }

    fn signals() -> Self {
        Self { synchronization: Synchronization::Signals, ..Self::visible() }
    }

    fn waits(wait: Wait) -> Self {
        Self { synchronization: Synchronization::Waits(wait), ..Self::visible() }
    }

    fn accesses(accesses: Vec<MemoryAccess<'k>>) -> Self {
        Self { accesses, ..Self::visible() }
    }

    /// A load or store by threads that counts as one of the whole object.
    fn whole(object: MemoryObject<'k>, writes: bool) -> Self {
        Self::accesses(vec![MemoryAccess::new(object, Accessor::Threads, writes)])
    }

    fn load(dest: LocalId, object: MemoryObject<'k>, at: Vec<&'k Expr>) -> Self {
        let access = MemoryAccess::new(object, Accessor::Threads, false).of(at, Elements::Loaded(dest));
        Self { effect: Effect::Loads, ..Self::accesses(vec![access]) }.defines(dest, DefinedValue::Load)
    }

    fn store(object: MemoryObject<'k>, at: Vec<&'k Expr>, value: &'k Expr) -> Self {
        let access = MemoryAccess::new(object, Accessor::Threads, true).of(at, Elements::Stored(&value.ty));
        Self { effect: Effect::Stores, ..Self::accesses(vec![access]) }
    }

    fn defines(self, local: LocalId, value: DefinedValue<'k>) -> Self {
        Self { defines: vec![Definition { local, index: &[], value }], ..self }
    }

    fn controls(self, controls: Vec<&'k Expr>) -> Self {
        Self { controls, ..self }
    }

    /// Adds that the threads of a group execute it together, after they may have diverged.
    fn together(self, group: Group) -> Self {
        Self { group: Some(group), ..self }
    }

    /// Adds that the threads of a group, which must not have diverged, execute it together.
    fn uniform(self, group: Group, word: &'static str) -> Self {
        Self { group: Some(group), uniform: Some(word), ..self }
    }

    fn needs(self, feature: Feature, word: &'static str) -> Self {
        Self { needs: Some((feature, word)), ..self }
    }

    /// Whether it waits until all threads of its group have arrived.
    pub fn is_rendezvous(&self) -> bool {
        self.synchronization == Synchronization::Waits(Wait::Threads)
    }

    /// Whether the threads of a warp execute it together, other than `sync_warp`.
    pub fn is_of_warp(&self) -> bool {
        matches!(self.group, Some(Group::Warp | Group::TeamOf(_))) && !self.is_rendezvous()
    }
}

impl Stmt {
    /// Returns the properties of the statement.
    pub fn facts(&self) -> Facts<'_> {
        self.kind.facts()
    }

    /// Returns the control flow of the statement.
    pub fn flow(&self) -> Flow<'_> {
        self.facts().flow
    }
}
