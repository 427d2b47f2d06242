//! Runs the statements of a constant: those of the `const fn` that it calls, and of its blocks.

#![warn(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;

use super::{Infer, fold, settle};
use crate::diag::mistake::{NoValue, Value};
use crate::ir::{Arm, Block, Const, Expr, ExprKind, Label, LocalId, Span, Stmt, StmtKind, Type, visit};
use crate::limits::CONSTANT_STEPS;

/// The reason why a constant has no value, with the place of its cause.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// `None` if an error was reported while the statements were parsed.
    pub(crate) why: Option<Value>,
    pub(crate) span: Span,
}

/// Runs `effects`, and returns the value of `value` after them.
pub(crate) fn run(infer: &Infer, effects: &Block, value: &Expr) -> Result<Expr, Failure> {
    let mut run = Run { infer, locals: HashMap::new(), steps: 0, outermost_loop: None };
    match run.block(effects)? {
        Flow::Next => run.value(value),
        Flow::Break(_) | Flow::Continue(_) | Flow::Leave(_) => Err(unknown(value.span)),
    }
}

/// What a statement continues with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break(Label),
    Continue(Label),
    Leave(Label),
}

struct Run<'i> {
    infer: &'i Infer,
    /// The values of the variables.
    locals: HashMap<LocalId, Expr>,
    steps: u64,
    /// The outermost loop that is running.
    outermost_loop: Option<Span>,
}

