//! Modification of tensor maps by a kernel. Sources: "tensormap.replace",
//! "tensormap.cp_fenceproxy", "membar / fence". The fields are those of a map in shared memory.
//! Dimensions are counted from the innermost.

use super::Operand::{B32, B64, Global, Shared};
use super::text::Text;
use super::{Instruction, convergent, memory};

/// Operands: the map, the address.
pub(in crate::lower) const REPLACE_ADDRESS: Instruction =
    memory("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [$0], $1;", &[Shared, B64], 83);

/// Operands: the map, the number of elements.
pub(in crate::lower) fn replace_extent(dimension: usize) -> Instruction {
    replace("global_dim", dimension).operand(B32).memory(83)
}

/// Operands: the map, the bytes. The innermost dimension has no stride; index 0 is the next one.
pub(in crate::lower) fn replace_stride(dimension: usize) -> Instruction {
    replace("global_stride", dimension).operand(B64).memory(83)
}

fn replace(field: &str, dimension: usize) -> Text {
    let bits = if field == "global_stride" { 64 } else { 32 };
    Text::new(format!("tensormap.replace.tile.{field}.shared::cta.b1024.b{bits} ["))
        .operand(Shared)
        .text(&format!("], {dimension}, "))
}

/// Copies a map and releases the copy to the tensormap proxy. Operands: to, from.
pub(in crate::lower) const PUBLISH_MAP: Instruction = convergent(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;",
    &[Global, Shared],
    83,
);

/// Operand: the map.
pub(in crate::lower) const ACQUIRE_MAP: Instruction =
    memory("fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", &[super::Operand::Generic], 83);
