//! Small random kernels with all kinds of synchronisation: those that the checker proves run
//! without a finding.
//!
//! Most of them are wrong, and only a few of the right ones are proved. The simulator runs each of
//! these in many orders of threads, and must find nothing: a finding would be a hole in the proof.
//! `TMA_PROGRAMS=100000` draws this many; `TMA_PROGRAM=7` prints the seventh, the verdict, and the
//! findings of the simulator.
#![cfg(feature = "llvm")]

use std::fmt::Write;

use tma_codegen::diag::{Counterexample, LaunchInput};
use tma_codegen::ir::Axis;
use tma_codegen::protocol::{Budget, Verdict, judge};
use tma_tests::mutation::judgement::lines_of;
use tma_tests::replay::Replay;
use tma_tests::rng::Rng;

/// The number of kernels for each commit.
const PROGRAMS: u64 = 4_000;
/// The number of orders of threads in which each proved kernel runs.
const SEEDS: u64 = 16;

/// A kernel under construction.
struct Writer {
    rng: Rng,
    warps: usize,
    text: String,
}

impl Writer {
    fn kernel(seed: u64) -> String {
        let rng = Rng::new(seed);
        let warps = 2 + rng.below(3);
        let mut writer = Self { rng, warps, text: String::new() };
        writer.write();
        writer.text
    }

