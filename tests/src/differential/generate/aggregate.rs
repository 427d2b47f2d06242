//! Structs with methods, tuples, patterns, and calls of generic functions.
//!
//! Each scalar or array of a struct's variable is a [`Local`] of its own, by its path, so that
//! expressions and assignments use fields as they use other variables.

use super::types::Ty;
use super::{Local, Writer};

/// A struct of the module.
#[derive(Clone, Debug)]
pub(super) struct Struct {
    name: String,
    fields: Vec<(String, Field)>,
    /// The methods. Their own bodies have none, since a function may not call itself.
    methods: Option<Methods>,
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
enum Field {
    Scalar(Ty),
    Array(Ty, usize),
    Pair(Ty, Ty),
    /// A struct, by its index.
    Struct(usize),
}

/// The types of a struct's methods `new(x) -> Self`, `value(self, x) -> T` and
/// `change(&mut self, x)`.
#[derive(Clone, Copy, Debug)]
struct Methods {
    new: Ty,
    value: Ty,
    valued: Ty,
    change: Ty,
}

/// A variable whose type is a struct.
#[derive(Clone, Debug)]
pub(super) struct Object {
    name: String,
    /// The index of the struct.
    of: usize,
    mutable: bool,
}

impl Writer<'_> {
    /// Writes a struct and its methods.
    pub(super) fn structure(&mut self) {
        let (name, of) = (self.fresh("S"), self.structs.len());
        let fields: Vec<_> = (0..1 + self.rng.below(3)).map(|at| (format!("f{at}"), self.field())).collect();
        self.line("#[derive(Clone, Copy, PartialEq)]");
        self.line(&format!("struct {name} {{"));
        for (field, ty) in &fields {
            let ty = self.field_type(*ty);
            self.line(&format!("    {field}: {ty},"));
        }
        self.line("}");
        self.structs.push(Struct { name: name.clone(), fields, methods: None });

        let [new, value, valued, change] = [(); 4].map(|()| *self.rng.one_of(&Ty::ALL));
        self.line("#[tma_device]");
        self.line(&format!("impl {name} {{"));
        self.indent += 1;
        self.line(&format!("fn new(x: {}) -> Self {{", new.name()));
        self.indent += 1;
        self.locals.push(argument(new));
        let made = self.literal_struct(of, 2);
        self.line(&made);
        self.end_of_function();

        self.line(&format!("fn value(self, x: {}) -> {} {{", value.name(), valued.name()));
        self.locals.push(argument(value));
        self.bring("self", of, false);
        self.returning(valued);

        self.line(&format!("fn change(&mut self, x: {}) {{", change.name()));
        self.locals.push(argument(change));
        self.objects.push(Object { name: "(*self)".to_owned(), of, mutable: true });
        self.bring_fields("self", of, true);
        self.indent += 1;
        self.statements(1 + self.rng.below(4), 1);
        self.end_of_function();

        self.indent -= 1;
        self.line("}");
        self.structs[of].methods = Some(Methods { new, value, valued, change });
    }

    fn field(&self) -> Field {
        let [first, second] = [(); 2].map(|()| *self.rng.one_of(&Ty::ALL));
        match self.rng.below(6) {
            0 => Field::Array(first, 1 + self.rng.below(4)),
            1 => Field::Pair(first, second),
            2 if !self.structs.is_empty() => Field::Struct(self.rng.below(self.structs.len())),
            _ => Field::Scalar(first),
        }
    }

    fn field_type(&self, field: Field) -> String {
        match field {
            Field::Scalar(ty) => ty.name().to_owned(),
            Field::Array(ty, extent) => format!("[{}; {extent}]", ty.name()),
            Field::Pair(a, b) => format!("({}, {})", a.name(), b.name()),
            Field::Struct(of) => self.structs[of].name.clone(),
        }
    }

    /// Brings a variable of a struct's type into scope, with its fields.
    fn bring(&mut self, name: &str, of: usize, mutable: bool) {
        self.objects.push(Object { name: name.to_owned(), of, mutable });
        self.bring_fields(name, of, mutable);
    }

    fn bring_fields(&mut self, name: &str, of: usize, mutable: bool) {
        for (field, ty) in self.structs[of].fields.clone() {
            let path = format!("{name}.{field}");
            let local = |name, ty, extents| Local { name, ty, extents, mutable };
            match ty {
                Field::Scalar(ty) => self.locals.push(local(path, ty, vec![])),
                Field::Array(ty, extent) => self.locals.push(local(path, ty, vec![extent])),
                Field::Pair(a, b) => {
                    self.locals.push(local(format!("{path}.0"), a, vec![]));
                    self.locals.push(local(format!("{path}.1"), b, vec![]));
                }
                Field::Struct(of) => self.bring_fields(&path, of, mutable),
            }
        }
    }

