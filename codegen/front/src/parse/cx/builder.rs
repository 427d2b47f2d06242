//! The statements under construction.

use crate::ir::{
    Block, Call, CallId, Callee, Expr, ExprKind, Label, Local, LocalId, Origin, Span, Stmt, StmtKind, Type,
};
use crate::limits::{KERNEL_OPERATIONS, count};

/// The maximum number of loops and inlined calls in a kernel.
pub(super) const LABELS: u32 = 10_000;

/// The blocks that take statements, with the locals, labels and calls that statements refer to.
pub(in crate::parse) struct Builder {
    /// The block that takes statements, after those that enclose it.
    blocks: Vec<Block>,
    pub(super) locals: Vec<Local>,
    /// Every call of a device function or of a method of a pipeline.
    pub(super) calls: Vec<Call>,
    /// The call that statements belong to; `None` for those of the kernel itself.
    call: Option<CallId>,
    labels: u32,
    emitted: u64,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            blocks: vec![Block::default()],
            locals: vec![],
            calls: vec![],
            call: None,
            labels: 0,
            emitted: 0,
        }
    }

    /// Adds a statement to the innermost block.
    pub(in crate::parse) fn emit(&mut self, kind: StmtKind, span: Span) {
        self.emitted += 1;
        let origin = Origin { span, call: self.call };
        if let Some(block) = self.blocks.last_mut() {
            block.stmts.push(Stmt::new(kind, origin));
        }
    }

    pub(in crate::parse) fn assign(&mut self, local: LocalId, value: Expr) {
        let span = value.span;
        self.emit(StmtKind::Assign { local, index: vec![], value }, span);
    }

    /// Adds statements that were collected before.
    pub(in crate::parse) fn append(&mut self, mut statements: Block) {
        if let Some(block) = self.blocks.last_mut() {
            block.stmts.append(&mut statements.stmts);
        }
    }

    /// Begins a block in the innermost one.
    pub(super) fn open(&mut self) {
        self.blocks.push(Block::default());
    }

    /// Ends the innermost block.
    pub(super) fn close(&mut self) -> Block {
        self.blocks.pop().unwrap_or_default()
    }

    /// Declares a local.
    pub(in crate::parse) fn local(&mut self, name: impl Into<String>, ty: Type, span: Span) -> LocalId {
        self.locals.push(Local { name: name.into(), ty, span });
        LocalId(count(self.locals.len() - 1))
    }

    /// Declares a local for a value that a statement writes. Returns the local, and its value.
    pub(in crate::parse) fn temporary(
        &mut self,
        name: &str,
        ty: impl Into<Type>,
        span: Span,
    ) -> (LocalId, Expr) {
        let id = self.local(name, ty.into(), span);
        (id, self.read(id, span))
    }

    /// Returns the declaration of a local.
    pub(in crate::parse) fn declared(&self, id: LocalId) -> &Local {
        &self.locals[id.0 as usize]
    }

    /// Returns the type of a local.
    pub(in crate::parse) fn type_of(&self, id: LocalId) -> &Type {
        &self.locals[id.0 as usize].ty
    }

    /// Returns the value of a local.
    pub(in crate::parse) fn read(&self, id: LocalId, span: Span) -> Expr {
        Expr { kind: ExprKind::Local(id), ty: self.type_of(id).clone(), span }
    }

    /// Creates a label.
    pub(in crate::parse) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Records a call, which is about to be expanded.
    pub(in crate::parse) fn record_call(&mut self, callee: Callee, span: Span) -> CallId {
        self.calls.push(Call { callee, span, caller: self.call });
        CallId(count(self.calls.len() - 1))
    }

    /// Sets the call that the next statements belong to, and returns that of the previous ones.
    pub(super) fn set_call(&mut self, call: Option<CallId>) -> Option<CallId> {
        std::mem::replace(&mut self.call, call)
    }

    /// Whether the kernel takes another function. If each function calls the next one twice, every
    /// level doubles the kernel.
    pub(super) fn has_room(&self) -> bool {
        self.labels < LABELS && self.emitted < KERNEL_OPERATIONS
    }
}
