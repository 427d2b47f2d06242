//! The PTX of kernels: unchanged, deterministic, and refused for targets that lack an instruction.
//! `ptxas.rs` compiles every kernel for every target.
#![cfg(feature = "llvm")]

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::LazyLock;
use std::{fs, thread};

use tma_codegen::{Ptx, Target, check, compile};
use tma_model::ReduceOp;
use tma_model::mma::{DoubleForm, Operand, WARP_ROWS, WarpForm};
use tma_tests::outline::{outline, without_registers};
use tma_tests::snapshots::{INSTRUCTIONS, SNAPSHOT_KERNELS};
use tma_tests::sources::{Source, benchmarks, conformance, corpus, examples, multiplies};

/// Compiles every kernel of the sources.
fn compiled(sources: &[Source], target: Target) -> Vec<Ptx> {
    let of_source = |source: &Source| match compile(source.path, source.text, target) {
        Ok(compiled) => compiled.kernels,
        Err(failure) => panic!("{}, for {target}:\n{failure}", source.path),
    };
    sources.iter().filter(|source| source.is_for(target.name())).flat_map(of_source).collect()
}

/// Every instance of the examples' kernels.
static EXAMPLES: LazyLock<Vec<Ptx>> = LazyLock::new(|| compiled(examples(), Target::default()));

/// The other kernels whose PTX is kept.
static OTHERS: LazyLock<Vec<Ptx>> = LazyLock::new(|| {
    let columns = conformance().iter().filter(|source| source.name.starts_with("columns"));
    let sources: Vec<_> = corpus().iter().chain(columns).copied().collect();
    let corpus = compiled(&sources, Target::default());
    let kept: Vec<_> =
        corpus.into_iter().filter(|ptx| SNAPSHOT_KERNELS.contains(&ptx.name.as_str())).collect();
    assert_eq!(kept.len(), SNAPSHOT_KERNELS.len(), "a kernel that is kept is not there");
    kept
});

/// Returns the first instance of each kernel of the examples, and those that differ by more than a
/// type.
fn of_examples() -> impl Iterator<Item = &'static Ptx> {
    const MORE: [&str; 2] = ["dense_gemm::bf16_bf16_f32_mn_mn", "dense_gemm::f16_f16_f16_k_k"];
    let mut known = HashSet::new();
    EXAMPLES.iter().filter(move |ptx| {
        let kernel = ptx.name.split("::").next().unwrap_or_default();
        known.insert(kernel) || MORE.contains(&ptx.name.as_str())
    })
}

/// Kernels whose whole PTX is kept: a copy, a pipeline, a cluster, a tensor core and a failed
/// check.
const WHOLE: &[&str] = &["tma_copy", "barrier_pipeline::two", "cluster_shared_tile", "bulk_tile"];

/// Compares the outlines of the kernels with `snapshots`, and of some the whole text.
#[test]
fn ptx_is_as_it_was() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let generator = format!("// generator: tma-codegen {}", env!("CARGO_PKG_VERSION"));
    let mut snapshots = BTreeMap::new();
    for ptx in of_examples().chain(&*OTHERS) {
        assert!(ptx.text.contains(&generator), "the header of {}", ptx.name);
        let name = ptx.name.replace("::", "__");
        snapshots.insert(format!("{name}.txt"), outline(&ptx.text));
        if WHOLE.contains(&ptx.name.as_str()) {
            snapshots
                .insert(format!("{name}.ptx"), ptx.text.replace(&generator, "// generator: tma-codegen"));
        }
    }
    let files = fs::read_dir(&folder).into_iter().flatten();
    let files = files.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned());
    let stale: Vec<_> = files.filter(|file| !snapshots.contains_key(file)).collect();
    assert!(stale.is_empty(), "snapshots of no kernel: {stale:?}");
    tma_golden::assert_all(snapshots.into_iter().map(|(file, text)| (folder.join(file), text)));
}

/// Every form of the mbarrier instructions, with `%` for each register.
const BARRIER_FORMS: &[&str] = &[
    "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%], %;",
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%], %;",
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%];",
    "mbarrier.arrive.shared::cta.b64 %, [%];",
    "mbarrier.arrive.shared::cta.b64 _, [%], %;",
    "mbarrier.arrive.shared::cta.b64 _, [%];",
    "mbarrier.arrive_drop.shared::cta.b64 _, [%];",
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%], %;",
    "mbarrier.init.shared::cta.b64 [%], %;",
    "mbarrier.inval.shared::cta.b64 [%];",
    "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %, [%], %;",
    "mbarrier.test_wait.parity.shared::cta.b64 %, [%], %;",
    "mbarrier.try_wait.acquire.cluster.shared::cta.b64 %, [%], %;",
    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %, [%], %, %;",
    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %, [%], %;",
    "mbarrier.try_wait.parity.shared::cta.b64 %, [%], %, %;",
    "mbarrier.try_wait.parity.shared::cta.b64 %, [%], %;",
    "mbarrier.try_wait.shared::cta.b64 %, [%], %;",
];

