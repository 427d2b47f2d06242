//! A stable textual form of kernels, for people and for snapshots. Spans are left out.

use std::fmt::{self, Display, Formatter, Write as _};

use super::*;

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.launch.threads;
        write!(f, "kernel {} threads [{x}, {y}, {z}]", self.path())?;
        if let Some(blocks) = self.launch.min_blocks {
            write!(f, " min_blocks {blocks}")?;
        }
        if let Some(registers) = self.launch.max_registers {
            write!(f, " max_registers {registers}")?;
        }
        match self.launch.cluster {
            Cluster::None => {}
            Cluster::Fixed([x, y, z]) => write!(f, " cluster [{x}, {y}, {z}]")?,
            Cluster::AtLaunch => f.write_str(" cluster launch")?,
        }
        if self.launch.nonportable_cluster {
            f.write_str(" nonportable_cluster")?;
        }
        match self.checked {
            Some(true) => f.write_str(" checked")?,
            Some(false) => f.write_str(" unchecked")?,
            None => {}
        }
        if let Some(reason) = &self.trusted {
            write!(f, " trusted {reason:?}")?;
        }
        if self.local_arrays {
            f.write_str(" local_arrays")?;
        }
        f.write_char('\n')?;
        for (i, param) in self.params.iter().enumerate() {
            let written = if param.written { " written" } else { "" };
            writeln!(f, "  param p{i} {}: {}{written}", param.name, param.ty)?;
        }
        for (i, var) in self.shared.iter().enumerate() {
            write!(f, "  shared s{i} {}: {}", var.name, var.ty)?;
            for (i, owner) in var.reuses.iter().enumerate() {
                write!(f, "{}{owner}", if i == 0 { " in " } else { " " })?;
            }
            f.write_char('\n')?;
        }
        for (i, local) in self.locals.iter().enumerate() {
            writeln!(f, "  local v{i} {}: {}", local.name, local.ty)?;
        }
        block(f, &self.body, 1)
    }
}

fn block(f: &mut Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
    block.stmts.iter().try_for_each(|stmt| statement(f, &stmt.kind, depth))
}

