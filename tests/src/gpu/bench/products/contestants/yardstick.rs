//! PTX from elsewhere, measured in the same rounds.
//!
//! A folder has a file `NAME.ptx` for each kernel, and `index.json`, which describes their
//! launches. The entry point is `gemm`. Its parameters are the maps of A, B and C, the number of
//! clusters' tiles along M and along N, the number of steps along K, how many rows of tiles form a
//! group, and a table of tiles with its length. The table is never passed, so kernels that need one
//! are skipped.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use tma_runtime::launch::{Arg, KernelParts, KernelSpec, ParamKind, ParamSpec, launch, resident_blocks};
use tma_runtime::prelude::*;
use tma_runtime::spec;
use tma_runtime::spec::{Cluster, MapMode, MapSpec, TileSwizzle};

use super::{Contestant, Role};
use crate::gpu::bench::products::precision::Precision;
use crate::gpu::bench::products::problem::Matrices;

/// The number of rows of tiles in a group.
const GROUP: u32 = 8;

/// The entry of a kernel in `index.json`, with the fields that a launch needs.
#[derive(Clone, Debug, Deserialize)]
struct Entry {
    name: String,
    /// The type of A and B; C is `bf16`.
    dtype: String,
    /// Rows and columns of a block's tile of C, and elements along K of a step.
    bm: u32,
    bn: u32,
    bk: u32,
    /// The number of blocks of a cluster along M, which share B, and along N, which share A.
    cm: u32,
    cn: u32,
    threads: u32,
    smem: u32,
    /// `calc` if blocks compute the indices of their tiles.
    sched: String,
}

/// Returns the kernels of a folder for these types.
///
/// # Errors
///
/// Files that cannot be read.
pub fn of_folder<P: Precision>(folder: &Path) -> anyhow::Result<Vec<Contestant<'static, P>>> {
    let index = folder.join("index.json");
    let text = fs::read_to_string(&index).with_context(|| format!("cannot read {}", index.display()))?;
    let entries: Vec<Entry> =
        serde_json::from_str(&text).with_context(|| format!("{} is no index", index.display()))?;
    let fits = |entry: &Entry| entry.dtype == P::NAME && entry.sched == "calc";
    entries.into_iter().filter(fits).map(|entry| contestant(folder, entry)).collect()
}

fn contestant<P: Precision>(folder: &Path, entry: Entry) -> anyhow::Result<Contestant<'static, P>> {
    let path = folder.join(format!("{}.ptx", entry.name));
    let ptx = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let spec = specification::<P>(&entry, ptx);
    Ok(Contestant::new(format!("yardstick::{}", entry.name), Role::Yardstick, move |stream, matrices| {
        multiply(stream, spec, &entry, matrices)
    }))
}

/// Returns the kernel's specification, which a launch requires to live until the program ends.
fn specification<P: Precision>(entry: &Entry, ptx: String) -> &'static KernelSpec {
    let map = |name, element, extents: [u32; 2], written| ParamSpec {
        name,
        kind: ParamKind::Map(MapSpec {
            element,
            mode: MapMode::Tiled,
            box_extents: Box::leak(Box::new(extents)),
            swizzle: TileSwizzle::B128,
            written,
        }),
    };
    let scalar = |name, bytes| ParamSpec { name, kind: ParamKind::Scalar { bytes } };
    let (operand, result): (spec::Scalar, spec::Scalar) = (P::Operand::ELEMENT, P::Result::ELEMENT);
    let params = [
        map("a", operand, [entry.bm / entry.cn, entry.bk], false),
        map("b", operand, [entry.bn / entry.cm, entry.bk], false),
        map("c", result, [64, 64], true),
        scalar("down", 4),
        scalar("across", 4),
        scalar("steps", 4),
        scalar("group", 4),
        scalar("table", 8),
        scalar("table_len", 4),
    ];
    let cluster = entry.cm * entry.cn;
    let parts = KernelParts {
        name: Box::leak(entry.name.clone().into_boxed_str()),
        entry: "gemm",
        ptx: Box::leak(ptx.into_boxed_str()),
        threads: [entry.threads, 1, 1],
        cluster: if cluster == 1 { Cluster::None } else { Cluster::Fixed([cluster, 1, 1]) },
        cooperative: false,
        dependency_wait: false,
        team: false,
        shared_bytes: entry.smem,
        params: Box::leak(Box::new(params)),
    };
    // SAFETY: the user who names the folder on the command line vouches for its kernels.
    Box::leak(Box::new(unsafe { KernelSpec::from_parts(parts) }))
}

fn multiply<P: Precision>(
    stream: &Stream,
    spec: &'static KernelSpec,
    entry: &Entry,
    matrices: &mut Matrices<P>,
) -> anyhow::Result<()> {
    let [m, n, k] = matrices.shape().map(|extent| extent as u32);
    let (down, across) = (m.div_ceil(entry.bm * entry.cm), n.div_ceil(entry.bn * entry.cn));
    let blocks = entry.cm * entry.cn;
    let most = (resident_blocks(stream, spec)? / blocks).min(down * across).max(1);
    // Few clusters, as long as there are no more rounds: idle multiprocessors leave the others more
    // power.
    let clusters = (down * across).div_ceil((down * across).div_ceil(most));
    let args = [
        Arg::map(matrices.a.view()),
        Arg::map(matrices.b.view()),
        Arg::map_mut(matrices.c.view_mut()),
        Arg::scalar(down),
        Arg::scalar(across),
        Arg::scalar(k.div_ceil(entry.bk)),
        Arg::scalar(GROUP.min(down)),
        Arg::scalar(0_u64),
        Arg::scalar(0_u32),
    ];
    Ok(launch(stream, spec, Grid::x(clusters * blocks), &args)?)
}
