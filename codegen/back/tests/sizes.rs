//! Small kernels that try to take long: the work for a few lines is bounded.
//!
//! Kernels of less than a hundred lines are generated, with as many threads, blocks, barriers,
//! unrolled iterations and instances as the language allows. Each is judged as by `cargo tma check`
//! and, with LLVM, compiled as by a build script, within a limit of time and memory.
//! `TMA_PROGRAMS=200` generates more and larger ones, with the limits that the book names.

use std::env;
use std::fmt::Write as _;
use std::fs;

use tma_codegen::protocol::{Budget, UndecidedReason, Verdict, judge};

/// A source of random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// The number and size of the kernels, and their limits.
struct Limits {
    programs: u64,
    budget: Budget,
    /// The largest number of iterations of an unrolled loop.
    turns: u64,
    seconds: f64,
    kilobytes: u64,
}

fn limits() -> Limits {
    match env::var("TMA_PROGRAMS").ok().and_then(|count| count.parse().ok()) {
        Some(programs) => {
            Limits { programs, budget: Budget::REPORT, turns: 1024, seconds: 20.0, kilobytes: 1 << 20 }
        }
        None => {
            let budget = Budget(4 * Budget::MACRO.0);
            Limits { programs: 12, budget, turns: 64, seconds: 20.0, kilobytes: 512 << 10 }
        }
    }
}

/// Generates a kernel whose threads interact a lot.
fn meeting(random: &mut Random) -> String {
    let threads = random.pick(&[64, 256, 1024, 1024]);
    let blocks = random.pick(&[1, 2, 8, 16]);
    let stages = random.pick(&[threads, threads / 2, 32]);
    let cluster =
        if blocks > 1 { format!(", cluster = {blocks}, nonportable_cluster") } else { String::new() };
    let (sync, fence) = if blocks > 1 { ("sync_cluster();", "") } else { ("sync_threads();", "") };
    let mut body = String::new();
    for _ in 0..random.below(6) {
        let n = random.below(9);
        body += &match random.below(7) {
            0 if blocks > 1 => format!("for rank in 0..{blocks} {{ remote(me, rank).arrive(); }}\n"),
            1 => format!("for i in 0..n {{ if x.get(i) > {n} {{ me.arrive(); }} }}\n"),
            2 => format!("if x.get({n}) > 3 {{ me.arrive(); }} else {{ me.wait(0); }}\n"),
            3 => format!("a.set((t * {n} + n) % 1024, t); {sync}\n"),
            4 => format!(
                "let mut s{n} = t; for i in 0..1000u32 {{ s{n} = s{n} * 3 + i; if s{n} == n {{ me.arrive(); }} }}\n"
            ),
            5 => format!("for i in unroll(0..{}) {{ if x.get(i) == n {{ {sync} }} }}\n", 8 << n.min(6)),
            _ => "me.arrive(); me.wait(0);\n".to_owned(),
        };
    }
    format!(
        "#[tma_kernel(threads = {threads}{cluster})]\n\
         pub fn k(x: Global<u32>, n: u32) {{\n\
         let bars: Stages<Barrier, {stages}> = shared();\n\
         let a: SharedArray<u32, 1024> = shared();\n\
         let t = thread_idx().x;\n\
         let me = bars[t % {stages}];\n\
         if t < {stages} {{ me.init({}); fence_barrier_init(); }}\n{fence}{sync}\n\
         a.set(t, t);\n{body}{sync}\nx.set(t, a.get(0));\n}}\n",
        random.pick(&[1, blocks, threads / stages]),
    )
}

/// Generates a kernel of much code, all of it checked.
fn unrolled(random: &mut Random, turns: u64) -> String {
    let [outer, inner] = [random.pick(&[turns, turns / 2, 7]), random.pick(&[8, 3, 1])];
    let mut body = String::new();
    for _ in 0..=random.below(4) {
        _ = match random.below(6) {
            0 => writeln!(body, "sum += src.get(sum * n + i) / (n + j * i);"),
            1 => writeln!(body, "all[j as usize] += src.get(n + i * 8 + j) / (n + i);"),
            2 => writeln!(body, "dst.set(i * j, src.get(i * 8 + j) / src.get(j + n));"),
            3 => writeln!(body, "a.set((i * n) % 64, a.get((i + j * n) % 64) % (sum | 1));"),
            4 => writeln!(body, "if sum > n * i {{ sum -= j; }} else {{ sum = sum * 31 + src.get(i); }}"),
            _ => writeln!(body, "sum ^= sum << (i % 7); sum += (sum >> 3) * n;"),
        };
    }
    let instances = random.pick(&[1_u64, 1, 2, 4]);
    let (attribute, generic) = match instances {
        1 => (String::new(), ""),
        count => {
            let list: Vec<_> = (0..count).map(|value| value.to_string()).collect();
            (format!(", instances(V in [{}])", list.join(", ")), "<const V: u32>")
        }
    };
    let first = if instances > 1 { "V" } else { "0" };
    format!(
        "#[tma_kernel(threads = 32, checked{attribute})]\n\
         pub fn k{generic}(src: Global<u32>, dst: Global<u32>, n: u32) {{\n\
         let a: SharedArray<u32, 64> = shared();\n\
         a.set(thread_idx().x, n);\na.set(thread_idx().x + 32, n);\nsync_threads();\n\
         let mut all = [0_u32; 8];\nlet mut sum = thread_idx().x + {first};\n\
         for i in unroll(0..{outer}) {{\nfor j in unroll(0..{inner}) {{\n{body}}}\n}}\n\
         dst.set(0, sum + all[0]);\n}}\n"
    )
}