fn statement(f: &mut Formatter<'_>, kind: &StmtKind, depth: usize) -> fmt::Result {
    write!(f, "{:1$}", "", depth * 2)?;
    match kind {
        StmtKind::Assign { local, index, value } => {
            write!(f, "{local}")?;
            index.iter().try_for_each(|index| write!(f, "[{index}]"))?;
            writeln!(f, " = {value}")
        }
        StmtKind::If { condition, then, otherwise } => {
            writeln!(f, "if {condition}")?;
            block(f, then, depth + 1)?;
            if otherwise.stmts.is_empty() {
                return Ok(());
            }
            writeln!(f, "{:1$}else", "", depth * 2)?;
            block(f, otherwise, depth + 1)
        }
        StmtKind::Match { value, arms, otherwise } => {
            writeln!(f, "match {value}")?;
            for arm in arms {
                let ranges: Vec<_> = arm.ranges.iter().map(|(a, b)| format!("{a}..={b}")).collect();
                writeln!(f, "{:2$}case {1}", "", ranges.join(" | "), depth * 2)?;
                block(f, &arm.body, depth + 1)?;
            }
            writeln!(f, "{:1$}else", "", depth * 2)?;
            block(f, otherwise, depth + 1)
        }
        StmtKind::Loop { label, body } => {
            writeln!(f, "{label}: loop")?;
            block(f, body, depth + 1)
        }
        StmtKind::While { label, header, condition, body } => {
            writeln!(f, "{label}: while")?;
            block(f, header, depth + 2)?;
            writeln!(f, "{:1$}{condition} do", "", depth * 2 + 2)?;
            block(f, body, depth + 1)
        }
        StmtKind::For(inner) => {
            let For { label, variable, start, end, inclusive, step, unroll, body } = &**inner;
            let (dots, how) = (if *inclusive { "..=" } else { ".." }, if *unroll { " unrolled" } else { "" });
            writeln!(f, "{label}: for {variable} in {start}{dots}{end} step {step}{how}")?;
            block(f, body, depth + 1)
        }
        StmtKind::Labelled { label, body } => {
            writeln!(f, "{label}:")?;
            block(f, body, depth + 1)
        }
        StmtKind::Break(label) => writeln!(f, "break {label}"),
        StmtKind::Continue(label) => writeln!(f, "continue {label}"),
        StmtKind::Leave(label) => writeln!(f, "leave {label}"),
        StmtKind::Return => writeln!(f, "return"),
        StmtKind::TileGet { dest, tile, at } => writeln!(f, "{dest} = tile.get {tile} {}", List(at)),
        StmtKind::TileSet { tile, at, value } => writeln!(f, "tile.set {tile} {} {value}", List(at)),
        StmtKind::SharedGet { dest, array, index } => writeln!(f, "{dest} = shared.get {array} {index}"),
        StmtKind::SharedSet { array, index, value } => writeln!(f, "shared.set {array} {index} {value}"),
        StmtKind::GlobalGet { dest, global, index, path, hint } => {
            let word = match path {
                LoadPath::Coherent => "get",
                LoadPath::NonCoherent => "get_nc",
            };
            write!(f, "{dest} = global.{word} {global} {index}")?;
            end_with_hint(f, hint.as_deref())
        }
        StmtKind::GlobalSet { global, index, value, hint } => {
            write!(f, "global.set {global} {index} {value}")?;
            end_with_hint(f, hint.as_deref())
        }
        StmtKind::Atomic(access) => atomic(f, access),
        StmtKind::TileCopy(copy) => tile_copy(f, copy),
        StmtKind::BulkCopy(copy) => bulk_copy(f, copy),
        StmtKind::RemoteCopy(copy) => remote_copy(f, copy),
        StmtKind::PrefetchMap(map) => writeln!(f, "tma.prefetch_descriptor {map}"),
        StmtKind::Barrier { barrier, op, scope: _ } => barrier_op(f, barrier, op),
        StmtKind::EditMap { map, edit } => map_edit(f, map, edit),
        StmtKind::AcquireMap { maps, index } => writeln!(f, "map.acquire {maps}[{index}]"),
        StmtKind::BulkCommitGroup => writeln!(f, "bulk.commit_group"),
        StmtKind::BulkWaitGroup { pending, read_only } => {
            writeln!(f, "bulk.wait_group{} {pending}", if *read_only { ".read" } else { "" })
        }
        StmtKind::Mma(mma) => multiplication(f, mma),
        StmtKind::MmaWait { accumulator, awaited } => {
            writeln!(f, "mma.wait {accumulator}{}", if *awaited == Awaited::Older { " older" } else { "" })
        }
        StmtKind::Pack { dest, accumulator } => writeln!(f, "{dest} = pack {accumulator}"),
        StmtKind::Unpack { dest, fragment } => writeln!(f, "{dest} = unpack {fragment}"),
        StmtKind::StoreAccumulator { accumulator, first, tile } => {
            writeln!(f, "accumulator.store {accumulator}[{first}] {tile}")
        }
        StmtKind::CheckMatrix(matrix) => {
            f.write_str("matrix.check ")?;
            global_matrix(f, matrix)?;
            f.write_char('\n')
        }
        StmtKind::StoreMatrix(store) => matrix_store(f, store),
        StmtKind::ReduceRows { dest, op, accumulator } => {
            writeln!(f, "{dest} = row_{} {accumulator}", op.name())
        }
        StmtKind::LoadFragment(load) => {
            let FragmentLoad { dest, from: SharedOperand { tile, ty }, at, widens } = &**load;
            let word = if *widens { "widen" } else { "load" };
            let transposed = if ty.transposed { ".transposed" } else { "" };
            writeln!(f, "{dest} = fragment.{word}{transposed} {tile} {}", List(at))
        }
        StmtKind::MmaSync(mma) => {
            let MmaSync { op, accumulator, left, right } = &**mma;
            writeln!(f, "{} {accumulator} {left} {right}", op.name())
        }
        StmtKind::StoreWarp(store) => {
            let WarpStore { accumulator, tile, at } = &**store;
            writeln!(f, "accumulator.store {accumulator} {tile} {}", List(at))
        }
        StmtKind::SetMaxRegisters { increase, registers } => {
            writeln!(f, "setmaxnreg_{} {registers}", if *increase { "inc" } else { "dec" })
        }
        StmtKind::Fence(fence) => writeln!(f, "fence.{}", fence_name(*fence)),
        StmtKind::Sync(Sync::Threads) => writeln!(f, "sync.threads"),
        StmtKind::Sync(Sync::Warpgroup) => writeln!(f, "sync.warpgroup"),
        StmtKind::Sync(Sync::Warp) => writeln!(f, "sync.warp"),
        StmtKind::Sync(Sync::Cluster) => writeln!(f, "sync.cluster"),
        StmtKind::Sync(Sync::ClusterArrive) => writeln!(f, "sync.cluster_arrive"),
        StmtKind::Sync(Sync::ClusterWait) => writeln!(f, "sync.cluster_wait"),
        StmtKind::SyncGrid { counter } => writeln!(f, "sync.grid p{}", counter.0),
        StmtKind::GridDependency(GridDependency::Wait) => writeln!(f, "grid_dependency.wait"),
        StmtKind::GridDependency(GridDependency::Launch) => writeln!(f, "grid_dependency.launch"),
        StmtKind::NamedBarrierSync { id, threads } => writeln!(f, "sync.named {id} {threads}"),
        StmtKind::NamedBarrierArrive { id, threads } => writeln!(f, "arrive.named {id} {threads}"),
        StmtKind::ElectOne { dest } => writeln!(f, "{dest} = elect_one"),
        StmtKind::Warp { dest, value, op } => match op {
            WarpOp::Shuffle { op, by } => writeln!(f, "{dest} = warp.shuffle_{} {value} {by}", op.name()),
            WarpOp::Vote(op) => writeln!(f, "{dest} = warp.vote_{} {value}", op.name()),
            WarpOp::Match(op) => writeln!(f, "{dest} = warp.match_{} {value}", op.name()),
            WarpOp::Reduce(op) => writeln!(f, "{dest} = warp.reduce_{} {value}", op.name()),
        },
        StmtKind::Trap => writeln!(f, "trap"),
        StmtKind::Assert { condition, message, assumed } => {
            let word = if *assumed { "assume" } else { "assert" };
            writeln!(f, "{word} {condition} {message:?}")
        }
        StmtKind::Printf { pieces, args } => writeln!(f, "printf {pieces:?} {}", List(args)),
        StmtKind::Ptx(inner) => ptx(f, inner),
        StmtKind::PrintTile { tile } => writeln!(f, "print_tile {tile}"),
        StmtKind::TraceSpan { name, edge } => match edge {
            SpanEdge::Begin => writeln!(f, "span.begin {name:?}"),
            SpanEdge::End => writeln!(f, "span.end {name:?}"),
        },
    }
}

