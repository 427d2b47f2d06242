//! Programs as kernels in the kernel language.

use std::fmt::Write;

use tma_model::sync::{Memory, MemoryScope, Order};

use crate::executions::NOT_READ;
use crate::program::{Access, Action, Barrier, Operation, Program, Step, Update};

const VARIABLES: [&str; 3] = ["x", "y", "z"];

const fn order_name(order: Order) -> &'static str {
    match order {
        Order::Weak => "Weak",
        Order::Relaxed => "Relaxed",
        Order::Acquire => "Acquire",
        Order::Release => "Release",
        Order::AcqRel => "AcqRel",
    }
}

const fn scope_name(scope: MemoryScope) -> &'static str {
    match scope {
        MemoryScope::Block => "Block",
        MemoryScope::Cluster => "Cluster",
        MemoryScope::Device => "Device",
        MemoryScope::System => "System",
    }
}

/// Returns the operation of a step; the value that it reads is stored in the step's register.
fn operation(step: usize, operation: Operation) -> String {
    let Access { variable, action, order, scope } = match operation {
        Operation::Access(access) => access,
        Operation::Fence => return "fence();".to_owned(),
    };
    let place = VARIABLES[variable];
    let manner = format!("Order::{}, Scope::{}", order_name(order), scope_name(scope));
    match action {
        Action::Load if !order.is_strong() => format!("r{step} = {place}.get(0);"),
        Action::Store(value) if !order.is_strong() => format!("{place}.set(0, {value});"),
        Action::Load => format!("r{step} = {place}.load(0, {manner});"),
        Action::Await(value) => {
            format!("while {place}.load(0, {manner}) != {value} {{}} r{step} = {value};")
        }
        Action::Store(value) => format!("{place}.store(0, {value}, {manner});"),
        Action::Update(Update::Add) => format!("r{step} = {place}.fetch_add(0, 1, {manner});"),
        Action::Update(Update::Swap(new)) => format!("r{step} = {place}.swap(0, {new}, {manner});"),
        Action::Update(Update::CompareExchange { current, new }) => {
            format!("r{step} = {place}.compare_exchange(0, {current}, {new}, {manner});")
        }
    }
}

/// Returns a barrier under a condition that only its participants satisfy.
fn barrier(program: &Program, barrier: Barrier) -> String {
    match barrier {
        // The other blocks of the grid have no steps.
        Barrier::Threads { .. } if program.places.iter().all(|place| place.block == 0) => {
            "sync_threads();".to_owned()
        }
        Barrier::Threads { block } => format!("if block_idx().x == {block} {{ sync_threads(); }}"),
        Barrier::Named { block, warps: [one, other] } => {
            // Each pair of warps has its own number.
            let number = 1 + one * 4 + other;
            format!(
                "if block_idx().x == {block} && (warp_idx() == {one} || warp_idx() == {other}) {{ \
                 named_barrier_sync({number}, 64); }}"
            )
        }
        Barrier::Warp { block, warp } => {
            format!("if block_idx().x == {block} && warp_idx() == {warp} {{ sync_warp(); }}")
        }
        Barrier::Cluster => {
            format!("if block_idx().x < {} {{ sync_cluster(); }}", program.cluster.unwrap_or(1))
        }
    }
}

/// Returns the kernel of a program. Its parameters are the variables in global memory, and `out`
/// for the values of the reads, one element each.
pub(crate) fn kernel(program: &Program) -> String {
    let mut text = String::from("#[tma_kernel(threads = ");
    _ = write!(text, "{}", program.warps() * 32);
    if let Some(blocks) = program.cluster {
        _ = write!(text, ", cluster = {blocks}");
    }
    text += ", protocol = trusted(\"judged on its own\"))]\nfn k(";
    let named = || VARIABLES.iter().zip(&program.variables);
    for (name, _) in named().filter(|(_, variable)| variable.memory == Memory::Global) {
        _ = write!(text, "{name}: Global<u32>, ");
    }
    text += "out: Global<u32>) {\n";
    let shared: Vec<_> =
        named().filter(|(_, variable)| variable.memory == Memory::Shared).map(|(name, _)| name).collect();
    for name in &shared {
        _ = writeln!(text, "    let {name}: SharedArray<u32, 1> = shared();");
    }
    for step in program.reads() {
        _ = writeln!(text, "    let mut r{step} = {NOT_READ}u32;");
    }
    if !shared.is_empty() {
        text += "    if thread_idx().x == 0 {\n";
        for name in &shared {
            _ = writeln!(text, "        {name}.set(0, 0);");
        }
        text += "    }\n    sync_threads();\n";
    }
    steps(program, &mut text);
    text += "}\n";
    text
}

fn steps(program: &Program, text: &mut String) {
    let mut current = None;
    let mut turn_to = |text: &mut String, next: Option<usize>| {
        if current == next {
            return;
        }
        if current.is_some() {
            *text += "    }\n";
        }
        if let Some(thread) = next {
            let place = program.places[thread];
            let number = place.warp * 32 + place.lane;
            _ = writeln!(text, "    if block_idx().x == {} && thread_idx().x == {number} {{", place.block);
        }
        current = next;
    };
    for (index, step) in program.steps.iter().enumerate() {
        match *step {
            Step::Barrier(of) => {
                turn_to(text, None);
                _ = writeln!(text, "    {}", barrier(program, of));
            }
            Step::Of { thread, operation: what, guard } => {
                turn_to(text, Some(thread));
                let what = operation(index, what);
                _ = match guard {
                    Some(guard) => {
                        writeln!(text, "        if r{} == {} {{ {what} }}", guard.step, guard.value)
                    }
                    None => writeln!(text, "        {what}"),
                };
            }
        }
    }
    for (place, step) in program.reads().into_iter().enumerate() {
        let Step::Of { thread, .. } = program.steps[step] else { continue };
        turn_to(text, Some(thread));
        _ = writeln!(text, "        out.set({place}, r{step});");
    }
    turn_to(text, None);
}
