//! The registers from which an instruction computes others: the part of a kernel's data flow that
//! involves neither memory nor other threads.

use super::{AddressOp, Alu, Carry, Compare, ComparePair, Op, Reg};

/// The registers that an instruction computes, and the operands that it computes them from. The
/// operands include constants.
#[derive(Debug, Default)]
pub(crate) struct Computed {
    pub(crate) to: Vec<Reg>,
    pub(crate) from: Vec<Reg>,
}

impl Computed {
    fn new(to: &[Reg], from: &[Reg]) -> Self {
        Self { to: to.to_vec(), from: from.to_vec() }
    }
}

impl Op {
    /// Returns what the operation computes, if it does nothing else.
    pub(crate) fn computed(&self) -> Option<Computed> {
        match self {
            Op::Alu(op) => Some(of_alu(op)),
            Op::Address(op) => Some(of_address(op)),
            Op::Memory(_)
            | Op::Warp(_)
            | Op::Warpgroup(_)
            | Op::Barrier(_)
            | Op::Mbarrier(_)
            | Op::Fence(_)
            | Op::MemoryFence(_)
            | Op::CopyAsync(_)
            | Op::Tma(_)
            | Op::Control(_) => None,
        }
    }
}

fn of_alu(op: &Alu) -> Computed {
    match op {
        Alu::Unary { d, a, .. } | Alu::Convert { d, a, .. } => Computed::new(&[*d], &[*a]),
        Alu::Binary { d, sources, .. } | Alu::ConvertPair { d, sources, .. } => Computed::new(&[*d], sources),
        Alu::Ternary { d, sources, .. } | Alu::Lop3 { d, sources, .. } => Computed::new(&[*d], sources),
        Alu::Insert { d, sources, .. } => Computed::new(&[*d], sources),
        Alu::Float(code) => Computed::new(&[code.d], &code.sources),
        Alu::Carry(carry) => of_carry(carry),
        Alu::Compare(compare) => of_compare(compare),
        Alu::ComparePair(compare) => of_pair(compare),
        Alu::Pack { d, parts, .. } => Computed::new(&[*d], parts),
        Alu::Unpack { parts, a, .. } => Computed::new(parts, &[*a]),
        Alu::Clock { d, .. } | Alu::ActiveMask { d } => Computed::new(&[*d], &[]),
    }
}

fn of_carry(Carry { reads, writes, d, sources, .. }: &Carry) -> Computed {
    let mut computed = Computed::new(&[*d], sources);
    computed.to.extend(writes.then_some(Reg::CARRY));
    computed.from.extend(reads.then_some(Reg::CARRY));
    computed
}

fn of_compare(compare: &Compare) -> Computed {
    let mut computed = Computed::new(&[compare.d, compare.opposite], &compare.sources);
    computed.from.extend(compare.combined.map(|combined| combined.with.reg));
    computed
}

fn of_pair(compare: &ComparePair) -> Computed {
    let mut computed = Computed::new(&compare.d, &compare.sources);
    computed.from.extend(compare.combined.map(|combined| combined.with.reg));
    computed
}

fn of_address(op: &AddressOp) -> Computed {
    match *op {
        AddressOp::Convert { d, a, .. } | AddressOp::IsSpace { d, a, .. } => Computed::new(&[d], &[a]),
        AddressOp::MapToRank { d, address, rank, .. } => Computed::new(&[d], &[address, rank]),
        AddressOp::RankOf { d, address, .. } => Computed::new(&[d], &[address]),
    }
}
