//! The diagnostic of a violation.

use tma_front::check::layout;
use tma_front::diag::Diagnostic;
use tma_front::diag::mistake::{
    Counterexample, Counts, LaunchInput, Protocol, StageRole, Subject, ThreadAct, ThreadSet, ThreadStep,
};
use tma_front::ir::{Kernel, ParamId, Scalar, SharedId, Span, Special, StmtId, StmtKind, Type, visit};
use tma_front::limits::WARP_THREADS;

use super::code::Op;
use super::explore::input::Input;
use super::finding::{Detail, Party, Rule, Violation};
use super::launch::Numbers;
use super::slots;
use super::term::{Node, Symbol, Terms};

/// Returns the location of a statement in the source.
pub(super) fn span_of(input: &Input<'_>, id: StmtId) -> Span {
    let kernel = input.kernel.kernel();
    let mut span = kernel.span;
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if stmt.id == id {
            span = stmt.origin.span;
        }
    });
    span
}

/// Turns a violation into a diagnostic.
pub(super) fn diagnostic(
    input: &Input<'_>,
    terms: &Terms,
    numbers: &Numbers,
    found: &Violation,
) -> Diagnostic {
    let kernel = input.kernel.kernel();
    let counts = match &found.detail {
        Detail::Barrier { state, .. } | Detail::Slices { state, .. } => Some(Counts {
            phase: state.phase,
            pending: state.pending,
            expected: state.expected,
            expected_bytes: state.expected_bytes,
            received_bytes: state.received_bytes,
        }),
        Detail::Memory { .. } | Detail::Global(_) | Detail::Nothing => None,
    };
    let subject = match found.detail {
        Detail::Barrier { at, .. } | Detail::Slices { at, .. } | Detail::Memory { at, .. } => {
            name_at(input, found.at.site.stmt, at)
        }
        Detail::Global(param) => {
            let name = kernel.param(param).name.clone();
            Some(Subject { name, is_global: true, stage: None, role: None, others: vec![] })
        }
        Detail::Nothing => None,
    };
    let without = match &found.detail {
        Detail::Slices { missing, .. } => {
            missing.iter().filter_map(|&block| u32::try_from(block).ok()).collect()
        }
        Detail::Barrier { .. } | Detail::Memory { .. } | Detail::Global(_) | Detail::Nothing => vec![],
    };
    let launch = launch(kernel, terms, numbers, input.cluster);
    let unloaded = if let Detail::Barrier { at, state, .. } = &found.detail
        && found.rule == Rule::Bytes
    {
        let ring = kernel.pipelines.iter().find(|ring| input.kernel.shared_range(ring.full).contains(at));
        let lacking = state.expected_bytes.saturating_sub(state.received_bytes);
        ring.filter(|_| lacking > 0).and_then(|ring| slots::unloaded(kernel, ring, lacking))
    } else {
        None
    };
    let mistake = Protocol {
        rule: found.rule,
        subject,
        counts,
        without,
        unloaded,
        step: step(input, &found.at),
        others: joined(found.others.iter().map(|party| step(input, party))),
        excluded: excluded(terms, numbers, &launch),
        launch,
        repair: None,
    };
    Diagnostic::new(mistake, span_of(input, found.at.site.stmt))
}

/// Joins steps that several groups of threads have in common.
fn joined(steps: impl Iterator<Item = ThreadStep>) -> Vec<ThreadStep> {
    let mut all: Vec<ThreadStep> = vec![];
    for step in steps {
        let is_alike = |other: &&mut ThreadStep| {
            (other.stmt, other.does, other.threads.block, &other.iteration)
                == (step.stmt, step.does, step.threads.block, &step.iteration)
        };
        match all.iter_mut().find(is_alike) {
            Some(same) => {
                same.threads.threads.extend(&step.threads.threads);
                same.threads.threads.sort_unstable();
                same.threads.elected &= step.threads.elected;
            }
            None => all.push(step),
        }
    }
    all
}

fn step(input: &Input<'_>, party: &Party) -> ThreadStep {
    let kernel = input.kernel.kernel();
    let groups = input.groups.len();
    let threads = input.groups.get(party.site.agent % groups.max(1)).map_or(vec![], |group| group.to_vec());
    let is_picked = |thread: u32| thread % WARP_THREADS == input.elected(thread / WARP_THREADS);
    let elected = !threads.is_empty()
        && threads.iter().all(|thread| is_picked(*thread))
        && input
            .code
            .steps()
            .any(|step| matches!(step.op, Op::Do(stmt) if matches!(stmt.kind, StmtKind::ElectOne { .. })));
    let blocks = input.cluster.iter().product::<u32>();
    let block = u32::try_from(party.site.agent / groups.max(1)).unwrap_or(0);
    let threads = ThreadSet { threads, all: input.threads(), block: (blocks > 1).then_some(block), elected };
    let iteration = party
        .site
        .iteration
        .map(|(stmt, iteration)| (variable_of(kernel, stmt), iteration.saturating_sub(1)));
    let does = act(kernel, party);
    ThreadStep { stmt: party.site.stmt, at: span_of(input, party.site.stmt), does, threads, iteration }
}

