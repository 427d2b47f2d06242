//! Generation of statements.

use tma_codegen::ir::Scalar;

use super::body::{INDICES, Maker, Ty, Variable};
use super::expr::PRIMITIVES;

impl Maker<'_> {
    /// Generates a statement, with a newline.
    pub(super) fn statement(&mut self, depth: usize) -> String {
        let made = match self.rng.below(16) {
            0..4 => Some(self.let_scalar(depth)),
            4 => Some(self.let_array(depth)),
            5 => self.assignment(depth),
            6 => self.compound_assignment(depth),
            7..9 if depth > 0 => Some(self.for_loop(depth - 1)),
            9 if depth > 0 => Some(self.branch(depth - 1)),
            10 if depth > 0 => Some(self.endless(depth - 1)),
            11..14 if self.in_kernel => Some(self.store(depth)),
            14 if self.in_kernel => Some(self.copy(depth)),
            15 => self.call_or_print(depth),
            _ => None,
        };
        made.unwrap_or_else(|| self.let_scalar(depth))
    }

    /// Returns `name: ty` or, mostly, `name` alone; with `mut` if mutable.
    fn declared(&mut self, ty: Ty, mutable: bool) -> (String, String) {
        let name = self.name();
        let written = match ty {
            Ty::Scalar(scalar) => scalar.to_string(),
            Ty::Array(scalar, len) => format!("[{scalar}; {len}]"),
        };
        let annotation = match (self.rng.below(10), ty) {
            (0 | 1, _) => format!(": {written}"),
            (2, Ty::Scalar(_)) => ": _".to_owned(),
            (2, Ty::Array(_, len)) => format!(": [_; {len}]"),
            _ => String::new(),
        };
        let declared = format!("{}{name}{annotation}", if mutable { "mut " } else { "" });
        (name, declared)
    }

    fn let_of(&mut self, ty: Ty, value: &str) -> String {
        let mutable = self.rng.once_in(2);
        let (name, declared) = self.declared(ty, mutable);
        let ask = self.ask(&name);
        self.variables.push(Variable { name, ty, mutable });
        format!("let {declared} = {value};{ask}")
    }

    fn let_scalar(&mut self, depth: usize) -> String {
        let (ty, value) = if self.rng.once_in(2) {
            let ty = self.literal_type();
            (ty, self.literal(ty))
        } else {
            let ty = self.scalar();
            (ty, self.expr(ty, depth))
        };
        self.let_of(Ty::Scalar(ty), &value)
    }

    fn let_array(&mut self, depth: usize) -> String {
        let (ty, len) = (self.scalar(), 1 + self.rng.below(4));
        let value = if self.rng.once_in(2) {
            format!("[{}; {len}]", self.expr(ty, depth.min(1)))
        } else {
            let elements: Vec<_> = (0..len).map(|_| self.expr(ty, depth.min(1))).collect();
            format!("[{}]", elements.join(", "))
        };
        self.let_of(Ty::Array(ty, len), &value)
    }

    /// Generates a place expression that can be assigned to: a variable or an element.
    fn place(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        if self.rng.once_in(2)
            && let Some((name, len)) = self.array(ty, true)
        {
            let index = self.index_below(len, depth.min(1));
            return Some(format!("{name}[{index}]"));
        }
        Some(self.variable(ty, true)?.name)
    }

    /// Returns a type with a variable or an element that can be assigned to.
    fn assignable(&self) -> Option<Scalar> {
        let types =
            self.variables.iter().filter(|variable| variable.mutable).map(|variable| match variable.ty {
                Ty::Scalar(ty) | Ty::Array(ty, _) => ty,
            });
        let types: Vec<_> = types.collect();
        (!types.is_empty()).then(|| *self.rng.one_of(&types))
    }

    fn assignment(&mut self, depth: usize) -> Option<String> {
        let ty = self.assignable()?;
        let place = self.place(ty, depth)?;
        let value = self.expr(ty, depth);
        Some(format!("{place} = {value};\n"))
    }

    fn compound_assignment(&mut self, depth: usize) -> Option<String> {
        let ty = self.assignable()?;
        let place = self.place(ty, depth)?;
        let sign = match ty {
            Scalar::Bool => *self.rng.one_of(&["&=", "|=", "^="]),
            ty if ty.is_integer() => *self.rng.one_of(&["+=", "-=", "*=", "&=", "|=", "^=", "<<=", ">>="]),
            ty if ty.is_arithmetic() => *self.rng.one_of(&["+=", "-=", "*="]),
            _ => return None,
        };
        let right = if matches!(sign, "<<=" | ">>=") { self.integer() } else { ty };
        Some(format!("{place} {sign} {};\n", self.expr(right, depth)))
    }

    fn for_loop(&mut self, depth: usize) -> String {
        let ty = self.integer();
        let (first, last) = (self.rng.below(3), 3 + self.rng.below(4));
        let written_out = self.rng.once_in(3);
        let bounds = if written_out || self.rng.once_in(2) {
            let suffix = if self.rng.once_in(6) { ty.name() } else { "" };
            format!("{first}..{}{last}{suffix}", if self.rng.once_in(4) { "=" } else { "" })
        } else {
            let (start, end) = (self.expr(ty, depth.min(1)), self.expr(ty, depth.min(1)));
            format!("{start}..{end}")
        };
        let stepped = match self.rng.below(4) {
            0 => format!("({bounds}).step_by({})", 1 + self.rng.below(3)),
            _ => bounds,
        };
        let range = if written_out { format!("unroll({stepped})") } else { stepped };
        let name = self.name();
        let ask = self.ask(&name);
        self.variables.push(Variable { name: name.clone(), ty: Ty::Scalar(ty), mutable: false });
        let statements = 1 + self.rng.below(3);
        let body = self.block(statements, depth, None);
        self.variables.pop();
        format!("for {name} in {range} {{{ask}{body}}}\n")
    }

    fn branch(&mut self, depth: usize) -> String {
        if self.rng.once_in(3) {
            let on = self.integer();
            let value = self.operand(on, depth);
            let patterns = self.patterns(on);
            let arms: Vec<_> = patterns
                .iter()
                .map(|pattern| format!("{pattern} => {{\n{}}}\n", self.block(1, depth, None)))
                .collect();
            return format!("match {value} {{\n{}}}\n", arms.concat());
        }
        let condition = self.condition(depth);
        if self.rng.once_in(4) {
            let value = self.gives.map(|ty| self.expr(ty, depth)).unwrap_or_default();
            return format!("if {condition} {{\nreturn {value};\n}}\n");
        }
        let (then, otherwise) = (self.block(1, depth, None), self.block(1, depth, None));
        format!("if {condition} {{\n{then}}} else {{\n{otherwise}}}\n")
    }

    fn endless(&mut self, depth: usize) -> String {
        let (condition, body) = (self.condition(depth), self.block(2, depth, None));
        match self.rng.below(2) {
            0 => format!("while {condition} {{\n{body}}}\n"),
            _ => format!("loop {{\n{body}if {condition} {{\nbreak;\n}}\n}}\n"),
        }
    }

    /// Generates a write to memory.
    fn store(&mut self, depth: usize) -> String {
        match self.rng.below(9) {
            0 => {
                let at = self.coordinates(depth.min(1));
                format!("tile.set({at}, {});\n", self.expr(Scalar::F32, depth))
            }
            1 => {
                let at = self.coordinates(depth.min(1));
                format!("words.set({at}, {});\n", self.expr(Scalar::U32, depth))
            }
            2 => {
                let index = self.operand(Scalar::U32, depth.min(1));
                format!("part.set({index} & 63, {});\n", self.expr(Scalar::F32, depth))
            }
            3 => {
                let ty = *self.rng.one_of(&[Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64, Scalar::F32]);
                let index = self.index(depth.min(1));
                format!("g_{ty}.atomic_add({index}, {});\n", self.expr(ty, depth))
            }
            4..7 => {
                // Both have one type, which the index leaves open and the value decides.
                let ty = self.one_of(&INDICES);
                format!("g_{ty}.set({}, {});\n", self.operand(ty, 1), self.operand(ty, 1))
            }
            _ => {
                let ty = self.scalar();
                let index = self.index(depth.min(1));
                format!("g_{ty}.set({index}, {});\n", self.expr(ty, depth))
            }
        }
    }

    /// Generates a copy, with the statements that belong to it. Constants among the operands
    /// satisfy the hardware's rules.
    fn copy(&mut self, depth: usize) -> String {
        let depth = depth.min(1);
        let ty = self.one_of(&[Scalar::U32, Scalar::I32]);
        let (row, column) = (self.operand(ty, depth), self.operand(ty, depth));
        let at = format!("[{row} & 7, ({column} & 7) * 32]");
        let number = self.operand(Scalar::U32, depth);
        match self.rng.below(9) {
            0 => format!("map.load(tile, {at}, full);\n"),
            1 => format!("map.store({at}, tile);\n"),
            2 => format!("map.prefetch({at});\n"),
            3 => format!("full.wait({number} & 1);\n"),
            7 => {
                // The number is used twice without a variable: the coordinate leaves its type open,
                // and the parity decides it.
                let number = self.expr(Scalar::U32, 0);
                format!("map.load(tile, [{number} & 7, 0], full);\nfull.wait({number} & 1);\n")
            }
            4 => format!("full.init(({number} & 7) | 1);\n"),
            5 => {
                let name = self.name();
                let loaded = format!("let {name} = {at};\nmap.load(tile, {name}, full);{}", self.ask(&name));
                self.variables.push(Variable { name, ty: Ty::Array(ty, 2), mutable: false });
                loaded
            }
            6 => {
                let index = self.index(depth);
                format!("g_f32.bulk_load(part, 0, 64, ({index} & 15) * 4, full);\n")
            }
            _ => format!("full.arrive_expect_tx((({number}) & 63) * 16);\n"),
        }
    }

    fn call_or_print(&mut self, depth: usize) -> Option<String> {
        if self.rng.once_in(2) && !self.functions.is_empty() {
            let function = self.rng.one_of(&self.functions).clone();
            return Some(format!("{};\n", self.call_of(&function, depth)?));
        }
        let ty = *self.rng.one_of(&PRIMITIVES);
        let value = self.expr(ty, depth);
        Some(match self.rng.below(2) {
            0 => format!("printf!(\"{{}}\\n\", {value});\n"),
            _ => format!("assert!({});\n", self.condition(depth)),
        })
    }
}
