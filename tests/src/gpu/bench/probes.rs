//! The cost of a trace, and of limits for waits: launches without either, with one, and with the
//! other, in turns.

use std::time::Duration;

use anyhow::Context as _;
use tma_kernels::attention::{AttentionOptions, attention};
use tma_kernels::gemm::{GemmOptions, gemm};
use tma_kernels::model::{NormOptions, rms_norm};
use tma_runtime::launch::With;
use tma_runtime::prelude::*;
use tma_runtime::trace::take_traces;
use tma_runtime::tune::turns;

use super::measure::{Plan, Spread, WARM_UP, ratio};

/// The names of the contestants.
pub const CONTESTANTS: &[&str] = &["gemm", "attention", "rms_norm"];

/// A traced launch is compiled by the driver each time, which takes longer than all others.
const ROUNDS: usize = 12;

/// More than any of the launches takes.
const LIMIT: Duration = Duration::from_secs(2);

/// A call that queues one kernel.
type Call<'a> = Box<dyn FnMut(&With<'_>) -> anyhow::Result<()> + 'a>;

/// Measures a GEMM of 4096³, attention over 4096 keys with 16 heads of 128, and RMSNorm of 16384
/// rows of 4096, all in bf16. Prints the time of a launch, and how many times as long it takes with
/// a trace and with limits. There is no target to reach.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let [a, b] = [(); 2].map(|()| device.zeros::<bf16, 2>([4096, 4096]));
    let (a, b, mut c) = (a?, b?, device.zeros::<bf16, 2>([4096, 4096])?);
    let multiply: Call<'_> = Box::new(|on| {
        Ok(gemm(on, &a, &b, &mut c, GemmOptions { transpose_b: true, ..GemmOptions::default() })?)
    });

    let [q, k, v, o] = [(); 4].map(|()| device.zeros::<bf16, 4>([1, 16, 4096, 128]));
    let (q, k, v, mut o) = (q?, k?, v?, o?);
    let attend: Call<'_> = Box::new(|on| Ok(attention(on, &q, &k, &v, &mut o, AttentionOptions::default())?));

    let x = device.zeros::<bf16, 2>([16384, 4096])?;
    let [y, other] = [(); 2].map(|()| device.zeros::<bf16, 2>([16384, 4096]));
    let (mut y, mut other) = (y?, other?);
    let normalise: Call<'_> = Box::new(|on| Ok(rms_norm(on, &x, &mut y, NormOptions::default())?));
    let mut before: Call<'_> = Box::new(|on| Ok(rms_norm(on, &x, &mut other, NormOptions::default())?));

    for (name, call) in CONTESTANTS.iter().zip([multiply, attend, normalise]) {
        if plan.names("probes", name) {
            measure(device, name, call, &mut before)?;
        }
    }
    Ok(vec![])
}

/// Measures one kernel. Like a traced launch, others find the stream busy, by what `before` queues,
/// and nothing of theirs in the cache.
fn measure(device: &Device, name: &str, mut call: Call<'_>, before: &mut Call<'_>) -> anyhow::Result<()> {
    let stream = device.stream()?;
    let mut timed = |call: &mut dyn FnMut() -> anyhow::Result<()>| -> anyhow::Result<f64> {
        (0..2).try_for_each(|_| before(&stream.with()))?;
        let start = stream.record()?;
        call()?;
        Ok(f64::from(start.elapsed_ms(&stream.record()?)?) * 1e3)
    };
    let mut times = [vec![], vec![], vec![]];
    for round in 0..WARM_UP + ROUNDS {
        for index in turns(round, times.len()) {
            let microseconds = match index {
                0 => timed(&mut || call(&stream.with()))?,
                // The kernel alone: a traced call waits for the device, and prepares its memory.
                1 => {
                    call(&stream.with().trace())?;
                    let trace = take_traces().pop().context("a traced launch has no trace")?;
                    trace.launch.context("a trace has no time of its launch")? / 1e3
                }
                _ => timed(&mut || call(&stream.with().watched(LIMIT)))?,
            };
            if round >= WARM_UP {
                times[index].push(microseconds);
            }
        }
    }
    let [plain, traced, watched] = times;
    let (traced, watched) = (ratio(&traced, &plain), ratio(&watched, &plain));
    println!(
        "{{\"benchmark\": \"probes/{name}\", \"plain_us\": {:.1}, \"traced\": {:.3}, \"spread_traced\": {:.3}, \
         \"watched\": {:.3}, \"spread_watched\": {:.3}}}",
        Spread::of(&plain).median,
        traced.median,
        traced.width,
        watched.median,
        watched.width
    );
    Ok(())
}