fn ptx(f: &mut Formatter<'_>, ptx: &Ptx) -> fmt::Result {
    let Ptx { pieces, outputs, inputs, accesses, volatile } = ptx;
    write!(f, "ptx{} {pieces:?} {}", if *volatile { ".volatile" } else { "" }, List(inputs))?;
    for PtxOutput { dest, initial } in outputs {
        write!(f, " -> {dest}")?;
        if let Some(initial) = initial {
            write!(f, " from {initial}")?;
        }
    }
    for PtxAccess { object, writes } in accesses {
        write!(f, " {} {object}", if *writes { "writes" } else { "reads" })?;
    }
    f.write_char('\n')
}

fn atomic(f: &mut Formatter<'_>, atomic: &Atomic) -> fmt::Result {
    let Atomic { memory: accessed, index, access, order, scope } = atomic;
    if let Some(dest) = atomic.dest() {
        write!(f, "{dest} = ")?;
    }
    let memory = if let AtomicMemory::Global(_) = accessed { "global" } else { "shared" };
    let word = match access {
        AtomicAccess::Load { .. } => "load",
        AtomicAccess::Store { .. } => "store",
        AtomicAccess::Update { op, .. } => op.name(),
        AtomicAccess::CompareExchange { .. } => "compare_exchange",
        AtomicAccess::AddVector { .. } => "add_vec",
    };
    write!(f, "{memory}.{word}.{}.{} ", order.name(), scope.name())?;
    match accessed {
        AtomicMemory::Global(global) => write!(f, "{global}")?,
        AtomicMemory::Shared(array) => write!(f, "{array}")?,
    }
    write!(f, " {index}")?;
    match access {
        AtomicAccess::Load { dest: _ } => {}
        AtomicAccess::Store { value }
        | AtomicAccess::Update { value, .. }
        | AtomicAccess::AddVector { value } => write!(f, " {value}")?,
        AtomicAccess::CompareExchange { current, new, dest: _ } => write!(f, " {current} {new}")?,
    }
    f.write_char('\n')
}

