//! Statements. Every loop ends: it has a range of a few iterations, or a counter that nothing else
//! changes.

use super::types::{Small, Ty};
use super::{Local, Writer};

/// The maximum nesting depth of loops.
const MOST_LOOPS: usize = 2;

impl Writer<'_> {
    /// Writes `count` statements, with nested ones at most `depth` levels deep.
    pub(super) fn statements(&mut self, count: usize, depth: usize) {
        for _ in 0..count {
            self.statement(depth);
        }
    }

    /// Writes a block in braces, which the line `open` begins and `close` ends.
    fn block(&mut self, open: &str, depth: usize, close: &str) {
        self.line(open);
        let (locals, objects) = (self.locals.len(), self.objects.len());
        self.indent += 1;
        self.statements(1 + self.rng.below(3), depth);
        self.leave();
        self.indent -= 1;
        self.locals.truncate(locals);
        self.objects.truncate(objects);
        self.line(close);
    }

    /// Leaves a loop, or continues it, under a condition; sometimes returns from the function.
    fn leave(&mut self) {
        if self.rng.once_in(24) {
            let condition = self.expr(Ty::Bool, 2);
            let value = self.returned.map_or_else(String::new, |ty| format!(" {}", self.expr(ty, 1)));
            self.line(&format!("if {condition} {{ return{value}; }}"));
        }
        if self.loops.is_empty() || !self.rng.once_in(2) {
            return;
        }
        let condition = self.expr(Ty::Bool, 2);
        let word = *self.rng.one_of(&["break", "continue"]);
        let label =
            if self.rng.once_in(2) { String::new() } else { format!(" {}", self.rng.one_of(&self.loops)) };
        self.line(&format!("if {condition} {{ {word}{label}; }}"));
    }

    fn statement(&mut self, depth: usize) {
        match self.rng.below(if depth == 0 { 13 } else { 19 }) {
            0..=2 => self.declare(),
            3 => self.declare_array(),
            4..=8 => self.assign(),
            9 => self.declare_object(),
            10 => self.change_object(),
            11 | 12 => self.destructure(),
            13 | 14 => self.branch(depth - 1),
            15 => self.for_each(depth - 1),
            16 => {
                let of = *self.rng.one_of(&Ty::INTEGERS);
                let value = self.expr(of, 2);
                self.line(&format!("match {value} {{"));
                self.indent += 1;
                let patterns = *self.rng.one_of(&[["0 | 7", "1..=6"], ["3", "0..32"], ["64..=127", "5 | 2"]]);
                for pattern in patterns.into_iter().chain(["_"]) {
                    self.block(&format!("{pattern} => {{"), depth - 1, "}");
                }
                self.indent -= 1;
                self.line("}");
            }
            _ if self.loops.len() < MOST_LOOPS => self.repeat(depth - 1),
            _ => self.assign(),
        }
    }

    pub(super) fn declare(&mut self) {
        let ty = *self.rng.one_of(&Ty::ALL);
        let value = self.expr(ty, 3);
        let mutable = !self.rng.once_in(4);
        // Some variables shadow another one, which is then gone.
        let names: Vec<_> = self
            .locals
            .iter()
            .filter(|local| local.name.starts_with('v'))
            .map(|local| local.name.clone())
            .collect();
        let shadows = self.loops.is_empty() && self.indent == 2 && !names.is_empty() && self.rng.once_in(8);
        let name = if shadows { self.rng.one_of(&names).clone() } else { self.fresh("v") };
        self.line(&format!("let {}{name}: {} = {value};", if mutable { "mut " } else { "" }, ty.name()));
        self.locals.retain(|local| local.name != name);
        self.locals.push(Local { name, ty, extents: vec![], mutable });
    }

    fn declare_array(&mut self) {
        let ty = *self.rng.one_of(&Ty::ALL);
        let extents: Vec<usize> = (0..1 + self.rng.below(2)).map(|_| 1 + self.rng.below(4)).collect();
        let name = self.fresh("a");
        let (mut of, mut value) = (ty.name().to_owned(), String::new());
        for (level, &extent) in extents.iter().rev().enumerate() {
            let repeated = self.rng.once_in(2);
            value = match level {
                0 if repeated => format!("[{}; {extent}]", self.expr(ty, 2)),
                0 => format!("[{}]", (0..extent).map(|_| self.expr(ty, 2)).collect::<Vec<_>>().join(", ")),
                _ => format!("[{value}; {extent}]"),
            };
            of = format!("[{of}; {extent}]");
        }
        self.line(&format!("let mut {name}: {of} = {value};"));
        self.locals.push(Local { name, ty, extents, mutable: true });
    }

    /// Assigns a new value to a variable or an element.
    fn assign(&mut self) {
        let changed: Vec<_> = self.locals.iter().filter(|local| local.mutable).cloned().collect();
        if changed.is_empty() {
            return self.declare();
        }
        let local = self.rng.one_of(&changed).clone();
        let (place, ty) = (self.place(&local), local.ty);
        let value = match self.rng.below(3) {
            0 => format!("= {}", self.expr(ty, 3)),
            _ if ty == Ty::Bool => {
                format!("{}= {}", self.rng.one_of(&["&", "|", "^"]), self.expr(ty, 3))
            }
            _ if ty.is_float() => {
                format!("{}= {}", self.rng.one_of(&["+", "-", "*", "/"]), self.expr(ty, 3))
            }
            _ => match self.rng.below(5) {
                0 => format!("{}= {}", self.rng.one_of(&["/", "%"]), self.divisor(ty, 2)),
                1 => format!("{}= {}", self.rng.one_of(&["<<", ">>"]), self.shift_amount(ty, 2)),
                _ => {
                    let op = *self.rng.one_of(&["+", "-", "*", "&", "|", "^"]);
                    let value = self.expr(ty, 3);
                    match Small::of(op, ty) {
                        Some(Small { left, right }) => {
                            // First the value, which may change the variable.
                            let by = self.fresh("by");
                            self.line(&format!("let {by}: {} = {value}{right};", ty.name()));
                            self.line(&format!("{place} = {place}{left};"));
                            format!("{op}= {by}")
                        }
                        None => format!("{op}= {value}"),
                    }
                }
            },
        };
        self.line(&format!("{place} {value};"));
    }

    /// Writes a loop over the elements of a register array.
    fn for_each(&mut self, depth: usize) {
        let arrays: Vec<_> = self.locals.iter().filter(|local| local.extents.len() == 1).cloned().collect();
        if arrays.is_empty() || self.loops.len() == MOST_LOOPS {
            return self.declare_array();
        }
        let Local { name: array, ty, .. } = self.rng.one_of(&arrays).clone();
        let (label, element) = (format!("'{}", self.fresh("l")), self.fresh("e"));
        let outside = self.locals.len();
        self.loops.push(label.clone());
        self.locals.push(Local { name: element.clone(), ty, extents: vec![], mutable: false });
        self.block(&format!("{label}: for {element} in {array} {{"), depth, "}");
        self.loops.pop();
        self.locals.truncate(outside);
    }

    fn branch(&mut self, depth: usize) {
        let condition = self.expr(Ty::Bool, 2);
        let open = format!("if {condition} {{");
        match self.rng.below(3) {
            0 => self.block(&open, depth, "}"),
            1 => {
                self.block(&open, depth, "} else {");
                self.block("    // otherwise", depth, "}");
            }
            _ => {
                self.block(&open, depth, "}");
            }
        }
    }

    /// Writes a loop of any kind.
    fn repeat(&mut self, depth: usize) {
        let label = format!("'{}", self.fresh("l"));
        let counter = self.fresh("turn");
        let outside = self.locals.len();
        self.loops.push(label.clone());
        match self.rng.below(5) {
            kind @ (0 | 1) => {
                let ty = *self.rng.one_of(&Ty::INTEGERS);
                let range = self.range(ty, kind == 0);
                self.locals.push(Local { name: counter.clone(), ty, extents: vec![], mutable: false });
                self.block(&format!("{label}: for {counter} in {range} {{"), depth, "}");
            }
            2 => {
                let ty = *self.rng.one_of(&Ty::INTEGERS);
                let (from, name) = (self.rng.below(3), ty.name());
                let to = from + 1 + self.rng.below(4);
                let range = *self.rng.one_of(&["..", "..="]);
                self.locals.push(Local { name: counter.clone(), ty, extents: vec![], mutable: false });
                let range = format!("{from}{name}{range}{to}{name}");
                let range = if self.rng.once_in(3) { format!("({range}).rev()") } else { range };
                self.block(&format!("{label}: for {counter} in unroll({range}) {{"), depth, "}");
            }
            3 => {
                let (iterations, condition) = (1 + self.rng.below(5), self.expr(Ty::Bool, 2));
                self.line(&format!("let mut {counter}: u32 = 0u32;"));
                self.locals.push(Local {
                    name: counter.clone(),
                    ty: Ty::U32,
                    extents: vec![],
                    mutable: false,
                });
                self.line(&format!("{label}: while {counter} < {iterations}u32 && {condition} {{"));
                self.block(&format!("    {counter} += 1u32;"), depth, "}");
            }
            _ => {
                let iterations = 1 + self.rng.below(5);
                self.line(&format!("let mut {counter}: i16 = 0i16;"));
                self.locals.push(Local {
                    name: counter.clone(),
                    ty: Ty::I16,
                    extents: vec![],
                    mutable: false,
                });
                self.line(&format!("{label}: loop {{"));
                self.line(&format!("    if {counter} == {iterations}i16 {{ break; }}"));
                self.block(&format!("    {counter} += 1i16;"), depth, "}");
            }
        }
        self.loops.pop();
        self.locals.truncate(outside);
    }

    /// Returns a range of a few iterations, sometimes at the end of the type.
    fn range(&mut self, ty: Ty, stepped: bool) -> String {
        let name = ty.name();
        let (from, to) = match self.rng.below(4) {
            0 => (format!("{name}::MAX - 3{name}"), format!("{name}::MAX")),
            1 => (format!("({} & 3{name})", self.leaf(ty)), format!("5{name}")),
            2 => (format!("{}{name}", self.rng.below(4)), format!("({} & 7{name})", self.leaf(ty))),
            _ => (format!("{}{name}", self.rng.below(4)), format!("{}{name}", self.rng.below(8))),
        };
        let dots = *self.rng.one_of(&["..", "..="]);
        let reversed = if self.rng.once_in(3) { ".rev()" } else { "" };
        if !stepped {
            return format!("(({from}){dots}({to})){reversed}");
        }
        let step = match self.rng.below(3) {
            0 => format!("({} & 3usize) + 1usize", self.leaf(Ty::Usize)),
            1 => "300usize".to_owned(),
            _ => format!("{}usize", 1 + self.rng.below(4)),
        };
        format!("(({from}){dots}({to})){reversed}.step_by({step})")
    }
}