impl Run<'_> {
    fn block(&mut self, block: &Block) -> Result<Flow, Failure> {
        for stmt in &block.stmts {
            let flow = self.stmt(stmt)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn step(&mut self, span: Span) -> Result<(), Failure> {
        self.steps += 1;
        if self.steps > CONSTANT_STEPS {
            return Err(no_value(NoValue::TooManySteps, self.outermost_loop.unwrap_or(span)));
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow, Failure> {
        let span = stmt.origin.span;
        self.step(span)?;
        match &stmt.kind {
            StmtKind::Assign { local, index, value } => {
                let value = self.value(value)?;
                let index = index.iter().map(|index| self.index(index)).collect::<Result<Vec<_>, _>>()?;
                self.assign(*local, &index, value, span)?;
                Ok(Flow::Next)
            }
            StmtKind::If { condition, then, otherwise } => {
                let holds = self.condition(condition)?;
                self.block(if holds { then } else { otherwise })
            }
            StmtKind::Match { value, arms, otherwise } => {
                let value = self.integer(value)?;
                let is_taken =
                    |arm: &&Arm| arm.ranges.iter().any(|&(low, high)| (low..=high).contains(&value));
                let body = arms.iter().find(is_taken).map_or(otherwise, |arm| &arm.body);
                self.block(body)
            }
            StmtKind::Loop { label, body } => self.repeat(*label, None, body, span),
            StmtKind::While { label, header, condition, body } => {
                self.repeat(*label, Some((header, condition)), body, span)
            }
            StmtKind::Labelled { label, body } => Ok(match self.block(body)? {
                Flow::Leave(left) if left == *label => Flow::Next,
                flow => flow,
            }),
            StmtKind::Break(label) => Ok(Flow::Break(*label)),
            StmtKind::Continue(label) => Ok(Flow::Continue(*label)),
            StmtKind::Leave(label) => Ok(Flow::Leave(*label)),
            StmtKind::Assert { condition, .. } => match self.condition(condition)? {
                true => Ok(Flow::Next),
                false => Err(no_value(NoValue::AssertionFails, span)),
            },
            // A `const fn` of Rust has no `for`, and nothing else exists before a kernel runs.
            StmtKind::For(_)
            | StmtKind::Return
            | StmtKind::TileGet { .. }
            | StmtKind::TileSet { .. }
            | StmtKind::SharedGet { .. }
            | StmtKind::SharedSet { .. }
            | StmtKind::GlobalGet { .. }
            | StmtKind::GlobalSet { .. }
            | StmtKind::Atomic(_)
            | StmtKind::TileCopy(_)
            | StmtKind::BulkCopy(_)
            | StmtKind::RemoteCopy(_)
            | StmtKind::PrefetchMap(_)
            | StmtKind::Barrier { .. }
            | StmtKind::EditMap { .. }
            | StmtKind::AcquireMap { .. }
            | StmtKind::BulkCommitGroup
            | StmtKind::BulkWaitGroup { .. }
            | StmtKind::Mma(_)
            | StmtKind::MmaWait { .. }
            | StmtKind::Pack { .. }
            | StmtKind::StoreAccumulator { .. }
            | StmtKind::CheckMatrix(_)
            | StmtKind::StoreMatrix(_)
            | StmtKind::ReduceRows { .. }
            | StmtKind::LoadFragment(_)
            | StmtKind::MmaSync(_)
            | StmtKind::StoreWarp(_)
            | StmtKind::SetMaxRegisters { .. }
            | StmtKind::Fence(_)
            | StmtKind::Sync(_)
            | StmtKind::NamedBarrierSync { .. }
            | StmtKind::NamedBarrierArrive { .. }
            | StmtKind::SyncGrid { .. }
            | StmtKind::GridDependency(_)
            | StmtKind::ElectOne { .. }
            | StmtKind::Warp { .. }
            | StmtKind::Trap
            | StmtKind::Printf { .. }
            | StmtKind::PrintTile { .. } => Err(unknown(span)),
        }
    }

    /// Runs a loop, of which a `while` has a header and a condition.
    fn repeat(
        &mut self,
        label: Label,
        head: Option<(&Block, &Expr)>,
        body: &Block,
        span: Span,
    ) -> Result<Flow, Failure> {
        let around = self.outermost_loop;
        self.outermost_loop = around.or(Some(span));
        let flow = loop {
            // An iteration without statements is a step, too.
            self.step(span)?;
            if let Some((header, condition)) = head {
                let flow = self.block(header)?;
                if flow != Flow::Next {
                    break flow;
                }
                if !self.condition(condition)? {
                    break Flow::Next;
                }
            }
            match self.block(body)? {
                Flow::Next => {}
                Flow::Continue(at) if at == label => {}
                Flow::Break(at) if at == label => break Flow::Next,
                flow @ (Flow::Continue(_) | Flow::Break(_) | Flow::Leave(_)) => break flow,
            }
        };
        self.outermost_loop = around;
        Ok(flow)
    }

    fn assign(&mut self, local: LocalId, index: &[usize], value: Expr, span: Span) -> Result<(), Failure> {
        if index.is_empty() {
            self.locals.insert(local, value);
            return Ok(());
        }
        let mut place = self.locals.get_mut(&local).ok_or_else(|| unknown(span))?;
        for &index in index {
            write_out(place);
            let ExprKind::Array(elements) = &mut place.kind else { return Err(unknown(span)) };
            place = elements.get_mut(index).ok_or_else(|| no_value(NoValue::OutOfBounds, span))?;
        }
        *place = value;
        Ok(())
    }

    fn index(&self, index: &Expr) -> Result<usize, Failure> {
        let value = self.integer(index)?;
        usize::try_from(value).map_err(|_| no_value(NoValue::OutOfBounds, index.span))
    }

    fn integer(&self, value: &Expr) -> Result<i128, Failure> {
        match self.value(value)?.kind {
            ExprKind::Const(Const::Int(value)) => Ok(value),
            ExprKind::Const(Const::Bool(value)) => Ok(value.into()),
            _ => Err(unknown(value.span)),
        }
    }

    fn condition(&self, condition: &Expr) -> Result<bool, Failure> {
        Ok(self.integer(condition)? != 0)
    }

    /// Returns the value of an expression: a constant, or an array or a tree of these.
    fn value(&self, value: &Expr) -> Result<Expr, Failure> {
        let mut known = value.clone();
        let mut failure = None;
        visit::within_mut(&mut known, &mut |node| {
            if let ExprKind::Local(id) = node.kind
                && let Some(value) = self.locals.get(&id)
            {
                *node = Expr { span: node.span, ..value.clone() };
            }
            if node.is_error() {
                failure.get_or_insert(Failure { why: None, span: node.span });
            }
            settle::settle_expr(self.infer, node);
            if let Err(why) = fold::fold(node) {
                failure.get_or_insert_with(|| no_value(why, node.span));
            }
            if let ExprKind::Index(array, index) = &node.kind
                && is_out_of_bounds(array, index)
            {
                failure.get_or_insert_with(|| no_value(NoValue::OutOfBounds, node.span));
            }
            if let ExprKind::Const(constant @ Const::Int(value)) = node.kind
                && !fold::literal_fits(constant, &node.ty)
            {
                let why = Some(Value::Range { value, ty: node.ty.clone() });
                failure.get_or_insert_with(|| Failure { why, span: node.span });
            }
        });
        match failure {
            Some(failure) => Err(failure),
            None if fold::is_known(&known) || matches!(known.kind, ExprKind::Unit) => Ok(known),
            None => Err(unknown(value.span)),
        }
    }
}

/// The failure that something is known only when the kernel runs.
fn unknown(span: Span) -> Failure {
    Failure { why: Some(Value::NoConstant), span }
}

fn no_value(why: NoValue, span: Span) -> Failure {
    Failure { why: Some(Value::Constant(why)), span }
}

/// Turns `[x; N]` into a list of its elements.
fn write_out(array: &mut Expr) {
    if let (ExprKind::Repeat(element), Type::Array(_, len)) = (&array.kind, &array.ty) {
        array.kind = ExprKind::Array(vec![(**element).clone(); *len as usize]);
    }
}

fn is_out_of_bounds(array: &Expr, index: &Expr) -> bool {
    let Type::Array(_, len) = array.ty else { return false };
    index.as_int().is_some_and(|index| !(0..i128::from(len)).contains(&index))
}
