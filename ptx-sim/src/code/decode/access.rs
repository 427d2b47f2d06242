//! Loads, stores and atomic operations.

use super::operands::Decoder;
use super::{cache, remote, wide};
use crate::isa::float::{FloatType, Mode};
use crate::isa::{
    Access, AccessOrder, Atomic, AtomicOp, AtomicVector, Integer, Memory, MemoryOp, MemoryScope, Op, Order,
    Reg, Space, Type,
};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let opcode = d.instruction.opcode;
    match opcode {
        "ld" | "ldu" => load(d),
        "st" if d.take("async") => remote::store(d),
        "st" => store(d),
        "atom" => atomic(d, true),
        "red" if d.take("async") => remote::reduce(d),
        "red" => atomic(d, false),
        _ => cache::decode(d),
    }
}

/// Takes the state space of a load or store; generic if none is named.
pub(super) fn take_space(d: &mut Decoder<'_, '_, '_>) -> Memory {
    d.take_of(&[
        ("global", Memory::Machine(Space::Global)),
        // Constants are in global memory, at addresses of their own.
        ("const", Memory::Machine(Space::Global)),
        ("shared", Memory::Machine(Space::Shared)),
        ("shared::cta", Memory::Machine(Space::Shared)),
        ("shared::cluster", Memory::Machine(Space::SharedCluster)),
        ("local", Memory::Local),
        ("param", Memory::Param),
        ("param::entry", Memory::Param),
        ("param::func", Memory::Local),
    ])
    .unwrap_or(Memory::Machine(Space::Generic))
}

/// Takes `.relaxed` and the like, with the scope. Without them the order is `default`, at scope
/// `.gpu`. Source: PTX ISA, "ld", "atom"; "ld.volatile" is relaxed at system scope.
pub(super) fn take_access_order(d: &mut Decoder<'_, '_, '_>, default: Order) -> AccessOrder {
    let is_volatile = d.take("volatile");
    let order = take_order(d).unwrap_or(if is_volatile { Order::Relaxed } else { default });
    d.take("mmio");
    let named = take_scope(d);
    let otherwise = if is_volatile { MemoryScope::System } else { MemoryScope::Device };
    AccessOrder { order, scope: order.is_strong().then(|| named.unwrap_or(otherwise)) }
}

pub(super) fn take_order(d: &mut Decoder<'_, '_, '_>) -> Option<Order> {
    d.take_of(&[
        ("weak", Order::Weak),
        ("relaxed", Order::Relaxed),
        ("acquire", Order::Acquire),
        ("release", Order::Release),
        ("acq_rel", Order::AcqRel),
    ])
}

pub(super) fn take_scope(d: &mut Decoder<'_, '_, '_>) -> Option<MemoryScope> {
    d.take_of(&MemoryScope::ALL.map(|scope| (scope.name(), scope)))
}

/// Takes cache hints, and returns whether one of them has an operand.
pub(super) fn take_cache_hints(d: &mut Decoder<'_, '_, '_>) -> bool {
    const HINTS: [&str; 19] = [
        "ca",
        "cg",
        "cs",
        "lu",
        "cv",
        "wb",
        "wt",
        "unified",
        "evict_last",
        "evict_first",
        "L1::evict_normal",
        "L1::evict_unchanged",
        "L1::evict_first",
        "L1::evict_last",
        "L1::no_allocate",
        "L2::64B",
        "L2::128B",
        "L2::256B",
        "L2::evict_first",
    ];
    for hint in HINTS {
        d.take(hint);
    }
    for hint in ["L2::evict_last", "L2::evict_normal"] {
        d.take(hint);
    }
    d.take("L2::cache_hint")
}

/// Checks the operand of a cache hint like [`check_policy`], for a load, a store or an atomic
/// operation.
fn check_hinted(d: &mut Decoder<'_, '_, '_>, hint: bool, memory: Memory) -> Result<(), LoadError> {
    if hint && !matches!(memory, Memory::Machine(Space::Global | Space::Generic)) {
        return Err(d.error("`.L2::cache_hint` is only supported for global memory"));
    }
    check_policy(d, hint)
}

