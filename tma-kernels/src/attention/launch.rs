//! Arguments of the kernel, and selection of the instance.

use tma_runtime::Scalar;
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use super::kernel::forward::attention as kernel;
use super::mask::Mask;
use super::shape::Problem;
use super::{AttentionError, AttentionOptions};

mod sealed {
    pub trait Sealed {
        /// The constant `SHIFT` of the kernel's instances.
        const SHIFT: u32;
    }

    impl Sealed for tma_runtime::prelude::bf16 {
        const SHIFT: u32 = 32;
    }

    impl Sealed for tma_runtime::prelude::f16 {
        const SHIFT: u32 = 0;
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

/// Returns the instance for a depth, a mask and lengths, if there is one.
fn instance<T: AttentionElement>(
    depth: usize,
    causal: bool,
    ragged: bool,
) -> Option<kernel::Launcher<'static, T>> {
    kernel::find(kernel::Key { shift: T::SHIFT, depth: depth as u32, causal, ragged })
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

    let AttentionOptions { lengths, lse, blocks, .. } = options;
    let [_, head_stride, row_stride, _] = o.strides();
    let reach = (problem.heads - 1) * head_stride + (problem.queries - 1) * row_stride + problem.depth;
    // SAFETY: both views go to this launch, whose kernel stores each tile either by copies or by
    // threads.
    let [o, rows] = unsafe { o.alias() };
    let rows = rows.with_strides([if lengths.is_some() { reach } else { 0 }], [1])?;
    let (mut none_f32, none_u32) = (on.device().zeros([0; 3])?, on.device().zeros([0])?);
    let lse = lse.unwrap_or_else(|| none_f32.view_mut());
    let [of_queries, of_keys] =
        lengths.map_or([none_u32.view(); 2], |lengths| [lengths.queries, lengths.keys]);

    // With different lengths, one block per unit: a multiprocessor takes the next block when it is
    // done with one.
    let usual = match lengths {
        Some(_) => problem.units,
        None => on.device().multiprocessors() as usize,
    };
    let blocks = blocks.unwrap_or(usual).clamp(1, problem.units);
    // Extents are below 2^31, which the problem has checked. A stride beyond 2^32 has no second
    // row.
    let count = |value: usize| value as u32;
    let instance = instance::<T>(problem.depth, problem.mask == Mask::Causal, lengths.is_some());
    let kernel = instance.ok_or(AttentionError::Depth { depth: problem.depth })?;
    Ok(kernel.launch(
        on,
        Grid::x(count(blocks)),
        q.l2_promotion(L2Promotion::B256), // whole rows are read
        k.l2_promotion(L2Promotion::B256),
        v.l2_promotion(L2Promotion::B256),
        o,
        rows,
        lse,
        of_queries,
        of_keys,
        count(problem.queries),
        count(problem.keys),
        count(problem.heads),
        count(problem.group),
        count(problem.tiles),
        count(problem.units),
        count(row_stride),
        head_stride as u64,
        problem.scores.exponent_scale(),
    )?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::{env, fs};

    use super::*;

    #[test]
    fn every_instance_is_found() {
        let mut found = vec![];
        for depth in [64, 128, 256] {
            for (causal, ragged) in [(false, false), (false, true), (true, false), (true, true)] {
                found.extend(instance::<bf16>(depth, causal, ragged).map(|kernel| kernel.spec().name));
                found.extend(instance::<f16>(depth, causal, ragged).map(|kernel| kernel.spec().name));
            }
        }
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), kernel::INSTANCES.len());
        let name = instance::<f16>(128, true, false).map(|kernel| kernel.spec().name);
        assert_eq!(name, Some("attention::f16_d128_causal_even"));
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
        for spec in &kernel::INSTANCES {
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
