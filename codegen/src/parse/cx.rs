//! The state of parsing one kernel instance.

use std::collections::HashMap;

use syn::{Ident, Lifetime};

use super::item::ModuleItems;
use super::names::{self, WordUse};
use crate::diag::Sink;
use crate::diag::mistake::Mistake;
use crate::infer::rule::Rule;
use crate::infer::{Infer, Typing};
use crate::ir::{
    Argument, Block, Call, CallId, Callee, Cluster, Expr, ExprKind, Label, Local, LocalId, Origin, Param,
    ParamId, Pipeline, PipelineId, SharedId, SharedVar, Span, Stmt, StmtKind, Type,
};
use crate::limits::count;

/// The meaning of a name in scope.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    /// A value without storage: a constant, a parameter, or a shared object.
    Value(Expr),
    /// A register variable.
    Local { id: LocalId, mutable: bool },
    /// A `&` or `&mut` parameter of a device function: the caller's variable.
    Reference { id: LocalId, mutable: bool },
    /// A variable of several parts, or a `&` or `&mut` parameter of a device function that refers
    /// to one.
    Compound { value: Expr, mutable: bool, is_reference: bool },
}

/// A loop that can be left.
pub(super) struct Breakable {
    pub(super) name: Option<String>,
    pub(super) label: Label,
}

/// A function being parsed: the kernel, or a device function inlined into it.
pub(super) struct Frame {
    /// The function's name.
    pub(super) name: String,
    /// The bindings, innermost scope last.
    pub(super) scopes: Vec<HashMap<String, Binding>>,
    /// The enclosing loops, innermost last.
    pub(super) loops: Vec<Breakable>,
    /// The target of a `return`, with the local that takes its value; `None` in the kernel itself.
    pub(super) exit: Option<Exit>,
    /// The call that the statements belong to; `None` in the kernel itself.
    pub(super) call: Option<CallId>,
}

/// The end of an inlined function.
#[derive(Clone)]
pub(super) struct Exit {
    pub(super) label: Label,
    pub(super) result: Option<LocalId>,
    pub(super) ty: Type,
}

/// The state of parsing one kernel instance.
pub(super) struct Cx<'a> {
    pub(super) module_items: &'a ModuleItems,
    pub(super) sink: &'a mut Sink,
    pub(super) infer: Infer,
    /// Threads per block.
    pub(super) threads: [u32; 3],
    /// The arguments of the kernel's type generics in this instance.
    pub(super) type_arguments: HashMap<String, syn::Type>,
    /// The resolved arguments of the type generics that are used as types of values, by name.
    pub(super) generic_types: Vec<(String, Type)>,
    /// The arguments of all generics, in order.
    pub(super) arguments: Vec<Argument>,
    /// The cluster shape.
    pub(super) cluster: Cluster,
    pub(super) params: Vec<Param>,
    pub(super) locals: Vec<Local>,
    pub(super) shared: Vec<SharedVar>,
    pub(super) pipelines: Vec<Pipeline>,
    calls: Vec<Call>,
    pub(super) frames: Vec<Frame>,
    /// The block that takes statements, after those that enclose it.
    blocks: Vec<Block>,
    /// The number of loops and branches around this point, across all inlined functions.
    pub(super) nesting: u32,
    /// Whether a constant condition removes this point from the instance. Values of constants are
    /// not checked there.
    pub(super) is_left_out: bool,
    /// The number of expressions around this point, across all inlined functions.
    pub(super) depth: usize,
    /// Constants of the module, by index; `None` while one is being evaluated.
    pub(super) constants: HashMap<usize, Option<Expr>>,
    /// The variables that the source names.
    variables: Vec<Local>,
    /// The built-in names that the kernel uses.
    pub(super) words: Vec<WordUse>,
    labels: u32,
    emitted: u64,
}

impl<'a> Cx<'a> {
    pub(super) fn new(module_items: &'a ModuleItems, sink: &'a mut Sink, name: &str) -> Self {
        let kernel = Frame {
            name: name.to_owned(),
            scopes: vec![HashMap::new()],
            loops: vec![],
            exit: None,
            call: None,
        };
        Self {
            module_items,
            sink,
            infer: Infer::default(),
            threads: [1; 3],
            type_arguments: HashMap::new(),
            generic_types: vec![],
            arguments: vec![],
            cluster: Cluster::None,
            params: vec![],
            locals: vec![],
            shared: vec![],
            pipelines: vec![],
            calls: vec![],
            frames: vec![kernel],
            blocks: vec![Block::default()],
            nesting: 0,
            is_left_out: false,
            depth: 0,
            constants: HashMap::new(),
            variables: vec![],
            words: vec![],
            labels: 0,
            emitted: 0,
        }
    }

    pub(super) fn error(&mut self, mistake: impl Into<Mistake>, span: Span) {
        self.sink.error(mistake, span);
    }

    pub(super) fn emit(&mut self, kind: StmtKind, span: Span) {
        self.emitted += 1;
        let origin = Origin { span, call: self.frame().call };
        if let Some(block) = self.blocks.last_mut() {
            block.stmts.push(Stmt::new(kind, origin));
        }
    }

