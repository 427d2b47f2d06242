//! The functions being parsed: the kernel, and the device functions inlined into it.

use std::collections::HashMap;
use std::rc::Rc;

use syn::Lifetime;

use super::Scope;
use super::spans::{OpenSpan, OpenSpans};
use crate::ir::{Expr, GenericValue, Label, LocalId, Span, Type};
use crate::parse::names;

/// The meaning of a name in scope.
#[derive(Clone, Debug)]
pub(in crate::parse) enum Binding {
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

/// A loop or a block that can be left.
pub(in crate::parse) struct Breakable {
    name: Option<String>,
    pub(in crate::parse) label: Label,
    pub(in crate::parse) kind: BreakableKind,
    /// The value that it has so far: that of its first `break`.
    pub(in crate::parse) value: Option<BreakValue>,
}

/// A kind of code that can be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::parse) enum BreakableKind {
    /// `loop`.
    Loop,
    /// `while` and `for`, which have no value.
    Conditional,
    /// A labelled block.
    Block,
}

/// The value of a loop or a block that can be left.
#[derive(Clone)]
pub(in crate::parse) struct BreakValue {
    pub(in crate::parse) ty: Type,
    /// The local that takes it, unless there is nothing to store.
    pub(in crate::parse) local: Option<LocalId>,
    /// The value, if it is a struct or tuple.
    pub(in crate::parse) parts: Option<Expr>,
}

/// The end of an inlined function.
#[derive(Clone)]
pub(in crate::parse) struct Exit {
    pub(in crate::parse) label: Label,
    pub(in crate::parse) result: Option<LocalId>,
    /// The result that has parts, once an exit has been parsed.
    pub(in crate::parse) parts: Option<Expr>,
    /// Whether the function has no `return`.
    pub(in crate::parse) is_only: bool,
    pub(in crate::parse) ty: Type,
}

/// A function being parsed.
pub(in crate::parse) struct Frame {
    /// The function's name.
    name: String,
    /// The module that contains the function.
    scope: Scope,
    /// The bindings, innermost scope last.
    scopes: Vec<HashMap<String, Binding>>,
    /// The enclosing loops and labelled blocks, innermost last.
    breakable: Vec<Breakable>,
    /// The spans that have begun.
    spans: OpenSpans,
    /// The target of a `return`, with the local that takes its value; `None` in the kernel itself.
    exit: Option<Exit>,
    /// The type `Self`, in a function of a struct.
    self_type: Option<Type>,
    /// The declaration of the function's generics.
    generics: Rc<syn::Generics>,
    /// The arguments of its type generics.
    type_arguments: Vec<(String, GenericValue)>,
}

impl Frame {
    pub(in crate::parse) fn new(name: String, scope: Scope) -> Self {
        Self {
            name,
            scope,
            scopes: vec![HashMap::new()],
            breakable: vec![],
            spans: OpenSpans::default(),
            exit: None,
            self_type: None,
            generics: Rc::default(),
            type_arguments: vec![],
        }
    }

    /// Returns the module that contains the function.
    pub(super) fn scope(&self) -> Scope {
        self.scope
    }

    /// Sets the type `Self`.
    pub(in crate::parse) fn set_self_type(&mut self, ty: Option<Type>) {
        self.self_type = ty;
    }

    /// Sets the declaration of the function's generics.
    pub(in crate::parse) fn set_generics(&mut self, generics: syn::Generics) {
        self.generics = Rc::new(generics);
    }

    /// Binds the type generic `name`.
    pub(in crate::parse) fn bind_type(&mut self, name: String, argument: GenericValue) {
        self.type_arguments.push((name, argument));
    }

    /// Binds a name in the innermost scope.
    pub(in crate::parse) fn bind(&mut self, name: String, binding: Binding) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, binding);
        }
    }
}

/// The functions being parsed.
pub(in crate::parse) struct Frames {
    kernel: Frame,
    /// The functions inlined at this point, innermost last.
    inlined: Vec<Frame>,
}

impl Frames {
    pub(super) fn new(kernel: &syn::ItemFn) -> Self {
        let mut frame = Frame::new(names::text(&kernel.sig.ident), Scope::default());
        frame.set_generics(kernel.sig.generics.clone());
        Self { kernel: frame, inlined: vec![] }
    }

    fn innermost(&self) -> &Frame {
        self.inlined.last().unwrap_or(&self.kernel)
    }

    fn innermost_mut(&mut self) -> &mut Frame {
        self.inlined.last_mut().unwrap_or(&mut self.kernel)
    }

    /// Enters a function, a constant or an alias.
    pub(super) fn enter(&mut self, frame: Frame) {
        self.inlined.push(frame);
    }

    /// Leaves the innermost function.
    pub(super) fn leave(&mut self) {
        self.inlined.pop();
    }

    /// Whether the kernel itself is being parsed, and no function inlined into it.
    pub(in crate::parse) fn in_kernel(&self) -> bool {
        self.inlined.is_empty()
    }

    /// Returns the number of functions being parsed.
    pub(super) fn depth(&self) -> usize {
        1 + self.inlined.len()
    }

    /// Returns the name of the innermost function or alias.
    pub(in crate::parse) fn name(&self) -> &str {
        &self.innermost().name
    }

