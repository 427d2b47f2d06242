//! Arguments of the kernels, and selection of the instances.

use tma_runtime::launch::{GlobalSlice, LaunchOn};
use tma_runtime::prelude::*;

use super::kernel::backward::gradients;
use super::problem::{Problem, QueryBlocks};
use super::rows::queries::{prepare, round, sinks as of_sinks};
use super::{AttentionBackwardOptions, AttentionForward, AttentionGradients, AttentionWorkspace, Sinks};
use crate::attention::shape::reach;
use crate::attention::{AttentionElement, AttentionError};
use crate::dependent::dependent;

mod general {
    pub(super) use crate::attention::backward::general::kernel::gradients;
    pub(super) use crate::attention::backward::general::rows::{prepare, round, sinks};
}

/// Elements of `o` that a thread loads at once, and of `dq` that it stores.
const VECTOR: usize = 8;

/// Vectors of `o` that a block of `prepare` has, as in the kernel.
const PREPARED: u32 = 512;

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

/// Returns the key of the instance that multiplies.
fn key(problem: &Problem) -> gradients::Key {
    let QueryBlocks { depth, queries, .. } = problem.blocks;
    gradients::Key { depth: depth as u32, queries: queries as u32, causal: problem.is_causal() }
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
    let Problem { depth, sequences, heads, key_heads, group, queries, keys, blocks, .. } = problem;
    let (rows, padded) = (blocks.rows(), blocks.of_head * blocks.queries);
    // Extents are below 2^31, which the problem has checked, and strides of rows of `dk` and `dv`
    // below 2^32, which `rows_of_sums` has.
    let count = |value: usize| value as u32;
    let without_instance = || AttentionError::BackwardDepth { depth };
    let none = on.device().zeros([0])?;
    let [of_queries, of_keys] =
        options.lengths.map_or([none.view(); 2], |lengths| [lengths.queries, lengths.keys]);
    let has_queries = rows > 0 && problem.longest > 0;

    if has_queries {
        let lanes = blocks.depth / VECTOR;
        let key = prepare::Key { depth: count(blocks.depth), queries: count(blocks.queries) };
        let general = general::prepare::table_of::<T>(count(depth), GlobalSlice::new(of_queries));
        let kernel: prepare::Launcher<'_, T> =
            if problem.is_general { general.find(key) } else { prepare::find(key) }
                .ok_or_else(without_instance)?;
        let of_longest = problem.longest.div_ceil(blocks.queries) * blocks.queries;
        let of_head = count(of_longest).div_ceil(PREPARED / count(lanes));
        let [lse_batch, lse_head, lse_query] = forward.lse.strides();
        let lse_reach = reach(forward.lse.shape(), forward.lse.strides());
        kernel.launch(
            dependent(on),
            Grid::x(count(sequences * heads) * of_head),
            forward.o.with_strides([of_o.reach], [1])?,
            forward.d_o.with_strides([of_d_o.reach], [1])?,
            forward.lse.with_strides([lse_reach], [1])?,
            workspace.exponents.view_mut().with_strides([rows], [1])?,
            workspace.deltas.view_mut().with_strides([rows], [1])?,
            &mut workspace.sums,
            &mut workspace.turns,
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
    let key_blocks = sequences * key_heads * problem.key_blocks;
    if key_blocks > 0 {
        // A tensor map has at least one element. No block reads that of a tensor without queries.
        let (no_rows, no_numbers);
        let (q, d_o, exponents, deltas) = if has_queries {
            let [exponents, deltas] = [&workspace.exponents, &workspace.deltas]
                .map(|numbers| numbers.view().with_strides([blocks.heads, padded], [padded, 1]));
            (forward.q, forward.d_o, exponents?, deltas?)
        } else {
            no_rows = on.device().zeros::<T, 4>([1, 1, 1, depth])?;
            no_numbers = on.device().zeros::<f32, 2>([1, blocks.queries])?;
            (no_rows.view(), no_rows.view(), no_numbers.view(), no_numbers.view())
        };
        let [left, right] = problem.mask.bounds();
        let cap = problem.scores.cap_scale();
        let general = general::gradients::table_of::<T>(
            count(depth),
            cap > 0.0,
            options.lengths.is_some(),
            GlobalSlice::new(of_queries),
            GlobalSlice::new(of_keys),
            count(problem.longest),
            count(problem.longest_keys),
            count(blocks.of_head),
            cap,
            left,
            right,
        );
        let key = key(&problem);
        let kernel: gradients::Launcher<'_, T> =
            if problem.is_general { general.find(key) } else { gradients::find(key) }
                .ok_or_else(without_instance)?;
        let turns = options.deterministic.then_some(&mut workspace.turns);
        let together = problem.heads_together(turns.is_some(), on.device().multiprocessors());
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
            turns,
            dk.with_strides([of_dk.reach], [1])?,
            dv.with_strides([of_dv.reach], [1])?,
            count(queries),
            count(keys),
            count(key_heads),
            count(group),
            count(problem.key_blocks),
            of_dk.batch,
            of_dk.head,
            of_dk.row as u32,
            of_dv.batch,
            of_dv.head,
            of_dv.row as u32,
            together,
            problem.scores.scale,
            problem.scores.exponent_scale(),
        )?;
    }
    if has_queries {
        let key = round::Key { depth: count(blocks.depth), queries: count(blocks.queries) };
        let general = general::round::table_of::<T>(count(depth), GlobalSlice::new(of_queries));
        let kernel: round::Launcher<'_, T> =
            if problem.is_general { general.find(key) } else { round::find(key) }
                .ok_or_else(without_instance)?;
        let of_head = problem.longest.div_ceil(blocks.queries);
        kernel.launch(
            dependent(on),
            Grid::x(count(sequences * heads * of_head)),
            &workspace.sums,
            dq.with_strides([of_dq.reach], [1])?,
            count(queries),
            count(padded),
            count(of_head),
            count(heads),
            of_dq.batch,
            of_dq.head,
            of_dq.row,
            problem.scores.scale,
        )?;
    }
    if let Some(Sinks { sinks, gradient }) = options.sinks
        && heads > 0
    {
        let key = of_sinks::Key { queries: count(blocks.queries) };
        let general = general::sinks::table(GlobalSlice::new(of_queries));
        let kernel = if problem.is_general { general.find(key) } else { of_sinks::find(key) };
        let sequences = if has_queries { sequences } else { 0 };
        kernel.ok_or_else(without_instance)?.launch(
            dependent(on),
            Grid::x(count(heads)),
            &workspace.exponents,
            &workspace.deltas,
            sinks,
            gradient,
            count(queries),
            count(padded),
            count(heads),
            count(sequences),
        )?;
    }
    Ok(())
}