fn multiplication(f: &mut Formatter<'_>, mma: &Mma) -> fmt::Result {
    let Mma { op, accumulator, left, metadata, right } = mma;
    write!(f, "{} {accumulator} ", op.name())?;
    match left {
        LeftOperand::Shared(left) => shared_operand(f, left)?,
        LeftOperand::Registers(fragment) => write!(f, "{fragment}")?,
    }
    if let Some(metadata) = metadata {
        write!(f, ".sparse({metadata})")?;
    }
    f.write_char(' ')?;
    shared_operand(f, right)?;
    f.write_char('\n')
}

fn shared_operand(f: &mut Formatter<'_>, operand: &SharedOperand) -> fmt::Result {
    let OperandType { tile: _, band: _, transposed, negated, sparse: _ } = operand.ty;
    let (sign, suffix) = (if negated { "-" } else { "" }, if transposed { ".t" } else { "" });
    write!(f, "{sign}{}{suffix}", operand.tile)
}

fn matrix_store(f: &mut Formatter<'_>, store: &MatrixStore) -> fmt::Result {
    let MatrixStore { accumulator, first, columns, matrix, at: [row, column] } = store;
    write!(f, "accumulator.store_to {accumulator}[{first}; {columns}] ")?;
    global_matrix(f, matrix)?;
    writeln!(f, " [{row}, {column}]")
}

fn global_matrix(f: &mut Formatter<'_>, matrix: &GlobalMatrix) -> fmt::Result {
    let GlobalMatrix { global, first, extents: [rows, columns], stride } = matrix;
    write!(f, "{global}[{first}; {rows} x {columns}, {stride}]")
}

fn map_edit(f: &mut Formatter<'_>, map: &Expr, edit: &MapEdit) -> fmt::Result {
    match edit {
        MapEdit::CopyFrom { map: from } => writeln!(f, "map.copy_from {map} {from}"),
        MapEdit::Address { global, index } => writeln!(f, "map.set_address {map} {global}[{index}]"),
        MapEdit::Extent { dimension, extent } => writeln!(f, "map.set_extent {map} {dimension} {extent}"),
        MapEdit::Stride { dimension, bytes } => writeln!(f, "map.set_stride {map} {dimension} {bytes}"),
        MapEdit::Publish { maps, index } => writeln!(f, "map.publish {map} {maps}[{index}]"),
    }
}

fn tile_copy(f: &mut Formatter<'_>, copy: &TileCopy) -> fmt::Result {
    let TileCopy { map, at, offsets, hint, kind } = copy;
    write!(f, "tma.{} {map} {}", copy_name(kind), List(at))?;
    if !offsets.is_empty() {
        write!(f, " offsets {}", List(offsets))?;
    }
    shared_side(f, kind)?;
    end_with_hint(f, hint.as_ref())
}

fn bulk_copy(f: &mut Formatter<'_>, copy: &BulkCopy) -> fmt::Result {
    let BulkCopy { global, index, count, hint, kind } = copy;
    write!(f, "bulk.{}", copy_name(kind))?;
    shared_side(f, kind)?;
    write!(f, " {global}[{index}; {count}]")?;
    end_with_hint(f, hint.as_ref())
}