    fn write(&mut self) {
        let threads = self.warps * 32;
        let counts = [1, 2, self.warps, 32, 64, threads];
        let [first, second] = [(); 2].map(|()| *self.rng.one_of(&counts));
        let global = *self.rng.one_of(&["", "fence_proxy_async_global();"]);
        _ = write!(
            self.text,
            "#[tma_kernel(threads = {threads})]
fn k(mem: Global<u32>, out: Global<u32>, n: u32) {{
    let row: SharedArray<u32, 128> = shared();
    let b0: Barrier = shared();
    let b1: Barrier = shared();
    let mut r = lane_idx();
    if thread_idx().x == 0 {{
        b0.init({first});
        b1.init({second});
        fence_barrier_init();
    }}
    row.set(thread_idx().x, r);
    {global}
    sync_threads();
"
        );
        for _ in 0..2 + self.rng.below(7) {
            self.item(0);
        }
        self.text += "    out.set(block_idx().x * 128 + thread_idx().x, r);\n}\n";
    }

    /// Writes some statements, often under a condition or in a loop.
    fn item(&mut self, depth: usize) {
        let guard = match self.rng.below(14) {
            0 => format!("if warp_idx() == {} {{", self.rng.below(self.warps)),
            1 => "if warp_idx() < 2 {".to_owned(),
            2 => "if lane_idx() < 16 {".to_owned(),
            3 => format!("if lane_idx() == {} {{", *self.rng.one_of(&[0, 5, 19])),
            4 => format!("if thread_idx().x == {} {{", *self.rng.one_of(&[0, 32, 40])),
            5 => "if elect_one() {".to_owned(),
            6 => "if n > 2 {".to_owned(),
            7 => format!("for turn in 0..{} {{", *self.rng.one_of(&["n", "2"])),
            _ => String::new(),
        };
        if guard.is_empty() || depth == 2 {
            return self.statement();
        }
        _ = writeln!(self.text, "    {guard}");
        for _ in 0..1 + self.rng.below(2) {
            self.item(depth + 1);
        }
        self.text += "    }\n";
    }

    fn statement(&mut self) {
        let index = *self.rng.one_of(&[
            "thread_idx().x",
            "lane_idx()",
            "127 - thread_idx().x",
            "lane_idx() * 2",
            "warp_idx()",
            "lane_idx() + 32",
        ]);
        let barrier = *self.rng.one_of(&["b0", "b1"]);
        let number = self.rng.below(2);
        let of_warps = 32 * (1 + self.rng.below(self.warps));
        let lane = *self.rng.one_of(&["3", "r", "19"]);
        let text = match self.rng.below(34) {
            0..3 => "sync_threads();".to_owned(),
            3..5 => "sync_warp();".to_owned(),
            5..8 => format!("named_barrier_sync({}, {of_warps});", number + 1),
            8 => format!("named_barrier_arrive({}, {of_warps});", number + 1),
            9 => "r = shuffle_xor(r, 1);".to_owned(),
            10 => format!("r = shuffle_idx(r, {lane});"),
            11 => "if vote_any(r > 3) { r += 1; }".to_owned(),
            12 => "r = warp_reduce_max(r);".to_owned(),
            13 => "r = ballot(r > 2);".to_owned(),
            14..17 => format!("{barrier}.arrive();"),
            17..20 => format!("{barrier}.wait({number});"),
            20 => format!("{barrier}.arrive_expect_tx(128); mem.bulk_load(row, 0, 32, 0, {barrier});"),
            21 => format!("{barrier}.expect_tx(128); mem.bulk_load(row, 32, 32, 32, {barrier});"),
            22 => format!("{barrier}.invalidate();"),
            23..26 => format!("row.set({index}, r);"),
            26..29 => format!("r += row.get({index});"),
            29 => format!("mem.set({index}, r);"),
            30 => format!("r += mem.get({index});"),
            31 => {
                let read = *self.rng.one_of(&["", "_read"]);
                format!(
                    "fence_proxy_async(); mem.bulk_store(0, row, 0, 32); bulk_commit_group(); \
                     bulk_wait_group{read}::<0>();"
                )
            }
            32 => "fence_proxy_async_global();".to_owned(),
            _ => "return;".to_owned(),
        };
        _ = writeln!(self.text, "    {text}");
    }
}

/// Returns a launch with this `n`.
fn launch(n: i128) -> Counterexample {
    let numbers = vec![(LaunchInput::Param("n".to_owned()), n), (LaunchInput::GridDim(Axis::X), 2)];
    Counterexample { numbers, cluster: [1; 3] }
}

/// Returns the simulator's first finding in a kernel, under any of some seeds.
fn found(source: &str, seeds: u64) -> anyhow::Result<String> {
    let mut all = String::new();
    for n in [0, 1, 3] {
        let accepted =
            tma_codegen::check("kernel.rs", source).map_err(|failure| anyhow::anyhow!("{failure}"))?;
        for checked in accepted.kernels {
            let replay = Replay::new("kernel.rs", checked.kernel, &launch(n))?;
            for seed in 0..seeds {
                match replay.run(seed) {
                    Ok(findings) => {
                        for finding in &findings {
                            let lines = lines_of(finding);
                            _ = writeln!(all, "n = {n}, seed {seed}: {} in lines {lines:?}", finding.kind);
                        }
                    }
                    Err(error) => _ = writeln!(all, "n = {n}, seed {seed}: {error}"),
                }
                if !all.is_empty() {
                    return Ok(all);
                }
            }
        }
    }
    Ok(all)
}

#[test]
fn what_is_proved_runs_without_a_finding() -> anyhow::Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = number("TMA_PROGRAM") {
        let source = Writer::kernel(seed);
        println!("{source}");
        let accepted =
            tma_codegen::check("kernel.rs", &source).map_err(|failure| anyhow::anyhow!("{failure}"))?;
        for checked in &accepted.kernels {
            println!("{:?}", judge(&checked.kernel, Budget::REPORT).verdict);
        }
        println!("{}", found(&source, SEEDS)?);
        return Ok(());
    }
    let (mut tally, mut wrong) = ([0; 4], vec![]);
    for seed in 0..number("TMA_PROGRAMS").unwrap_or(PROGRAMS) {
        let source = Writer::kernel(seed);
        // Some are refused before their protocol is judged.
        let Ok(accepted) = tma_codegen::check("kernel.rs", &source) else { continue };
        for checked in accepted.kernels {
            let is_proved = match judge(&checked.kernel, Budget::MACRO).verdict {
                Verdict::Broken(_) => (tally[0] += 1, false).1,
                Verdict::NotDecided(_) => (tally[1] += 1, false).1,
                Verdict::CheckedUpTo(_) => (tally[2] += 1, false).1,
                Verdict::Proved => (tally[3] += 1, true).1,
            };
            if is_proved {
                let found = found(&source, SEEDS)?;
                if !found.is_empty() {
                    wrong.push(format!("program {seed}:\n{found}{source}"));
                }
            }
        }
    }
    let [refused, undecided, checked, proved] = tally;
    println!("{refused} refused, {undecided} not decided, {checked} checked, {proved} proved");
    assert!(wrong.is_empty(), "{} of {proved}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(proved > 50, "{proved} are proved");
    Ok(())
}