/// Returns the processor time of this thread in seconds, if the system reports it.
fn seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    // Source: proc_pid_stat(5); Linux counts in hundredths.
    (ticks(11) + ticks(12)) / 100.0
}

/// Returns the peak memory of the process in kilobytes, if the system reports it.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Judges and compiles a source as the tools do. Returns whether it was accepted.
fn followed(source: &str, budget: Budget) -> bool {
    let Ok(accepted) = tma_codegen::check("src/kernel.rs", source) else { return false };
    for checked in accepted.kernels.iter().take(2) {
        judge(&checked.kernel, budget);
    }
    #[cfg(feature = "llvm")]
    if let Err(failure) = tma_codegen::compile("src/kernel.rs", source, tma_codegen::Target::default()) {
        panic!("{failure}\n{source}");
    }
    true
}

#[test]
fn small_kernels_take_little_time_and_memory() {
    let Limits { programs, budget, turns, seconds: most, kilobytes } = limits();
    let (mut random, mut accepted) = (Random(7), 0);
    for number in 0..programs {
        let source = if number % 2 == 0 { meeting(&mut random) } else { unrolled(&mut random, turns) };
        assert!(source.lines().count() < 100, "{source}");
        let before = seconds();
        accepted += u64::from(followed(&source, budget));
        let took = seconds() - before;
        assert!(took < most, "{took:.1} s for\n{source}");
        assert!(peak() < kilobytes, "{} kB for\n{source}", peak());
    }
    assert!(accepted * 3 > programs, "{accepted} of {programs} kernels are accepted: the others say nothing");
}

/// 16384 groups of threads, each of which interacts with all others: the state is bounded, and the
/// verdict has the reason.
#[test]
fn a_state_that_is_too_large_is_not_decided() {
    let source = "
        #[tma_kernel(threads = 1024, cluster = 16, nonportable_cluster)]
        pub fn many(n: u32) {
            let bars: Stages<Barrier, 1024> = shared();
            let me = bars[thread_idx().x];
            me.init(16);
            fence_barrier_init();
            sync_cluster();
            for rank in 0..16 {
                remote(me, rank).arrive();
            }
            me.wait(0);
            sync_cluster();
        }";
    let accepted = tma_codegen::check("src/kernel.rs", source).unwrap_or_else(|failure| panic!("{failure}"));
    let before = seconds();
    let verdict = judge(&accepted.kernels[0].kernel, Budget::MACRO).verdict;
    assert!(seconds() - before < 10.0, "{:.1} s", seconds() - before);
    let Verdict::NotDecided(undecided) = verdict else { panic!("{verdict:?}") };
    assert!(undecided.iter().any(|case| case.reason == UndecidedReason::Size), "{undecided:?}");
}

/// Twice as much code takes about twice as long. It once took four times as long.
#[cfg(feature = "llvm")]
#[test]
fn the_time_of_large_kernels_grows_with_their_size() {
    let took = |turns: u32| {
        let source = format!(
            "#[tma_kernel(threads = 32, checked)]
            pub fn k(src: Global<u32>, dst: Global<u32>, n: u32) {{
                let mut all = [0_u32; 8];
                for i in unroll(0..{turns}) {{
                    for j in unroll(0..8) {{
                        all[j as usize] += src.get(n + i * 8 + j) / (n + i);
                    }}
                }}
                for j in unroll(0..8) {{ dst.set(j, all[j as usize]); }}
            }}"
        );
        let before = seconds();
        let compiled = tma_codegen::compile("src/kernel.rs", &source, tma_codegen::Target::default());
        compiled.unwrap_or_else(|failure| panic!("{failure}"));
        seconds() - before
    };
    let [half, whole] = [250, 500].map(took);
    assert!(whole < 3.0 * half + 1.0 && whole < 15.0, "{half:.1} s, and of twice as much {whole:.1} s");
}
