//! Runs the statements of a constant: those of the `const fn` that it calls, and of its blocks.

use std::collections::HashMap;

use super::{Infer, fold, settle};
use crate::diag::mistake::{NoValue, Value};
use crate::ir::{
    Block, Const, Expr, ExprKind, Flow, JumpTarget, LocalId, Loop, LoopExit, Span, Stmt, StmtKind, Type,
    visit,
};
use crate::limits::CONSTANT_STEPS;

/// The reason why a constant has no value, with the place of its cause.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// `None` if an error was reported while the statements were parsed.
    pub(crate) why: Option<Box<Value>>,
    pub(crate) span: Span,
}

/// Runs `effects`, and returns the value of `value` after them.
pub(crate) fn run(infer: &Infer, effects: &Block, value: &Expr) -> Result<Expr, Failure> {
    let mut run = Run { infer, locals: HashMap::new(), steps: 0, outermost_loop: None };
    match run.block(effects)? {
        None => run.value(value),
        Some(_) => Err(unknown(value.span)),
    }
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
    /// Runs a block. Returns the target if it ends with a jump.
    fn block(&mut self, block: &Block) -> Result<Option<JumpTarget>, Failure> {
        for stmt in &block.stmts {
            let jump = self.stmt(stmt)?;
            if jump.is_some() {
                return Ok(jump);
            }
        }
        Ok(None)
    }

    fn step(&mut self, span: Span) -> Result<(), Failure> {
        self.steps += 1;
        if self.steps > CONSTANT_STEPS {
            return Err(no_value(NoValue::TooManySteps, self.outermost_loop.unwrap_or(span)));
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Option<JumpTarget>, Failure> {
        let span = stmt.origin.span;
        self.step(span)?;
        match stmt.flow() {
            Flow::Fallthrough => self.effect(&stmt.kind, span).map(|()| None),
            Flow::If(condition, [then, otherwise]) => {
                let holds = self.condition(condition)?;
                self.block(if holds { then } else { otherwise })
            }
            Flow::Match(value, arms, otherwise) => {
                let value = self.integer(value)?;
                let body = arms.iter().find(|arm| arm.holds(value)).map_or(otherwise, |arm| &arm.body);
                self.block(body)
            }
            Flow::Loop(of) => {
                let around = self.outermost_loop;
                self.outermost_loop = around.or(Some(span));
                let jump = self.repeat(of, span)?;
                self.outermost_loop = around;
                Ok(jump)
            }
            Flow::Labelled(label, body) => {
                let jump = self.block(body)?;
                Ok(jump.filter(|&target| target != JumpTarget::After(label)))
            }
            Flow::Jump(target) => Ok(Some(target)),
            Flow::Trap => Err(unknown(span)),
        }
    }

    /// Runs a statement without control flow. All but these two need the device.
    fn effect(&mut self, kind: &StmtKind, span: Span) -> Result<(), Failure> {
        if let StmtKind::Assign { local, index, value } = kind {
            let value = self.value(value)?;
            let index = index.iter().map(|index| self.index(index)).collect::<Result<Vec<_>, _>>()?;
            return self.assign(*local, &index, value, span);
        }
        let StmtKind::Assert { condition, .. } = kind else { return Err(unknown(span)) };
        match self.condition(condition)? {
            true => Ok(()),
            false => Err(no_value(NoValue::AssertionFails, span)),
        }
    }

    fn repeat(&mut self, of: Loop<'_>, span: Span) -> Result<Option<JumpTarget>, Failure> {
        loop {
            // An iteration without statements is a step, too.
            self.step(span)?;
            match of.exit {
                LoopExit::Never => {}
                LoopExit::WhenFalse(header, condition) => {
                    let jump = self.block(header)?;
                    if jump.is_some() {
                        return Ok(jump);
                    }
                    if !self.condition(condition)? {
                        return Ok(None);
                    }
                }
                // A `const fn` of Rust has no `for`.
                LoopExit::Counted(_) => return Err(unknown(span)),
            }
            match self.block(of.body)? {
                None => {}
                Some(JumpTarget::NextIteration(label)) if label == of.label => {}
                Some(JumpTarget::After(label)) if label == of.label => return Ok(None),
                jump @ Some(_) => return Ok(jump),
            }
        }
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
            if let Some(value) = fold::decided(node) {
                node.kind = ExprKind::Const(value);
            }
            if let ExprKind::Index(array, index) = &node.kind
                && is_out_of_bounds(array, index)
            {
                failure.get_or_insert_with(|| no_value(NoValue::OutOfBounds, node.span));
            }
            if let ExprKind::Const(constant @ Const::Int(value)) = node.kind
                && !fold::literal_fits(constant, &node.ty)
            {
                let why = Some(Box::new(Value::Range { value, ty: node.ty.clone() }));
                failure.get_or_insert(Failure { why, span: node.span });
            }
        });
        fold::each_overflow(&known, &mut |part, words| {
            failure.get_or_insert_with(|| no_value(NoValue::Overflow(words), part.span));
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
    Failure { why: Some(Box::new(Value::NoConstant)), span }
}

fn no_value(why: NoValue, span: Span) -> Failure {
    Failure { why: Some(Box::new(Value::Constant(why))), span }
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
