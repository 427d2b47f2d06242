//! Arguments of the kernels, and selection of the instances.

use std::f32::consts::LOG2_E;

use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use super::kernel::backward::gradients;
use super::rows::queries::{prepare, round};
use super::{AttentionBackwardOptions, AttentionForward, AttentionGradients, AttentionWorkspace};
use crate::attention::shape::{MOST, checked_scale, fits, group, reach};
use crate::attention::{AttentionElement, AttentionError};
use crate::dependent::dependent;

/// Keys per block, as in the kernel.
const KEYS: usize = 128;

/// Elements of `o` that a thread loads at once, and of `dq` that it stores.
const VECTOR: usize = 8;

/// Vectors of `o` that a block of `prepare` has, as in the kernel.
const PREPARED: u32 = 512;

/// The division of the work among blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Blocks {
    /// Heads of queries in the whole batch.
    pub(super) heads: usize,
    /// Queries that a block multiplies at a time.
    pub(super) queries: usize,
    /// Blocks of queries per head.
    pub(super) of_queries: usize,
    /// Blocks of keys per head.
    pub(super) of_keys: usize,
}

impl Blocks {
    /// Returns the division for queries of batch × heads × queries × depth and so many keys.
    pub(super) fn of(queries: [usize; 4], keys: usize) -> Result<Self, AttentionError> {
        let [batch, heads, of_head, depth] = queries;
        let queries = match depth {
            64 => 128,
            128 => 64,
            _ => return Err(AttentionError::BackwardDepth { depth }),
        };
        Ok(Self {
            heads: batch.saturating_mul(heads),
            queries,
            of_queries: of_head.div_ceil(queries),
            of_keys: keys.div_ceil(KEYS),
        })
    }

    /// Returns the number of blocks of queries.
    pub(super) fn count(&self) -> usize {
        self.heads.saturating_mul(self.of_queries)
    }

    /// Returns the rows of all blocks, with those beyond the end of a head.
    fn rows(&self) -> usize {
        self.count().saturating_mul(self.queries)
    }
}

/// The extents of a launch, derived from its tensors.
struct Problem {
    depth: usize,
    batch: usize,
    heads: usize,
    /// Heads of keys.
    key_heads: usize,
    /// Heads of queries that share one head of keys; 0 if there are none.
    group: usize,
    queries: usize,
    keys: usize,
    scale: f32,
    blocks: Blocks,
}

impl Problem {
    fn of<T: AttentionElement>(
        forward: &AttentionForward<'_, T>,
        gradients: &AttentionGradients<'_, T>,
        options: &AttentionBackwardOptions<'_>,
    ) -> Result<Self, AttentionError> {
        let (q, k) = (forward.q.shape(), forward.k.shape());
        let [batch, heads, queries, depth] = q;
        let keys = k[2];
        let blocks = Blocks::of(q, keys)?;
        fits("k", &k, &[batch, k[1], keys, depth])?;
        fits("v", &forward.v.shape(), &k)?;
        fits("o", &forward.o.shape(), &q)?;
        fits("d_o", &forward.d_o.shape(), &q)?;
        fits("lse", &forward.lse.shape(), &q[..3])?;
        fits("dq", &gradients.dq.shape(), &q)?;
        fits("dk", &gradients.dk.shape(), &k)?;
        fits("dv", &gradients.dv.shape(), &k)?;
        let key_heads = k[1];
        let group = group(heads, key_heads)?;
        let scale = checked_scale(options.scale, depth)?;
        let most = blocks
            .rows()
            .max(batch.saturating_mul(key_heads).saturating_mul(blocks.of_keys))
            .max(queries)
            .max(keys);
        if most >= MOST {
            return Err(AttentionError::TooLarge { queries, keys, heads, sequences: batch });
        }
        Ok(Self { depth, batch, heads, key_heads, group, queries, keys, scale, blocks })
    }
}

/// The memory of a view that threads access, and the distances in it.
struct Layout {
    /// The number of elements from the first to the last one.
    reach: usize,
    batch: u64,
    head: u64,
    row: u64,
}

/// Returns the layout of a tensor of batch × heads × rows × depth, which threads access by vectors.
fn layout(
    tensor: &'static str,
    shape: [usize; 4],
    strides: [usize; 4],
    vector: usize,
) -> Result<Layout, AttentionError> {
    let [batch, head, row, column] = strides;
    let outer = [batch, head, row];
    if !shape.contains(&0) && (column != 1 || outer.iter().any(|stride| !stride.is_multiple_of(vector))) {
        return Err(AttentionError::Rows { tensor, strides: strides.into(), multiple: vector });
    }
    let reach = if shape.contains(&0) { 0 } else { reach(shape, strides) };
    Ok(Layout { reach, batch: batch as u64, head: head as u64, row: row as u64 })
}

/// Returns the layout of the gradient of keys or values, whose rows are less than 2^32 elements
/// apart.
fn rows_of_sums(
    tensor: &'static str,
    shape: [usize; 4],
    strides: [usize; 4],
) -> Result<Layout, AttentionError> {
    let found = layout(tensor, shape, strides, 1)?;
    match shape[2] > 1 && found.row > u64::from(u32::MAX) {
        true => Err(AttentionError::Rows { tensor, strides: strides.into(), multiple: 1 }),
        false => Ok(found),
    }
}

/// Returns how many heads of keys begin with their first blocks: as many as run at the same time.
/// Without a mask all blocks take equally long.
fn heads_together(is_causal: bool, key_blocks: usize, multiprocessors: u32) -> u32 {
    if is_causal { (multiprocessors / key_blocks as u32).max(1) } else { 1 }
}