    /// Returns the kernel's name.
    pub(in crate::parse) fn kernel_name(&self) -> &str {
        &self.kernel.name
    }

    /// Whether the function `name` of a module is being parsed.
    pub(in crate::parse) fn contains(&self, name: &str, scope: Scope) -> bool {
        let is_meant = |frame: &Frame| frame.name == name && frame.scope == scope;
        is_meant(&self.kernel) || self.inlined.iter().any(is_meant)
    }

    pub(super) fn open_scope(&mut self) {
        self.innermost_mut().scopes.push(HashMap::new());
    }

    pub(super) fn close_scope(&mut self) {
        self.innermost_mut().scopes.pop();
    }

    /// Binds a name in the innermost scope.
    pub(super) fn bind(&mut self, name: String, binding: Binding) {
        self.innermost_mut().bind(name, binding);
    }

    /// Looks up a name in the innermost function. Constants of the module are not included.
    pub(in crate::parse) fn lookup(&self, name: &str) -> Option<&Binding> {
        self.innermost().scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Looks up a parameter of the innermost function that no variable hides.
    pub(in crate::parse) fn parameter(&self, name: &str) -> Option<&Binding> {
        let (outermost, inner) = self.innermost().scopes.split_first()?;
        let is_hidden = inner.iter().any(|scope| scope.contains_key(name));
        outermost.get(name).filter(|_| !is_hidden)
    }

    /// Returns every name in scope.
    pub(in crate::parse) fn names(&self) -> impl Iterator<Item = &String> {
        self.innermost().scopes.iter().flat_map(HashMap::keys)
    }

    /// Returns the meaning of every name in scope, including hidden ones.
    pub(in crate::parse) fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.innermost().scopes.iter().flat_map(HashMap::values)
    }

    pub(super) fn enter_breakable(&mut self, name: Option<&Lifetime>, label: Label, kind: BreakableKind) {
        let name = name.map(|lifetime| lifetime.ident.to_string());
        self.innermost_mut().breakable.push(Breakable { name, label, kind, value: None });
    }

    /// Leaves the innermost loop or block, and returns its value if anything ends it.
    pub(super) fn leave_breakable(&mut self) -> Option<BreakValue> {
        self.innermost_mut().breakable.pop()?.value
    }

    /// Returns the loop or block of this name, or else the innermost loop.
    pub(in crate::parse) fn find_breakable(&mut self, name: Option<&Lifetime>) -> Option<&mut Breakable> {
        let mut all = self.innermost_mut().breakable.iter_mut().rev();
        match name {
            None => all.find(|found| found.kind != BreakableKind::Block),
            Some(name) => all.find(|found| found.name.as_ref().is_some_and(|found| name.ident == found)),
        }
    }

    /// Returns the loop or block of this label.
    pub(in crate::parse) fn breakable_mut(&mut self, label: Label) -> Option<&mut Breakable> {
        self.innermost_mut().breakable.iter_mut().find(|found| found.label == label)
    }

    /// Begins a span, which lasts until the end of the innermost scope.
    pub(in crate::parse) fn open_span(&mut self, name: String, span: Span) {
        let frame = self.innermost_mut();
        frame.spans.open(OpenSpan { name, span, scopes: frame.scopes.len(), inside: frame.breakable.len() });
    }

    /// Ends the spans of the innermost scope, and returns them, innermost first.
    pub(in crate::parse) fn close_spans(&mut self) -> Vec<OpenSpan> {
        let frame = self.innermost_mut();
        frame.spans.close(frame.scopes.len())
    }

    /// Returns the spans that a jump out of this loop or block leaves, innermost first. Without a
    /// label it leaves the innermost function.
    pub(in crate::parse) fn left_spans(&self, label: Option<Label>) -> Vec<OpenSpan> {
        let frame = self.innermost();
        let target = frame.breakable.iter().position(|found| Some(found.label) == label);
        frame.spans.inside(target.map_or(0, |target| target + 1))
    }

    /// Returns the end of the innermost function, or `None` in the kernel itself.
    pub(in crate::parse) fn exit(&self) -> Option<&Exit> {
        self.innermost().exit.as_ref()
    }

    pub(in crate::parse) fn set_exit(&mut self, exit: Exit) {
        self.innermost_mut().exit = Some(exit);
    }

    /// Sets the result of the innermost function, which has parts.
    pub(in crate::parse) fn set_result(&mut self, parts: Expr) {
        if let Some(exit) = &mut self.innermost_mut().exit {
            exit.parts = Some(parts);
        }
    }

    /// Returns the argument of a type generic of the innermost function.
    pub(in crate::parse) fn type_argument(&self, name: &str) -> Option<&GenericValue> {
        self.innermost().type_arguments.iter().find(|(known, _)| known == name).map(|(_, argument)| argument)
    }

    /// Returns the arguments of all type generics of the innermost function.
    pub(in crate::parse) fn type_arguments(&self) -> &[(String, GenericValue)] {
        &self.innermost().type_arguments
    }

    /// Returns the declaration of the generics of the innermost function.
    pub(in crate::parse) fn generics(&self) -> &Rc<syn::Generics> {
        &self.innermost().generics
    }

    /// Returns the type `Self` in the innermost function.
    pub(in crate::parse) fn self_type(&self) -> Option<&Type> {
        self.innermost().self_type.as_ref()
    }
}
