//! Products of groups of rows, each with its own matrix: the experts of a mixture.

pub mod kernel;

use super::{GemmError, Product, Tile};
use kernel::grouped;
use tma_runtime::Scalar;
use tma_runtime::launch::{
    Arg, GlobalSlice, KernelSpec, L2Promotion, LaunchOn, MapArg, MapArgMut, MapOptions, launch,
    resident_blocks,
};
use tma_runtime::prelude::*;

/// As many groups as a kernel has room for.
const MOST_GROUPS: usize = 512;

/// With fewer rows a group on average, small tiles are faster: they leave less undone at its end.
const FEW_ROWS: usize = 512;

/// With fewer rounds of small tiles, these are faster: less is left undone in the last round.
const FEW_ROUNDS: usize = 64;

/// With fewer columns small tiles are faster: what their clusters read at a time is in the L2 cache.
const FEW_COLUMNS: usize = 4096;

/// How groups of rows are multiplied.
#[derive(Debug, Default)]
pub struct GroupedOptions<'a> {
    /// The matrices of B are stored N × K, not K × N.
    pub transpose_b: bool,
    /// [`Tile::Pair`] or [`Tile::Beside`]; by default the one that was measured to be faster for
    /// such extents, and groups of much the same size.
    pub tile: Option<Tile>,
    /// Room for a map for each multiprocessor, with which C is stored. Without it, a product
    /// allocates its own and waits when that is freed. One product at a time uses it.
    pub maps: Option<&'a mut MapWorkspace>,
}

/// Queues the products of groups of rows of A, each with its own matrix of B, by one launch.
///
/// A is M × K and C is M × N, with the rows of all groups one after the other. B has a matrix of
/// K × N for each group, or of N × K with [`transpose_b`](GroupedOptions::transpose_b). Group g has
/// the rows from `ends[g - 1]`, or 0, up to but not including `ends[g]`: numbers on the device, which
/// the host never reads. A group may have any number of rows, also none. Rows of C after the last
/// group are left as they are. With a K of 0 all of C is zeros.
///
/// Elements are those of [`Product`] with 16 bits, and the extents may be any whose rows are
/// multiples of 16 bytes.
///
/// ```
/// use tma_kernels::gemm::{GroupedOptions, gemm_grouped};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open()?;
/// let a = device.tensor(&[bf16::from_f32(1.0); 80 * 32], [80, 32])?;
/// let b = [bf16::from_f32(0.5), bf16::from_f32(2.0)].map(|x| [x; 32 * 16]).concat();
/// let b = device.tensor(&b, [2, 32, 16])?;
/// let ends = device.tensor(&[33u32, 80], [2])?; // 33 rows, and 47
/// let mut c = device.zeros::<bf16, 2>([80, 16])?;
/// gemm_grouped(&device, &a, &b, &ends, &mut c, GroupedOptions::default())?;
/// let c = c.to_vec()?;
/// assert_eq!([c[0], c[33 * 16 - 1]], [bf16::from_f32(16.0); 2]);
/// assert_eq!([c[33 * 16], c[80 * 16 - 1]], [bf16::from_f32(64.0); 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0558` if the tensors do not fit each other, or are of more than 512 groups, `TMA0546` if they
/// are too large, `TMA0547` if no kernel multiplies so, and those of [`launch`]. Ends that do not
/// rise, or are beyond the rows of A, stop the kernel: `TMA0545`.
pub fn gemm_grouped<AB: Product<C>, C: Scalar>(
    on: &impl LaunchOn,
    a: impl MapArg<AB, 2>,
    b: impl MapArg<AB, 3>,
    ends: impl MapArg<u32, 1>,
    mut c: impl MapArgMut<C, 2>,
    options: GroupedOptions<'_>,
) -> Result<(), GemmError> {
    let (a, b, ends, c) = (a.view(), b.view(), ends.view(), c.view_mut());
    let ([m, n], k) = (c.shape(), a.shape()[1]);
    let groups = b.shape()[0];
    let fits = |tensor, found: &[usize], wanted: &[usize]| {
        let (found, wanted) = (found.to_vec(), wanted.to_vec());
        if found == wanted { Ok(()) } else { Err(GemmError::Grouped { tensor, found, wanted }) }
    };
    fits("A", &a.shape(), &[m, k])?;
    fits("B", &b.shape(), &if options.transpose_b { [groups, n, k] } else { [groups, k, n] })?;
    fits("`ends`", &ends.shape(), &[groups])?;
    if groups > MOST_GROUPS {
        return Err(GemmError::Groups { groups, most: MOST_GROUPS });
    }
    let tiles = (m / 128 + groups).saturating_mul(n.div_ceil(128));
    if [m, n, k].iter().any(|&extent| extent >= 1 << 31) || tiles >= 1 << 28 {
        return Err(GemmError::TooLarge { extents: [m, n, k, groups] });
    }
    if m == 0 || n == 0 || groups == 0 {
        return Ok(());
    }
    if k > 0 {
        return queue(on, a, b, ends, c, options);
    }
    // Nothing is added up: products with zeros, since tensor maps have no empty tensors.
    let (a, b) = (on.device().zeros::<AB, 2>([m, 8])?, on.device().zeros::<AB, 3>([groups, n, 8])?);
    queue(on, a.view(), b.view(), ends, c, GroupedOptions { transpose_b: true, ..options })
}

