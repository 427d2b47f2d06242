//! GEMMs of groups of rows, each with its own matrix: the experts of a mixture.

pub mod kernel;

use super::divide::{Division, Units};
use super::extents::batch;
use super::{GemmError, Product, Tile};
use crate::workspace::{ALIGNMENT, GivenMemory, bytes_of};
use kernel::grouped::rows;
use tma_runtime::Scalar;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut, resident_blocks};
use tma_runtime::prelude::*;

/// The maximum number of groups of the kernel.
const MOST_GROUPS: usize = 512;

/// Blocks per cluster.
const CLUSTER: u32 = 2;

/// With fewer rows per group on average, nearly all tiles have 128 rows anyway.
const FEW_ROWS: usize = 128;

/// Factor by which small tiles are slower if every round of tiles is filled.
const SMALL: f64 = 1.02;

/// Options of [`gemm_grouped`].
#[derive(Debug, Default)]
pub struct GroupedOptions<'a> {
    /// Whether the matrices of B are stored N × K, not K × N.
    pub transpose_b: bool,
    /// [`Tile::T128x256Cluster2x1`], whose blocks are side by side in a group's odd last 128 rows,
    /// or [`Tile::T128x128Cluster1x2`]. The default is the one that should be faster if all groups
    /// are equal.
    pub tile: Option<Tile>,
    /// Memory for the launch. Without it, or with too little, a launch allocates its own, and waits
    /// when that is freed.
    pub workspace: Option<&'a mut GroupedWorkspace>,
}

/// Memory that blocks use: one map per block, through which C is stored, and a counter by which
/// they begin together. Only one launch may use it at a time: give each stream its own.
#[derive(Debug)]
pub struct GroupedWorkspace {
    maps: MapWorkspace,
    ended: DeviceTensor<u64, 1>,
    /// The bytes of the caller's memory.
    given: Option<usize>,
}

impl GroupedWorkspace {
    /// Allocates the memory for any launch on this device: 128 bytes per multiprocessor.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(device: &Device) -> Result<Self, Error> {
        Self::of(device, device.multiprocessors() as usize)
    }

    /// Returns how many bytes suffice for any launch, as [`new`](Self::new) allocates them.
    pub fn bytes(device: &Device) -> usize {
        bytes_of_blocks(device.multiprocessors() as usize)
    }

    /// Makes a workspace of [`bytes`](Self::bytes) that another library has allocated. Part of it
    /// is filled with zeros now. The address is a multiple of 128.
    ///
    /// # Safety
    ///
    /// The conditions of [`DeviceTensor::from_raw`] for `bytes` bytes from `address` on. They are
    /// used by nothing else as long as the workspace is.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceTensor::from_raw`], and [`Error::KernelFault`].
    pub unsafe fn from_raw(device: &Device, address: u64, bytes: usize) -> Result<Self, GemmError> {
        let Some(of_maps) = bytes.checked_sub(ALIGNMENT) else {
            return Err(GemmError::Workspace { found: bytes, wanted: Self::bytes(device) });
        };
        let mut memory = GivenMemory::new(device, address);
        // SAFETY: as the caller promises, for no more bytes than are given.
        let (ended, maps) = unsafe {
            let ended = memory.zeros(1)?;
            (ended, MapWorkspace::from_raw(device, memory.address(), of_maps / ALIGNMENT)?)
        };
        Ok(Self { maps, ended, given: Some(bytes) })
    }

    /// Allocates the memory for this many blocks.
    fn of(device: &Device, blocks: usize) -> Result<Self, Error> {
        Ok(Self { maps: MapWorkspace::new(device, blocks)?, ended: device.zeros([1])?, given: None })
    }
}

/// Returns the bytes of a counter, and of a map for each of so many blocks.
const fn bytes_of_blocks(blocks: usize) -> usize {
    bytes_of::<u64>(1) + blocks * ALIGNMENT
}

