//! Host code that pages show, in the order of the pages. It runs on the simulator, or on the device
//! that `TMA_DEVICE` names.

use tma_runtime::prelude::*;
use tma_runtime::testing::under_seeds;
use tma_tests::examples::tma_copy::tma_copy;

/// The build script of a package that compiles for another chip, from another folder.
const _: fn() = || {
    tma_codegen::Build::new().target(tma_codegen::Target::Sm90).source("kernels").run_or_exit();
};

/// Adds a number to each element.
#[tma_kernel(threads = 256)]
pub fn add(values: Global<f32>, amount: f32) {
    let i = block_idx().x as u64 * 256 + thread_idx().x as u64;
    if i < values.len() {
        values.set(i, values.get(i) + amount);
    }
}

#[test]
fn the_language_launches_a_kernel() -> anyhow::Result<()> {
    let device = Device::open()?;
    let mut values = device.tensor(&[1.0f32; 300], [300])?;
    let blocks = 2;
    add::launch(&device, Grid::x(blocks), &mut values, 1.5)?;
    assert_eq!(values.to_vec()?, [2.5; 300]);
    Ok(())
}

/// Computes the maximum of each block's values, and then that of all blocks of the
/// cluster.
#[tma_kernel(threads = 32, cluster = launch)]
pub fn cluster_maximum(values: Global<u32>, out: Global<u32>) {
    let greatest: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 {
        let mut mine = 0;
        for i in 0..32 {
            mine = max(mine, values.get(block_idx().x * 32 + i));
        }
        greatest.set(0, mine);
    }
    sync_cluster();
    let mut of_all = 0;
    for rank in 0..cluster_dim().x * cluster_dim().y * cluster_dim().z {
        of_all = max(of_all, remote(greatest, rank).get(0));
    }
    sync_cluster();
    out.set(block_idx().x * 32 + thread_idx().x, of_all);
}

#[test]
fn the_language_launches_clusters() -> anyhow::Result<()> {
    let device = Device::open()?;
    let host: Vec<u32> = (0..64 * 32).collect();
    let values = device.tensor(&host, [64 * 32])?;
    let mut out = device.zeros([64 * 32])?;
    cluster_maximum::launch(device.with().cluster([4, 1, 1]), Grid::x(64), &values, &mut out)?;
    let wanted: Vec<u32> = host.iter().map(|i| i / 128 * 128 + 127).collect();
    assert_eq!(out.to_vec()?, wanted);
    Ok(())
}

/// `values[i] = i`. The next kernel of the stream may start at once.
#[tma_kernel(threads = 128)]
pub fn produce(values: Global<u32>) {
    grid_dependency_launch();
    let i = block_idx().x * 128 + thread_idx().x;
    values.set(i, i);
}

/// `results[i] = 2 * values[i]`, where the previous kernel writes the values.
#[tma_kernel(threads = 128)]
pub fn consume(values: Global<u32>, results: Global<u32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    grid_dependency_wait();
    results.set(i, 2 * values.get(i));
}

#[test]
fn launches_depend_on_each_other() -> anyhow::Result<()> {
    let device = Device::open()?;
    let stream = device.stream()?;
    let blocks = 3;
    let (mut values, mut results) = (device.zeros([384])?, device.zeros([384])?);
    produce::launch(&stream, blocks, &mut values)?;
    consume::launch(stream.with().dependent(), blocks, &values, &mut results)?;
    assert_eq!(results.to_vec()?, (0..384).map(|i| 2 * i).collect::<Vec<_>>());
    Ok(())
}

/// Each block adds up its part, and every block divides by the sum of all: in one launch.
#[tma_kernel(threads = 128)]
pub fn normalise(values: Global<f32>, sum: Global<f32>, counter: Global<u32>, per_thread: u32) {
    let first = (block_idx().x * 128 + thread_idx().x) * per_thread;
    let mut part = 0.0;
    for i in first..first + per_thread {
        part += values.get(i);
    }
    sum.atomic_add(0, part);
    sync_grid(counter);
    let all = sum.get(0);
    for i in first..first + per_thread {
        values.set(i, values.get(i) / all);
    }
}

