//! The PTX of kernels: as it was, the same each time, and for every target.
#![cfg(feature = "llvm")]

use std::collections::HashSet;
use std::thread;

use tma_codegen::{Ptx, Target, compile};
use tma_model::ReduceOp;
use tma_tests::sources::{Source, benchmarks, conformance, corpus, examples, multiplies};

/// Kernels of the corpus whose PTX is kept: together they have every instruction of the language.
const KEPT: &[&str] = &[
    "atomics::u32",
    "barrier_expect_apart",
    "barrier_lives",
    "barrier_pipeline::two",
    "barrier_try_wait",
    "bits_narrow",
    "bits_wide",
    "bulk_add::f16s",
    "bulk_add::f64s",
    "bulk_bits::and_u32",
    "bulk_bits::or_i64",
    "bulk_bits::xor_u64",
    "bulk_count::dec",
    "bulk_count::inc",
    "bulk_into::u32s",
    "bulk_multicast",
    "bulk_next",
    "bulk_order::max_bf16",
    "bulk_operations",
    "bulk_order::min_i64",
    "bulk_part::words",
    "bulk_tile",
    "casts::e4m3",
    "cluster_apart",
    "cluster_places::square",
    "cluster_places_at_launch",
    "cluster_shared_tile",
    "column_multicast",
    "columns_3::u32_plain",
    "columns_4::u64_span128",
    "columns_5::u16_span64",
    "columns_multicast_3::u8_plain",
    "columns_multicast_4::u32_span128",
    "columns_multicast_5::u8_plain",
    "columns_reduced_3::plain",
    "columns_reduced_4::span128",
    "columns_reduced_5::plain",
    "control_matches",
    "copy_hinted",
    "descriptor_cube",
    "fast_float_functions",
    "fault_assert",
    "fault_copy",
    "fault_printf",
    "fault_trap",
    "fence_last_block",
    "fence_then_reduce",
    "forms_1",
    "forms_2",
    "forms_3",
    "forms_4",
    "forms_5",
    "forms_waits",
    "grid_sync_clusters",
    "im2col_image::swizzled",
    "im2col_line",
    "im2col_stores",
    "im2col_volume",
    "launch_step",
    "math_angles",
    "math_clamped::f16",
    "math_clamped::i64",
    "math_exponentials",
    "math_powers",
    "math_signs::f32",
    "mma_bits::u32_32_16",
    "mma_epilogue::bf16_f32_bf16",
    "mma_epilogue::e4m3_f32_e5m2",
    "mma_epilogue::i8_i32_i32",
    "mma_flights",
    "mma_halves",
    "mma_marked",
    "mma_panels",
    "mma_parts",
    "mma_registers",
    "mma_saturating::i8_i8",
    "mma_saturating::u8_u8",
    "mma_sparse::e4m3_e5m2_f32_128_256_4",
    "mma_sparse::f16_f16_f16_64_128_2",
    "mma_sparse::f16_f16_f32_64_128_2",
    "mma_sparse::tf32_tf32_f32_32_64_2",
    "mma_sparse::u8_i8_i32_128_256_4",
    "mma_sparse_bands",
    "mma_transposed",
    "mma_types::bf16_bf16_f32_bf16_64",
    "mma_types::e4m3_e5m2_f32_e4m3_128",
    "mma_types::e5m2_e4m3_f16_f16_128",
    "mma_types::e5m2_e5m2_f32_e5m2_128",
    "mma_types::f16_f16_f16_f16_64",
    "mma_types::f16_f16_f32_f16_64",
    "mma_types::f16_f16_f32_f32_64",
    "mma_types::i8_u8_i32_i32_128",
    "mma_types::tf32_tf32_f32_f32_32",
    "mma_types::u8_u8_i32_i32_128",
    "multicast_4",
    "multicast_persistent_copy::four",
    "multicast_ring_leader",
    "phase_arrive_many",
    "phase_leaving",
    "phase_test_wait",
    "phase_tokens",
    "phase_try_wait_for",
    "pipeline_two_tiles",
    "place_named_barriers",
    "place_warps",
    "prefetch_tiles",
    "print_tiles",
    "reduction_add::f16",
    "reductions_1",
    "reductions_3",
    "reductions_4",
    "reductions_5",
    "remote_announced",
    "remote_meeting",
    "rewritten::swizzle128_bf16_64",
    "slice_of_pixels",
    "slice_of_plane",
    "sliced_5",
    "sliced_row",
    "sliced_z",
    "tensor_around",
    "tensor_copy_1",
    "tensor_copy_3",
    "tensor_copy_5",
    "tensor_stores",
    "tile_of_block",
    "vector_packed::bf16",
    "vector_packed::f16",
    "vector_tiles::f16_8",
    "vector_tiles::f32_2",
    "vector_turned::bool_2",
    "vector_turned::f32_4",
    "vector_turned::u64_2",
    "warp_bits::u64",
    "warp_matches::f32",
    "warp_matches::i64",
    "warp_reduced::f32",
    "warp_reduced::i8",
    "warp_reduced::u32",
    "warp_shuffles::f64",
    "warp_shuffles::u8",
    "warp_votes",
];

