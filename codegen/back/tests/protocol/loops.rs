//! The claim that a recurring state proves all iteration counts, tested with small counts: loops of
//! two threads around rings of barriers. The checker judges each for any number of iterations, and
//! it runs in every order for each of the first numbers.
//!
//! Most of them are wrong, and many only in a late iteration: a counter wraps, a stage has another
//! modulus than its phase, or an iteration leaves something out.

use std::fmt::Write;

use tma_codegen::protocol::Verdict;

use crate::interleavings::{Draw, Program, Step, all_orders};
use crate::verdict;

/// The number of programs.
const PROGRAMS: u64 = 80;
/// The largest number of iterations that is tried.
const MOST_TURNS: u32 = 12;

/// The iterations in which something is left out.
#[derive(Clone, Copy, Debug)]
enum Except {
    Never,
    /// This iteration.
    At(u32),
    /// The last of each group of this many iterations.
    Every(u32),
    /// This and all later iterations.
    From(u32),
    /// This many iterations, the last ones.
    Last(u32),
}

/// The use of a ring in each iteration: the stage is `count % stages`, and the parity of a wait is
/// `count / turns_of_phase + flip`.
#[derive(Clone, Copy, Debug)]
struct Use {
    stages: u32,
    turns_of_phase: u32,
    flip: u32,
    except: Except,
}

/// A thread that waits at one ring and arrives at the other in each iteration.
#[derive(Clone, Copy, Debug)]
struct Role {
    wait: Use,
    arrive: Use,
    /// The number of iterations after which its count starts again.
    wraps: Option<u32>,
}

/// A producer and a consumer, and the stages of both rings.
#[derive(Clone, Debug)]
struct Loops {
    stages: u32,
    roles: [Role; 2],
}

impl Except {
    fn holds(self, turn: u32, turns: u32) -> bool {
        match self {
            Self::Never => false,
            Self::At(at) => turn == at,
            Self::Every(every) => turn % every == every - 1,
            Self::From(from) => turn >= from,
            Self::Last(last) => turn + last >= turns,
        }
    }

    fn condition(self) -> Option<String> {
        match self {
            Self::Never => None,
            Self::At(at) => Some(format!("k != {at}")),
            Self::Every(every) => Some(format!("k % {every} != {}", every - 1)),
            Self::From(from) => Some(format!("k < {from}")),
            Self::Last(last) => Some(format!("next_{last} < turns")),
        }
    }
}

/// Generates a ring that is used correctly, mostly with something changed.
fn loops(seed: u64) -> Loops {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let stages = 1 + draw.below(4);
    let of = |flip| Use { stages, turns_of_phase: stages, flip, except: Except::Never };
    let mut roles = [1, 0].map(|flip| Role { wait: of(flip), arrive: of(0), wraps: None });
    for _ in 0..draw.below(3) {
        let role = &mut roles[draw.below(2) as usize];
        let (some, late) = (1 + draw.below(4), 1 + draw.below(MOST_TURNS - 2));
        let at = if draw.below(2) == 0 { &mut role.wait } else { &mut role.arrive };
        match draw.below(8) {
            0 => at.stages = some.min(stages),
            1 => at.turns_of_phase = some,
            2 => at.flip ^= 1,
            3 => at.except = Except::At(late),
            4 => at.except = Except::Every(late + 1),
            5 => at.except = Except::From(late),
            6 => at.except = Except::Last(some),
            _ => role.wraps = Some(late + 1),
        }
    }
    Loops { stages, roles }
}

