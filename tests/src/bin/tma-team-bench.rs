//! Measures the collectives of `tma-kernels` on all GPUs. Prints a JSON line per result, and a table of
//! all of them at the end.
//!
//! `device_us` is the time of a call on the device: the calls are queued while a longer collective
//! runs, so that they follow each other without gaps, and events measure them on each rank. `wall_us`
//! is the time of a call on the clock of the host, from an empty queue to the end of the last call. Both
//! are medians over rounds, of the slowest rank. Bandwidths are those of nccl-tests: `bus_gbps` is what
//! each GPU sends, in 10^9 bytes per second of `device_us`.

use std::time::Instant;

use clap::{Parser, ValueEnum};
use serde_json::json;
use tma_kernels::model::ModelElement;
use tma_kernels::team::{
    AllReduceMethod, AllReduceOptions, CollectiveOptions, TeamWorkspace, all_gather, all_reduce,
    reduce_scatter,
};
use tma_runtime::prelude::*;

/// Measures the collectives of `tma-kernels` on all GPUs.
#[derive(Parser)]
struct Args {
    /// Collectives to measure; all by default.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Collective>,
    /// Bytes of the tensor that is reduced, gathered or scattered, such as `1024,65536`.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// The element type.
    #[arg(long, default_value = "bf16")]
    element: Element,
    /// The method of all-reduces; chosen by size by default.
    #[arg(long)]
    method: Option<Method>,
    /// The most blocks on each rank.
    #[arg(long)]
    blocks: Option<u32>,
    /// The GPUs, such as `0,1`; all by default. A GPU may be given several times.
    #[arg(long, value_delimiter = ',')]
    gpus: Vec<u32>,
    /// Number of rounds.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
}

#[derive(Clone, Copy, ValueEnum)]
enum Element {
    Bf16,
    F16,
    F32,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Method {
    OneShot,
    TwoShot,
}

/// The sizes by default: 1 KiB to 1 GiB.
const SIZES: std::ops::RangeInclusive<u32> = 10..=30;

/// The bytes of the collective during which calls are queued, and how often it runs: some milliseconds.
const HOLD: (usize, usize) = (1 << 28, 6);

/// The most calls of a round, of which all fit into the driver's queue.
const CALLS: usize = 200;

/// The bytes that the calls of a round move at most, unless there is one call.
const ROUND_BYTES: usize = 1 << 33;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    match args.element {
        Element::Bf16 => measure::<bf16>(&args),
        Element::F16 => measure::<f16>(&args),
        Element::F32 => measure::<f32>(&args),
    }
}

/// The times of a call in microseconds.
struct Times {
    device_us: f64,
    wall_us: f64,
}

fn measure<T: ModelElement>(args: &Args) -> anyhow::Result<()> {
    let every_gpu: Vec<_> = (0..Device::all_cuda()?.len() as u32).collect();
    let team = Team::cuda(if args.gpus.is_empty() { &every_gpu } else { &args.gpus })?;
    let ranks = team.ranks();
    let all = [Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter];
    let collectives = if args.only.is_empty() { &all[..] } else { &args.only[..] };
    let by_default: Vec<_> = SIZES.map(|log| 1_usize << log).collect();
    let sizes = if args.sizes.is_empty() { &by_default[..] } else { &args.sizes[..] };
    let mut rows = vec![];
    for &collective in collectives {
        for &bytes in sizes {
            // As large as all ranks' pieces together.
            let len = (bytes / size_of::<T>()).next_multiple_of(ranks);
            let Times { device_us, wall_us } = times::<T>(&team, collective, len, args)?;
            let bytes = len * size_of::<T>();
            let algorithm = bytes as f64 / device_us / 1e3;
            let sent = (ranks - 1) as f64 / ranks as f64;
            let bus = algorithm * if collective == Collective::AllReduce { 2.0 * sent } else { sent };
            let name = collective.to_possible_value().map(|value| value.get_name().to_owned());
            let name = name.unwrap_or_default();
            println!(
                "{}",
                json!({
                    "collective": name, "bytes": bytes, "ranks": ranks, "device_us": device_us,
                    "wall_us": wall_us, "bus_gbps": bus,
                })
            );
            rows.push(format!("{name:<15} {bytes:>11} {device_us:>11.2} {wall_us:>11.2} {bus:>9.1}"));
        }
    }
    println!(
        "\n{:<15} {:>11} {:>11} {:>11} {:>9}",
        "collective", "bytes", "device us", "wall us", "bus GB/s"
    );
    rows.iter().for_each(|row| println!("{row}"));
    Ok(())
}

/// Measures a collective whose larger tensor has `len` elements.
fn times<T: ModelElement>(
    team: &Team,
    collective: Collective,
    len: usize,
    args: &Args,
) -> anyhow::Result<Times> {
    let mut workspace = TeamWorkspace::new(team)?;
    let mut whole = team.zeros::<T, 1>([len])?;
    let mut piece = team.zeros::<T, 1>([len / team.ranks()])?;
    let mut held = team.zeros::<f32, 1>([HOLD.0 / size_of::<f32>()])?;
    let method = args.method.map(|method| match method {
        Method::OneShot => AllReduceMethod::OneShot,
        Method::TwoShot => AllReduceMethod::TwoShot,
    });
    let blocks = args.blocks;
    let mut call = |workspace: &mut TeamWorkspace| match collective {
        Collective::AllReduce => all_reduce(team, &mut whole, workspace, AllReduceOptions { method, blocks }),
        Collective::AllGather => {
            all_gather(team, &piece, &mut whole, workspace, CollectiveOptions { blocks })
        }
        Collective::ReduceScatter => {
            reduce_scatter(team, &whole, &mut piece, workspace, CollectiveOptions { blocks })
        }
    };
    let calls = (ROUND_BYTES / (len * size_of::<T>())).clamp(4, CALLS);
    for _ in 0..calls {
        call(&mut workspace)?;
    }
    team.synchronize()?;
    let (mut on_device, mut on_host) = (vec![], vec![]);
    for _ in 0..args.rounds {
        let start = Instant::now();
        for _ in 0..calls {
            call(&mut workspace)?;
        }
        team.synchronize()?;
        on_host.push(start.elapsed().as_secs_f64() * 1e6 / calls as f64);
        hold(team, &mut held, &mut workspace)?;
        let starts = record(team)?;
        for _ in 0..calls {
            call(&mut workspace)?;
        }
        let ends = record(team)?;
        let mut slowest = 0.0_f64;
        for (start, end) in starts.iter().zip(&ends) {
            slowest = slowest.max(f64::from(start.elapsed_ms(end)?));
        }
        on_device.push(slowest * 1e3 / calls as f64);
    }
    Ok(Times { device_us: median(on_device), wall_us: median(on_host) })
}

/// Queues collectives that run for some milliseconds.
fn hold(
    team: &Team,
    memory: &mut SymmetricTensor<f32, 1>,
    workspace: &mut TeamWorkspace,
) -> anyhow::Result<()> {
    for _ in 0..HOLD.1 {
        all_reduce(team, &mut *memory, workspace, AllReduceOptions::default())?;
    }
    Ok(())
}

/// Records an event on the stream of each rank.
fn record(team: &Team) -> anyhow::Result<Vec<Event>> {
    (0..team.ranks()).map(|rank| Ok(team.stream(rank)?.record()?)).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