/// Checks the cache policy, which is the last operand if a hint has one.
pub(super) fn check_policy(d: &mut Decoder<'_, '_, '_>, hint: bool) -> Result<(), LoadError> {
    if hint {
        d.source(d.count().saturating_sub(1), Type::Bits(64))?;
    }
    Ok(())
}

fn take_count(d: &mut Decoder<'_, '_, '_>) -> u32 {
    d.take_of(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1)
}

/// Takes the type of an element, which may be any that fits a register.
fn element(d: &mut Decoder<'_, '_, '_>) -> Result<Type, LoadError> {
    let ty = d.take_type()?;
    if ty == Type::Pred { Err(d.unsupported()) } else { Ok(ty) }
}

fn elements<'a, 's>(
    d: &Decoder<'_, '_, 's>,
    operand: &'a Operand<'s>,
    count: u32,
) -> Result<&'a [Operand<'s>], LoadError> {
    let parts = if let Operand::Vector(parts) = operand { parts } else { std::slice::from_ref(operand) };
    if parts.len() == count as usize {
        Ok(parts)
    } else {
        Err(d.error(format!("expected {count} registers, found {}", parts.len())))
    }
}

fn load(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let order = take_access_order(d, Order::Weak);
    if order.order.releases() {
        return Err(d.error("expected `.weak`, `.relaxed` or `.acquire` for a load"));
    }
    let mut memory = take_space(d);
    let is_non_coherent = d.take("nc");
    if is_non_coherent && memory != Memory::Machine(Space::Global) {
        return Err(d.error("`.nc` is only supported for global memory"));
    }
    let hint = take_cache_hints(d);
    let count = take_count(d);
    let ty = element(d)?;
    d.expect_count(2 + usize::from(hint), 2 + usize::from(hint))?;
    check_hinted(d, hint, memory)?;
    let address = d.address(1)?;
    let source = d.operand(1)?;
    if memory == Memory::Param && d.is_local(source)? {
        memory = Memory::Local;
    }
    if ty == Type::B128 {
        let row = if count == 1 { d.dest(0, ty)? } else { return Err(d.unsupported()) };
        let access = wide::access(memory, order, address, row);
        return Ok(Op::Memory(MemoryOp::Load(Access { is_non_coherent, ..access })));
    }
    let mut registers = [Reg::SINK; 8];
    let mut extend = None;
    let operand = d.operand(0)?;
    let parts = elements(d, operand, count)?;
    for (row, part) in registers.iter_mut().zip(parts) {
        let (to, width) = d.wide_dest(part, ty.bits())?;
        *row = to;
        if ty.is_signed() && width > ty.bits() {
            extend = Some((ty.bits(), width));
        }
    }
    Ok(Op::Memory(MemoryOp::Load(Access {
        memory,
        order,
        bytes: ty.bits() / 8,
        count,
        address,
        registers,
        extend,
        is_scalar: count == 1,
        is_non_coherent,
    })))
}

fn store(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let order = take_access_order(d, Order::Weak);
    if order.order.acquires() {
        return Err(d.error("expected `.weak`, `.relaxed` or `.release` for a store"));
    }
    let mut memory = take_space(d);
    let hint = take_cache_hints(d);
    let count = take_count(d);
    let ty = element(d)?;
    d.expect_count(2 + usize::from(hint), 2 + usize::from(hint))?;
    check_hinted(d, hint, memory)?;
    let address = d.address(0)?;
    let target = d.operand(0)?;
    if memory == Memory::Param {
        if !d.is_local(target)? {
            return Err(d.error("a kernel's parameters cannot be written"));
        }
        memory = Memory::Local;
    }
    if ty == Type::B128 {
        let row = if count == 1 { wide::source(d, 1)? } else { return Err(d.unsupported()) };
        return Ok(Op::Memory(MemoryOp::Store(wide::access(memory, order, address, row))));
    }
    let mut registers = [Reg::SINK; 8];
    let operand = d.operand(1)?;
    let parts = elements(d, operand, count)?;
    for (row, part) in registers.iter_mut().zip(parts) {
        *row = d.wide_source(part, ty)?;
    }
    Ok(Op::Memory(MemoryOp::Store(Access {
        memory,
        order,
        bytes: ty.bits() / 8,
        count,
        address,
        registers,
        extend: None,
        is_scalar: count == 1,
        is_non_coherent: false,
    })))
}