/// Returns the loops as a kernel, for any number of iterations.
fn source(loops: &Loops) -> String {
    let stages = loops.stages;
    let mut text = format!(
        "#[tma_kernel(threads = 64)]\nfn k(turns: u32) {{\n    \
         let full: Stages<Barrier, {stages}> = shared();\n    \
         let empty: Stages<Barrier, {stages}> = shared();\n    \
         if thread_idx().x == 0 {{\n        \
         for i in 0..{stages}u32 {{\n            full[i].init(1);\n            empty[i].init(1);\n        }}\n    \
         }}\n    sync_threads();\n"
    );
    for (number, role) in loops.roles.iter().enumerate() {
        let [of_wait, of_arrive] = if number == 0 { ["empty", "full"] } else { ["full", "empty"] };
        let count = if role.wraps.is_some() { "c" } else { "k" };
        _ = writeln!(text, "    if thread_idx().x == {} {{\n        let mut c = 0;", 32 * number);
        text += "        for k in 0..turns {\n";
        let Use { stages, turns_of_phase, flip, except } = role.wait;
        let wait = format!("{of_wait}[{count} % {stages}].wait(({count} / {turns_of_phase} + {flip}) & 1);");
        let arrive = format!("{of_arrive}[{count} % {}].arrive();", role.arrive.stages);
        for (step, except) in [(wait, except), (arrive, role.arrive.except)] {
            if let Except::Last(last) = except {
                _ = writeln!(text, "            let next_{last} = k + {last};");
            }
            _ = match except.condition() {
                Some(condition) => writeln!(text, "            if {condition} {{ {step} }}"),
                None => writeln!(text, "            {step}"),
            };
        }
        text += "            c += 1;\n";
        if let Some(wraps) = role.wraps {
            _ = writeln!(text, "            if c == {wraps} {{ c = 0; }}");
        }
        text += "        }\n    }\n";
    }
    text + "}\n"
}

/// Returns the steps of this many iterations.
fn unrolled(loops: &Loops, turns: u32) -> Program {
    let stages = loops.stages;
    let steps = |(number, role): (usize, &Role)| {
        let [of_wait, of_arrive] = if number == 0 { [stages, 0] } else { [0, stages] };
        let mut steps = vec![];
        for turn in 0..turns {
            let count = role.wraps.map_or(turn, |wraps| turn % wraps);
            let Use { stages, turns_of_phase, flip, except } = role.wait;
            if !except.holds(turn, turns) {
                let parity = (count / turns_of_phase + flip) & 1;
                steps.push(Step::Wait((of_wait + count % stages) as usize, parity));
            }
            if !role.arrive.except.holds(turn, turns) {
                steps.push(Step::Arrive((of_arrive + count % role.arrive.stages) as usize));
            }
        }
        steps
    };
    Program {
        roles: loops.roles.iter().enumerate().map(steps).collect(),
        counts: vec![1; 2 * stages as usize],
    }
}

#[test]
fn what_is_proved_is_right_for_every_count() {
    let programs =
        std::env::var("TMA_PROGRAMS").ok().and_then(|number| number.parse().ok()).unwrap_or(PROGRAMS);
    let (mut proved, mut right, mut late) = (0, 0, 0);
    for seed in 1..=programs {
        let loops = loops(seed);
        let wrong = (0..=MOST_TURNS).find(|&turns| {
            let orders = all_orders(&unrolled(&loops, turns));
            orders.stuck || orders.ends.len() != 1
        });
        let text = source(&loops);
        let is_proved = matches!(verdict(&text), Verdict::Proved);
        assert!(!is_proved || wrong.is_none(), "seed {seed} is wrong in {wrong:?} turns:\n{text}");
        proved += u64::from(is_proved);
        right += u64::from(wrong.is_none());
        late += u64::from(wrong.is_some_and(|turns| turns > 6));
    }
    println!("{proved} of {programs} proved, {right} right, {late} wrong in a late turn alone");
    assert!(proved * 5 > programs && proved * 10 > right * 7, "{proved} of {right} right ones are proved");
    assert!(late * 10 > programs, "{late} are wrong in a late turn alone");
}

/// Returns a ring of four that one thread fills and a warp reads. `turn` is the body of the
/// thread's iteration `k`, and `before` comes before the loop.
fn ring(before: &str, turn: &str) -> String {
    format!(
        "#[tma_kernel(threads = 64)]
fn k(a: TensorMap<Tile<f32, Shape2<32, 32>>>, steps: u32, out: Global<f32>) {{
    let tile: Stages<Tile<f32, Shape2<32, 32>>, 4> = shared();
    let full: Stages<Barrier, 4> = shared();
    let empty: Stages<Barrier, 4> = shared();
    if thread_idx().x == 0 {{
        for i in 0..4u32 {{ full[i].init(1); empty[i].init(32); }}
        fence_barrier_init();
    }}
    sync_threads();
    if thread_idx().x == 32 {{
        {before}
        for k in 0..steps {{
            {turn}
        }}
    }} else if thread_idx().x < 32 {{
        let mut sum = 0.0;
        for k in 0..steps {{
            full[k % 4].wait(k / 4 & 1);
            sum += tile[k % 4].get([0, lane_idx()]);
            fence_proxy_async();
            empty[k % 4].arrive();
        }}
        out.set(thread_idx().x, sum);
    }}
}}
"
    )
}