#[test]
fn blocks_of_a_grid_meet() -> anyhow::Result<()> {
    let device = Device::open()?;
    let (wanted, per_thread) = (4, 2);
    let blocks = device.resident_blocks(&normalise::SPEC)?.min(wanted);
    let mut values = device.tensor(&vec![0.5; 256 * blocks as usize], [256 * blocks as usize])?;
    let mut sum = device.zeros([1])?;
    let mut counter = device.zeros::<u32, 1>([1])?;
    normalise::launch(&device, blocks, &mut values, &mut sum, &mut counter, per_thread)?;
    assert_eq!(values.to_vec()?, vec![1.0 / (256 * blocks) as f32; 256 * blocks as usize]);
    Ok(())
}

/// `squares[i] = src[i] * src[i]`.
#[tma_kernel(threads = 128)]
pub fn square(src: Global<f32>, squares: Global<f32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    squares.set(i, src.get(i) * src.get(i));
}

/// Sums the values.
#[tma_kernel(threads = 128)]
pub fn total(values: Global<f32>, sum: Global<f32>) {
    grid_dependency_wait();
    sum.atomic_add(0, values.get(block_idx().x * 128 + thread_idx().x));
}

#[test]
fn a_graph_is_launched_again_and_again() -> anyhow::Result<()> {
    let device = Device::open()?;
    let stream = device.stream()?;
    let blocks = 2;
    let mut src = device.zeros([256])?;
    let (mut between, mut sum) = (device.zeros([256])?, device.zeros([1])?);
    let batches = [[1.0; 256], [2.0; 256], [0.5; 256]];
    let mut sums = vec![];
    let mut consume = |sum: Vec<f32>| sums.extend(sum);
    let graph = stream.capture(|capture| {
        square::launch(capture, blocks, &src, &mut between)?;
        total::launch(capture.with().dependent(), blocks, &between, &mut sum)
    })?;
    for batch in batches {
        src.copy_from(&batch)?;
        sum.copy_from(&[0.0])?;
        graph.launch(&stream)?;
        consume(sum.to_vec()?);
    }
    assert_eq!(sums, [256.0, 1024.0, 64.0]);
    Ok(())
}

#[test]
fn prepared_launches_are_queued_and_captured() -> anyhow::Result<()> {
    let device = Device::open()?;
    let stream = device.stream()?;
    let (blocks, batch) = (2, [2.0; 256]);
    let mut src = device.zeros([256])?;
    let (mut between, mut sum) = (device.zeros([256])?, device.zeros([1])?);
    let step = device.prepare(|on| {
        square::launch(on, blocks, &src, &mut between)?;
        total::launch(on.with().dependent(), blocks, &between, &mut sum)
    })?;
    src.copy_from(&batch)?;
    step.launch(&stream)?; // between any other launches
    let graph = stream.capture(|capture| step.launch(capture))?; // or as a part of a graph
    assert_eq!(sum.to_vec()?, [1024.0]);
    graph.launch(&stream)?;
    assert_eq!(sum.to_vec()?, [2048.0]);
    Ok(())
}