fn atomic(d: &mut Decoder<'_, '_, '_>, returns_value: bool) -> Result<Op, LoadError> {
    let order = take_access_order(d, Order::Relaxed);
    if !returns_value && order.order.acquires() {
        return Err(
            d.error("expected `.relaxed` or `.release` for a reduction, which reads nothing to acquire")
        );
    }
    let memory = take_space(d);
    let hint = take_cache_hints(d);
    let no_flush = d.take("noftz");
    let count = take_count(d);
    let name = d.take_of(&[
        ("add", "add"),
        ("min", "min"),
        ("max", "max"),
        ("and", "and"),
        ("or", "or"),
        ("xor", "xor"),
        ("exch", "exch"),
        ("cas", "cas"),
        ("inc", "inc"),
        ("dec", "dec"),
    ]);
    let name = name.ok_or_else(|| d.unsupported())?;
    let ty = d.take_type()?;
    if ty == Type::B128 && returns_value {
        return wide::atomic(d, name, order, memory, hint);
    }
    let op = atomic_op(d, name, ty, memory)?;
    if count > 1 {
        let vector = VectorForm { op, ty, memory, order, count, no_flush };
        return atomic_vector(d, vector, returns_value, hint);
    }
    let first = usize::from(returns_value);
    let values = if op == AtomicOp::CompareAndSwap { 2 } else { 1 };
    let count = first + 1 + values + usize::from(hint);
    d.expect_count(count, count)?;
    check_hinted(d, hint, memory)?;
    let row = if returns_value { d.dest(0, ty)? } else { Reg::SINK };
    let address = d.address(first)?;
    let mut sources = [Reg::SINK; 2];
    for (index, row) in sources.iter_mut().enumerate().take(values) {
        *row = d.source(first + 1 + index, ty)?;
    }
    let bytes = ty.bits() / 8;
    Ok(Op::Memory(MemoryOp::Atomic(Atomic {
        op,
        memory,
        order,
        bytes,
        reads: returns_value,
        d: row,
        address,
        sources,
    })))
}

/// The modifiers of an atomic operation on a vector.
struct VectorForm {
    op: AtomicOp,
    ty: Type,
    memory: Memory,
    order: AccessOrder,
    count: u32,
    no_flush: bool,
}

/// Decodes the vector forms. Source: PTX ISA, "atom" and "red".
fn atomic_vector(
    d: &mut Decoder<'_, '_, '_>,
    form: VectorForm,
    returns_value: bool,
    hint: bool,
) -> Result<Op, LoadError> {
    let VectorForm { op, ty, memory, order, count, no_flush } = form;
    let first = usize::from(returns_value);
    let Memory::Machine(space @ (Space::Global | Space::Generic)) = memory else {
        return Err(d.error("vectors are for global memory"));
    };
    let (half, most) = match ty {
        Type::Float(FloatType::F32) if is_float(op) => (false, 4),
        Type::FloatPair(_) => (true, 4),
        Type::Float(FloatType::F16 | FloatType::Bf16) => (true, 8),
        Type::Pred
        | Type::Bits(_)
        | Type::Integer(_)
        | Type::Float(FloatType::F32 | FloatType::F64)
        | Type::IntegerPair(_)
        | Type::Tf32
        | Type::Float8Pair(_)
        | Type::B128 => return Err(d.error("this operation has no vectors of this type")),
    };
    if count > most || half != no_flush {
        return Err(d.error(format!("expected at most {most} elements, with `.noftz` if they have 16 bits")));
    }
    let operands = first + 2 + usize::from(hint);
    d.expect_count(operands, operands)?;
    check_hinted(d, hint, memory)?;
    let (mut rows, mut sources) = (Vec::new(), Vec::new());
    if returns_value {
        let operand = d.operand(0)?;
        for part in elements(d, operand, count)? {
            rows.push(d.wide_dest(part, ty.bits())?.0);
        }
    }
    let operand = d.operand(first + 1)?;
    for part in elements(d, operand, count)? {
        sources.push(d.inner(part, ty)?);
    }
    let (address, bytes) = (d.address(first)?, ty.bits() / 8);
    let vector = AtomicVector { op, space, order, bytes, address, d: rows, sources };
    Ok(Op::Memory(MemoryOp::AtomicVector(Box::new(vector))))
}

