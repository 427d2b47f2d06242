//! Arguments of the kernel, and selection of the instance.

use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use super::few_rows::warps::attend as few_rows;
use super::latent::kernel::warpgroups::attend_latents as latent_rows;
use super::many_rows::warpgroups::attend as many_rows;
use super::merge::rows::{THREADS, merge};
use super::pages::PageArguments;
use super::problem::{Layout, Problem, VECTOR};
use super::schedule::work::MOST_SEQUENCES;
use super::{
    AttentionElement, CacheElement, CacheScales, CacheWorkspace, CachedAttentionError,
    CachedAttentionOptions, KeyValueCache,
};
use crate::dependent::dependent;

/// The rows of a head up to which the block that ends last merges its parts. For 16 rows a kernel
/// of its own is a third faster, and for 4 it would only be a further launch. The limit between
/// them has not been measured.
const MERGED_BY_BLOCKS: usize = 8;

/// Queues the kernels, unless there is nothing to compute.
pub(super) fn queue<T: AttentionElement, C: CacheElement<T>>(
    on: &impl LaunchOn,
    layout: Layout,
    q: TensorView<'_, T, 4>,
    cache: KeyValueCache<'_, C>,
    o: TensorViewMut<'_, T, 4>,
    options: CachedAttentionOptions<'_, T>,
) -> Result<(), CachedAttentionError> {
    let problem = Problem::of(layout, [q.shape(), o.shape()], &cache, &options)?;
    if o.shape().contains(&0) {
        return Ok(());
    }
    let CachedAttentionOptions { slopes, bias, sinks, mut lse, workspace, division, constant_cache, .. } =
        options;
    let (of_q, of_o) = (q.strides(), o.strides());
    check_rows("q", q.shape(), of_q, VECTOR)?;
    check_rows("o", o.shape(), of_o, VECTOR)?;
    let elements_of_o: usize = o.shape().iter().product();
    // SAFETY: the kernels find the elements by these strides.
    let (q, mut o) = unsafe { (q.span()?, o.span()?) };

    let of_bias = bias.as_ref().map_or([0; 4], |bias| {
        let is_shared = |i: usize| bias.shape()[i] == 1;
        std::array::from_fn(|i| if is_shared(i) { 0 } else { bias.strides()[i] as u64 })
    });
    // SAFETY: as above.
    let bias = bias.map(|bias| unsafe { bias.span() }).transpose()?;

    let device = on.device();
    let division = division.unwrap_or_else(|| problem.division(device));
    let mut own = None;
    let workspace = match workspace {
        Some(given) => given,
        None => own.insert(CacheWorkspace::new(device)?),
    };
    workspace.grow(&problem, division)?;

    // A tensor map has at least one element, which no query sees.
    let nothing;
    let [k, v] = if cache.keys.shape().contains(&0) {
        nothing = device.zeros([1, 1, 1, problem.depth])?;
        [nothing.view(); 2]
    } else {
        [cache.keys, cache.values]
    };
    let PageArguments { table, page_starts, lengths } = cache.pages.arguments(cache.lengths)?;
    let page_shift = problem.page_rows.map_or(0, usize::ilog2);
    let depth = problem.kernel_depth() as u32;
    let is_unknown = || CachedAttentionError::Depth { depth: problem.depth, multiple: 16 / C::BYTES };
    // Extents are below 2^31, which the problem has checked.
    let count = |value: usize| value as u32;
    // Few parts of few rows are merged by the block that ends last, others by a kernel.
    let is_divided = lengths.is_some() || division.units > problem.sequences * problem.heads_and_tiles();
    let is_merged = is_divided && (problem.rows() > MERGED_BY_BLOCKS || problem.tile_rows() > 16);
    // A kernel that merges reads the lengths again, and so does a plan without room for them: they
    // could have changed.
    let is_constant = constant_cache && !is_merged && 2 * problem.sequences <= MOST_SEQUENCES as usize;
    // The kernels have the same parameters, except for how parts are merged, and for depths,
    // additions and scales, which not all of them have.
    macro_rules! attend {
        ($kernel:expr, $keys:expr, $values:expr, [$($arrived:expr)?], [$($depth:expr),*], [$($other:expr),*]) => {
            $kernel.launch(
                dependent(on),
                Grid::x(count(division.blocks.max(1))),
                $keys.l2_promotion(L2Promotion::B256), // whole rows are read
                $values.l2_promotion(L2Promotion::B256),
                q,
                o.reborrow(),
                table,
                lengths,
                sinks,
                lse.as_mut().map(TensorViewMut::reborrow),
                &mut workspace.partials,
                &mut workspace.stats,
                $($arrived,)?
                is_merged.then_some(&mut workspace.starts),
                &mut workspace.taken,
                count(problem.sequences),
                count(problem.key_heads),
                count(problem.group),
                count(problem.queries),
                count(problem.keys),
                count(problem.left),
                count(problem.right),
                $($depth,)*
                page_shift,
                count(problem.table_width),
                count(division.units.max(1)),
                count(division.least_keys),
                of_q[0] as u64,
                of_q[1] as u64,
                of_q[2] as u64,
                of_o[0] as u64,
                of_o[1] as u64,
                of_o[2] as u64,
                problem.scale,
                problem.cap_scale,
                $($other,)*
            )?
        };
    }
    let keys = count(problem.stage_keys());
    let shift = C::SHIFT;
    if problem.tile_rows() == 16 {
        let key = few_rows::Key { bytes: C::BYTES as u32, shift, depth, keys };
        let kernel = few_rows::find::<T, C::Multiplied, C>(key).ok_or_else(is_unknown)?;
        let scales = cache.scales;
        let [last_page, of_page, of_head] = CacheScales::steps(scales);
        attend!(
            kernel,
            k,
            v,
            [(!is_merged).then_some(&mut workspace.arrived)],
            [count(problem.depth), count(problem.value_depth)],
            [
                slopes,
                bias,
                of_bias[0],
                of_bias[1],
                of_bias[2],
                of_bias[3],
                problem.bias_factor,
                page_starts,
                scales.map(|scales| scales.keys),
                scales.map(|scales| scales.values),
                is_constant,
                last_page,
                of_page,
                of_head
            ]
        );
    } else if let (Some(k), Some(v)) = (C::unwidened(k), C::unwidened(v)) {
        match problem.layout {
            Layout::Separate => {
                let warpgroups = count(problem.tile_rows() / 64);
                let key = many_rows::Key { shift, depth, keys, warpgroups };
                let kernel = many_rows::find::<T>(key).ok_or_else(is_unknown)?;
                attend!(
                    kernel,
                    k,
                    v,
                    [],
                    [count(problem.depth), count(problem.value_depth)],
                    [
                        slopes,
                        bias,
                        of_bias[0],
                        of_bias[1],
                        of_bias[2],
                        of_bias[3],
                        problem.bias_factor,
                        page_starts,
                        problem.has_additions
                    ]
                );
            }
            Layout::Latent => {
                let kernel = latent_rows::find::<T>(latent_rows::Key { shift }).ok_or_else(is_unknown)?;
                attend!(kernel, k, v, [], [], [page_starts]);
            }
        }
    }
    if is_merged {
        let threads = elements_of_o / problem.value_depth * problem.kernel_depth() / 4;
        let kernel = merge::find::<T>(merge::Key { shift, depth }).ok_or_else(is_unknown)?;
        kernel.launch(
            dependent(on),
            Grid::x(count(threads.div_ceil(THREADS as usize).min(16 * division.blocks.max(1)))),
            o.reborrow(),
            page_starts,
            lengths,
            sinks,
            lse,
            &mut workspace.partials,
            &mut workspace.stats,
            &mut workspace.starts,
            count(problem.sequences),
            count(problem.key_heads),
            count(problem.group),
            count(problem.queries),
            count(problem.keys),
            count(problem.left),
            count(problem.right),
            count(problem.tile_rows()),
            count(problem.value_depth),
            page_shift,
            of_o[0] as u64,
            of_o[1] as u64,
            of_o[2] as u64,
            problem.scale,
        )?;
    }
    Ok(())
}

/// Checks that threads can read or write the rows of a view by vectors of so many elements.
pub(super) fn check_rows<const RANK: usize>(
    tensor: &'static str,
    shape: [usize; RANK],
    strides: [usize; RANK],
    vector: usize,
) -> Result<(), CachedAttentionError> {
    let is_aligned = strides.iter().rev().skip(1).all(|stride| stride.is_multiple_of(vector));
    if !shape.contains(&0) && (!is_aligned || strides.last() != Some(&1)) {
        return Err(CachedAttentionError::Rows { tensor, strides: strides.into() });
    }
    Ok(())
}