/// Queues the kernels, unless there is nothing to compute.
pub(super) fn queue<T: AttentionElement>(
    on: &impl LaunchOn,
    forward: AttentionForward<'_, T>,
    gradients: AttentionGradients<'_, T>,
    options: AttentionBackwardOptions<'_>,
) -> Result<(), AttentionError> {
    let problem = Problem::of(&forward, &gradients, &options)?;
    let AttentionGradients { dq, dk, dv } = gradients;
    let of_o = layout("o", forward.o.shape(), forward.o.strides(), VECTOR)?;
    let of_d_o = layout("d_o", forward.d_o.shape(), forward.d_o.strides(), VECTOR)?;
    let of_dq = layout("dq", dq.shape(), dq.strides(), VECTOR)?;
    let [of_dk, of_dv] =
        [rows_of_sums("dk", dk.shape(), dk.strides())?, rows_of_sums("dv", dv.shape(), dv.strides())?];

    let mut own = None;
    let workspace = match options.workspace {
        Some(given) => given,
        None => own.insert(AttentionWorkspace::new(on.device())?),
    };
    workspace.grow(&problem.blocks)?;
    let Problem { depth, batch, heads, key_heads, group, queries, keys, scale, blocks } = problem;
    let (rows, padded) = (blocks.rows(), blocks.of_queries * blocks.queries);
    // Extents are below 2^31, which the problem has checked, and strides of rows of `dk` and `dv`
    // below 2^32, which `rows_of_sums` has.
    let count = |value: usize| value as u32;
    let without_instance = || AttentionError::BackwardDepth { depth };
    let key = |causal| gradients::Key { depth: count(depth), queries: count(blocks.queries), causal };

    if rows > 0 {
        let lanes = count(depth) / VECTOR as u32;
        let kernel: prepare::Launcher<'static, T> =
            prepare::find(prepare::Key { lanes }).ok_or_else(without_instance)?;
        let of_head = count(padded).div_ceil(PREPARED / lanes);
        let [lse_batch, lse_head, lse_query] = forward.lse.strides();
        let lse_reach = reach(forward.lse.shape(), forward.lse.strides());
        kernel.launch(
            dependent(on),
            Grid::x(count(blocks.heads) * of_head),
            forward.o.with_strides([of_o.reach], [1])?,
            forward.d_o.with_strides([of_d_o.reach], [1])?,
            forward.lse.with_strides([lse_reach], [1])?,
            workspace.exponents.view_mut().with_strides([rows], [1])?,
            workspace.deltas.view_mut().with_strides([rows], [1])?,
            &mut workspace.sums,
            count(queries),
            count(padded),
            of_head,
            count(heads),
            of_o.batch,
            of_o.head,
            of_o.row,
            of_d_o.batch,
            of_d_o.head,
            of_d_o.row,
            lse_batch as u64,
            lse_head as u64,
            lse_query as u64,
        )?;
    }
    let key_blocks = batch * key_heads * blocks.of_keys;
    if key_blocks > 0 {
        // A tensor map has at least one element. No block reads that of a tensor without queries.
        let (no_rows, no_numbers);
        let (q, d_o, exponents, deltas) = if rows > 0 {
            let [exponents, deltas] = [&workspace.exponents, &workspace.deltas]
                .map(|numbers| numbers.view().with_strides([blocks.heads, padded], [padded, 1]));
            (forward.q, forward.d_o, exponents?, deltas?)
        } else {
            no_rows = on.device().zeros::<T, 4>([1, 1, 1, depth])?;
            no_numbers = on.device().zeros::<f32, 2>([1, blocks.queries])?;
            (no_rows.view(), no_rows.view(), no_numbers.view(), no_numbers.view())
        };
        let kernel: gradients::Launcher<'static, T> =
            gradients::find(key(options.causal)).ok_or_else(without_instance)?;
        kernel.launch(
            dependent(on),
            Grid::x(count(key_blocks)),
            q.l2_promotion(L2Promotion::B256), // whole rows are read
            d_o.l2_promotion(L2Promotion::B256),
            forward.k.l2_promotion(L2Promotion::B256),
            forward.v.l2_promotion(L2Promotion::B256),
            exponents,
            deltas,
            &mut workspace.sums,
            dk.with_strides([of_dk.reach], [1])?,
            dv.with_strides([of_dv.reach], [1])?,
            count(queries),
            count(keys),
            count(key_heads),
            count(group),
            count(blocks.of_keys),
            of_dk.batch,
            of_dk.head,
            of_dk.row as u32,
            of_dv.batch,
            of_dv.head,
            of_dv.row as u32,
            heads_together(options.causal, blocks.of_keys, on.device().multiprocessors()),
            scale,
            scale * LOG2_E,
        )?;
    }
    if rows > 0 {
        let key = round::Key { depth: count(depth), queries: count(blocks.queries) };
        let kernel: round::Launcher<'static, T> = round::find(key).ok_or_else(without_instance)?;
        kernel.launch(
            dependent(on),
            Grid::x(count(blocks.heads * blocks.of_queries)),
            &workspace.sums,
            dq.with_strides([of_dq.reach], [1])?,
            count(queries),
            count(blocks.of_queries),
            count(heads),
            of_dq.batch,
            of_dq.head,
            of_dq.row,
            scale,
        )?;
    }
    Ok(())
}