    /// Records a call by the function being parsed, which is about to be expanded.
    pub(super) fn record_call(&mut self, callee: Callee, span: Span) -> CallId {
        let caller = self.frame().call;
        self.calls.push(Call { callee, span, caller });
        CallId(count(self.calls.len() - 1))
    }

    /// Runs `f` as a call of a method of the pipeline that `parts` belong to, if they belong to
    /// one.
    pub(super) fn pipeline_call<T>(
        &mut self,
        parts: &[Expr],
        method: &str,
        span: Span,
        f: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let is_part = |pipeline: &Pipeline| {
            parts.iter().any(|part| matches!(part.kind, ExprKind::Shared(id) if id == pipeline.empty))
        };
        let caller = self.frame().call;
        if let Some(index) = self.pipelines.iter().position(is_part) {
            let pipeline = PipelineId(count(index));
            let call = self.record_call(Callee::Pipeline { pipeline, method: method.to_owned() }, span);
            self.frame().call = Some(call);
        }
        let value = f(self);
        self.frame().call = caller;
        value
    }

    /// Emits statements that were collected before.
    pub(super) fn append(&mut self, mut statements: Block) {
        if let Some(block) = self.blocks.last_mut() {
            block.stmts.append(&mut statements.stmts);
        }
    }

    /// Collects the statements that `f` emits.
    pub(super) fn block<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        self.blocks.push(Block::default());
        let value = f(self);
        (self.blocks.pop().unwrap_or_default(), value)
    }

    /// Like [`Cx::block`], for code that may run any number of times: a branch or the body of a
    /// loop.
    pub(super) fn branch<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        self.nesting += 1;
        let result = self.block(f);
        self.nesting -= 1;
        result
    }

    /// Runs `f` in a new scope.
    pub(super) fn scope<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.frame().scopes.push(HashMap::new());
        let value = f(self);
        self.frame().scopes.pop();
        value
    }

    /// Returns the function being parsed.
    pub(super) fn frame(&mut self) -> &mut Frame {
        let innermost = self.frames.len() - 1;
        &mut self.frames[innermost]
    }

    /// Returns the number of labels created so far.
    pub(super) fn labels(&self) -> u32 {
        self.labels
    }

    /// Returns the number of statements emitted so far.
    pub(super) fn emitted(&self) -> u64 {
        self.emitted
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Runs `f` as the body of a loop.
    pub(super) fn loop_body(&mut self, name: Option<&Lifetime>, f: impl FnOnce(&mut Self)) -> (Label, Block) {
        let label = self.label();
        let name = name.map(|lifetime| lifetime.ident.to_string());
        self.frame().loops.push(Breakable { name, label });
        let (body, ()) = self.branch(f);
        self.frame().loops.pop();
        (label, body)
    }

    pub(super) fn local(&mut self, name: impl Into<String>, ty: Type, span: Span) -> LocalId {
        self.locals.push(Local { name: name.into(), ty, span });
        LocalId(count(self.locals.len() - 1))
    }

    pub(super) fn shared_var(&mut self, name: String, ty: Type, span: Span) -> Expr {
        self.shared.push(SharedVar { name, ty: ty.clone(), span });
        Expr { kind: ExprKind::Shared(SharedId(count(self.shared.len() - 1))), ty, span }
    }

    pub(super) fn param(&mut self, param: Param) -> ParamId {
        self.params.push(param);
        ParamId(count(self.params.len() - 1))
    }

    pub(super) fn read(&self, id: LocalId, span: Span) -> Expr {
        Expr { kind: ExprKind::Local(id), ty: self.locals[id.0 as usize].ty.clone(), span }
    }

    pub(super) fn assign(&mut self, local: LocalId, value: Expr) {
        let span = value.span;
        self.emit(StmtKind::Assign { local, index: vec![], value }, span);
    }

    pub(super) fn bind(&mut self, name: &Ident, binding: Binding) {
        let ty = match &binding {
            Binding::Value(value) => Some(value.ty.clone()),
            Binding::Local { id, .. } => Some(self.locals[id.0 as usize].ty.clone()),
            Binding::Reference { .. } | Binding::Compound { .. } => None,
        };
        self.variables.extend(ty.map(|ty| Local { name: name.to_string(), ty, span: name.span().into() }));
        if let Some(scope) = self.frame().scopes.last_mut() {
            scope.insert(names::text(name), binding);
        }
    }

    /// Looks up a name in the function being parsed. Constants of the module are not included.
    pub(super) fn lookup(&self, name: &str) -> Option<&Binding> {
        self.frames.last()?.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Returns the name of every value in scope, for suggestions.
    pub(super) fn value_names(&self) -> impl Iterator<Item = String> {
        let scopes = self.frames.last().into_iter().flat_map(|frame| &frame.scopes);
        let constants = self.module_items.constants.iter().map(|item| item.ident.to_string());
        scopes.flat_map(|scope| scope.keys().cloned()).chain(constants)
    }

    pub(super) fn resolve(&self, ty: &Type) -> Type {
        self.infer.resolve(ty)
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
        let parts = Parts {
            arguments: self.arguments,
            params: self.params,
            locals: self.locals,
            shared: self.shared,
            pipelines: self.pipelines,
            calls: self.calls,
            variables: self.variables,
            infer: self.infer,
            words: self.words,
        };
        (parts, self.sink)
    }
}