    /// Generates a value of a struct.
    fn object(&mut self, of: usize, depth: usize) -> String {
        let known: Vec<_> = self.objects.iter().filter(|object| object.of == of).cloned().collect();
        if !known.is_empty() && (depth == 0 || self.rng.once_in(3)) {
            return self.rng.one_of(&known).name.clone();
        }
        if depth == 0 {
            return self.literal_struct(of, 0);
        }
        match self.rng.below(5) {
            0 => {
                if let Some(methods) = self.structs[of].methods {
                    let argument = self.expr(methods.new, depth - 1);
                    return format!("{}::new({argument})", self.structs[of].name);
                }
                self.literal_struct(of, depth)
            }
            1 => {
                let condition = self.expr(Ty::Bool, depth - 1);
                let (yes, no) = (self.object(of, depth - 1), self.object(of, depth - 1));
                match self.rng.below(3) {
                    0 => format!("chosen({condition}, {yes}, {no})"),
                    1 => format!("(loop {{ if {condition} {{ break {yes}; }} break {no}; }})"),
                    _ => format!("(if {condition} {{ {yes} }} else {{ {no} }})"),
                }
            }
            2 if !known.is_empty() => {
                let base = self.rng.one_of(&known).name.clone();
                let (field, ty) = self.rng.one_of(&self.structs[of].fields).clone();
                let value = self.field_value(ty, depth - 1);
                format!("({} {{ {field}: {value}, ..{base} }})", self.structs[of].name)
            }
            _ => self.literal_struct(of, depth),
        }
    }

    fn literal_struct(&mut self, of: usize, depth: usize) -> String {
        let Struct { name, fields, .. } = self.structs[of].clone();
        let fields =
            fields.into_iter().map(|(field, ty)| format!("{field}: {}", self.field_value(ty, depth)));
        let fields = fields.collect::<Vec<_>>().join(", ");
        format!("({name} {{ {fields} }})")
    }

    fn field_value(&mut self, field: Field, depth: usize) -> String {
        let depth = depth.min(2);
        match field {
            Field::Scalar(ty) => self.expr(ty, depth),
            Field::Array(ty, extent) => self.array(ty, extent, depth),
            Field::Pair(a, b) => format!("({}, {})", self.expr(a, depth), self.expr(b, depth)),
            Field::Struct(of) => self.object(of, depth.saturating_sub(1)),
        }
    }

    fn array(&mut self, ty: Ty, extent: usize, depth: usize) -> String {
        let elements: Vec<_> = (0..extent).map(|_| self.expr(ty, depth)).collect();
        let list = format!("[{}]", elements.join(", "));
        if self.rng.once_in(4) { format!("rotated({list})") } else { list }
    }

    /// Declares a variable of a struct's type.
    pub(super) fn declare_object(&mut self) {
        if self.structs.is_empty() {
            return self.declare();
        }
        let of = self.rng.below(self.structs.len());
        let value = self.object(of, 2);
        let (name, mutable) = (self.fresh("s"), !self.rng.once_in(4));
        let ty = &self.structs[of].name;
        self.line(&format!("let {}{name}: {ty} = {value};", if mutable { "mut " } else { "" }));
        self.bring(&name, of, mutable);
    }

    /// Assigns a whole struct, or calls the method that changes it.
    pub(super) fn change_object(&mut self) {
        let changed: Vec<_> = self.objects.iter().filter(|object| object.mutable).cloned().collect();
        if changed.is_empty() {
            return self.declare_object();
        }
        let Object { name, of, .. } = self.rng.one_of(&changed).clone();
        match self.structs[of].methods {
            Some(Methods { change, .. }) if self.rng.once_in(2) => {
                // The argument may change the struct, which the call borrows.
                let (argument, by) = (self.expr(change, 2), self.fresh("b"));
                self.line(&format!("let {by}: {} = {argument};", change.name()));
                self.line(&format!("{name}.change({by});"));
            }
            _ => {
                let value = self.object(of, 2);
                self.line(&format!("{name} = {value};"));
            }
        }
    }