#[test]
fn layouts_are_drawn_and_computed() -> anyhow::Result<()> {
    let folder = tempfolder("layouts")?;
    let drawing = |name: &str| folder.join(name);
    use tma_runtime::picture::{Major, TileLayout};
    use tma_runtime::spec::{Scalar, TileSwizzle};

    let layout = TileLayout::new(Scalar::F16, &[8, 64], TileSwizzle::B128);
    println!("{layout}");
    std::fs::write(drawing("tile.svg"), layout.svg())?;
    assert_eq!(layout.offset(&[1, 0]), Some(128 + 16));

    let operand = layout.operand(Major::K)?; // as in `sum.mma(a, tile, ..)`; `Major::Mn` is `tile.t()`
    println!("{operand}");
    assert_eq!(operand.steps(), 4);
    assert_eq!(operand.chunks(1)[..2], [32, 48]); // of row 0, k-step 1 reads bytes 32 to 63

    let sum = TileLayout::accumulator(Scalar::F32, [64, 16])?;
    std::fs::write(drawing("sum.svg"), sum.of_warp(0).svg())?; // or all rows: `sum.svg()`
    assert_eq!(sum.coordinates(5, 2), Some([9, 2])); // `sum.at(2)` in thread 5
    let a = TileLayout::fragment(Scalar::F16, [64, 16])?;
    assert_eq!(a.place([9, 2]).map(|place| (place.thread, place.register)), Some((5, 1)));
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Creates a folder for the files of one test.
fn tempfolder(name: &str) -> std::io::Result<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("tma-book-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

#[test]
fn copies_under_every_seed() -> anyhow::Result<()> {
    let shape = [300, 136];
    let host: Vec<f16> = (0..300 * 136).map(|i| f16::from_f32((i % 2048) as f32)).collect();
    under_seeds(8, |device| {
        let src = device.tensor(&host, shape)?;
        let mut dst = device.zeros(shape)?;
        tma_copy::launch(device, tma_copy::tiles_of_dst(shape), &src, &mut dst)?;
        assert!(dst.to_vec()? == host);
        Ok::<_, Error>(())
    })?;
    Ok(())
}

#[test]
fn matrices_are_multiplied() -> anyhow::Result<()> {
    let device = Device::open()?;
    let matrix = |value: f32| vec![bf16::from_f32(value); 64 * 64];
    let (a, b) = (device.tensor(&matrix(0.5), [64, 64])?, device.tensor(&matrix(0.25), [64, 64])?);
    let bias = device.tensor(&[bf16::from_f32(1.0); 64], [64])?;
    let mut c = device.zeros::<bf16, 2>([64, 64])?;
    use tma_kernels::gemm::{Activation, GemmOptions, gemm};

    let bias = Some(bias.view());
    let options = GemmOptions { bias, activation: Activation::Gelu, ..GemmOptions::default() };
    gemm(&device, &a, &b, &mut c, options)?; // C = gelu(A · B + bias)
    // 64 products of 1/8, and 1: so far from zero GELU changes nothing.
    assert!(c.to_vec()?.iter().all(|x| x.to_f32() == 9.0));

    let (stream, weights) = (device.stream()?, b);
    let options = GemmOptions { transpose_b: true, constant_b: true, ..GemmOptions::default() };
    gemm(&stream, &a, &weights, &mut c, options)?;
    stream.synchronize()?;
    assert!(c.to_vec()?.iter().all(|x| x.to_f32() == 8.0));
    Ok(())
}

#[test]
fn attention_over_a_cache_averages_equal_values() -> anyhow::Result<()> {
    let device = Device::simulator();
    use tma_kernels::cached::{CacheWorkspace, CachedAttentionOptions, KeyValueCache, cached_attention};

    // 2 sequences of 20 and 3 keys. The cache has 4 pages of 16 rows for 2 heads of 64 elements.
    let keys = device.tensor(&[bf16::ONE; 4 * 2 * 16 * 64], [4, 2, 16, 64])?;
    let values = device.tensor(&[bf16::ONE; 4 * 2 * 16 * 64], [4, 2, 16, 64])?;
    let table = device.tensor(&[3, 1, 0, 0], [2, 2])?; // the pages of each sequence
    let lengths = device.tensor(&[20, 3], [2])?;
    let cache = KeyValueCache::paged(keys.view(), values.view(), table.view()).with_lengths(lengths.view());

    let q = device.zeros::<bf16, 4>([2, 8, 1, 64])?; // 8 heads, of which 4 share one of keys
    let mut o = device.zeros(q.shape())?;
    let mut workspace = CacheWorkspace::new(&device)?; // is kept from step to step
    let options = CachedAttentionOptions { workspace: Some(&mut workspace), ..Default::default() };
    cached_attention(&device, &q, cache, &mut o, options)?;
    assert!(o.to_vec()?.iter().all(|x| x.to_f32() == 1.0));

    use tma_kernels::cached::PageIndices;

    // The pages 3 and 1 of the first sequence, and page 0 of the second.
    let indptr = device.tensor(&[0, 2, 3], [3])?;
    let indices = device.tensor(&[3, 1, 0], [3])?;
    let last_page_len = device.tensor(&[4, 3], [2])?;
    let pages =
        PageIndices { indptr: indptr.view(), indices: indices.view(), last_page_len: last_page_len.view() };
    let cache = KeyValueCache::indexed(keys.view(), values.view(), pages);
    o.fill_bytes(0)?;
    cached_attention(&device, &q, cache, &mut o, CachedAttentionOptions::default())?;
    assert!(o.to_vec()?.iter().all(|x| x.to_f32() == 1.0));

    use tma_kernels::cached::CacheScales;

    let keys = device.tensor(&[e4m3::from_f32(1.5); 4 * 2 * 16 * 64], [4, 2, 16, 64])?;
    let values = device.tensor(&[e4m3::from_f32(448.0); 4 * 2 * 16 * 64], [4, 2, 16, 64])?;
    // A factor per page and head for keys and for values.
    let (of_keys, of_values) = (device.tensor(&[0.25; 8], [4, 2])?, device.tensor(&[0.5; 8], [4, 2])?);
    let scales = CacheScales { keys: of_keys.view(), values: of_values.view() };
    let cache = KeyValueCache::paged(keys.view(), values.view(), table.view())
        .with_lengths(lengths.view())
        .with_scales(scales);
    cached_attention(&device, &q, cache, &mut o, CachedAttentionOptions::default())?;
    assert!(o.to_vec()?.iter().all(|x| x.to_f32() == 224.0));
    use tma_kernels::cached::{LatentCache, MlaAttentionOptions, mla_attention};

    // 2 sequences of 70 and 3 tokens. The cache has 4 pages of 64 rows.
    let cache = device.tensor(&[bf16::ONE; 4 * 64 * 576], [4, 1, 64, 576])?;
    let latents = cache.view().slice([0..4, 0..1, 0..64, 0..512])?;
    let rotated = cache.view().slice([0..4, 0..1, 0..64, 512..576])?;
    let table = device.tensor(&[3, 1, 0, 0], [2, 2])?; // the pages of each sequence
    let lengths = device.tensor(&[70, 3], [2])?;
    let cache = LatentCache::paged(latents, rotated, table.view()).with_lengths(lengths.view());

    let q = device.zeros::<bf16, 4>([2, 128, 1, 576])?; // 512 columns for latents, then 64 rotated ones
    let mut o = device.zeros([2, 128, 1, 512])?;
    let mut workspace = CacheWorkspace::new(&device)?; // is kept from step to step
    let options = MlaAttentionOptions { workspace: Some(&mut workspace), ..Default::default() };
    mla_attention(&device, &q, cache, &mut o, options)?;
    assert!(o.to_vec()?.iter().all(|x| x.to_f32() == 1.0));
    Ok(())
}

#[test]
fn new_keys_lengthen_a_cache() -> anyhow::Result<()> {
    let device = Device::simulator();
    use tma_kernels::cached::{AppendOptions, KeyValueCacheMut, Rotary, RotaryLayout, RotaryQueries, append};

    // A new token of each of 2 sequences, in a cache of 4 pages of 16 rows.
    let (k, v) = (device.zeros::<bf16, 4>([2, 2, 1, 64])?, device.zeros::<bf16, 4>([2, 2, 1, 64])?);
    let mut q = device.zeros::<bf16, 4>([2, 8, 1, 64])?;
    let mut keys = device.zeros::<bf16, 4>([4, 2, 16, 64])?;
    let mut values = device.zeros::<bf16, 4>([4, 2, 16, 64])?;
    let table = device.tensor(&[3, 1, 0, 2], [2, 2])?; // the pages of each sequence
    let lengths = device.tensor(&[19, 2], [2])?; // before the token
    let mut new_lengths = device.zeros([2])?; // after it, for `cached_attention`

    // Cosines and sines of 32 positions. All 64 columns are rotated, in 32 pairs.
    let (cos, sin) = (device.zeros::<f32, 2>([32, 32])?, device.zeros::<f32, 2>([32, 32])?);
    let queries = Some(RotaryQueries::InPlace(q.view_mut()));
    let rotary = Rotary { cos: cos.view(), sin: sin.view(), layout: RotaryLayout::Halves, queries };
    let cache = KeyValueCacheMut::paged(keys.view_mut(), values.view_mut(), table.view());
    let options = AppendOptions {
        new_lengths: Some(new_lengths.view_mut()),
        rotary: Some(rotary),
        ..Default::default()
    };
    append(&device, &k, &v, cache.with_lengths(lengths.view()), options)?;
    assert_eq!(new_lengths.to_vec()?, [20, 3]);
    Ok(())
}

#[test]
fn attention_averages_equal_values() -> anyhow::Result<()> {
    let device = Device::open()?;
    let ones = vec![bf16::from_f32(1.0); 64 * 64];
    let [q, k, v] = [(); 3].map(|()| device.tensor(&ones, [1, 1, 64, 64]));
    let (q, k, v) = (q?, k?, v?);
    let mut o = device.zeros::<bf16, 4>([1, 1, 64, 64])?;
    use tma_kernels::{AttentionOptions, attention};

    let options = AttentionOptions { causal: true, ..Default::default() };
    attention(&device, &q, &k, &v, &mut o, options)?;
    assert!(o.to_vec()?.iter().all(|x| x.to_f32() == 1.0));

    // Each query sees the 32 keys up to its own position, and the sink of its head.
    let sinks = device.tensor(&[0.0], [1])?;
    let options =
        AttentionOptions { causal: true, window: Some(31), sinks: Some(sinks.view()), ..Default::default() };
    attention(&device, &q, &k, &v, &mut o, options)?;
    // All scores are 8, and the sink is 0.
    let last = o.to_vec()?[63 * 64].to_f64();
    assert!((last - 1.0 / (1.0 + (-8f64).exp() / 32.0)).abs() < 0.01);
    Ok(())
}

#[test]
fn gradients_of_equal_values() -> anyhow::Result<()> {
    use tma_kernels::attention::AttentionBackwardOptions;
    use tma_kernels::{AttentionOptions, attention};

    let device = Device::open()?;
    let ones = vec![bf16::from_f32(1.0); 64 * 64];
    let [q, k, v, d_o] = [(); 4].map(|()| device.tensor(&ones, [1, 1, 64, 64]));
    let (q, k, v, d_o) = (q?, k?, v?, d_o?);
    let [o, dq, dk, dv] = [(); 4].map(|()| device.zeros::<bf16, 4>([1, 1, 64, 64]));
    let (mut o, mut dq, mut dk, mut dv) = (o?, dq?, dk?, dv?);
    let mut lse = device.zeros([1, 1, 64])?;
    use tma_kernels::attention::{AttentionForward, AttentionGradients, attention_backward};

    let options = AttentionOptions { causal: true, lse: Some(lse.view_mut()), ..Default::default() };
    attention(&device, &q, &k, &v, &mut o, options)?;

    let forward = AttentionForward {
        q: q.view(),
        k: k.view(),
        v: v.view(),
        o: o.view(),
        d_o: d_o.view(),
        lse: lse.view(),
    };
    let gradients = AttentionGradients { dq: dq.view_mut(), dk: dk.view_mut(), dv: dv.view_mut() };
    let options = AttentionBackwardOptions { causal: true, ..Default::default() };
    attention_backward(&device, forward, gradients, options)?;
    // The last key has 1/64 of the last query, the only one that sees it.
    assert!(dv.to_vec()?[63 * 64..].iter().all(|x| x.to_f32() == 1.0 / 64.0));
    assert!(dq.to_vec()?.iter().all(|x| x.to_f32().abs() < 1e-3));
    Ok(())
}

#[test]
fn rows_visit_their_experts() -> anyhow::Result<()> {
    let device = Device::simulator();
    let logits = device.tensor(&[0.0_f32, 1.0, 2.0, 3.0, 1.0, 0.0], [2, 3])?;
    let (mut experts, mut weights) = (device.zeros([2, 2])?, device.zeros([2, 2])?);
    let (mut rows, mut ends) = (device.zeros([2, 2])?, device.zeros([3])?);
    let x = device.tensor(&[bf16::ONE; 2 * 64], [2, 64])?;
    let mut grouped = device.zeros::<bf16, 2>([4, 64])?;
    // Expert e multiplies by 2^e.
    let element = |i: usize| if (i % 4096).is_multiple_of(65) { (1 << (i / 4096)) as f32 } else { 0.0 };
    let matrices: Vec<bf16> = (0..3 * 4096).map(|i| bf16::from_f32(element(i))).collect();
    let matrices = device.tensor(&matrices, [3, 64, 64])?;
    let mut products = device.zeros::<bf16, 2>([4, 64])?;
    let mut out = device.zeros::<bf16, 2>([2, 64])?;
    use tma_kernels::gemm::{GroupedOptions, gemm_grouped};
    use tma_kernels::model::{RouteOptions, RoutesMut, combine, gather, route};

    // Which two experts each token has, with which weights, and where its rows go.
    let routes = RoutesMut {
        experts: experts.view_mut(),
        weights: weights.view_mut(),
        rows: rows.view_mut(),
        ends: ends.view_mut(),
    };
    route(&device, &logits, routes, RouteOptions { normalise: true, ..Default::default() })?;

    // The rows of each expert, by its own matrix, and back.
    gather(&device, &x, &rows, &mut grouped)?;
    let options = GroupedOptions { transpose_b: true, ..Default::default() };
    gemm_grouped(&device, &grouped, &matrices, &ends, &mut products, options)?;
    combine(&device, &products, &rows, &weights, &mut out)?;
    assert_eq!(experts.to_vec()?, [2, 1, 0, 1]);
    // 4 · 0.731 + 2 · 0.269, and 0.881 + 2 · 0.119
    let out: Vec<f32> = out.to_vec()?.iter().step_by(64).map(|x| x.to_f32()).collect();
    assert!((out[0] - 3.462).abs() < 0.01 && (out[1] - 1.119).abs() < 0.005, "{out:?}");
    Ok(())
}

#[test]
fn a_normalised_sum_is_gated() -> anyhow::Result<()> {
    let device = Device::simulator();
    let x = device.tensor(&[bf16::ONE; 16 * 256], [16, 256])?;
    let mut residual = device.tensor(&[bf16::ONE; 16 * 256], [16, 256])?;
    let mut normalised = device.zeros::<bf16, 2>([16, 256])?;
    use tma_kernels::model::{Gate, NormOptions, gated_packed, rms_norm};

    // Adds the output of a layer to the residual, and normalises the sum.
    let weight = device.tensor(&[bf16::ONE; 256], [256])?;
    let options = NormOptions {
        weight: Some(weight.view()),
        epsilon: 1e-5,
        residual: Some(residual.view_mut()),
        ..Default::default()
    };
    rms_norm(&device, &x, &mut normalised, options)?;

    // Halves of rows: silu(gate) · up.
    let mut gated = device.zeros::<bf16, 2>([16, 128])?;
    gated_packed(&device, Gate::Silu, &normalised, &mut gated)?;
    assert!(residual.to_vec()?.iter().all(|x| x.to_f32() == 2.0));
    // 1 / (1 + 1 / e)
    assert!(gated.to_vec()?.iter().all(|x| (x.to_f32() - 0.731).abs() < 0.004));

    let dy = device.tensor(&[bf16::ONE; 16 * 256], [16, 256])?;
    let mut dx = device.tensor(&[bf16::ONE; 16 * 256], [16, 256])?;
    let mut dweight = device.zeros::<f32, 1>([256])?;
    use tma_kernels::model::{GradientWorkspace, NormBackwardOptions, rms_norm_backward};

    // The residual is what was normalised. `dx` has its gradient from the layers above.
    let mut workspace = GradientWorkspace::for_norm(&device, [16, 256])?;
    let options = NormBackwardOptions {
        weight: Some(weight.view()),
        epsilon: 1e-5,
        accumulate: true,
        dweight: Some(dweight.view_mut()),
        workspace: Some(&mut workspace),
        ..Default::default()
    };
    rms_norm_backward(&device, &residual, &dy, &mut dx, options)?;
    // Equal gradients of equal numbers change nothing; 16 rows of 1 · 1.
    assert!(dx.to_vec()?.iter().all(|x| (x.to_f32() - 1.0).abs() < 0.01));
    assert!(dweight.to_vec()?.iter().all(|x| (x - 16.0).abs() < 0.001));

    let mut queries = device.tensor(&[bf16::ONE; 2 * 128], [1, 2, 128])?;
    let positions = device.tensor(&[0], [1])?;
    use tma_kernels::cached::RotaryLayout;
    use tma_kernels::model::{RotaryAngles, RotaryScaling, rotary_in_place, rotary_tables};

    let scaling = RotaryScaling::Llama3 {
        factor: 8.0,
        low_frequency_factor: 1.0,
        high_frequency_factor: 4.0,
        original_positions: 8192.0,
    };
    let (cos, sin) = rotary_tables(0..4096, 128, 500_000.0, scaling);
    let (cos, sin) = (device.tensor(&cos, [4096, 64])?, device.tensor(&sin, [4096, 64])?);
    let angles = RotaryAngles { cos: cos.view(), sin: sin.view(), layout: RotaryLayout::Halves };
    rotary_in_place(&device, &mut queries, &positions, angles)?;
    assert!(queries.to_vec()?.iter().all(|x| *x == bf16::ONE));
    Ok(())
}
