//! The kernels' instances, by the GEMM that they compute.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Tile;
use super::dense::kernels as dense;
use super::full::with_options;
use super::ping_pong::kernels as ping_pong;
use super::split_k::kernels as split_k;
use tma_runtime::launch::KernelSpec;

/// The properties that identify an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Whether it has the options: an instance of `full`, not of `plain` or `folded`.
    pub(super) is_full: bool,
    /// The element types.
    pub(super) types: &'static str,
    /// The tile.
    pub(super) tile: Tile,
    /// The layout of A and B: `n` by rows, `t` by columns. A B that is N × K is `t`.
    pub(super) layout: &'static str,
}

/// The layouts of A and B.
const LAYOUTS: [&str; 4] = ["nt", "nn", "tt", "tn"];

static INSTANCES: LazyLock<HashMap<Key, &'static KernelSpec>> = LazyLock::new(|| {
    let plain = dense::plain::INSTANCES.iter().map(|kernel| (false, kernel));
    let split_k = split_k::split_k::INSTANCES.iter().map(|kernel| (false, kernel));
    let ping_pong = ping_pong::ping_pong::INSTANCES.iter().map(|kernel| (false, kernel));
    let full = with_options::full::INSTANCES.iter().map(|kernel| (true, kernel));
    plain
        .chain(split_k)
        .chain(ping_pong)
        .chain(full)
        .filter_map(|(is_full, kernel)| Some((key(is_full, kernel.name)?, kernel)))
        .collect()
});

/// Returns the instance for `key`, if it was compiled.
pub(super) fn find(key: Key) -> Option<&'static KernelSpec> {
    INSTANCES.get(&key).copied()
}

/// Returns whether these element types have kernels with options.
pub(super) fn has_options(types: &str) -> bool {
    INSTANCES.keys().any(|key| key.is_full && key.types == types)
}

/// The ends of instances' names, which state the tile and the layout, such as `_t64x64_nt`.
static SUFFIXES: LazyLock<Vec<(String, Tile, &'static str)>> = LazyLock::new(|| {
    let of_tile =
        |tile: Tile| LAYOUTS.map(|layout| (format!("_{}_{layout}", tile.facts().name), tile, layout));
    Tile::ALL.into_iter().flat_map(of_tile).collect()
});

/// Returns the key of a kernel with this name, such as `plain::bf16_f32_t128x256_cluster2x1_nt`.
pub(super) fn key(is_full: bool, name: &'static str) -> Option<Key> {
    let (_, instance) = name.split_once("::")?;
    SUFFIXES.iter().find_map(|(suffix, tile, layout)| {
        let types = instance.strip_suffix(suffix.as_str())?;
        Some(Key { is_full, types, tile: *tile, layout })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_is_found() {
        let plain = dense::plain::INSTANCES.len()
            + split_k::split_k::INSTANCES.len()
            + ping_pong::ping_pong::INSTANCES.len();
        assert_eq!(INSTANCES.len(), plain + with_options::full::INSTANCES.len());
        let key = Key { is_full: true, types: "bf16_f32", tile: Tile::T64x64, layout: "nn" };
        assert_eq!(find(key).map(|kernel| kernel.name), Some("full::bf16_f32_t64x64_nn"));
        assert_eq!(find(Key { types: "i8", ..key }), None);
    }
}
