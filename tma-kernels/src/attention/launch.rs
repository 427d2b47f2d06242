//! Arguments of the kernel, and selection of the instance.

use std::f32::consts::LOG2_E;

use tma_runtime::Scalar;
use tma_runtime::launch::{Arg, GlobalSliceMut, KernelSpec, LaunchOn, MapOptions, launch};
use tma_runtime::prelude::*;

use super::kernel::forward::attention::INSTANCES;
use super::shape::Problem;
use super::{AttentionError, AttentionOptions};

mod sealed {
    pub trait Sealed {
        /// The index among the element types of the kernel's instances.
        const INDEX: usize;
    }

    impl Sealed for tma_runtime::prelude::bf16 {
        const INDEX: usize = 0;
    }

    impl Sealed for tma_runtime::prelude::f16 {
        const INDEX: usize = 1;
    }
}

/// The element types of [`attention`](super::attention()): `bf16` and `f16`.
#[diagnostic::on_unimplemented(
    message = "attention needs tensors of `bf16` or `f16`, not of `{Self}`",
    label = "neither `bf16` nor `f16`"
)]
pub trait AttentionElement: Scalar + sealed::Sealed {}

impl AttentionElement for bf16 {}
impl AttentionElement for f16 {}

/// Returns the instance for an element type, a depth, a mask and lengths, in the order of the
/// kernel's attribute.
fn instance<T: AttentionElement>(depth: usize, causal: bool, ragged: bool) -> &'static KernelSpec {
    let depth = usize::from(depth > 64) + usize::from(depth > 128);
    &INSTANCES[((T::INDEX * 3 + depth) * 2 + usize::from(causal)) * 2 + usize::from(ragged)]
}

/// Queues the kernel, unless there is nothing to compute.
pub(super) fn queue<T: AttentionElement>(
    on: &impl LaunchOn,
    [q, k, v]: [TensorView<'_, T, 4>; 3],
    o: TensorViewMut<'_, T, 4>,
    options: AttentionOptions<'_>,
) -> Result<(), AttentionError> {
    let problem = Problem::of([q.shape(), k.shape(), v.shape(), o.shape()], &options)?;
    if problem.units == 0 {
        return Ok(());
    }
    // A tensor map has at least one element. The mask hides the data loaded from this one.
    let nothing;
    let [k, v] = if problem.keys > 0 {
        [k, v]
    } else {
        nothing = on.device().zeros([1, 1, 1, problem.depth])?;
        [nothing.view(); 2]
    };

    let AttentionOptions { causal, lengths, lse, blocks, .. } = options;
    let [_, head_stride, row_stride, _] = o.strides();
    let reach = (problem.heads - 1) * head_stride + (problem.queries - 1) * row_stride + problem.depth;
    // SAFETY: both views go to this launch, whose kernel stores each tile either by copies or by
    // threads.
    let [o, rows] = unsafe { o.alias() };
    let rows = rows.with_strides([if lengths.is_some() { reach } else { 0 }], [1])?;
    let (none_f32, none_u32) = (on.device().tensor(&[], [0])?, on.device().tensor(&[], [0])?);
    let mut none_f32: DeviceTensor<f32, 1> = none_f32;
    let lse = match lse {
        Some(lse) => lse.slice_mut(),
        None => none_f32.slice_mut(),
    };
    let starts = match &lengths {
        Some(lengths) => [lengths.queries, lengths.keys],
        None => [&none_u32; 2],
    };
    let starts = starts.map(|starts: &DeviceTensor<u32, 1>| Arg::global(starts.slice()));
    let [of_queries, of_keys] = starts;

    // With different lengths, one block per unit: a multiprocessor takes the next block when it is
    // done with one.
    let usual = match lengths {
        Some(_) => problem.units,
        None => on.device().multiprocessors() as usize,
    };
    let blocks = blocks.unwrap_or(usual).clamp(1, problem.units);
    let [queries, keys, heads, group] =
        [problem.queries, problem.keys, problem.heads, problem.group].map(count);
    let [tiles, units, row_stride] = [problem.tiles, problem.units, row_stride].map(count);
    let args = [
        loaded(q),
        loaded(k),
        loaded(v),
        Arg::map_mut(o),
        Arg::global_mut(GlobalSliceMut::new(rows)),
        Arg::global_mut(lse),
        of_queries,
        of_keys,
        queries,
        keys,
        heads,
        group,
        tiles,
        units,
        row_stride,
        Arg::scalar(head_stride as u64),
        Arg::scalar(problem.scale * LOG2_E),
    ];
    let kernel = instance::<T>(problem.depth, causal, lengths.is_some());
    Ok(launch(on, kernel, Grid::x(blocks as u32), &args)?)
}

/// Passes a tensor that the kernel loads. It is fetched into the L2 cache 256 bytes at a time,
/// since whole rows are read.
fn loaded<'a, T: Scalar>(tensor: TensorView<'a, T, 4>) -> Arg<'a> {
    Arg::map(tensor).with(MapOptions { l2_promotion: L2Promotion::B256, ..MapOptions::default() })
}

/// Passes an extent or a stride. Extents are below 2^31, which the problem has checked. A stride
/// beyond 2^32 has no second row.
fn count(value: usize) -> Arg<'static> {
    Arg::scalar(value as u32)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::{env, fs};

    use super::*;

    #[test]
    fn instances_are_in_the_order_of_the_attribute() {
        for (depth, causal, ragged) in
            [(64, false, false), (64, true, false), (128, false, true), (256, true, true)]
        {
            let mask = if causal { "causal" } else { "full" };
            let lengths = if ragged { "ragged" } else { "even" };
            let name = |element| format!("{element}_d{depth}_{mask}_{lengths}");
            for (found, wanted) in [
                (instance::<bf16>(depth, causal, ragged), name("bf16")),
                (instance::<f16>(depth, causal, ragged), name("f16")),
            ] {
                assert!(found.name.ends_with(&wanted), "{} is not {wanted}", found.name);
            }
        }
        assert_eq!(INSTANCES.len(), 24);
    }

    /// NVIDIA's assembler accepts every instance: no spills, no local memory, and no note that it
    /// serialises matmuls. The assembler is the one of the set-up, or the one that `TMA_PTXAS`
    /// names.
    #[test]
    #[cfg(feature = "llvm")]
    fn ptxas_accepts_every_instance() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let ptxas = env::var_os("TMA_PTXAS").map_or_else(|| root.join("target/tools/ptxas"), Into::into);
        assert!(ptxas.is_file(), "there is no ptxas at {}: run `cargo xtask setup`", ptxas.display());
        for spec in &INSTANCES {
            let file = env::temp_dir().join(format!("{}-{}.ptx", spec.entry, std::process::id()));
            fs::write(&file, spec.ptx).expect("the folder for temporary files can be written to");
            let output = Command::new(&ptxas)
                .args(["-arch", "sm_90a", "-v", "-o", "/dev/null"])
                .arg(&file)
                .output()
                .expect("ptxas can be started");
            fs::remove_file(&file).expect("the file is there");
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(output.status.success(), "{}: {said}", spec.name);
            assert!(
                said.contains("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"),
                "{said}"
            );
            assert!(!said.contains("(C7") && !said.contains("warning"), "{}: {said}", spec.name);
        }
    }
}
