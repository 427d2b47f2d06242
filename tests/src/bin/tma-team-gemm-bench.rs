//! Measures the GEMMs of `tma_kernels::gemm::team` on all GPUs, on layers of a Llama with 70 G
//! parameters that are divided among the ranks. Prints a JSON line per result, and a table of all of
//! them at the end.
//!
//! `ours_us` is the time of the GEMM with its transfer, `gemm_us` that of the plain GEMM of each rank's
//! extents alone, and `transfer_us` that of the collective of the same matrix alone. Results are
//! compared with plain GEMMs first. Calls are queued while a longer one runs, so that they follow each
//! other without gaps, and events measure them on each rank. All times are medians over rounds, of the
//! slowest rank.

use std::fmt::Debug;

use anyhow::ensure;
use clap::Parser;
use serde_json::json;
use tma_kernels::gemm::team::{
    GatherWorkspace, ScatterWorkspace, TeamGemmOptions, all_gather_gemm, gemm_reduce_scatter,
};
use tma_kernels::gemm::{GemmOptions, Workspace, gemm};
use tma_kernels::team::{CollectiveOptions, TeamWorkspace, all_gather, reduce_scatter};
use tma_runtime::prelude::*;
use tma_tests::gpu::bench::products::problem::normal;
use tma_tests::random::noise_of;

/// Measures GEMMs that move matrices between ranks.
#[derive(Parser)]
struct Args {
    /// Rows of all ranks together.
    #[arg(long, value_delimiter = ',', default_values_t = [4096, 8192, 16384])]
    m: Vec<usize>,
    /// Layers to measure, such as `qkv,down`; all by default.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The GPUs, such as `0,1`; all by default. A GPU may be given several times.
    #[arg(long, value_delimiter = ',')]
    gpus: Vec<u32>,
    /// The most blocks on each rank.
    #[arg(long)]
    blocks: Option<u32>,
    /// Number of rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// The milliseconds of a round, about.
    #[arg(long, default_value_t = 50.0)]
    round_ms: f64,
    /// Only compare results.
    #[arg(long)]
    check_only: bool,
}

/// A layer of the model.
#[derive(Clone, Copy, Debug)]
struct Layer {
    name: &'static str,
    /// Columns of the result, and products of each.
    extents: [usize; 2],
    division: LayerDivision,
}

/// The extent of a layer that is divided among the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LayerDivision {
    /// N: the input is gathered.
    Columns,
    /// K: the output is scattered.
    Products,
}

/// The layers, whose weights are N × K.
const LAYERS: [Layer; 4] = [
    Layer { name: "qkv", extents: [10240, 8192], division: LayerDivision::Columns },
    Layer { name: "out", extents: [8192, 8192], division: LayerDivision::Products },
    Layer { name: "gate_up", extents: [57344, 8192], division: LayerDivision::Columns },
    Layer { name: "down", extents: [8192, 28672], division: LayerDivision::Products },
];

/// The difference of a result to that of plain GEMMs, relative to the greatest number: rounding to
/// `bf16`, also of what peers send.
const TOLERANCE: f32 = 1.0 / 64.0;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let every_gpu: Vec<_> = (0..Device::all_cuda()?.len() as u32).collect();
    let team = Team::cuda(if args.gpus.is_empty() { &every_gpu } else { &args.gpus })?;
    let layers =
        LAYERS.iter().filter(|layer| args.only.is_empty() || args.only.iter().any(|name| name == layer.name));
    let mut rows = vec![];
    for layer in layers {
        for &m in &args.m {
            let mut bench = Bench::new(&team, *layer, m, args.blocks)?;
            bench.check(&team)?;
            if args.check_only {
                println!(
                    "{}",
                    json!({ "layer": layer.name, "m": m, "ranks": team.ranks(), "checked": true })
                );
                continue;
            }
            let [ours, plain, transfer] = [Call::Ours, Call::Gemm, Call::Transfer]
                .map(|call| time(&team, &args, &mut || bench.run(&team, call)));
            let (ours, plain, transfer) = (ours?, plain?, transfer?);
            let [n, k] = bench.local;
            let tflops = 2.0 * m as f64 * n as f64 * k as f64 / ours / 1e6;
            println!(
                "{}",
                json!({
                    "layer": layer.name, "m": m, "n": n, "k": k, "ranks": team.ranks(), "ours_us": ours,
                    "gemm_us": plain, "transfer_us": transfer, "tflops": tflops,
                })
            );
            rows.push(format!(
                "{:<8} {m:>6} {n:>6} {k:>6} {ours:>10.1} {plain:>10.1} {transfer:>11.1} {tflops:>8.1}",
                layer.name
            ));
        }
    }
    println!(
        "\n{:<8} {:>6} {:>6} {:>6} {:>10} {:>10} {:>11} {:>8}",
        "layer", "M", "N", "K", "ours us", "gemm us", "transfer us", "TFLOP/s"
    );
    rows.iter().for_each(|row| println!("{row}"));
    Ok(())
}

