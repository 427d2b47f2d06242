//! `wgmma` and `setmaxnreg`.

use tma_model::mma::{Accumulator, Form, FormFault, Major, Operand as Element};

use super::operands::Decoder;
use crate::isa::{LeftCode, MetadataCode, MultiplyCode, Op, Reg, Type, WarpgroupOp};
use crate::parse::LoadError;
use crate::parse::syntax::Operand;

const WORD: Type = Type::Bits(32);
const DESCRIPTOR: Type = Type::Bits(64);

/// Decodes `wgmma.fence`, `.commit_group`, `.wait_group` and `.mma_async`.
pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let name = d.take_first();
    let sparse = name == Some("mma_async") && d.take("sp");
    if !d.take("sync") || !d.take("aligned") {
        return Err(d.error("expected `.sync.aligned`"));
    }
    let op = match name {
        Some("fence") => {
            d.expect_count(0, 0)?;
            WarpgroupOp::Fence
        }
        Some("commit_group") => {
            d.expect_count(0, 0)?;
            WarpgroupOp::Commit
        }
        Some("wait_group") => {
            d.expect_count(1, 1)?;
            WarpgroupOp::Wait(d.immediate(0)?.min(u64::from(u32::MAX)) as u32)
        }
        Some("mma_async") => WarpgroupOp::Multiply(Box::new(multiply(d, sparse)?)),
        _ => return Err(d.unsupported()),
    };
    Ok(Op::Warpgroup(op))
}

/// Decodes `setmaxnreg`.
pub(super) fn registers(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let grows = d.take_of(&[("inc", true), ("dec", false)]);
    let (Some(grows), true) = (grows, d.take("sync") && d.take("aligned") && d.take("u32")) else {
        return Err(d.unsupported());
    };
    d.expect_count(1, 1)?;
    let count = d.immediate(0)?;
    if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
        return Err(d.error(format!("expected a multiple of 8 registers from 24 to 256, found {count}")));
    }
    Ok(Op::Warpgroup(WarpgroupOp::Registers { count: count as u32, grows }))
}

/// A counter for operands taken one after the other.
struct Cursor {
    next: usize,
}

impl Cursor {
    fn take(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }
}

fn multiply(d: &mut Decoder<'_, '_, '_>, sparse: bool) -> Result<MultiplyCode, LoadError> {
    let form = form(d, sparse)?;
    let saturates = d.take("satfinite");
    if saturates && !form.a.is_saturable() {
        return Err(d.error("`.satfinite` is only supported for integers of 8 bits"));
    }
    if form.a == Element::B1 && !(d.take("and") && d.take("popc")) {
        return Err(d.error("expected `.and.popc`"));
    }
    let mut at = Cursor { next: 0 };
    let accumulators = accumulators(d, at.take(), form)?;
    let left = left(d, at.take())?;
    let right = d.source(at.take(), DESCRIPTOR)?;
    let metadata = if sparse { Some(metadata(d, &mut at, form)?) } else { None };
    let accumulates = d.guard(at.take())?;
    let mut negates = [false; 2];
    if form.a.is_negatable() {
        for negates in &mut negates {
            *negates = match d.immediate(at.take())? as i64 {
                1 => false,
                -1 => true,
                _ => return Err(d.error("`imm-scale` is 1 or -1")),
            };
        }
    }
    let mut majors = [Major::K; 2];
    if form.a.is_transposable() {
        let in_memory = [matches!(left, LeftCode::Shared(_)), true];
        for (major, _) in majors.iter_mut().zip(in_memory).filter(|(_, in_memory)| *in_memory) {
            *major = match d.immediate(at.take())? {
                0 => Major::K,
                1 => Major::Mn,
                _ => return Err(d.error("`imm-trans` is 0 or 1")),
            };
        }
    }
    d.expect_count(at.next, at.next)?;
    Ok(MultiplyCode { form, d: accumulators, left, right, accumulates, negates, majors, saturates, metadata })
}