/// What the kept kernels must have between them: instructions, and calls of what the driver
/// provides.
const INSTRUCTIONS: &[&str] = &[
    "%cluster_ctaid",
    "%cluster_ctarank",
    "%cluster_nctaid",
    "%clusterid",
    ".maxclusterrank 8",
    ".reqnctapercluster 2, 2, 1",
    "__assertfail",
    "atom.relaxed.gpu.global.add.u32",
    "atom.release.gpu.global.add.u32",
    "bar.warp.sync",
    "barrier.arrive %r",
    "barrier.cluster.arrive.release.aligned",
    "barrier.cluster.arrive.release;",
    "barrier.cluster.wait.acquire.aligned",
    "barrier.cluster.wait.acquire;",
    "barrier.sync %r",
    "barrier.sync.aligned 0",
    "brev.b32",
    "brev.b64",
    "call.uni",
    "clz.b32",
    "clz.b64",
    "cos.approx.f32",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.global.shared::cta.bulk_group [",
    "cp.async.bulk.prefetch.L2.global.L2::cache_hint [",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [",
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [",
    "cp.async.bulk.wait_group ",
    "cp.async.bulk.wait_group.read",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.f64 [",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.noftz.f16 [",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.and.b32 [",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.dec.u32 [",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u32 [",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.bf16 [",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s64 [",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.or.b64 [",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b64 [",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.and.b32 [",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.dec.u32 [",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32 [",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.max.u32 [",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.u32 [",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.or.b32 [",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.xor.b32 [",
    "createpolicy.fractional.L2::evict_first.b64",
    "createpolicy.fractional.L2::evict_last.b64",
    "createpolicy.fractional.L2::evict_normal.b64",
    "createpolicy.fractional.L2::evict_unchanged.b64",
    "cvt.rn.bf16x2.f32",
    "cvt.rn.f16x2.e4m3x2",
    "cvt.rn.f16x2.f32",
    "cvt.rn.satfinite.e4m3x2.f32",
    "cvt.rn.satfinite.e5m2x2.f32",
    "elect.sync",
    "ex2.approx.f32",
    "fence.acq_rel.gpu",
    "fma.rn.bf16x2",
    "fma.rn.f16x2",
    "max.bf16x2",
    "max.f16x2",
    "sub.rn.bf16x2",
    "sub.rn.f16x2",
    "fence.mbarrier_init.release.cluster",
    "fence.proxy.async.global",
    "fence.proxy.async.shared::cluster",
    "fence.proxy.async.shared::cta",
    "fence.proxy.tensormap::generic.acquire.gpu [",
    "griddepcontrol.launch_dependents;",
    "griddepcontrol.wait;",
    "ld.acquire.gpu.global.u32",
    "ld.global.v2.b64",
    "ld.global.v4.b32",
    "ld.shared.v2.b32",
    "ld.shared.v4.b32",
    "ld.shared::cluster",
    "lg2.approx.f32",
    "match.all.sync.b32",
    "match.all.sync.b64",
    "match.any.sync.b32",
    "match.any.sync.b64",
    "mapa.shared::cluster.u32",
    "popc.b32",
    "popc.b64",
    "prefetch.tensormap",
    "prmt.b32",
    "redux.sync.add.s32",
    "redux.sync.and.b32",
    "redux.sync.max.s32",
    "redux.sync.max.u32",
    "redux.sync.min.s32",
    "redux.sync.min.u32",
    "redux.sync.or.b32",
    "redux.sync.xor.b32",
    "rsqrt.approx.f32",
    "setmaxnreg.dec.sync.aligned.u32 24;",
    "setmaxnreg.inc.sync.aligned.u32 240;",
    "shf.l.wrap.b32",
    "shf.r.wrap.b32",
    "shfl.sync.bfly.b32",
    "shfl.sync.down.b32",
    "shfl.sync.idx.b32",
    "shfl.sync.up.b32",
    "sin.approx.f32",
    "st.global.v2.b64",
    "st.global.v4.b32",
    "st.shared.v2.b32",
    "st.shared.v4.b32",
    "st.shared::cluster",
    "stmatrix.sync.aligned.m8n8.x4.shared.b16 [",
    "tanh.approx.f32",
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [",
    "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [",
    "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [",
    "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [",
    "trap;",
    "vote.sync.all.pred",
    "vote.sync.any.pred",
    "vote.sync.ballot.b32",
    "vprintf",
    "wgmma.commit_group.sync.aligned;",
    "wgmma.fence.sync.aligned;",
    "wgmma.mma_async.sync.aligned.m64n32k16.f16.f16.f16 {",
    "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {",
    "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {",
    "wgmma.mma_async.sync.aligned.m64n32k32.f16.e5m2.e4m3 {",
    "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e5m2 {",
    "wgmma.mma_async.sync.aligned.m64n32k32.f32.e5m2.e5m2 {",
    "wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.u8 {",
    "wgmma.mma_async.sync.aligned.m64n32k32.s32.u8.u8 {",
    "wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 {",
    "wgmma.mma_async.sync.aligned.m64n48k256.s32.b1.b1.and.popc {",
    "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8.satfinite {",
    "wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.u8.satfinite {",
    "wgmma.mma_async.sp.sync.aligned.m64n32k32.f32.bf16.bf16 {",
    "wgmma.mma_async.sp.sync.aligned.m64n64k16.f32.tf32.tf32 {",
    "wgmma.mma_async.sp.sync.aligned.m64n64k32.f16.f16.f16 {",
    "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 {",
    "wgmma.mma_async.sp.sync.aligned.m64n64k64.f32.e4m3.e5m2 {",
    "wgmma.mma_async.sp.sync.aligned.m64n64k64.s32.u8.s8 {",
    "wgmma.wait_group.sync.aligned 0;",
    "wgmma.wait_group.sync.aligned 1;",
    "wgmma.wait_group.sync.aligned 2;",
];

/// Every kernel of the sources.
fn compiled(sources: &[Source], target: Target) -> Vec<Ptx> {
    let of_source = |source: &Source| match compile(source.path, source.text, target) {
        Ok(compiled) => compiled.kernels,
        Err(failure) => panic!("{}, for {target}:\n{failure}", source.path),
    };
    sources.iter().filter(|source| source.is_for(target.name())).flat_map(of_source).collect()
}

fn kept() -> Vec<Ptx> {
    let columns = conformance().iter().filter(|source| source.name.starts_with("columns"));
    let sources: Vec<_> = corpus().iter().chain(columns).copied().collect();
    let corpus = compiled(&sources, Target::default());
    let kept: Vec<_> = corpus.into_iter().filter(|ptx| KEPT.contains(&ptx.name.as_str())).collect();
    assert_eq!(kept.len(), KEPT.len(), "a kernel that is kept is not there");
    kept
}

/// Of each kernel of the examples the first instance, and those that differ by more than a type.
fn of_examples() -> Vec<Ptx> {
    const MORE: [&str; 2] = ["dense_gemm::bf16_bf16_f32_mn_mn", "dense_gemm::f16_f16_f16_k_k"];
    let mut known = HashSet::new();
    let mut kept = compiled(examples(), Target::default());
    kept.retain(|ptx| {
        let kernel = ptx.name.split("::").next().unwrap_or_default();
        known.insert(kernel.to_owned()) || MORE.contains(&ptx.name.as_str())
    });
    kept
}

/// Compares with what is kept in `snapshots`. To accept a change: `cargo insta review`.
#[test]
fn ptx_is_as_it_was() {
    let generator = format!("// generator: tma-codegen {}", env!("CARGO_PKG_VERSION"));
    for ptx in of_examples().into_iter().chain(kept()) {
        assert!(ptx.text.contains(&generator), "the header of {}", ptx.name);
        let text = ptx.text.replace(&generator, "// generator: tma-codegen");
        insta::assert_snapshot!(ptx.name.replace("::", "__"), text);
    }
}

/// Every form of the mbarriers' instructions, with a `%` for each register.
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

/// PTX with `%` alone for each register.
fn without_registers(ptx: &str) -> String {
    let mut pieces = ptx.split('%');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.push('%');
        text.push_str(piece.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'));
    }
    text
}

/// Every form of the copies, reductions and prefetches of tiles. Source: PTX ISA,
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

/// The same of columns of pixels, which tensors of three to five dimensions have. Stores and
/// reductions take no offsets.
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

/// Every reduction without a tensor map, of whichever type. Source: PTX ISA,
/// "cp.reduce.async.bulk".
fn bulk_forms() -> Vec<String> {
    let ways = ["global.shared::cta.bulk_group", "shared::cluster.shared::cta.mbarrier::complete_tx::bytes"];
    let forms = ReduceOp::ALL.map(|op| ways.map(|way| format!("cp.reduce.async.bulk.{way}.{}.", op.name())));
    forms.into_iter().flatten().collect()
}

#[test]
fn the_kept_kernels_have_every_instruction() {
    let kept = kept();
    let mut wanted = tile_forms();
    wanted.extend(column_forms());
    wanted.extend(bulk_forms());
    wanted.extend(INSTRUCTIONS.iter().map(|&text| text.to_owned()));
    let missing: Vec<_> =
        wanted.iter().filter(|text| !kept.iter().any(|ptx| ptx.text.contains(text.as_str()))).collect();
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
                    let wanted = format!("error[TMA0227]: {target} has no `{lacking}`, which `");
                    assert!(message.contains(&wanted), "{message}");
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
    let texts: Vec<_> = kept().iter().map(|ptx| without_registers(&ptx.text)).collect();
    let missing: Vec<_> =
        BARRIER_FORMS.iter().filter(|form| !texts.iter().any(|text| text.contains(**form))).collect();
    assert!(missing.is_empty(), "no kept kernel has {missing:?}");
}

#[test]
fn the_same_source_gives_the_same_ptx() {
    let text = |kernels: Vec<Ptx>| kernels.into_iter().map(|ptx| ptx.text).collect::<Vec<_>>();
    let first = text(compiled(examples(), Target::default()));
    // On another thread, after other work: nothing of the process may show.
    let second = thread::spawn(move || {
        compiled(&corpus()[..1], Target::Sm90);
        text(compiled(examples(), Target::default()))
    });
    assert_eq!(first, second.join().unwrap());
}

#[test]
fn every_kernel_compiles_for_every_target() {
    thread::scope(|scope| {
        for target in Target::ALL {
            scope.spawn(move || {
                let sources = [examples(), corpus(), benchmarks()];
                let kernels: Vec<_> = sources.iter().flat_map(|sources| compiled(sources, target)).collect();
                for ptx in &kernels {
                    assert!(ptx.text.contains(&format!(".target {target}\n")), "{} for {target}", ptx.name);
                    assert!(
                        ptx.text.contains(&format!(".entry {}(", ptx.entry)),
                        "{} for {target}",
                        ptx.name
                    );
                }
                let names: HashSet<_> = kernels.iter().map(|ptx| &ptx.name).collect();
                assert_eq!(names.len(), kernels.len(), "kernels of the corpus have names of their own");
            });
        }
    });
}