fn remote_copy(f: &mut Formatter<'_>, copy: &RemoteCopy) -> fmt::Result {
    let RemoteCopy { op, from, to, at, count, barrier } = copy;
    let name = op.map_or_else(|| "copy".to_owned(), |op| format!("reduce_{}", op.name()));
    writeln!(f, "bulk.{name}_to {from}[{at}; {count}] {to} {barrier}")
}

fn copy_name<S>(kind: &CopyKind<S>) -> String {
    match kind {
        CopyKind::Load { multicast: None, .. } => "load".to_owned(),
        CopyKind::Load { multicast: Some(Multicast::Mask(_)), .. } => "load_multicast".to_owned(),
        CopyKind::Load { multicast: Some(Multicast::Sliced(_)), .. } => "load_sliced".to_owned(),
        CopyKind::Store { .. } => "store".to_owned(),
        CopyKind::Reduce { op, .. } => format!("reduce_{}", op.name()),
        CopyKind::Prefetch => "prefetch".to_owned(),
    }
}

/// Writes the shared-memory side, with the barrier and the multicast of a load.
fn shared_side(f: &mut Formatter<'_>, kind: &CopyKind<impl Display>) -> fmt::Result {
    match kind {
        CopyKind::Load { to, barrier, multicast } => {
            write!(f, " {to} {barrier}")?;
            match multicast {
                None => Ok(()),
                Some(Multicast::Mask(mask)) => write!(f, " {mask}"),
                Some(Multicast::Sliced(axis)) => write!(f, " {}", axis.name()),
            }
        }
        CopyKind::Store { from } | CopyKind::Reduce { from, op: _ } => write!(f, " {from}"),
        CopyKind::Prefetch => Ok(()),
    }
}

impl Display for SharedRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.array, self.at)
    }
}

impl Display for GlobalRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.param.fmt(f)?;
        self.rank.iter().try_for_each(|rank| write!(f, "[rank {rank}]"))
    }
}

impl Display for MapRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.index {
            None => write!(f, "{}", self.param),
            Some(index) => write!(f, "{}[{index}]", self.param),
        }
    }
}

fn end_with_hint(f: &mut Formatter<'_>, hint: Option<&Expr>) -> fmt::Result {
    match hint {
        Some(hint) => writeln!(f, " hint {hint}"),
        None => writeln!(f),
    }
}