    /// Takes a tuple, an array or a struct apart, into new variables or into those that are there.
    pub(super) fn destructure(&mut self) {
        let [a, b] = [(); 2].map(|()| *self.rng.one_of(&Ty::ALL));
        let [x, y] = [(); 2].map(|()| self.fresh("v"));
        let declared =
            |name: &str, ty, mutable| Local { name: name.to_owned(), ty, extents: vec![], mutable };
        match self.rng.below(4) {
            0 => {
                let value = self.pair(a, b);
                self.line(&format!("let (mut {x}, {y}): ({}, {}) = {value};", a.name(), b.name()));
                self.locals.extend([declared(&x, a, true), declared(&y, b, false)]);
            }
            1 => {
                let value = self.array(a, 3, 2);
                self.line(&format!("let [{x}, .., mut {y}]: [{}; 3] = {value};", a.name()));
                self.locals.extend([declared(&x, a, false), declared(&y, a, true)]);
            }
            2 if !self.objects.is_empty() => {
                let Object { name, of, .. } = self.rng.one_of(&self.objects).clone();
                let Struct { name: ty, fields, .. } = self.structs[of].clone();
                let (pattern, bound) = match fields[0] {
                    (_, Field::Scalar(ty)) => (x.clone(), vec![declared(&x, ty, false)]),
                    (_, Field::Pair(a, b)) => {
                        (format!("({x}, {y})"), vec![declared(&x, a, false), declared(&y, b, false)])
                    }
                    (_, Field::Array(..) | Field::Struct(_)) => ("_".to_owned(), vec![]),
                };
                self.line(&format!("let {ty} {{ f0: {pattern}, .. }} = {name};"));
                self.locals.extend(bound);
            }
            _ => {
                let is_place = |local: &&Local| local.mutable && local.extents.is_empty();
                let places: Vec<_> = self.locals.iter().filter(is_place).cloned().collect();
                let [first, .., last] = &places[..] else { return self.declare() };
                let value = self.pair(first.ty, last.ty);
                self.line(&format!("({}, {}) = {value};", first.name, last.name));
            }
        }
    }

    fn pair(&mut self, a: Ty, b: Ty) -> String {
        let (first, second) = (self.expr(a, 2), self.expr(b, 2));
        if self.rng.once_in(3) {
            format!("swapped(({second}, {first}))")
        } else {
            format!("({first}, {second})")
        }
    }

    /// Generates a call of a generic function.
    pub(super) fn generic_call(&mut self, ty: Ty, depth: usize) -> String {
        let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
        if self.rng.once_in(3) {
            return format!("rotated([{a}, {b}])[{}]", self.rng.below(2));
        }
        let condition = self.expr(Ty::Bool, depth);
        let types = if self.rng.once_in(2) { format!("::<{}>", ty.name()) } else { String::new() };
        format!("chosen{types}({condition}, {a}, {b})")
    }

    /// Generates a call of a method with a result of this type, if a struct in scope has one.
    pub(super) fn method_call(&mut self, ty: Ty, depth: usize) -> Option<String> {
        let methods = |object: &Object| self.structs[object.of].methods.filter(|it| it.valued == ty);
        let fitting: Vec<_> =
            self.objects.iter().filter_map(|object| Some((object.name.clone(), methods(object)?))).collect();
        if fitting.is_empty() {
            return None;
        }
        let (object, methods) = self.rng.one_of(&fitting).clone();
        Some(format!("{object}.value({})", self.expr(methods.value, depth.min(1))))
    }

    /// Generates a comparison of two structs, or of two tuples.
    pub(super) fn comparison_of_aggregates(&mut self, depth: usize) -> String {
        let op = *self.rng.one_of(&["==", "!="]);
        if !self.structs.is_empty() && self.rng.once_in(2) {
            let of = self.rng.below(self.structs.len());
            let (a, b) = (self.object(of, depth.min(1)), self.object(of, depth.min(1)));
            // The comparison borrows both, and an operand may change a variable in the other.
            let [x, y] = [(); 2].map(|()| self.fresh("o"));
            let ty = &self.structs[of].name;
            return format!("{{ let {x}: {ty} = {a}; let {y}: {ty} = {b}; {x} {op} {y} }}");
        }
        let [x, y] = [(); 2].map(|()| *self.rng.one_of(&Ty::ALL));
        let [a, b, c, d] = [x, y, x, y].map(|ty| self.expr(ty, depth));
        format!("(({a}, {b}) {op} ({c}, {d}))")
    }
}

/// The parameter `x` of a method.
fn argument(ty: Ty) -> Local {
    Local { name: "x".to_owned(), ty, extents: vec![], mutable: false }
}
