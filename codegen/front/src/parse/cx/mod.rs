//! The state of parsing one kernel instance. Each concern is a struct of its own; [`Cx`] holds
//! them, and has the functions that need several.

mod builder;
mod declared;
mod frames;
mod instance;
mod module;
mod nesting;
mod record;
mod spans;

use syn::{Ident, Lifetime};

use nesting::Nesting;
use record::Record;

pub(super) use builder::Builder;
pub(super) use declared::Declared;
pub(super) use frames::{Binding, BreakValue, BreakableKind, Exit, Frame, Frames};
pub(super) use instance::Instance;
pub(super) use module::{Evaluation, Module, Scope, Scoped};
pub(super) use spans::OpenSpan;

use super::item::ModuleItems;
use super::names::{self, WordUse};
use crate::diag::Sink;
use crate::diag::mistake::Mistake;
use crate::infer::rule::Rule;
use crate::infer::{Infer, Typing};
use crate::ir::{
    Argument, Block, Call, CallId, Callee, Expr, Label, Local, Param, Pipeline, SharedVar, Span, Type,
};

/// The state of parsing one kernel instance.
pub(super) struct Cx<'a> {
    pub(super) sink: &'a mut Sink,
    pub(super) infer: Infer,
    pub(super) module: Module<'a>,
    pub(super) instance: Instance,
    pub(super) declared: Declared,
    pub(super) frames: Frames,
    pub(super) builder: Builder,
    pub(super) nesting: Nesting,
    pub(super) record: Record,
}

impl<'a> Cx<'a> {
    pub(super) fn new(module_items: &'a ModuleItems, sink: &'a mut Sink, kernel: &syn::ItemFn) -> Self {
        Self {
            sink,
            infer: Infer::default(),
            module: Module::new(module_items),
            instance: Instance::new(),
            declared: Declared::default(),
            frames: Frames::new(kernel),
            builder: Builder::new(),
            nesting: Nesting::default(),
            record: Record::default(),
        }
    }

    pub(super) fn error(&mut self, mistake: impl Into<Mistake>, span: Span) {
        self.sink.error(mistake, span);
    }

    /// Returns type inference, with the sink for its errors.
    pub(super) fn typing(&mut self) -> Typing<'_> {
        Typing { infer: &mut self.infer, sink: self.sink }
    }

    /// Reports a mismatch unless `expr` has type `want` or can still be inferred to.
    pub(super) fn expect(&mut self, expr: &Expr, want: &Type) -> bool {
        self.typing().expect(expr, want)
    }

    /// Reports that `ty` breaks `rule`, at once or when the type is known.
    pub(super) fn require(&mut self, ty: &Type, rule: Rule, span: Span) -> bool {
        self.typing().require(ty, rule, span)
    }

    /// Runs `f`, whose statements belong to a call of `callee`.
    pub(super) fn within_call<T>(&mut self, callee: Callee, span: Span, f: impl FnOnce(&mut Self) -> T) -> T {
        let call = self.builder.record_call(callee, span);
        let caller = self.builder.set_call(Some(call));
        let value = f(self);
        self.builder.set_call(caller);
        value
    }

    /// Collects the statements that `f` emits.
    pub(super) fn block<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        self.builder.open();
        let value = f(self);
        (self.builder.close(), value)
    }

    /// Runs `f` in a new scope.
    pub(super) fn scope<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.frames.open_scope();
        let value = f(self);
        self.frames.close_scope();
        value
    }

    /// Runs `f` as the body of a `while` or a `for`.
    pub(super) fn loop_body(&mut self, name: Option<&Lifetime>, f: impl FnOnce(&mut Self)) -> (Label, Block) {
        let label = self.builder.label();
        self.frames.enter_breakable(name, label, BreakableKind::Conditional);
        let (body, ()) = self.branch(f);
        self.frames.leave_breakable();
        (label, body)
    }

    /// Runs `f` as the body of a `loop` or a labelled block. Returns its value if anything ends it.
    pub(super) fn breakable_body(
        &mut self,
        name: Option<&Lifetime>,
        kind: BreakableKind,
        f: impl FnOnce(&mut Self, Label),
    ) -> (Label, Block, Option<BreakValue>) {
        let label = self.builder.label();
        self.frames.enter_breakable(name, label, kind);
        // Any part of a block may be skipped.
        let (body, ()) = self.branch(|cx| f(cx, label));
        (label, body, self.frames.leave_breakable())
    }

    /// Runs `f` in a frame in which no name of the function is visible, in this module.
    pub(super) fn at_module_level<T>(
        &mut self,
        scope: Scope,
        name: &str,
        f: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.in_frame(Frame::new(name.to_owned(), scope), None, f)
    }

    /// Runs `f` in a frame of its own, whose statements belong to `call`.
    pub(super) fn in_frame<T>(
        &mut self,
        frame: Frame,
        call: Option<CallId>,
        f: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let scope_of_caller = self.module.enter(frame.scope());
        self.frames.enter(frame);
        let caller = self.builder.set_call(call);
        let value = f(self);
        self.builder.set_call(caller);
        self.frames.leave();
        self.module.enter(scope_of_caller);
        value
    }

    /// Returns what a constant must leave as it is.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            locals: self.builder.locals.len(),
            calls: self.builder.calls.len(),
            variables: self.record.variables.len(),
        }
    }

    /// Removes what has been declared since.
    pub(super) fn restore(&mut self, checkpoint: Checkpoint) {
        self.builder.locals.truncate(checkpoint.locals);
        self.builder.calls.truncate(checkpoint.calls);
        self.record.variables.truncate(checkpoint.variables);
    }

    pub(super) fn bind(&mut self, name: &Ident, binding: Binding) {
        let ty = match &binding {
            Binding::Value(value) => Some(value.ty.clone()),
            Binding::Local { id, .. } => Some(self.builder.type_of(*id).clone()),
            Binding::Reference { .. } | Binding::Compound { .. } => None,
        };
        if let Some(ty) = ty {
            self.record.variable(Local { name: name.to_string(), ty, span: name.span().into() });
        }
        self.frames.bind(names::text(name), binding);
    }
}

/// The number of locals, calls and variables at some point.
pub(super) struct Checkpoint {
    locals: usize,
    calls: usize,
    variables: usize,
}

/// The state that outlives parsing.
pub(super) struct Parts {
    pub(super) arguments: Vec<Argument>,
    pub(super) params: Vec<Param>,
    pub(super) locals: Vec<Local>,
    pub(super) shared: Vec<SharedVar>,
    pub(super) variables: Vec<Local>,
    pub(super) pipelines: Vec<Pipeline>,
    pub(super) calls: Vec<Call>,
    pub(super) infer: Infer,
    pub(super) words: Vec<WordUse>,
}

impl<'a> Cx<'a> {
    /// Returns the finished parts, and gives back the sink.
    pub(super) fn finish(self) -> (Parts, &'a mut Sink) {
        let Declared { params, shared, pipelines } = self.declared;
        let Builder { locals, calls, .. } = self.builder;
        let Record { variables, words } = self.record;
        let arguments = self.instance.into_arguments();
        let infer = self.infer;
        (Parts { arguments, params, locals, shared, variables, pipelines, calls, infer, words }, self.sink)
    }
}