/// Returns every form of the copies, reductions and prefetches of tiles. Source: PTX ISA,
/// "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor" and "cp.async.bulk.prefetch.tensor".
fn tile_forms() -> Vec<String> {
    let mut forms = vec![];
    for rank in 1..=5 {
        for hint in ["", ".L2::cache_hint"] {
            for multicast in ["", ".multicast::cluster"] {
                forms.push(format!(
                    "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{multicast}{hint} ["
                ));
            }
            forms.push(format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group{hint} ["));
            forms.push(format!("cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile{hint} ["));
            for op in ReduceOp::ALL.map(ReduceOp::name) {
                forms.push(format!(
                    "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.tile.bulk_group{hint} ["
                ));
            }
        }
    }
    forms
}

/// Returns these forms for columns of pixels, which tensors of three to five dimensions have.
/// Stores and reductions take no offsets.
fn column_forms() -> Vec<String> {
    let mut forms = vec![];
    for rank in 3..=5 {
        for hint in ["", ".L2::cache_hint"] {
            for multicast in ["", ".multicast::cluster"] {
                forms.push(format!(
                    "cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes{multicast}{hint} ["
                ));
            }
            forms.push(format!(
                "cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group{hint} ["
            ));
            forms.push(format!("cp.async.bulk.prefetch.tensor.{rank}d.L2.global.im2col{hint} ["));
            for op in ReduceOp::ALL.map(ReduceOp::name) {
                forms.push(format!(
                    "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.im2col_no_offs.bulk_group{hint} ["
                ));
            }
        }
    }
    forms
}

/// Returns every reduction without a tensor map, of any type. Source: PTX ISA,
/// "cp.reduce.async.bulk".
fn bulk_forms() -> Vec<String> {
    let ways = ["global.shared::cta.bulk_group", "shared::cluster.shared::cta.mbarrier::complete_tx::bytes"];
    let forms = ReduceOp::ALL.map(|op| ways.map(|way| format!("cp.reduce.async.bulk.{way}.{}.", op.name())));
    forms.into_iter().flatten().collect()
}

/// Returns every `mma.sync` of 16 rows with a dense A: types, shapes, and variants of the sums.
fn warp_forms() -> Vec<String> {
    let mut forms = vec![];
    for a in Operand::ALL {
        for k in WarpForm::depths(a) {
            for b in Operand::ALL.into_iter().filter(|b| a.multiplies(*b)) {
                for &d in a.accumulates() {
                    let shape = WarpForm { d, a, b, k };
                    let types = format!("{d}.{a}.{b}.{d}");
                    let saturates: &[&str] = if a.is_saturable() { &["", ".satfinite"] } else { &[""] };
                    let combines: &[&str] =
                        if a == Operand::B1 { &[".and.popc", ".xor.popc"] } else { &[""] };
                    for clamp in saturates {
                        forms.extend(combines.iter().map(|combine| {
                            format!("mma.sync.aligned.{shape}.row.col{clamp}.{types}{combine} {{")
                        }));
                    }
                }
            }
        }
    }
    let doubles = DoubleForm::ALL.into_iter().filter(|form| form.rows == WARP_ROWS);
    forms.extend(doubles.map(|form| format!("mma.sync.aligned.{form}.row.col.f64.f64.f64.f64 {{")));
    forms
}

#[test]
fn the_kept_kernels_have_every_instruction() {
    let mut wanted = tile_forms();
    wanted.extend(column_forms());
    wanted.extend(bulk_forms());
    wanted.extend(warp_forms());
    wanted.extend(INSTRUCTIONS.iter().map(|&text| text.to_owned()));
    let missing: Vec<_> =
        wanted.iter().filter(|text| !OTHERS.iter().any(|ptx| ptx.text.contains(text.as_str()))).collect();
    assert!(missing.is_empty(), "no kept kernel has {missing:?}");
}

#[test]
fn what_a_target_does_not_have_is_an_error() {
    let mut seen = HashSet::new();
    for target in Target::ALL {
        for source in examples().iter().chain(corpus()).filter(|source| !source.is_for(target.name())) {
            let lacking = if multiplies(source.text) { "wgmma.mma_async" } else { "tensormap.replace" };
            match compile(source.path, source.text, target) {
                Ok(_) => panic!("{} compiles for {target}", source.path),
                Err(failure) => {
                    let message = failure.to_string();
                    let wanted = format!("` requires `{lacking}`, which {target} does not have");
                    assert!(message.contains("error[TMA0227]: `") && message.contains(&wanted), "{message}");
                }
            }
            seen.insert((target, lacking));
        }
    }
    let all = [Target::Sm90, Target::Sm100a, Target::Sm120a].map(|target| (target, "wgmma.mma_async"));
    let all = all.into_iter().chain([(Target::Sm90, "tensormap.replace")]);
    assert_eq!(seen, all.collect(), "targets, and what kernels of the corpus need that these lack");
}

#[test]
fn the_kept_kernels_have_every_form_of_barriers() {
    let texts: Vec<_> = OTHERS.iter().map(|ptx| without_registers(&ptx.text)).collect();
    let missing: Vec<_> =
        BARRIER_FORMS.iter().filter(|form| !texts.iter().any(|text| text.contains(**form))).collect();
    assert!(missing.is_empty(), "no kept kernel has {missing:?}");
}

#[test]
fn the_same_source_gives_the_same_ptx() {
    let text = |kernels: &[Ptx]| kernels.iter().map(|ptx| ptx.text.clone()).collect::<Vec<_>>();
    // On another thread, after other work: the state of the process must not matter.
    let again = thread::spawn(move || {
        compiled(&corpus()[..1], Target::Sm90);
        text(&compiled(examples(), Target::default()))
    });
    assert_eq!(text(&EXAMPLES), again.join().unwrap());
}

#[test]
fn kernels_have_names_of_their_own() {
    let sources = examples().iter().chain(corpus()).chain(benchmarks());
    let of_source = |source: &Source| match check(source.path, source.text) {
        Ok(accepted) => {
            accepted.kernels.iter().map(|checked| checked.kernel.kernel().path()).collect::<Vec<_>>()
        }
        Err(failure) => panic!("{}:\n{failure}", source.path),
    };
    let names: Vec<_> = sources.flat_map(of_source).collect();
    let different: HashSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len());
}