/// A call that is measured.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// The GEMM with its transfer.
    Ours,
    /// The plain GEMM of the same extents.
    Gemm,
    /// The collective of the matrix that is gathered or scattered.
    Transfer,
}

/// The matrices of a layer on all ranks.
struct Bench {
    division: LayerDivision,
    /// N and K of a rank.
    local: [usize; 2],
    options: TeamGemmOptions,
    /// A as the GEMM takes it: the rank's rows, or all of them.
    a: SymmetricTensor<bf16, 2>,
    b: SymmetricTensor<bf16, 2>,
    c: SymmetricTensor<bf16, 2>,
    /// A of the plain GEMM, and its C: with all rows.
    whole_a: SymmetricTensor<bf16, 2>,
    whole_c: SymmetricTensor<bf16, 2>,
    /// The workspace for the matrix that is gathered, or scattered.
    workspace: EitherWorkspace,
    collective: TeamWorkspace,
    of_ranks: Vec<Workspace>,
}

enum EitherWorkspace {
    Gather(GatherWorkspace<bf16>),
    Scatter(ScatterWorkspace<bf16>),
}

impl Bench {
    fn new(team: &Team, layer: Layer, m: usize, blocks: Option<u32>) -> anyhow::Result<Self> {
        let ranks = team.ranks();
        ensure!(m.is_multiple_of(ranks), "{m} rows are not divided by {ranks}");
        let ([n, k], part) = (layer.extents, m / ranks);
        let noise = |seed: usize, len: usize| -> Vec<Vec<bf16>> {
            let of_rank = |rank| noise_of(len, |i| bf16::from_f32(normal((seed + rank) as u64, i) as f32));
            (0..ranks).map(of_rank).collect()
        };
        let (local, a, c, workspace) = match layer.division {
            LayerDivision::Columns => {
                let workspace = EitherWorkspace::Gather(GatherWorkspace::new(team, part, k)?);
                ([n / ranks, k], [part, k], [m, n / ranks], workspace)
            }
            LayerDivision::Products => {
                let workspace = EitherWorkspace::Scatter(ScatterWorkspace::new(team, part, n)?);
                ([n, k / ranks], [m, k / ranks], [part, n], workspace)
            }
        };
        let of_ranks = team.devices().map(Workspace::new).collect::<Result<_, _>>()?;
        let parts = noise(900, a[0] * a[1]);
        let whole_a = match layer.division {
            LayerDivision::Columns => team.tensors(&vec![parts.concat(); ranks], [m, k])?,
            LayerDivision::Products => team.tensors(&parts, a)?,
        };
        Ok(Self {
            division: layer.division,
            local,
            options: TeamGemmOptions { transpose_b: true, tile: None, blocks },
            a: team.tensors(&parts, a)?,
            b: team.tensors(&noise(950, local[0] * local[1]), local)?,
            c: team.zeros(c)?,
            whole_a,
            whole_c: team.zeros([m, local[0]])?,
            workspace,
            collective: TeamWorkspace::new(team)?,
            of_ranks,
        })
    }