/// Queues the kernel that is chosen, of extents that fit.
fn queue<AB: Product<C>, C: Scalar>(
    on: &impl LaunchOn,
    a: TensorView<'_, AB, 2>,
    b: TensorView<'_, AB, 3>,
    ends: TensorView<'_, u32, 1>,
    c: TensorViewMut<'_, C, 2>,
    options: GroupedOptions<'_>,
) -> Result<(), GemmError> {
    let ([m, k], [groups, ..], [_, n]) = (a.shape(), b.shape(), c.shape());
    let device = on.device();
    let layout = if options.transpose_b { "nt" } else { "nn" };
    let tile = options.tile.unwrap_or_else(|| choose([m, n, k], groups, device.multiprocessors() as usize));
    let kernel = find(AB::NAME, tile, layout).ok_or(GemmError::Instance {
        types: AB::NAME,
        what: "groups of rows, or in this tile",
        instead: "their elements are `bf16` or `f16`, and their tiles `Pair` or `Beside`; or leave `tile` out",
    })?;
    let facts = tile.facts();
    let clusters = (resident_blocks(on, kernel)? / facts.blocks()).max(1);
    let grid = Grid::new(clusters * facts.cluster[0], facts.cluster[1], 1);
    let blocks = (clusters * facts.blocks()) as usize;
    let mut own = None;
    let maps = match options.maps.filter(|given| given.len() >= blocks) {
        Some(given) => given,
        None => own.insert(MapWorkspace::new(device, blocks)?),
    };
    let options = MapOptions { l2_promotion: L2Promotion::B256, ..MapOptions::default() };
    let mut args = vec![
        Arg::map(a).with(options),
        Arg::map(b).with(options),
        Arg::map_mut(c).with(options),
        Arg::global_mut(maps.slice_mut()),
        Arg::global(GlobalSlice::new(ends)),
    ];
    args.extend([groups, m, n, k].map(|number| Arg::scalar(number as u32)));
    Ok(launch(on, kernel, grid, &args)?)
}

/// The tile that was measured to be faster (`docs/gemm.md`, "Groups of rows").
fn choose([m, n, k]: [usize; 3], groups: usize, multiprocessors: usize) -> Tile {
    let tiles = (m / 128 + groups / 2) * n.div_ceil(256);
    let rounds = tiles.div_ceil((multiprocessors / 2).max(1));
    let is_small = m / groups < FEW_ROWS || rounds < FEW_ROUNDS || k < FEW_COLUMNS;
    if is_small { Tile::Beside } else { Tile::Pair }
}

/// The instance for elements, a tile and a layout of B, if there is one.
fn find(types: &str, tile: Tile, layout: &str) -> Option<&'static KernelSpec> {
    let wanted = format!("rows::{types}_{}_{layout}", tile.facts().name);
    grouped::rows::INSTANCES.iter().find(|kernel| kernel.name == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_is_found() {
        let types = ["bf16", "f16", "bf16_f32", "f16_f32"];
        let found = types.iter().flat_map(|types| {
            let tiles = [Tile::Pair, Tile::Beside];
            tiles.into_iter().flat_map(move |tile| ["nt", "nn"].map(|layout| find(types, tile, layout)))
        });
        assert_eq!(found.flatten().count(), grouped::rows::INSTANCES.len());
        assert!(find("bf16", Tile::Low64, "nt").is_none());
        assert!(find("e4m3", Tile::Pair, "nt").is_none());
    }

    /// The faster of both in the measurements of `docs/gemm.md`.
    #[test]
    fn the_faster_tile_is_chosen() {
        assert_eq!(choose([64 * 1024, 4096, 7168], 64, 132), Tile::Pair);
        assert_eq!(choose([64 * 1024, 7168, 2048], 64, 132), Tile::Beside);
        assert_eq!(choose([64 * 128, 4096, 7168], 64, 132), Tile::Beside);
        assert_eq!(choose([8 * 1024, 4096, 7168], 8, 132), Tile::Beside);
    }
}
