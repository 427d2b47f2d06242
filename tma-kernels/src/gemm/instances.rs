//! The kernels' instances, by the GEMM that they compute.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Tile;
use super::folded::halves;
use super::full::with_options;
use super::kernel::product;
use super::turns::alternating;
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

static INSTANCES: LazyLock<HashMap<Key, &'static KernelSpec>> = LazyLock::new(|| {
    let plain = product::plain::INSTANCES.iter().map(|kernel| (false, kernel));
    let folded = halves::folded::INSTANCES.iter().map(|kernel| (false, kernel));
    let turns = alternating::turns::INSTANCES.iter().map(|kernel| (false, kernel));
    let full = with_options::full::INSTANCES.iter().map(|kernel| (true, kernel));
    plain
        .chain(folded)
        .chain(turns)
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

/// Parses the key from a kernel's name, such as `plain::bf16_f32_pair_nt`.
pub(super) fn key(is_full: bool, name: &'static str) -> Option<Key> {
    let (_, instance) = name.rsplit_once("::")?;
    let (rest, layout) = instance.rsplit_once('_')?;
    let (types, tile) = rest.rsplit_once('_')?;
    let tile = Tile::ALL.into_iter().find(|known| known.facts().name == tile)?;
    Some(Key { is_full, types, tile, layout })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_is_found() {
        let plain = product::plain::INSTANCES.len()
            + halves::folded::INSTANCES.len()
            + alternating::turns::INSTANCES.len();
        assert_eq!(INSTANCES.len(), plain + with_options::full::INSTANCES.len());
        let key = Key { is_full: true, types: "bf16_f32", tile: Tile::Low64, layout: "nn" };
        assert_eq!(find(key).map(|kernel| kernel.name), Some("full::bf16_f32_low64_nn"));
        assert_eq!(find(Key { types: "i8", ..key }), None);
    }
}