/// Takes the shape and types, such as `m64n128k16.f32.bf16.bf16`.
fn form(d: &mut Decoder<'_, '_, '_>, sparse: bool) -> Result<Form, LoadError> {
    let shape = d.take_first().unwrap_or_default();
    let numbers = || {
        let (n, k) = shape.strip_prefix("m64n")?.split_once('k')?;
        Some((n.parse::<u32>().ok()?, k.parse::<u32>().ok()?))
    };
    let Some((n, k)) = numbers() else { return Err(d.error("expected a shape `.m64nNkK`")) };
    let d_type = d.take_first().and_then(|name| Accumulator::ALL.into_iter().find(|ty| ty.name() == name));
    let mut element =
        || d.take_first().and_then(|name| Element::ALL.into_iter().find(|ty| ty.name() == name));
    let (a, b) = (element(), element());
    let (Some(d_type), Some(a), Some(b)) = (d_type, a, b) else {
        return Err(d.error("expected the types of D, A and B"));
    };
    let form = Form { d: d_type, a, b, n, sparse };
    if let Some(fault) = form.faults().first() {
        return Err(d.error(match fault {
            FormFault::OperandTypes => format!("{a} cannot be multiplied by {b}"),
            FormFault::AccumulatorType => format!("{a} cannot be accumulated in {d_type}"),
            FormFault::Width => {
                let widths = if Form::takes_width(a, 40) {
                    "a multiple of 8 up to 256"
                } else {
                    "8, 16, 24, 32 or a multiple of 16 up to 256"
                };
                format!("N must be {widths}, not {n}")
            }
            FormFault::Sparse => format!("{a} cannot be sparse"),
        }));
    }
    if k != form.k() {
        return Err(d.error(format!("expected k{}, found k{k}", form.k())));
    }
    Ok(form)
}

/// Takes the metadata of a sparse A, and its selector.
fn metadata(d: &mut Decoder<'_, '_, '_>, at: &mut Cursor, form: Form) -> Result<MetadataCode, LoadError> {
    let register = d.source(at.take(), WORD)?;
    let selector = d.immediate(at.take())?;
    let selectors = form.a.selectors();
    if selector >= selectors.into() {
        let wanted = if selectors == 1 { "0" } else { "0 or 1" };
        return Err(d.error(format!("the sparsity selector of {} is {wanted}", form.a)));
    }
    Ok(MetadataCode { register, selector: selector as u32 })
}

fn accumulators(d: &mut Decoder<'_, '_, '_>, index: usize, form: Form) -> Result<Vec<Reg>, LoadError> {
    let count = form.accumulator_registers() as usize;
    let parts = if let Operand::Vector(parts) = d.operand(index)? { parts.as_slice() } else { &[] };
    if parts.len() != count {
        return Err(d.error(format!("expected {count} registers of D in braces")));
    }
    let mut registers: Vec<Reg> = Vec::with_capacity(count);
    for part in parts {
        let (reg, bits) = d.wide_dest(part, 32)?;
        if bits != 32 || registers.contains(&reg) || reg == Reg::SINK {
            return Err(d.error("the registers of D must be distinct and have 32 bits"));
        }
        registers.push(reg);
    }
    Ok(registers)
}

fn left(d: &mut Decoder<'_, '_, '_>, index: usize) -> Result<LeftCode, LoadError> {
    let Operand::Vector(parts) = d.operand(index)? else {
        return Ok(LeftCode::Shared(d.source(index, DESCRIPTOR)?));
    };
    let [a, b, c, e] = parts.as_slice() else {
        return Err(d.error("expected a descriptor, or 4 registers of A in braces"));
    };
    Ok(LeftCode::Registers([d.inner(a, WORD)?, d.inner(b, WORD)?, d.inner(c, WORD)?, d.inner(e, WORD)?]))
}
