//! `tensormap.replace`, `tensormap.cp_fenceproxy`, and the fences of the tensor map proxy.

use super::operands::Decoder;
use crate::isa::{Fence, MapCode, Op, Space, TmaOp, Type};
use crate::parse::LoadError;
use crate::tensor_map::{DESCRIPTOR_BYTES, DataType, Field, MAX_RANK};

pub(super) fn decode(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if d.take("replace") {
        return replace(d);
    }
    let all = ["cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release"];
    if !all.into_iter().all(|modifier| d.take(modifier)) || !take_scope(d) {
        return Err(d.unsupported());
    }
    if !d.take("sync") || !d.take("aligned") {
        return Err(d.unsupported());
    }
    d.expect_count(3, 3)?;
    size(d, 2)?;
    Ok(Op::Tma(TmaOp::Map(Box::new(MapCode::Copy { to: d.address(0)?, from: d.address(1)? }))))
}

/// Decodes the rest of `fence.proxy.tensormap::generic`.
pub(super) fn fence(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    let (release, acquire) = (d.take("release"), d.take("acquire"));
    if release == acquire || !take_scope(d) {
        return Err(d.unsupported());
    }
    if release {
        d.expect_count(0, 0)?;
        return Ok(Op::Fence(Fence::TensorMapRelease));
    }
    d.expect_count(2, 2)?;
    size(d, 1)?;
    Ok(Op::Tma(TmaOp::Map(Box::new(MapCode::Acquire { address: d.address(0)? }))))
}

fn take_scope(d: &mut Decoder<'_, '_, '_>) -> bool {
    ["cta", "cluster", "gpu", "sys"].into_iter().any(|scope| d.take(scope))
}

/// Checks the size of a map, which has only one valid value.
fn size(d: &Decoder<'_, '_, '_>, index: usize) -> Result<(), LoadError> {
    match d.immediate(index)? {
        size if size == DESCRIPTOR_BYTES as u64 => Ok(()),
        size => Err(d.error(format!("expected a size of 128, found {size}"))),
    }
}

fn replace(d: &mut Decoder<'_, '_, '_>) -> Result<Op, LoadError> {
    if !d.take("tile") {
        return Err(d.unsupported());
    }
    let name = d
        .take_of(&[
            ("global_address", "global_address"),
            ("rank", "rank"),
            ("box_dim", "box_dim"),
            ("global_dim", "global_dim"),
            ("global_stride", "global_stride"),
            ("element_stride", "element_stride"),
            ("elemtype", "elemtype"),
            ("interleave_layout", "interleave_layout"),
            ("swizzle_mode", "swizzle_mode"),
            ("fill_mode", "fill_mode"),
        ])
        .ok_or_else(|| d.unsupported())?;
    let space =
        d.take_of(&[("global", Space::Global), ("shared::cta", Space::Shared)]).unwrap_or(Space::Generic);
    if !d.take("b1024") {
        return Err(d.unsupported());
    }
    let long = matches!(name, "global_address" | "global_stride");
    if !d.take(if long { "b64" } else { "b32" }) {
        return Err(d.error(format!("`.{name}` has {} bits", if long { 64 } else { 32 })));
    }
    let field = match name {
        "global_address" => Field::GlobalAddress,
        "rank" => Field::Rank,
        "box_dim" => Field::BoxDim(ordinal(d, MAX_RANK)?),
        "global_dim" => Field::GlobalDim(ordinal(d, MAX_RANK)?),
        "global_stride" => Field::GlobalStride(ordinal(d, MAX_RANK - 1)?),
        "element_stride" => Field::ElementStride(ordinal(d, MAX_RANK)?),
        "elemtype" => listed(d, DataType::REPLACE.len(), Field::Elemtype)?,
        "interleave_layout" => listed(d, 3, Field::InterleaveLayout)?,
        "swizzle_mode" => listed(d, 4, Field::SwizzleMode)?,
        _ => listed(d, 2, Field::FillMode)?,
    };
    let last = match field {
        Field::BoxDim(_) | Field::GlobalDim(_) | Field::GlobalStride(_) | Field::ElementStride(_) => 2,
        Field::GlobalAddress
        | Field::Rank
        | Field::Elemtype
        | Field::InterleaveLayout
        | Field::SwizzleMode
        | Field::FillMode => 1,
    };
    d.expect_count(last + 1, last + 1)?;
    let value = d.source(last, if long { Type::Bits(64) } else { Type::Bits(32) })?;
    let address = d.address(0)?;
    Ok(Op::Tma(TmaOp::Map(Box::new(MapCode::Replace { space, address, field, value }))))
}

/// Returns the dimension of a field, which must be below `end`.
fn ordinal(d: &Decoder<'_, '_, '_>, end: usize) -> Result<usize, LoadError> {
    match usize::try_from(d.immediate(1)?) {
        Ok(ordinal) if ordinal < end => Ok(ordinal),
        Ok(_) | Err(_) => Err(d.error(format!("the field's number is 0 to {}", end - 1))),
    }
}

/// Returns a field whose value must be a literal below `count`, since only those values are
/// supported.
fn listed(d: &Decoder<'_, '_, '_>, count: usize, field: Field) -> Result<Field, LoadError> {
    if d.immediate(1)? < count as u64 {
        return Ok(field);
    }
    Err(d.error(format!("values of 0 to {} are supported", count - 1)))
}