/// Queues the GEMMs of groups of rows of A, each with its own matrix of B, in one launch.
///
/// A is M × K and C is M × N, with the rows of all groups one after the other. B has a matrix of
/// K × N for each group, or of N × K with [`transpose_b`](GroupedOptions::transpose_b). Group g has
/// the rows from `ends[g - 1]`, or 0, up to but not including `ends[g]`: numbers on the device,
/// which the host never reads. A group may have any number of rows, including none. Rows of C after
/// the last group are not changed. With a K of 0 the rows of all groups become zeros.
///
/// With a [workspace](GroupedOptions::workspace), nothing is allocated and the call does not wait,
/// except for a K of 0.
///
/// Elements are those of [`Product`] with 16 bits. Extents are arbitrary if rows are multiples of
/// 16 bytes.
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
/// `TMA0558` if the tensors do not match or have more than 512 groups, `TMA0546` if they are too
/// large, `TMA0547` if no kernel supports the GEMM, `TMA0570` if the caller's memory is too
/// small, and the errors of [`launch`](tma_runtime::launch::launch). Ends that decrease, or exceed
/// the rows of A, stop the kernel: `TMA0545`.
pub fn gemm_grouped<AB: Product<C>, C: Scalar>(
    on: &impl LaunchOn,
    a: impl MapArg<AB, 2>,
    b: impl MapArg<AB, 3>,
    ends: impl MapArg<u32, 1>,
    mut c: impl MapArgMut<C, 2>,
    options: GroupedOptions<'_>,
) -> Result<(), GemmError> {
    let (a, b, ends, c) = (a.view(), b.view(), ends.view(), c.view_mut());
    let [m, k] = a.shape();
    let [groups, rows, columns] = b.shape();
    let n = if options.transpose_b { rows } else { columns };
    let fits = |tensor, found: &[usize], wanted: &[usize]| {
        let (found, wanted) = (found.to_vec(), wanted.to_vec());
        if found == wanted { Ok(()) } else { Err(GemmError::Grouped { tensor, found, wanted }) }
    };
    fits("B", &b.shape(), &if options.transpose_b { [groups, n, k] } else { [groups, k, n] })?;
    fits("C", &c.shape(), &[m, n])?;
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
    // Nothing is summed: multiply zeros, since tensor maps have no empty tensors.
    let (a, b) = (on.device().zeros::<AB, 2>([m, 8])?, on.device().zeros::<AB, 3>([groups, n, 8])?);
    queue(on, a.view(), b.view(), ends, c, GroupedOptions { transpose_b: true, ..options })
}

/// Selects a kernel and queues it, for extents that match.
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
    let tile = options.tile.unwrap_or_else(|| choose([m, n], groups, device.multiprocessors() as usize));
    let kernel = find::<AB, C>(tile, options.transpose_b).ok_or(GemmError::Instance {
        types: AB::NAME,
        what: "groups of rows, or with this tile",
        instead: "use `bf16` or `f16`, and the tile `T128x256Cluster2x1` or `T128x128Cluster1x2`, or remove `tile`",
    })?;
    let clusters = (resident_blocks(on, kernel.spec())? / CLUSTER).max(1);
    let blocks = (clusters * CLUSTER) as usize;
    let mut own = None;
    let workspace = match options.workspace {
        Some(given) if given.maps.len() >= blocks => given,
        Some(GroupedWorkspace { given: Some(found), .. }) => {
            return Err(GemmError::Workspace { found: *found, wanted: bytes_of_blocks(blocks) });
        }
        Some(_) | None => own.insert(GroupedWorkspace::of(device, blocks)?),
    };
    let a = batch(a)?.l2_promotion(L2Promotion::B256); // like A of other GEMMs, whose loop loads it
    let b = b.l2_promotion(L2Promotion::B256);
    let c = c.as_view().l2_promotion(L2Promotion::B256); // C is written through the maps made of it
    let [groups, m, n, k] = [groups, m, n, k].map(|extent| extent as u32);
    let GroupedWorkspace { maps, ended, .. } = workspace;
    Ok(kernel.launch(
        on,
        Grid::new(clusters, CLUSTER, 1),
        a,
        a,
        b,
        b,
        c,
        maps,
        ends,
        ended,
        groups,
        m,
        n,
        k,
    )?)
}

/// Returns the tile that should take less time if all groups are equal: small ones leave less of
/// the last round unfilled (`lab/gemm.md`, "Grouped GEMM").
fn choose([m, n]: [usize; 2], groups: usize, multiprocessors: usize) -> Tile {
    let clusters = (multiprocessors / CLUSTER as usize).max(1);
    let rows = m / groups;
    let down = rows.div_ceil(128);
    let (tall, wide) = (down / 2, down % 2);
    let across = n.div_ceil(256);
    let rounds = |tiles, tile: Tile| {
        let division = if tiles > clusters { Division::Halved } else { Division::Whole };
        let units = Units::of(tiles, 1, division, clusters);
        let busy = units.halves as f64 / clusters as f64;
        let half = if units.halves > 0 { tile.facts().half_step(busy) } else { 0.0 };
        units.whole.div_ceil(clusters) as f64 + half
    };
    let large = rounds(groups * (tall * across + wide * across.div_ceil(2)), Tile::T128x256Cluster2x1);
    // A half of `T128x128Cluster1x2` is assumed to take as long as one of `T128x128Cluster2x1`,
    // which has the same size.
    let small = rounds(groups * down * across, Tile::T128x128Cluster2x1) / 2.0 * SMALL;
    if rows < FEW_ROWS || small < large { Tile::T128x128Cluster1x2 } else { Tile::T128x256Cluster2x1 }
}