const FILL: &str = "full[s].arrive_expect_tx(tile[s].bytes()); a.load(tile[s], [0, k * 32], full[s]);";

#[test]
fn rings_are_proved_however_their_phases_are_counted() {
    let right = [
        ("", format!("let s = k % 4; empty[s].wait((k / 4 + 1) & 1); {FILL}")),
        ("", format!("let s = k & 3; empty[s].wait(((k >> 2) & 1) ^ 1); {FILL}")),
        ("let mut n = 7;", format!("n += 1; let s = n % 4; empty[s].wait((n / 4 - 1) & 1); {FILL}")),
        (
            "let mut s = 0; let mut p = 1;",
            format!("empty[s].wait(p); {FILL} s += 1; if s == 4 {{ s = 0; p ^= 1; }}"),
        ),
        ("let mut n = 0;", format!("let s = n % 4; empty[s].wait((n / 4 + 1) & 1); {FILL} n = (n + 1) % 8;")),
    ];
    for (before, turn) in right {
        let text = ring(before, &turn);
        let verdict = verdict(&text);
        assert!(matches!(verdict, Verdict::Proved), "{verdict:?}\n{text}");
    }
}

#[test]
fn faults_of_late_iterations_are_not_proved_away() {
    let wait = "empty[s].wait((k / 4 + 1) & 1);";
    let wrong = [
        // A counter that wraps at another number than its ring.
        (
            "let mut n = 0;",
            format!("let s = n % 4; empty[s].wait((n / 4 + 1) & 1); {FILL} n += 1; if n == 7 {{ n = 0; }}"),
        ),
        (
            "let mut n = 0;",
            format!("let s = n % 4; empty[s].wait((n / 4 + 1) & 1); {FILL} n = (n + 1) % 12;"),
        ),
        // A parity that flips every third time.
        (
            "let mut p = 1; let mut n = 0;",
            format!("let s = k % 4; empty[s].wait(p); {FILL} n += 1; if n == 3 {{ n = 0; p ^= 1; }}"),
        ),
        // Another modulus than that of the phase.
        ("", format!("let s = k % 3; {wait} {FILL}")),
        ("", format!("let s = k % 4; empty[s].wait((k / 3 + 1) & 1); {FILL}")),
        // A single, late iteration.
        ("", format!("let s = k % 4; if k != 9 {{ {wait} }} {FILL}")),
        ("", format!("let s = k % 4; if k != 1000 {{ {wait} }} {FILL}")),
        ("", format!("let s = k % 4; {wait} if k == 9 {{ full[s].arrive(); }} {FILL}")),
        ("", format!("let s = k % 4; {wait} {FILL} if k * k == 400 {{ full[s].arrive(); }}")),
        ("", format!("let s = k % 4; if k < 77 {{ {wait} }} {FILL}")),
        ("", format!("let s = k % 4; if k % 29 != 28 {{ {wait} }} {FILL}")),
        ("let mut n = 0;", format!("let s = k % 4; if n < 40 {{ {wait} }} {FILL} n += 1;")),
        ("let mut n = 100;", format!("let s = k % 4; if n > 3 {{ {wait} }} {FILL} n -= 1;")),
        // Only the last iteration.
        ("", format!("let s = k % 4; if k + 1 != steps {{ {wait} }} {FILL}")),
        ("", format!("let s = k % 4; {wait} {FILL} if k + 1 == steps && k > 20 {{ full[s].arrive(); }}")),
    ];
    for (before, turn) in wrong {
        let text = ring(before, &turn);
        assert!(!matches!(verdict(&text), Verdict::Proved), "{text}");
    }
}