    /// Queues a call on all ranks.
    fn run(&mut self, team: &Team, call: Call) -> anyhow::Result<()> {
        match (call, &mut self.workspace) {
            (Call::Ours, EitherWorkspace::Gather(workspace)) => {
                all_gather_gemm(team, &self.a, &self.b, &mut self.c, workspace, self.options)?;
            }
            (Call::Ours, EitherWorkspace::Scatter(workspace)) => {
                gemm_reduce_scatter(team, &self.a, &self.b, &mut self.c, workspace, self.options)?;
            }
            (Call::Gemm, _) => {
                for (rank, workspace) in self.of_ranks.iter_mut().enumerate() {
                    let (a, b) = (self.whole_a.rank(rank)?, self.b.rank(rank)?);
                    let options =
                        GemmOptions { transpose_b: true, workspace: Some(workspace), ..Default::default() };
                    gemm(team.stream(rank)?, a, b, self.whole_c.rank_mut(rank)?, options)?;
                }
            }
            (Call::Transfer, EitherWorkspace::Gather(_)) => {
                let options = CollectiveOptions::default();
                all_gather(team, &self.a, &mut self.whole_a, &mut self.collective, options)?;
            }
            (Call::Transfer, EitherWorkspace::Scatter(_)) => {
                let options = CollectiveOptions::default();
                reduce_scatter(team, &self.whole_c, &mut self.c, &mut self.collective, options)?;
            }
        }
        Ok(())
    }

    /// Compares the results with those of plain GEMMs.
    fn check(&mut self, team: &Team) -> anyhow::Result<()> {
        self.run(team, Call::Ours)?;
        self.run(team, Call::Gemm)?;
        let (ours, plain) = (self.c.to_vecs()?, self.whole_c.to_vecs()?);
        for (rank, found) in ours.iter().enumerate() {
            let wanted: Vec<f32> = match self.division {
                LayerDivision::Columns => plain[rank].iter().map(|x| x.to_f32()).collect(),
                LayerDivision::Products => {
                    let first = rank * found.len();
                    let sum = |i: usize| plain.iter().map(|of_rank| of_rank[first + i].to_f32()).sum();
                    (0..found.len()).map(sum).collect()
                }
            };
            let greatest = wanted.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            let error = |(found, wanted): (&bf16, &f32)| (found.to_f32() - wanted).abs();
            let worst = found.iter().zip(&wanted).map(error).fold(0.0_f32, f32::max);
            ensure!(worst <= TOLERANCE * greatest, "{:?}: off by {worst} of {greatest}", self.division);
        }
        Ok(())
    }
}

/// Returns the microseconds of a call.
fn time(team: &Team, args: &Args, call: &mut impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    // The first calls load the kernels and show how many fill a round.
    call()?;
    call()?;
    let starts = record(team)?;
    call()?;
    let once = slowest(&starts, &record(team)?)?;
    let calls = (args.round_ms * 1e3 / once).clamp(3.0, 200.0) as usize;
    let mut times = vec![];
    for _ in 0..args.rounds {
        // While these run, the others are queued.
        for _ in 0..calls.div_ceil(4) {
            call()?;
        }
        let starts = record(team)?;
        for _ in 0..calls {
            call()?;
        }
        times.push(slowest(&starts, &record(team)?)? / calls as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or(f64::NAN))
}

/// Records an event on the stream of each rank.
fn record(team: &Team) -> anyhow::Result<Vec<Event>> {
    (0..team.ranks()).map(|rank| Ok(team.stream(rank)?.record()?)).collect()
}

/// Returns the microseconds between the events of the slowest rank, when all have passed.
fn slowest(starts: &[Event], ends: &[Event]) -> anyhow::Result<f64> {
    let mut slowest = 0.0_f64;
    for (start, end) in starts.iter().zip(ends) {
        slowest = slowest.max(f64::from(start.elapsed_ms(end)?) * 1e3);
    }
    Ok(slowest)
}
