//! The promises to engines: calls that allocate nothing, workspaces in their own memory, and
//! prepared calls.
#![cfg(feature = "llvm")]

use std::error::Error;
use std::thread;

use tma_kernels::cached::{
    AppendOptions, CacheWorkspace, CachedAttentionOptions, Division, KeyValueCache, KeyValueCacheMut, append,
    cached_attention,
};
use tma_kernels::gemm::{
    self, Choice, GemmOptions, GroupedOptions, GroupedWorkspace, Tile, Workspace, gemm, gemm_grouped,
};
use tma_kernels::model::{NormOptions, RouteOptions, RouteWorkspace, RoutesMut, rms_norm, route};
use tma_kernels::{AttentionOptions, attention};
use tma_runtime::launch::{LaunchOn, With};
use tma_runtime::prelude::*;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Returns numbers between -1 and 1 that depend on the seed.
fn numbers(seed: u64, len: usize) -> Vec<bf16> {
    let mixed = |i: u64| (seed << 32 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (0..len as u64).map(|i| bf16::from_f32((mixed(i) % 257) as f32 / 128.0 - 1.0)).collect()
}

/// A GEMM whose sums are divided.
fn divided() -> Option<Choice> {
    Some(Choice { tile: Tile::T64x64, division: gemm::Division::Parts(3) })
}

fn matrix(device: &Device, seed: u64, shape: [usize; 2]) -> Outcome<DeviceTensor<bf16, 2>> {
    Ok(device.tensor(&numbers(seed, shape[0] * shape[1]), shape)?)
}

/// Multiplies two matrices with sums that are divided.
fn multiply(
    on: &impl LaunchOn,
    [a, b]: [&DeviceTensor<bf16, 2>; 2],
    c: &mut DeviceTensor<bf16, 2>,
    workspace: &mut Workspace,
) -> Outcome {
    let workspace = Some(workspace);
    gemm(on, a, b, c, GemmOptions { transpose_b: true, choice: divided(), workspace, ..Default::default() })?;
    Ok(())
}

/// Two sequences of keys in pages, and a query of each of four heads.
struct Decoder {
    keys: DeviceTensor<bf16, 4>,
    values: DeviceTensor<bf16, 4>,
    table: DeviceTensor<u32, 2>,
    lengths: DeviceTensor<u32, 1>,
    q: DeviceTensor<bf16, 4>,
    o: DeviceTensor<bf16, 4>,
}

impl Decoder {
    fn new(device: &Device, queries: usize) -> Outcome<Self> {
        Ok(Self {
            keys: device.tensor(&numbers(1, 12 * 2 * 32 * 64), [12, 2, 32, 64])?,
            values: device.tensor(&numbers(2, 12 * 2 * 32 * 64), [12, 2, 32, 64])?,
            table: device.tensor(&[3, 1, 0, 11, 7, 9, 2, 4, 10, 5, 6, 8], [2, 6])?,
            lengths: device.tensor(&[180, 77], [2])?,
            q: device.tensor(&numbers(3, 2 * 4 * queries * 64), [2, 4, queries, 64])?,
            o: device.zeros([2, 4, queries, 64])?,
        })
    }

    const DIVISION: Option<Division> = Some(Division { blocks: 4, units: 9, least_keys: 64 });

    fn bytes(&self, device: &Device) -> Outcome<usize> {
        let cache = KeyValueCache::paged(self.keys.view(), self.values.view(), self.table.view());
        Ok(CacheWorkspace::bytes(device, &self.q, cache, Self::DIVISION)?)
    }

    fn attend(&mut self, on: &impl LaunchOn, workspace: &mut CacheWorkspace) -> Outcome {
        let Self { keys, values, table, lengths, q, o } = self;
        let cache =
            KeyValueCache::paged(keys.view(), values.view(), table.view()).with_lengths(lengths.view());
        let (workspace, division) = (Some(workspace), Self::DIVISION);
        let options = CachedAttentionOptions { workspace, division, ..Default::default() };
        cached_attention(on, &*q, cache, o, options)?;
        Ok(())
    }
}

/// Calls twice, and requires that the second call allocates nothing, nor a prepared one.
#[track_caller]
fn allocates_nothing(device: &Device, name: &str, mut call: impl FnMut(&With<'_>) -> Outcome) -> Outcome {
    call(&device.with())?;
    let before = device.allocations();
    call(&device.with())?;
    let prepared = device.prepare(|on| call(&on.with()))?;
    prepared.launch(device)?;
    assert!(prepared.launches() > 0, "{name}");
    assert_eq!(device.allocations(), before, "{name}");
    Ok(())
}

#[test]
fn calls_with_results_and_workspaces_allocate_nothing() -> Outcome {
    let device = Device::open()?;
    let (a, b) = (matrix(&device, 1, [40, 320])?, matrix(&device, 2, [72, 320])?);
    let (mut c, mut workspace) = (device.zeros([40, 72])?, Workspace::new(&device)?);
    allocates_nothing(&device, "gemm", |on| multiply(on, [&a, &b], &mut c, &mut workspace))?;

    // No row of C begins at a multiple of 16 bytes.
    let mut odd = device.zeros::<bf16, 1>([40 * 73])?;
    allocates_nothing(&device, "gemm of odd rows", |on| {
        let elements = 1..40 * 72 + 1;
        let c = odd.view_mut().slice([elements])?.with_strides([40, 71], [71, 1])?;
        let b = b.view().slice([0..71, 0..320])?;
        gemm(on, &a, b, c, GemmOptions { transpose_b: true, ..Default::default() })?;
        Ok(())
    })?;

    let experts = device.tensor(&numbers(3, 2 * 72 * 320), [2, 72, 320])?;
    let (ends, mut grouped) = (device.tensor(&[13_u32, 40], [2])?, GroupedWorkspace::new(&device)?);
    allocates_nothing(&device, "gemm_grouped", |on| {
        let options =
            GroupedOptions { transpose_b: true, workspace: Some(&mut grouped), ..Default::default() };
        gemm_grouped(on, &a, &experts, &ends, &mut c, options)?;
        Ok(())
    })?;

    for queries in [1, 3, 20] {
        let (mut decoder, mut workspace) = (Decoder::new(&device, queries)?, CacheWorkspace::new(&device)?);
        allocates_nothing(&device, "cached_attention", |on| decoder.attend(on, &mut workspace))?;
    }
    let mut decoder = Decoder::new(&device, 1)?;
    let new = device.tensor(&numbers(4, 2 * 2 * 64), [2, 2, 1, 64])?;
    allocates_nothing(&device, "append", |on| {
        let Decoder { keys, values, table, lengths, .. } = &mut decoder;
        let cache = KeyValueCacheMut::paged(keys.view_mut(), values.view_mut(), table.view());
        append(on, &new, &new, cache.with_lengths(lengths.view()), AppendOptions::default())?;
        Ok(())
    })?;
    let (q, mut o) = (device.zeros::<bf16, 4>([1, 2, 30, 64])?, device.zeros([1, 2, 30, 64])?);
    allocates_nothing(&device, "attention", |on| {
        attention(on, &q, &q, &q, &mut o, AttentionOptions::default())?;
        Ok(())
    })?;
    let mut normed = device.zeros([40, 320])?;
    allocates_nothing(&device, "rms_norm", |on| {
        rms_norm(on, &a, &mut normed, NormOptions::default())?;
        Ok(())
    })?;

    let logits = matrix(&device, 5, [100, 6])?;
    let (mut chosen, mut weights) = (device.zeros([100, 2])?, device.zeros([100, 2])?);
    let (mut rows, mut ends) = (device.zeros([100, 2])?, device.zeros([6])?);
    let mut workspace = RouteWorkspace::new(&device, 100, 6)?;
    allocates_nothing(&device, "route", |on| {
        let (experts, weights) = (chosen.view_mut(), weights.view_mut());
        let routes = RoutesMut { experts, weights, rows: rows.view_mut(), ends: ends.view_mut() };
        route(on, &logits, routes, RouteOptions { workspace: Some(&mut workspace), ..Default::default() })?;
        Ok(())
    })
}

/// A step of several functions, prepared at once, computes the same bits as their calls: on a
/// stream, in a graph, and on another thread, when everything but inputs and results has been
/// dropped.
#[test]
fn prepared_calls_compute_the_same_bits() -> Outcome {
    let device = Device::open()?;
    let stream = device.stream()?;
    let (a, b) = (matrix(&device, 1, [40, 320])?, matrix(&device, 2, [72, 320])?);
    let mut decoder = Decoder::new(&device, 3)?;
    let (mut c, mut normed) = (device.zeros([40, 72])?, device.zeros::<bf16, 2>([40, 72])?);
    let step = |on: &With<'_>,
                decoder: &mut Decoder,
                c: &mut DeviceTensor<bf16, 2>,
                normed: &mut DeviceTensor<bf16, 2>| {
        multiply(on, [&a, &b], c, &mut Workspace::empty(&device)?)?;
        rms_norm(on, &*c, normed, NormOptions::default())?;
        decoder.attend(on, &mut CacheWorkspace::new(&device)?)
    };
    step(&stream.with(), &mut decoder, &mut c, &mut normed)?;
    let wanted = (c.to_vec()?, normed.to_vec()?, decoder.o.to_vec()?);
    assert!(wanted.1.iter().any(|x| x.to_f32() != 0.0));

    let prepared = device.prepare(|on| step(&on.with(), &mut decoder, &mut c, &mut normed))?;
    let graph = stream.capture(|capture| prepared.launch(capture))?;
    let mut run = |launch: &dyn Fn() -> Result<(), tma_runtime::Error>| -> Outcome {
        c.fill_bytes(0)?;
        normed.fill_bytes(0)?;
        decoder.o.fill_bytes(0)?;
        launch()?;
        assert!((c.to_vec()?, normed.to_vec()?, decoder.o.to_vec()?) == wanted);
        Ok(())
    };
    let before = device.allocations();
    run(&|| prepared.launch(&stream))?;
    run(&|| prepared.launch(&device))?;
    run(&|| graph.launch(&stream))?;
    run(&|| thread::scope(|scope| scope.spawn(|| prepared.launch(&stream)).join().expect("no panic")))?;
    assert_eq!(device.allocations(), before);
    Ok(())
}

#[test]
fn workspaces_in_given_memory_suffice_with_their_bytes() -> Outcome {
    let device = Device::open()?;
    let (a, b) = (matrix(&device, 1, [40, 320])?, matrix(&device, 2, [72, 320])?);
    let (mut c, mut again) = (device.zeros([40, 72])?, device.zeros([40, 72])?);
    multiply(&device, [&a, &b], &mut c, &mut Workspace::new(&device)?)?;
    // Other libraries do not clear their memory.
    let memory = device.filled_bytes::<u8, 1>([Workspace::bytes(&device)], 0xa5)?;
    // SAFETY: the memory outlives the workspace, and is used for nothing else.
    let mut workspace = unsafe { Workspace::from_raw(&device, memory.as_ptr(), memory.len())? };
    multiply(&device, [&a, &b], &mut again, &mut workspace)?;
    assert_eq!(c.to_vec()?, again.to_vec()?);

    for queries in [1, 3, 20] {
        let (mut decoder, mut other) = (Decoder::new(&device, queries)?, Decoder::new(&device, queries)?);
        decoder.attend(&device, &mut CacheWorkspace::new(&device)?)?;
        let memory = device.filled_bytes::<u8, 1>([decoder.bytes(&device)?], 0xa5)?;
        // SAFETY: as above.
        let mut workspace = unsafe { CacheWorkspace::from_raw(&device, memory.as_ptr(), memory.len())? };
        let before = device.allocations();
        other.attend(&device, &mut workspace)?;
        other.attend(&device, &mut workspace)?;
        assert_eq!(device.allocations(), before);
        assert_eq!(decoder.o.to_vec()?, other.o.to_vec()?, "{queries} queries");
    }

    let experts = device.tensor(&numbers(3, 2 * 72 * 320), [2, 72, 320])?;
    let ends = device.tensor(&[13_u32, 40], [2])?;
    let memory = device.filled_bytes::<u8, 1>([GroupedWorkspace::bytes(&device)], 0xa5)?;
    // SAFETY: as above.
    let mut grouped = unsafe { GroupedWorkspace::from_raw(&device, memory.as_ptr(), memory.len())? };
    let workspaces = [None, Some(&mut grouped)];
    let results = workspaces.map(|workspace| -> Outcome<_> {
        let mut c = device.zeros::<bf16, 2>([40, 72])?;
        let options = GroupedOptions { transpose_b: true, workspace, ..Default::default() };
        gemm_grouped(&device, &a, &experts, &ends, &mut c, options)?;
        Ok(c.to_vec()?)
    });
    let [own, given] = results;
    assert_eq!(own?, given?);
    Ok(())
}

#[test]
fn tma0570_given_memory_does_not_grow() -> Outcome {
    let device = Device::simulator(); // which counts allocations
    let memory = device.zeros::<u8, 1>([1 << 16])?;
    let at = memory.as_ptr();
    let (a, b) = (matrix(&device, 1, [40, 320])?, matrix(&device, 2, [72, 320])?);
    let mut c = device.zeros([40, 72])?;
    // SAFETY: the memory outlives the workspace, and is used for nothing else.
    let mut workspace = unsafe { Workspace::from_raw(&device, at, 1 << 16)? };
    let before = device.allocations();
    let small = multiply(&device, [&a, &b], &mut c, &mut workspace).expect_err("the memory is too small");
    assert!(small.to_string().starts_with("TMA0570: "), "{small}");

    let mut decoder = Decoder::new(&device, 1)?;
    let wanted = decoder.bytes(&device)?;
    for bytes in [0, 1000, wanted - 1] {
        // SAFETY: as above.
        let workspace = unsafe { CacheWorkspace::from_raw(&device, at, bytes) };
        let small = match workspace {
            Ok(mut workspace) => decoder.attend(&device, &mut workspace).expect_err("too small"),
            Err(error) => error.into(),
        };
        assert!(small.to_string().starts_with("TMA0570: "), "{small}");
    }
    assert!(wanted < 1 << 16 && decoder.o.to_vec()?.iter().all(|x| x.to_f32() == 0.0));
    assert!(device.allocations() > before, "those of the decoder");
    assert!(c.to_vec()?.iter().all(|x| x.to_f32() == 0.0));

    // SAFETY: as above.
    let grouped = unsafe { GroupedWorkspace::from_raw(&device, at, 100) };
    assert_eq!(grouped.expect_err("too small").code(), "TMA0570");
    let (logits, mut ends) = (matrix(&device, 5, [100, 6])?, device.zeros([6])?);
    let (mut chosen, mut weights) = (device.zeros([100, 2])?, device.zeros([100, 2])?);
    let mut rows = device.zeros([100, 2])?;
    // SAFETY: as above.
    let mut workspace = unsafe { RouteWorkspace::from_raw(&device, at, RouteWorkspace::bytes(100, 6) - 1)? };
    let (experts, weights) = (chosen.view_mut(), weights.view_mut());
    let routes = RoutesMut { experts, weights, rows: rows.view_mut(), ends: ends.view_mut() };
    let options = RouteOptions { workspace: Some(&mut workspace), ..Default::default() };
    assert_eq!(route(&device, &logits, routes, options).expect_err("too small").code(), "TMA0570");
    Ok(())
}