fn barrier_op(f: &mut Formatter<'_>, barrier: &Expr, op: &BarrierOp) -> fmt::Result {
    match op {
        BarrierOp::Init { count } => writeln!(f, "barrier.init {barrier} {count}"),
        BarrierOp::Invalidate => writeln!(f, "barrier.invalidate {barrier}"),
        BarrierOp::Arrive => writeln!(f, "barrier.arrive {barrier}"),
        BarrierOp::ArriveMany { count } => writeln!(f, "barrier.arrive {barrier} {count}"),
        BarrierOp::ArriveToken { dest } => writeln!(f, "{dest} = barrier.arrive {barrier}"),
        BarrierOp::ArriveDrop => writeln!(f, "barrier.arrive_drop {barrier}"),
        BarrierOp::ArriveExpectTx { bytes } => writeln!(f, "barrier.arrive_expect_tx {barrier} {bytes}"),
        BarrierOp::ExpectTx { bytes } => writeln!(f, "barrier.expect_tx {barrier} {bytes}"),
        BarrierOp::Wait { parity } => writeln!(f, "barrier.wait {barrier} {parity}"),
        BarrierOp::WaitToken { token } => writeln!(f, "barrier.wait_token {barrier} {token}"),
        BarrierOp::TestWait { dest, parity } => writeln!(f, "{dest} = barrier.test_wait {barrier} {parity}"),
        BarrierOp::TryWait { dest, parity } => writeln!(f, "{dest} = barrier.try_wait {barrier} {parity}"),
        BarrierOp::TryWaitFor { dest, parity, nanoseconds } => {
            writeln!(f, "{dest} = barrier.try_wait {barrier} {parity} for {nanoseconds}")
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Const(Const::Bool(value)) => write!(f, "{value}"),
            ExprKind::Const(Const::Int(value)) => write!(f, "{value}{}", self.ty),
            ExprKind::Const(Const::Float(value) | Const::Literal { double: value, .. }) => {
                write!(f, "{value:?}{}", self.ty)
            }
            ExprKind::Local(id) => write!(f, "{id}"),
            ExprKind::Shared(id) => write!(f, "{id}"),
            ExprKind::Param(id) => write!(f, "{id}"),
            ExprKind::GlobalLen(id) => write!(f, "len({id})"),
            ExprKind::Special(special) => write!(f, "{special}"),
            ExprKind::Unary(UnaryOp::Neg, a) => write!(f, "(-{a})"),
            ExprKind::Unary(UnaryOp::Not, a) => write!(f, "(!{a})"),
            ExprKind::Binary(op, a, b, _) => write!(f, "({a} {} {b})", op.sign()),
            ExprKind::Cast(a) => write!(f, "({a} as {})", self.ty),
            ExprKind::Bits(a) => write!(f, "bits({a} as {})", self.ty),
            ExprKind::Integer(op, all) => write!(f, "{}({})", op.name(), Commas(all)),
            ExprKind::Math(op, all) => write!(f, "{}({})", op.name(), Commas(all)),
            ExprKind::Array(all) => write!(f, "{}", List(all)),
            ExprKind::Compound(parts) => write!(f, "({})", Commas(parts)),
            ExprKind::Repeat(a) => write!(f, "repeat({a}, {})", self.ty),
            ExprKind::Index(a, i) | ExprKind::Stage(a, i) => write!(f, "{a}[{i}]"),
            ExprKind::CachePolicy(priority, fraction) => write!(f, "l2_{}({fraction})", priority.name()),
            ExprKind::Hinted(map, policy) => write!(f, "{map}.hint({policy})"),
            ExprKind::Remote(a, rank) => write!(f, "remote({a}, {rank})"),
            ExprKind::Choice(choice) => f.write_str(choice.name()),
            ExprKind::Member(maps, index) => write!(f, "{maps}[{index}]"),
            ExprKind::ZeroAccumulator => write!(f, "zero({})", self.ty),
            ExprKind::Unit => f.write_str("()"),
            ExprKind::Error => f.write_str("<error>"),
        }
    }
}

impl Display for Special {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThreadIdx(axis) => write!(f, "thread_idx.{axis}"),
            Self::BlockIdx(axis) => write!(f, "block_idx.{axis}"),
            Self::GridDim(axis) => write!(f, "grid_dim.{axis}"),
            Self::ClusterIdx(axis) => write!(f, "cluster_idx.{axis}"),
            Self::BlockInCluster(axis) => write!(f, "block_in_cluster.{axis}"),
            Self::ClusterDim(axis) => write!(f, "cluster_dim.{axis}"),
            Self::ClusterRank => f.write_str("cluster_rank"),
            Self::LaneIdx => f.write_str("lane_idx"),
            Self::WarpIdx => f.write_str("warp_idx"),
            Self::WarpgroupIdx => f.write_str("warpgroup_idx"),
        }
    }
}

impl Display for Axis {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X => "x",
            Self::Y => "y",
            Self::Z => "z",
        })
    }
}

macro_rules! prefixed {
    ($($id:ident $prefix:literal),+) => {
        $(impl Display for $id {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        })+
    };
}

prefixed!(LocalId "v", SharedId "s", ParamId "p", Label "l");

struct Commas<'a>(&'a [Expr]);

impl Display for Commas<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, expr) in self.0.iter().enumerate() {
            write!(f, "{}{expr}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

struct List<'a>(&'a [Expr]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", Commas(self.0))
    }
}

const fn fence_name(fence: Fence) -> &'static str {
    match fence {
        Fence::ProxyAsync(FencedMemory::All) => "proxy_async_all",
        Fence::ProxyAsync(FencedMemory::Shared(Scope::Cluster)) => "proxy_async",
        Fence::ProxyAsync(FencedMemory::Shared(Scope::Block)) => "proxy_async own",
        Fence::ProxyAsync(FencedMemory::Global) => "proxy_async_global",
        Fence::MbarrierInit => "barrier_init",
        Fence::Memory => "device",
        Fence::TensorMapRelease => "tensormap_release",
        Fence::ProxyAlias => "proxy_alias",
    }
}
