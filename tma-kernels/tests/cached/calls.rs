//! Calls that differ from the cases: graphs, pages that are not there, and arguments that do not
//! fit.

use super::plain::numbers;
use tma_kernels::cached::{
    CacheWorkspace, CachedAttentionError, CachedAttentionOptions, KeyValueCache, cached_attention,
};
use tma_runtime::prelude::*;

/// A captured launch takes the lengths and the table of the time when it runs.
#[test]
fn lengths_change_between_launches_of_a_graph() -> Result<(), CachedAttentionError> {
    let device = Device::simulator();
    let keys = device.tensor(&numbers::<bf16>(5, 4 * 16 * 64, 1.0), [4, 1, 16, 64])?;
    let values = device.tensor(&numbers::<bf16>(6, 4 * 16 * 64, 1.0), [4, 1, 16, 64])?;
    let q = device.tensor(&numbers::<bf16>(7, 64, 1.0), [1, 1, 1, 64])?;
    let (mut table, mut lengths) = (device.tensor(&[2, 1], [1, 2])?, device.tensor(&[5], [1])?);
    let mut workspace = CacheWorkspace::new(&device)?;
    let mut run = |on: &Device, table: &DeviceTensor<u32, 2>, lengths: &DeviceTensor<u32, 1>| {
        let mut o = on.zeros(q.shape())?;
        let cache =
            KeyValueCache::paged(keys.view(), values.view(), table.view()).with_lengths(lengths.view());
        let options = CachedAttentionOptions { workspace: Some(&mut workspace), ..Default::default() };
        cached_attention(on, &q, cache, &mut o, options)?;
        Ok::<_, CachedAttentionError>(o.to_vec()?)
    };
    let before = run(&device, &table, &lengths)?;
    table.copy_from(&[3, 0])?;
    lengths.copy_from(&[21])?;
    let after = run(&device, &table, &lengths)?;
    assert_ne!(before, after);

    let mut o = device.zeros(q.shape())?;
    let mut workspace = CacheWorkspace::new(&device)?;
    let stream = device.stream()?;
    let graph = stream.capture(|capture| {
        let cache =
            KeyValueCache::paged(keys.view(), values.view(), table.view()).with_lengths(lengths.view());
        let options = CachedAttentionOptions { workspace: Some(&mut workspace), ..Default::default() };
        cached_attention(capture, &q, cache, &mut o, options).map_err(|error| match error {
            CachedAttentionError::Runtime(error) => error,
            other => panic!("{other}"),
        })
    })?;
    for (pages, length, wanted) in [([2, 1], 5, &before), ([3, 0], 21, &after)] {
        table.copy_from(&pages)?;
        lengths.copy_from(&[length])?;
        graph.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(o.to_vec()?, *wanted);
    }
    Ok(())
}

/// A page number beyond the cache stands for zeros, and no other memory is read.
#[test]
fn page_numbers_beyond_the_cache() -> Result<(), CachedAttentionError> {
    let device = Device::simulator();
    let ones = device.tensor(&[bf16::ONE; 16 * 64], [1, 1, 16, 64])?;
    let q = device.zeros::<bf16, 4>([1, 1, 1, 64])?;
    let table = device.tensor(&[0, u32::MAX], [1, 2])?;
    let mut o = device.zeros(q.shape())?;
    let cache = KeyValueCache::paged(ones.view(), ones.view(), table.view());
    cached_attention(&device, &q, cache, &mut o, CachedAttentionOptions::default())?;
    assert!(o.to_vec()?.iter().all(|x| x.to_f32() == 0.5), "half of the 32 keys have ones");
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_errors() -> Result<(), CachedAttentionError> {
    let device = Device::simulator();
    let code = |q: [usize; 4], k: [usize; 4], table: Option<[usize; 2]>, scale: Option<f32>| {
        let (q, k) = (device.zeros::<bf16, 4>(q)?, device.zeros::<bf16, 4>(k)?);
        let table = table.map(|shape| device.zeros::<u32, 2>(shape)).transpose()?;
        let cache = match &table {
            None => KeyValueCache::contiguous(k.view(), k.view()),
            Some(table) => KeyValueCache::paged(k.view(), k.view(), table.view()),
        };
        let mut o = device.zeros(q.shape())?;
        let options = CachedAttentionOptions { scale, ..Default::default() };
        Ok::<_, Error>(match cached_attention(&device, &q, cache, &mut o, options) {
            Ok(()) => "none",
            Err(error) => error.code(),
        })
    };
    assert_eq!(code([2, 4, 1, 64], [2, 2, 30, 64], None, None)?, "none");
    assert_eq!(code([0, 4, 1, 64], [0, 2, 30, 64], None, None)?, "none");
    assert_eq!(code([2, 4, 1, 60], [2, 2, 30, 60], None, None)?, "TMA0550");
    assert_eq!(code([2, 4, 1, 264], [2, 2, 30, 264], None, None)?, "TMA0550");
    assert_eq!(code([2, 4, 1, 64], [3, 2, 30, 64], None, None)?, "TMA0551");
    assert_eq!(code([2, 4, 1, 64], [2, 3, 30, 64], None, None)?, "TMA0551");
    assert_eq!(code([2, 4, 1, 64], [9, 2, 16, 64], Some([3, 2]), None)?, "TMA0551");
    assert_eq!(code([4096, 1, 1, 8], [4096, 1, 1, 8], None, None)?, "none");
    assert_eq!(code([4097, 1, 1, 8], [4097, 1, 1, 8], None, None)?, "TMA0551");
    assert_eq!(code([2, 4, 1, 64], [9, 2, 16, 64], Some([2, 2]), Some(-1.0))?, "TMA0552");
    assert_eq!(code([2, 4, 1, 64], [9, 2, 48, 64], Some([2, 2]), None)?, "TMA0568");

    let (q, k) = (device.zeros::<bf16, 4>([1, 64, 1, 64])?, device.zeros::<bf16, 4>([1, 1, 8, 64])?);
    let mut o = device.zeros::<bf16, 4>([1, 64, 1, 64])?;
    let turned = q.view().permute([0, 3, 2, 1])?;
    let cache = KeyValueCache::contiguous(k.view(), k.view());
    let error = cached_attention(&device, turned, cache, &mut o, CachedAttentionOptions::default());
    assert_eq!(error.expect_err("rows are not contiguous").code(), "TMA0569");
    Ok(())
}
