//! Arguments of the kernel, and selection of the instance.

use tma_runtime::Scalar;
use tma_runtime::launch::{GlobalSlice, LaunchOn};
use tma_runtime::prelude::*;

use super::general::kernel::attention as general;
use super::kernel::forward::attention as kernel;
use super::mask::Mask;
use super::shape::Problem;
use super::{AttentionError, AttentionOptions};
use crate::cached::CacheElement;

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
pub trait AttentionElement: Scalar + sealed::Sealed + CacheElement<Self> {}

impl AttentionElement for bf16 {}
impl AttentionElement for f16 {}

/// Returns the key of the instance for a problem, whose sequences may have several lengths.
fn key<T: AttentionElement>(problem: &Problem, ragged: bool) -> kernel::Key {
    // The general instances have masks that are known at run time, in place of a causal one.
    let causal = problem.is_general || problem.mask == Mask::Causal;
    kernel::Key { shift: <T as sealed::Sealed>::SHIFT, depth: problem.kernel_depth() as u32, causal, ragged }
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

    let AttentionOptions { lengths, lse, blocks, sinks, .. } = options;
    let [_, head_stride, row_stride, _] = o.strides();
    // SAFETY: both views go to this launch, whose kernel stores each tile either by copies or by
    // threads, which find the elements by these strides.
    let (o, rows) = unsafe {
        let [o, rows] = o.alias();
        (o, rows.span()?)
    };
    let rows = if lengths.is_some() { rows } else { rows.with_strides([0], [1])? };
    let (mut none_f32, none_u32) = (on.device().zeros([0; 3])?, on.device().zeros([0])?);
    let no_sinks = on.device().zeros::<f32, 1>([0])?;
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
    let [left, right] = problem.mask.bounds();
    let general = general::table_of::<T>(
        left,
        right,
        problem.mask.has_pairs(),
        problem.scores.cap_scale(),
        sinks.map_or(no_sinks.slice(), GlobalSlice::new),
        count(problem.value_depth),
    );
    let key = key::<T>(&problem, lengths.is_some());
    let kernel = if problem.is_general { general.find(key) } else { kernel::find(key) };
    let kernel = kernel.ok_or(AttentionError::Depth { depth: problem.depth })?;
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
    use tma_runtime::launch::KernelSpec;

    use crate::attention::mask::Scores;
    use crate::attention::shape::DEPTHS;

    /// Returns a problem of this depth and mask, and whether it needs the general kernel.
    fn problem(depth: usize, mask: Mask, is_general: bool) -> Problem {
        let scores = Scores { scale: 1.0, soft_cap: None };
        Problem {
            depth,
            value_depth: depth,
            heads: 1,
            group: 1,
            queries: 1,
            keys: 1,
            tiles: 1,
            units: 1,
            mask,
            scores,
            is_general,
        }
    }

    #[test]
    fn every_instance_is_found() {
        fn found<T: AttentionElement>() -> Vec<*const KernelSpec> {
            let none = Device::simulator().zeros::<f32, 1>([0]).expect("the simulator has memory");
            let general = general::table_of::<T>(0, 0, false, 0.0, none.slice(), 0);
            let mut found = vec![];
            for (depth, ragged) in DEPTHS.iter().flat_map(|&depth| [(depth, false), (depth, true)]) {
                for mask in [Mask::Full, Mask::Causal] {
                    let key = key::<T>(&problem(depth - 8, mask, false), ragged);
                    found.extend(kernel::find::<T>(key).map(|kernel| &raw const *kernel.spec()));
                }
                let key = key::<T>(&problem(depth, Mask::Full, true), ragged);
                let kernel: Option<kernel::Launcher<'_, T>> = general.find(key);
                found.extend(kernel.map(|kernel| &raw const *kernel.spec()));
            }
            found
        }
        let mut found = [found::<bf16>(), found::<f16>()].concat();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), kernel::INSTANCES.len() + general::INSTANCES.len());
        let name = kernel::find::<f16>(key::<f16>(&problem(104, Mask::Causal, false), false));
        assert_eq!(name.map(|kernel| kernel.spec().name), Some("attention::f16_d128_causal_even"));
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
        for spec in kernel::INSTANCES.iter().chain(&general::INSTANCES) {
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
