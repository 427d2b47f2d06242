//! The claim that one schedule decides, tested with all schedules: the checker judges small random
//! programs of arrivals and waits, and they run in every order.
//!
//! Programs that are proved end in every order, with the same phases. Programs that are said to
//! wait forever do so in some order.

use std::collections::HashSet;
use std::fmt::Write;

use tma_codegen::diag::Code;
use tma_codegen::protocol::Verdict;

use crate::verdict;

/// The number of programs.
const PROGRAMS: u64 = 1500;

/// The step of a role at a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Arrive(usize),
    /// Waits for the phase of this parity.
    Wait(usize, u32),
}

/// Roles, each of which is a thread, and the counts of barriers.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) roles: Vec<Vec<Step>>,
    pub(crate) counts: Vec<u32>,
}

/// A source of pseudo-random numbers.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % end
    }
}

/// Generates a program: mostly one in which roles alternate, with a few steps changed.
fn program(seed: u64) -> Program {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (roles, barriers) = (2 + draw.below(2) as usize, 1 + draw.below(3) as usize);
    let counts: Vec<u32> = (0..barriers).map(|_| 1 + draw.below(roles as u32)).collect();
    let mut all = vec![vec![]; roles];
    for turn in 0..1 + draw.below(3) {
        for (barrier, &count) in counts.iter().enumerate() {
            let first = draw.below(roles as u32) as usize;
            for (role, steps) in all.iter_mut().enumerate() {
                let arrives = (role + roles - first) % roles < count as usize;
                if arrives {
                    steps.push(Step::Arrive(barrier));
                }
                if draw.below(4) > 0 {
                    steps.push(Step::Wait(barrier, turn % 2));
                }
            }
        }
    }
    // Some programs stay right.
    for _ in 0..draw.below(3) {
        let role = draw.below(roles as u32) as usize;
        if all[role].is_empty() {
            continue;
        }
        let at = draw.below(all[role].len() as u32) as usize;
        match (draw.below(3), all[role][at]) {
            (0, _) => drop(all[role].remove(at)),
            (1, Step::Wait(barrier, parity)) => all[role][at] = Step::Wait(barrier, 1 - parity),
            (_, step) => all[role].insert(at, step),
        }
    }
    Program { roles: all, counts }
}

/// Returns the program as a kernel.
fn source(program: &Program) -> String {
    let mut text = format!("#[tma_kernel(threads = {})]\nfn k() {{\n", program.roles.len() * 32);
    for barrier in 0..program.counts.len() {
        _ = writeln!(text, "    let b{barrier}: Barrier = shared();");
    }
    text += "    if thread_idx().x == 0 {\n";
    for (barrier, count) in program.counts.iter().enumerate() {
        _ = writeln!(text, "        b{barrier}.init({count});");
    }
    text += "    }\n    sync_threads();\n";
    for (role, steps) in program.roles.iter().enumerate() {
        _ = writeln!(text, "    if thread_idx().x == {} {{", role * 32);
        for step in steps {
            _ = match step {
                Step::Arrive(barrier) => writeln!(text, "        b{barrier}.arrive();"),
                Step::Wait(barrier, parity) => writeln!(text, "        b{barrier}.wait({parity});"),
            };
        }
        text += "    }\n";
    }
    text + "}\n"
}

/// The results of all orders.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// The phases of the barriers at the ends.
    pub(crate) ends: HashSet<Vec<u32>>,
    pub(crate) stuck: bool,
}

/// The position of each role, and the phase and pending count of each barrier.
type State = (Vec<usize>, Vec<(u32, u32)>);

/// Runs a program in every order.
pub(crate) fn all_orders(program: &Program) -> Orders {
    let start: State =
        (vec![0; program.roles.len()], program.counts.iter().map(|&count| (0, count)).collect());
    let (mut seen, mut open, mut orders) = (HashSet::from([start.clone()]), vec![start], Orders::default());
    while let Some((at, barriers)) = open.pop() {
        let (mut ended, mut moved) = (true, false);
        for (role, steps) in program.roles.iter().enumerate() {
            let Some(step) = steps.get(at[role]) else { continue };
            ended = false;
            let mut next = (at.clone(), barriers.clone());
            next.0[role] += 1;
            match *step {
                Step::Wait(barrier, parity) if barriers[barrier].0 & 1 == parity => continue,
                Step::Wait(..) => {}
                Step::Arrive(barrier) => {
                    let (phase, pending) = &mut next.1[barrier];
                    *pending -= 1;
                    if *pending == 0 {
                        (*phase, *pending) = (*phase + 1, program.counts[barrier]);
                    }
                }
            }
            moved = true;
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
        if ended {
            orders.ends.insert(barriers.iter().map(|(phase, _)| *phase).collect());
        } else if !moved {
            orders.stuck = true;
        }
    }
    orders
}

#[test]
fn one_schedule_decides() {
    let (mut proved, mut stuck) = (0, 0);
    let programs =
        std::env::var("TMA_PROGRAMS").ok().and_then(|number| number.parse().ok()).unwrap_or(PROGRAMS);
    for seed in 1..=programs {
        let program = program(seed);
        let text = source(&program);
        let orders = all_orders(&program);
        match verdict(&text) {
            Verdict::Proved => {
                proved += 1;
                assert!(!orders.stuck && orders.ends.len() == 1, "seed {seed}: {orders:?}\n{text}");
            }
            Verdict::Broken(diagnostic) if diagnostic.code() == Code::Deadlock => {
                stuck += 1;
                assert!(orders.stuck, "seed {seed}: {}\n{text}", diagnostic.text());
            }
            Verdict::Broken(_) | Verdict::NotDecided(_) | Verdict::CheckedUpTo(_) => {}
        }
    }
    println!("{proved} of {programs} proved, {stuck} wait forever");
    assert!(
        proved * 10 > programs && stuck * 20 > programs,
        "{proved} proved and {stuck} stuck of {programs}"
    );
}