/// Returns the act of a party. An asynchronous read is by a copy or by a multiplication.
fn act(kernel: &Kernel, party: &Party) -> ThreadAct {
    let mut does = party.does;
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        let is_multiplication = stmt.id == party.site.stmt && matches!(stmt.kind, StmtKind::Mma(_));
        if is_multiplication && does == ThreadAct::StartReading {
            does = ThreadAct::StartMultiplying;
        }
    });
    does
}

/// Returns the name of the variable that a loop counts with.
fn variable_of(kernel: &Kernel, id: StmtId) -> Option<String> {
    let mut name = None;
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if stmt.id == id
            && let StmtKind::For(inner) = &stmt.kind
        {
            name = Some(kernel.local(inner.variable).name.clone()).filter(|name| !name.starts_with('_'));
        }
    });
    name
}

/// Returns the shared variable at an address, as the source names it, and the stage if it has
/// several. Of variables in the same memory, this is the one that the statement names.
fn name_at(input: &Input<'_>, stmt: StmtId, at: u32) -> Option<Subject> {
    let kernel = input.kernel.kernel();
    let all: Vec<_> = kernel.shared_ids().filter(|&id| input.kernel.shared_range(id).contains(&at)).collect();
    let named = shared_in(kernel, stmt);
    let id = *all.iter().find(|id| named.contains(id)).or(all.first())?;
    let ring_of = |id: SharedId| kernel.pipelines.iter().find(|ring| ring.parts().any(|part| part == id));
    let name_of = |id| ring_of(id).map_or(&kernel.shared_var(id).name, |ring| &ring.name).clone();

    let stage = if let Type::Stages(object, _) = &kernel.shared_var(id).ty {
        let stride = u32::try_from(layout::stride(object)).ok()?.max(1);
        Some((at - input.kernel.layout().offset(id)) / stride)
    } else {
        None
    };
    let role = ring_of(id).map(|ring| match id {
        id if id == ring.full => StageRole::Full,
        id if id == ring.empty => StageRole::Empty,
        _ => StageRole::Tile,
    });
    let others = all.into_iter().filter(|&other| other != id).map(name_of).collect();
    Some(Subject { name: name_of(id), is_global: false, stage, role, others })
}

/// Returns the shared variables that a statement names.
fn shared_in(kernel: &Kernel, id: StmtId) -> Vec<SharedId> {
    let mut found = vec![];
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if stmt.id == id {
            for operand in visit::operands(&stmt.kind) {
                visit::each_shared(operand, &mut |id| found.push(id));
            }
        }
    });
    found
}

/// Returns a condition that excludes a launch of which a single number is 0.
fn excluded(terms: &Terms, numbers: &Numbers, launch: &Counterexample) -> Option<String> {
    let [(input @ (LaunchInput::Param(_) | LaunchInput::Len(_)), 0)] = launch.numbers.as_slice() else {
        return None;
    };
    let has_flag = numbers.keys().any(|term| terms.scalar(*term) == Scalar::Bool);
    (!has_flag).then(|| format!("{input} > 0"))
}

/// Returns the launch that shows the violation: the numbers that the execution depends on.
fn launch(kernel: &Kernel, terms: &Terms, numbers: &Numbers, cluster: [u32; 3]) -> Counterexample {
    let mut all = Counterexample { numbers: vec![], cluster };
    let mut sorted: Vec<_> = numbers.iter().collect();
    sorted.sort();
    for (term, number) in sorted {
        let Node::Symbol(symbol) = terms.node(*term) else { continue };
        let param = |id: &u32| kernel.param(ParamId(*id)).name.clone();
        let input = match symbol {
            Symbol::Param(id) => LaunchInput::Param(param(id)),
            Symbol::Len(id) => LaunchInput::Len(param(id)),
            Symbol::Team(number) => LaunchInput::Param(number.word().to_owned()),
            Symbol::GridIndex(Special::GridDim(axis)) => LaunchInput::GridDim(*axis),
            Symbol::GridIndex(Special::ClusterIdx(axis)) if cluster == [1, 1, 1] => {
                LaunchInput::BlockIdx(*axis)
            }
            Symbol::GridIndex(Special::ClusterIdx(axis)) => LaunchInput::ClusterIdx(*axis),
            Symbol::Read(id, index) => match terms.evaluate(*index, numbers) {
                Some(index) => LaunchInput::Element(param(id), index.as_int()),
                None => continue,
            },
            Symbol::GridIndex(_) | Symbol::Elected(_) | Symbol::Fresh(_) | Symbol::Iterations(_) => continue,
        };
        all.numbers.push((input, *number));
    }
    all
}