/// Returns the instance for a tile and a layout of B, if there is one.
fn find<AB: Scalar, C: Scalar>(tile: Tile, transpose_b: bool) -> Option<rows::Launcher<'static, AB, C>> {
    let tall = match tile {
        Tile::T128x256Cluster2x1 => true,
        Tile::T128x128Cluster1x2 => false,
        _ => return None,
    };
    rows::find(rows::Key { tall, bn: tile.facts().columns, mn_b: !transpose_b })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_is_found() {
        let mut found = 0;
        for tile in [Tile::T128x256Cluster2x1, Tile::T128x128Cluster1x2] {
            for transpose_b in [false, true] {
                found += usize::from(find::<bf16, bf16>(tile, transpose_b).is_some());
                found += usize::from(find::<f16, f16>(tile, transpose_b).is_some());
                found += usize::from(find::<bf16, f32>(tile, transpose_b).is_some());
                found += usize::from(find::<f16, f32>(tile, transpose_b).is_some());
            }
        }
        assert_eq!(found, rows::INSTANCES.len());
        assert!(find::<bf16, bf16>(Tile::T64x64, true).is_none());
        assert!(find::<e4m3, bf16>(Tile::T128x256Cluster2x1, true).is_none());
    }

    /// The faster of the two tiles in the measurements of `lab/gemm.md`.
    #[test]
    fn the_faster_tile_is_chosen() {
        assert_eq!(choose([64 * 1024, 4096], 64, 132), Tile::T128x256Cluster2x1);
        assert_eq!(choose([64 * 1024, 7168], 64, 132), Tile::T128x256Cluster2x1);
        assert_eq!(choose([8 * 1024, 4096], 8, 132), Tile::T128x256Cluster2x1);
        assert_eq!(choose([8 * 1024, 7168], 8, 132), Tile::T128x256Cluster2x1);
        assert_eq!(choose([8 * 192, 4096], 8, 132), Tile::T128x256Cluster2x1);
        assert_eq!(choose([8 * 192, 7168], 8, 132), Tile::T128x128Cluster1x2);
        assert_eq!(choose([8 * 384, 4096], 8, 132), Tile::T128x256Cluster2x1);
        assert_eq!(choose([8 * 512, 7168], 8, 132), Tile::T128x256Cluster2x1);
        assert_eq!(choose([8 * 640, 5120], 8, 132), Tile::T128x128Cluster1x2);
        assert_eq!(choose([16 * 128, 7168], 16, 132), Tile::T128x128Cluster1x2);
        assert_eq!(choose([16 * 256, 2048], 16, 132), Tile::T128x256Cluster2x1);
        assert_eq!(choose([128 * 26, 4096], 128, 132), Tile::T128x128Cluster1x2);
        assert_eq!(choose([64 * 128, 256], 64, 132), Tile::T128x128Cluster1x2);
    }

    /// Clusters synchronise between tiles with a long K, and the last one clears the counter for
    /// the next launch, whatever the counter was.
    #[cfg(feature = "llvm")]
    #[test]
    fn the_counter_is_cleared_and_decides_nothing() -> Result<(), GemmError> {
        let device = Device::simulator();
        let groups = device.multiprocessors() as usize + 1;
        let [m, n, k] = [groups * 2, 8, 32 * 64];
        let one = bf16::from_f32(1.0);
        let (a, b) = (device.tensor(&vec![one; m * k], [m, k])?, vec![one; groups * n * k]);
        let b = device.tensor(&b, [groups, n, k])?;
        let ends: Vec<u32> = (1..=groups as u32).map(|group| group * 2).collect();
        let ends = device.tensor(&ends, [groups])?;
        let mut workspace = GroupedWorkspace::new(&device)?;
        for (counted, tile) in
            [(0, Tile::T128x256Cluster2x1), (0, Tile::T128x128Cluster1x2), (5, Tile::T128x256Cluster2x1)]
        {
            let mut c = device.zeros::<f32, 2>([m, n])?;
            workspace.ended = device.tensor(&[counted], [1])?;
            let (tile, workspace) = (Some(tile), Some(&mut workspace));
            let options = GroupedOptions { transpose_b: true, tile, workspace };
            gemm_grouped(&device, &a, &b, &ends, &mut c, options)?;
            assert!(c.to_vec()?.iter().all(|&sum| sum == k as f32), "{tile:?}");
        }
        assert_eq!(workspace.ended.to_vec()?, [0], "not cleared, or nobody has counted");
        Ok(())
    }
}