/// Returns whether an operation computes with floats rather than with their bits.
fn is_float(op: AtomicOp) -> bool {
    match op {
        AtomicOp::AddFloat(..) | AtomicOp::MinFloat(..) | AtomicOp::MaxFloat(..) => true,
        AtomicOp::Add(_)
        | AtomicOp::Min(_)
        | AtomicOp::Max(_)
        | AtomicOp::And
        | AtomicOp::Or
        | AtomicOp::Xor
        | AtomicOp::Exchange
        | AtomicOp::CompareAndSwap
        | AtomicOp::Inc
        | AtomicOp::Dec => false,
    }
}

fn atomic_op(d: &Decoder<'_, '_, '_>, name: &str, ty: Type, memory: Memory) -> Result<AtomicOp, LoadError> {
    let wide = ty.bits() >= 32;
    let op = match (name, ty) {
        ("add", Type::Integer(integer)) if wide => AtomicOp::Add(integer),
        ("min", Type::Integer(integer)) if wide => AtomicOp::Min(integer),
        ("max", Type::Integer(integer)) if wide => AtomicOp::Max(integer),
        ("add", Type::Float(float)) => {
            // "atom.add.f32 on global memory flushes subnormal inputs and results": PTX ISA,
            // "atom".
            let flush = float == FloatType::F32 && memory == Memory::Machine(Space::Global);
            AtomicOp::AddFloat(float, Mode { flush, ..Mode::default() }, false)
        }
        ("add", Type::FloatPair(float)) => AtomicOp::AddFloat(float, Mode::default(), true),
        ("min", Type::Float(float @ (FloatType::F16 | FloatType::Bf16))) => AtomicOp::MinFloat(float, false),
        ("max", Type::Float(float @ (FloatType::F16 | FloatType::Bf16))) => AtomicOp::MaxFloat(float, false),
        ("min", Type::FloatPair(float)) => AtomicOp::MinFloat(float, true),
        ("max", Type::FloatPair(float)) => AtomicOp::MaxFloat(float, true),
        ("and", Type::Bits(32 | 64)) => AtomicOp::And,
        ("or", Type::Bits(32 | 64)) => AtomicOp::Or,
        ("xor", Type::Bits(32 | 64)) => AtomicOp::Xor,
        ("exch", Type::Bits(32 | 64)) => AtomicOp::Exchange,
        ("cas", Type::Bits(16 | 32 | 64)) => AtomicOp::CompareAndSwap,
        ("inc", Type::Integer(Integer { bits: 32, signed: false })) => AtomicOp::Inc,
        ("dec", Type::Integer(Integer { bits: 32, signed: false })) => AtomicOp::Dec,
        // Older compilers write the operand type for these.
        ("exch", Type::Integer(_) | Type::Float(_)) if wide => AtomicOp::Exchange,
        ("cas", Type::Integer(_)) if wide => AtomicOp::CompareAndSwap,
        _ => return Err(d.unsupported()),
    };
    Ok(op)
}
