//! Tensor copies that the copy engine refuses.
//!
//! Unless noted otherwise, these rules were observed on an H200 with driver 580, as illegal
//! instructions (`tests/probe`), and are not documented.

use crate::machine::types::{Reduction, TensorAction, TensorCopy};
use crate::tensor_map::{DataType, Mode, TensorMap, UNIT};
use tma_model::Scalar;
use tma_model::help::Help;

/// The reason why a copy is refused, and help.
#[derive(Debug)]
pub(in crate::machine) struct Refusal {
    pub(in crate::machine) message: String,
    pub(in crate::machine) help: Option<Help>,
}

fn refuse(message: String, help: impl Into<Option<&'static str>>) -> Result<(), Refusal> {
    Err(Refusal { message, help: help.into().map(Help::from) })
}

/// Checks a copy against its map, and the map itself.
pub(in crate::machine) fn check(copy: &TensorCopy, map: &TensorMap) -> Result<(), Refusal> {
    if let Err(error) = map.check() {
        return refuse(format!("a tensor map with {error}"), None);
    }
    if copy.rank as usize != map.rank() {
        let message = format!(
            "a copy has {} coordinates, but its tensor map has rank \
            {}",
            copy.rank,
            map.rank()
        );
        return refuse(message, None);
    }
    inner(copy, map)?;
    let stores = match copy.action {
        TensorAction::Store { .. } | TensorAction::Reduce { .. } => true,
        TensorAction::Load { .. } | TensorAction::Prefetch => false,
    };
    if stores && let Some(dimension) = copy.at[..map.rank()].iter().position(|&at| at < 0) {
        let at = copy.at[dimension];
        let message = format!(
            "a store starts at coordinate {at} in dimension {dimension} (0 is the \
            innermost)"
        );
        return refuse(
            message,
            "start the store inside the tensor: it may end after the tensor, but not \
            start before it",
        );
    }
    match &map.mode {
        Mode::Tiled { .. } if copy.im2col => refuse(
            "an im2col copy uses a tensor map in tiled mode".to_owned(),
            "use `.tile`, or a map of `cuTensorMapEncodeIm2col`",
        ),
        Mode::Im2col { .. } if !copy.im2col => refuse(
            "a copy in tiled mode uses a tensor map in im2col mode".to_owned(),
            "use `.im2col`, or a map of `cuTensorMapEncodeTiled`",
        ),
        Mode::Tiled { .. } => Ok(()),
        Mode::Im2col { lower, upper, .. } => columns(copy, map, stores, lower, upper),
    }?;
    match copy.action {
        TensorAction::Reduce { with, .. } if !reduces(with, map.element) => {
            let message = format!(
                "the copy engine has no reduction {with:?} for elements of type \
                {:?}",
                map.element
            );
            refuse(message, "use an operation that the copy engine supports for the map's type")
        }
        TensorAction::Reduce { .. }
        | TensorAction::Load { .. }
        | TensorAction::Store { .. }
        | TensorAction::Prefetch => Ok(()),
    }
}

/// Checks that the innermost coordinate is a multiple of 16 bytes. With an interleaved layout it
/// counts slices, which always are.
fn inner(copy: &TensorCopy, map: &TensorMap) -> Result<(), Refusal> {
    let bytes = i64::from(copy.at[0]) * i64::from(map.inner_bytes());
    if bytes % i64::from(UNIT) == 0 {
        return Ok(());
    }
    let message = format!(
        "the innermost coordinate {} is {bytes} bytes into the row, which is not a multiple of 16",
        copy.at[0]
    );
    refuse(message, "start the box at a multiple of 16 bytes along the innermost dimension")
}

/// Checks the rules of im2col mode. The rules that corners of stores lie within the tensor, and on
/// the size of offsets, come from the PTX ISA, "Restrictions on tensor copy instructions" and
/// "Im2col mode"; the engine itself takes the low bits of an offset.
fn columns(
    copy: &TensorCopy,
    map: &TensorMap,
    stores: bool,
    lower: &[i32],
    upper: &[i32],
) -> Result<(), Refusal> {
    let spatial = map.rank() - 2;
    for (index, dimension) in map.spatial_dimensions().enumerate() {
        let at = copy.at[dimension];
        let (first, last) = map.bounding_box(lower, upper, index);
        if !(first..=last).contains(&i64::from(at)) {
            let message = format!(
                "coordinate {at} in dimension {dimension} is outside of the bounding box, {first} to {last}"
            );
            return refuse(message, "start within the corners; only the offsets may lead out of them");
        }
        if stores && (lower[index] < 0 || upper[index] > 0) {
            let message = format!(
                "a store has corners {} and {} in dimension {dimension}, beyond the tensor",
                lower[index], upper[index]
            );
            return refuse(
                message,
                "use lower corners of at least 0 and upper corners of at most 0 for \
                stores",
            );
        }
    }
    let most = tma_model::limits::im2col_offset(map.rank());
    match copy.offsets[..spatial].iter().find(|&&offset| offset > most) {
        Some(offset) => refuse(
            format!(
                "the im2col offset {offset} is out of range; with rank {} it is 0 to \
                {most}",
                map.rank()
            ),
            None,
        ),
        None => Ok(()),
    }
}

/// Returns whether the copy engine supports a reduction for a type. An H200 treats the float types
/// that are not documented like `f32`.
fn reduces(with: Reduction, element: DataType) -> bool {
    with.takes_mapped(match element {
        DataType::U8 => Scalar::U8,
        DataType::U16 => Scalar::U16,
        DataType::U32 => Scalar::U32,
        DataType::I32 => Scalar::I32,
        DataType::U64 => Scalar::U64,
        DataType::I64 => Scalar::I64,
        DataType::F16 => Scalar::F16,
        DataType::Bf16 => Scalar::Bf16,
        DataType::F32 | DataType::F32Ftz => Scalar::F32,
        DataType::F64 | DataType::Tf32 | DataType::Tf32Ftz => Scalar::F32,
    })
}
