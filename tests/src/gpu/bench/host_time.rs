//! The host's time of calls of `tma-kernels`, and of the same calls prepared.

use std::time::Instant;

use tma_kernels::cached::{CacheWorkspace, CachedAttentionOptions, KeyValueCache, cached_attention};
use tma_kernels::gemm::{GemmOptions, gemm};
use tma_kernels::model::{NormOptions, rms_norm};
use tma_runtime::launch::With;
use tma_runtime::prelude::*;

use super::measure::{Plan, Spread, WARM_UP};

/// The launches of a measurement: those of a decoder's step, and fewer than the driver queues
/// before it blocks.
const LAUNCHES: usize = 200;
const BATCHES: usize = 60;

/// The names of the contestants.
pub const CONTESTANTS: &[&str] = &["gemm", "cached_attention", "rms_norm"];

/// A call that queues one kernel.
type Call<'a> = Box<dyn FnMut(&With<'_>) -> anyhow::Result<()> + 'a>;

/// Measures the host's time per launch, starting with an empty queue: by calls, by one prepared
/// call that is launched as often, and by as many calls that are prepared together. Returns for
/// each function whether both kinds of prepared launches take less time than calls.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let (x, weights) = (device.zeros::<bf16, 2>([1, 4096])?, device.zeros::<bf16, 2>([4096, 4096])?);
    let mut y = device.zeros::<bf16, 2>([1, 4096])?;
    let multiply: Call<'_> = Box::new(|on| {
        let options = GemmOptions { transpose_b: true, constant_b: true, ..GemmOptions::default() };
        Ok(gemm(on, &x, &weights, &mut y, options)?)
    });

    // 8 heads of 1024 keys, in pages of 16 rows, shared by 32 heads of queries.
    let keys = device.zeros::<bf16, 4>([64, 8, 16, 128])?;
    let table = device.tensor(&(0..64).collect::<Vec<u32>>(), [1, 64])?;
    let lengths = device.tensor(&[1000_u32], [1])?;
    let q = device.zeros::<bf16, 4>([1, 32, 1, 128])?;
    let (mut o, mut workspace) = (device.zeros(q.shape())?, CacheWorkspace::new(device)?);
    let attend: Call<'_> = Box::new(|on| {
        let cache = KeyValueCache::paged(keys.view(), keys.view(), table.view()).with_lengths(lengths.view());
        let options = CachedAttentionOptions { workspace: Some(&mut workspace), ..Default::default() };
        Ok(cached_attention(on, &q, cache, &mut o, options)?)
    });

    let weight = device.zeros::<bf16, 1>([4096])?;
    let mut normed = device.zeros::<bf16, 2>([1, 4096])?;
    let normalise: Call<'_> = Box::new(|on| {
        let options = NormOptions { weight: Some(weight.view()), ..Default::default() };
        Ok(rms_norm(on, &x, &mut normed, options)?)
    });

    let mut verdicts = vec![];
    for (name, call) in CONTESTANTS.iter().zip([multiply, attend, normalise]) {
        if plan.names("host_time", name) {
            verdicts.extend(measure(device, plan, name, call)?);
        }
    }
    Ok(verdicts)
}

/// Measures one function, unless the plan is only to launch it.
fn measure(device: &Device, plan: &Plan, name: &str, mut call: Call<'_>) -> anyhow::Result<Option<bool>> {
    let stream = device.stream()?;
    call(&stream.with())?; // workspaces grow
    let one = device.prepare(|on| call(&on.with()))?;
    let step = device.prepare(|on| (0..LAUNCHES).try_for_each(|_| call(&on.with())))?;
    if let Some(launches) = plan.launches {
        (0..launches).try_for_each(|_| one.launch(&stream))?;
        stream.synchronize()?;
        println!("{{\"benchmark\": \"host_time/{name}\", \"launches\": {launches}}}");
        return Ok(None);
    }
    let mut times = [vec![], vec![], vec![]];
    for batch in 0..WARM_UP + BATCHES {
        // The order changes so that none always follows the same one.
        for turn in 0..times.len() {
            let contestant = (batch + turn) % times.len();
            stream.synchronize()?;
            let start = Instant::now();
            match contestant {
                0 => (0..LAUNCHES).try_for_each(|_| call(&stream.with()))?,
                1 => (0..LAUNCHES).try_for_each(|_| one.launch(&stream))?,
                _ => step.launch(&stream)?,
            }
            let time = start.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64;
            if batch >= WARM_UP {
                times[contestant].push(time);
            }
        }
    }
    let [called, prepared, step] = times.map(|times| Spread::of(&times).median);
    println!(
        "{{\"benchmark\": \"host_time/{name}\", \"called_us\": {called:.3}, \"prepared_us\": {prepared:.3}, \
         \"step_us\": {step:.3}}}"
    );
    Ok(Some(prepared < called && step < called))
}
