//! The diagnostic of a violation.

use super::code::Op;
use super::explore::input::Input;
use super::finding::{Detail, Found, Party};
use super::launch::Numbers;
use super::term::{Node, Symbol, Terms};
use crate::check::layout;
use crate::diag::Diagnostic;
use crate::diag::mistake::{Counterexample, Counts, Given, Protocol, RingPart, Step, Subject, Threads};
use crate::ir::{Kernel, ParamId, Span, Special, StmtId, StmtKind, Type, visit};
use crate::limits::WARP_THREADS;

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
pub(super) fn diagnostic(input: &Input<'_>, terms: &Terms, numbers: &Numbers, found: &Found) -> Diagnostic {
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
            name_at(input, at)
        }
        Detail::Global(param) => {
            let name = kernel.param(param).name.clone();
            Some(Subject { name, is_global: true, stage: None, part: None })
        }
        Detail::Nothing => None,
    };
    let without = match &found.detail {
        Detail::Slices { missing, .. } => {
            missing.iter().filter_map(|&block| u32::try_from(block).ok()).collect()
        }
        Detail::Barrier { .. } | Detail::Memory { .. } | Detail::Global(_) | Detail::Nothing => vec![],
    };
    let mistake = Protocol {
        rule: found.rule,
        subject,
        counts,
        without,
        step: step(input, &found.at),
        others: joined(found.others.iter().map(|party| step(input, party))),
        launch: launch(kernel, terms, numbers, input.cluster),
        repair: None,
    };
    Diagnostic::new(mistake, span_of(input, found.at.site.stmt))
}

/// Joins steps that several groups of threads have in common.
fn joined(steps: impl Iterator<Item = Step>) -> Vec<Step> {
    let mut all: Vec<Step> = vec![];
    for step in steps {
        let is_alike = |other: &&mut Step| {
            (other.stmt, other.does, other.threads.block, &other.turn)
                == (step.stmt, step.does, step.threads.block, &step.turn)
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

fn step(input: &Input<'_>, party: &Party) -> Step {
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
    let threads = Threads { threads, all: input.threads(), block: (blocks > 1).then_some(block), elected };
    let turn = party.site.turn.map(|(stmt, turn)| (variable_of(kernel, stmt), turn.saturating_sub(1)));
    Step { stmt: party.site.stmt, at: span_of(input, party.site.stmt), does: party.does, threads, turn }
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
/// several.
fn name_at(input: &Input<'_>, at: u32) -> Option<Subject> {
    let kernel = input.kernel.kernel();
    let layout = input.kernel.layout();
    let (index, var) = kernel.shared.iter().enumerate().find(|(index, var)| {
        let start = layout.offset(crate::ir::SharedId(u32::try_from(*index).unwrap_or(u32::MAX)));
        let size = u32::try_from(layout::size(&var.ty)).unwrap_or(u32::MAX);
        (start..start.saturating_add(size)).contains(&at)
    })?;
    let id = crate::ir::SharedId(u32::try_from(index).ok()?);
    let stage = if let Type::Stages(thing, _) = &var.ty {
        let stride = u32::try_from(layout::stride(thing)).ok()?.max(1);
        Some((at - layout.offset(id)) / stride)
    } else {
        None
    };
    let ring = kernel.pipelines.iter().find(|ring| ring.parts().any(|part| part == id));
    let part = ring.map(|ring| match id {
        id if id == ring.full => RingPart::Full,
        id if id == ring.empty => RingPart::Empty,
        _ => RingPart::Tile,
    });
    let name = ring.map_or(&var.name, |ring| &ring.name).clone();
    Some(Subject { name, is_global: false, stage, part })
}

/// Returns the launch that shows the violation: the numbers that the execution depends on.
fn launch(kernel: &Kernel, terms: &Terms, numbers: &Numbers, cluster: [u32; 3]) -> Counterexample {
    let mut all = Counterexample { numbers: vec![], cluster };
    let mut sorted: Vec<_> = numbers.iter().collect();
    sorted.sort();
    for (term, number) in sorted {
        let Node::Symbol(symbol) = terms.node(*term) else { continue };
        let param = |id: &u32| kernel.param(ParamId(*id)).name.clone();
        let given = match symbol {
            Symbol::Param(id) => Given::Param(param(id)),
            Symbol::Len(id) => Given::Len(param(id)),
            Symbol::Place(Special::GridDim(axis)) => Given::GridDim(*axis),
            Symbol::Place(Special::ClusterIdx(axis)) if cluster == [1, 1, 1] => Given::BlockIdx(*axis),
            Symbol::Place(Special::ClusterIdx(axis)) => Given::ClusterIdx(*axis),
            Symbol::Read(id, index) => match terms.evaluate(*index, numbers) {
                Some(index) => Given::Element(param(id), index.as_int()),
                None => continue,
            },
            Symbol::Place(_) | Symbol::Elected(_) | Symbol::Fresh(_) | Symbol::Turns(_) => continue,
        };
        all.numbers.push((given, *number));
    }
    all
}
