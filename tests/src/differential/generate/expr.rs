//! Expressions. Each is in parentheses if another one may surround it: precedence has tests of its
//! own.

use super::types::Ty;
use super::{Local, Writer};

impl Writer<'_> {
    /// Generates an expression of type `ty`, of at most `depth` levels.
    pub(super) fn expr(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.rng.once_in(6) {
            return self.leaf(ty);
        }
        match self.rng.below(12) {
            0 => self.choice(ty, depth - 1),
            1..=3 => self.call(ty, depth - 1),
            4 | 5 => self.converted(ty, depth - 1),
            _ => self.computed(ty, depth - 1),
        }
    }

    /// Generates a literal, a variable, or an element of one.
    pub(super) fn leaf(&mut self, ty: Ty) -> String {
        let fitting: Vec<Local> = self.locals.iter().filter(|local| local.ty == ty).cloned().collect();
        if fitting.is_empty() && ty != Ty::Bool && !self.rng.once_in(3) {
            // A number of another type tests more than a literal.
            let numbers: Vec<Local> =
                self.locals.iter().filter(|local| local.ty != Ty::Bool).cloned().collect();
            if !numbers.is_empty() {
                let local = self.rng.one_of(&numbers).clone();
                let place = self.constant_place(&local);
                return format!("cast::<{}>({place})", ty.name());
            }
        }
        if fitting.is_empty() || self.rng.once_in(4) {
            return ty.literal(self.rng);
        }
        let local = self.rng.one_of(&fitting).clone();
        self.place(&local)
    }

    /// Returns a variable, or an element of it at indices within its extents.
    pub(super) fn place(&mut self, local: &Local) -> String {
        let mut place = local.name.clone();
        for &extent in &local.extents {
            let index = match self.rng.below(3) {
                0 => self.rng.below(extent).to_string(),
                1 => format!("({} % {extent}usize)", self.leaf(Ty::Usize)),
                _ => {
                    let ty = *self.rng.one_of(&Ty::INTEGERS);
                    format!("({} as usize % {extent}usize)", self.leaf(ty))
                }
            };
            place = format!("{place}[{index}]");
        }
        place
    }

    /// Generates an `if`, a `match`, a block, or a loop or block that `break` ends with a value.
    fn choice(&mut self, ty: Ty, depth: usize) -> String {
        match self.rng.below(5) {
            3 => {
                let (label, condition) = (self.fresh("x"), self.expr(Ty::Bool, depth));
                let (early, late) = (self.expr(ty, depth), self.expr(ty, depth));
                format!("('{label}: {{ if {condition} {{ break '{label} {early}; }} {late} }})")
            }
            4 => {
                let condition = self.expr(Ty::Bool, depth);
                let (early, late) = (self.expr(ty, depth), self.expr(ty, depth));
                format!("(loop {{ if {condition} {{ break {early}; }} break {late}; }})")
            }
            0 => {
                let condition = self.expr(Ty::Bool, depth);
                let (yes, no) = (self.expr(ty, depth), self.expr(ty, depth));
                format!("(if {condition} {{ {yes} }} else {{ {no} }})")
            }
            1 => {
                let of = *self.rng.one_of(&Ty::INTEGERS);
                let value = self.expr(of, depth);
                let (a, b, c) = (self.leaf(ty), self.expr(ty, depth.min(1)), self.leaf(ty));
                let patterns =
                    *self.rng.one_of(&[("0", "1..=9"), ("3 | 5", "0..64"), ("100..=127", "0 | 1 | 2")]);
                format!("(match {value} {{ {} => {a}, {} => {b}, _ => {c} }})", patterns.0, patterns.1)
            }
            _ => {
                let inner = *self.rng.one_of(&Ty::ALL);
                let value = self.expr(inner, depth);
                let name = self.fresh("b");
                self.locals.push(Local { name: name.clone(), ty: inner, extents: vec![], mutable: false });
                let result = self.expr(ty, depth);
                self.locals.pop();
                format!("{{ let {name}: {} = {value}; {result} }}", inner.name())
            }
        }
    }

    /// Generates the amount by which a value of type `shifted` is shifted. It is unrestricted if it
    /// is known only at run time, and below the width if it is a constant, since the compiler
    /// accepts no other.
    pub(super) fn shift_amount(&mut self, shifted: Ty, depth: usize) -> String {
        let of = *self.rng.one_of(&Ty::INTEGERS);
        let amount = self.expr(of, depth);
        // A variable that never changes may be a constant to the compiler, and a block may end in
        // one, whatever its other lines mention.
        let changes =
            |amount: &str| self.locals.iter().any(|local| local.mutable && amount.contains(&local.name));
        if !changes(&amount) || amount.contains('{') {
            format!("({amount} & {})", shifted.bits() - 1)
        } else {
            amount
        }
    }

    /// Generates a call of a device function, with an effect if there is a variable for it.
    fn call(&mut self, ty: Ty, depth: usize) -> String {
        match self.rng.below(6) {
            0 => return self.generic_call(ty, depth),
            1 | 2 => {
                if let Some(call) = self.method_call(ty, depth) {
                    return call;
                }
            }
            3 if ty == Ty::U32 && !self.const_functions.is_empty() => {
                let function = self.rng.one_of(&self.const_functions).clone();
                return format!("{function}({})", self.expr(Ty::U32, depth));
            }
            _ => {}
        }
        let changed: Vec<_> = self.locals.iter().filter(|local| local.mutable && local.ty == ty).collect();
        let by = ty.literal(self.rng);
        if matches!(ty, Ty::U8 | Ty::I32 | Ty::U64)
            && let Some(local) = changed.iter().find(|local| local.extents.is_empty())
        {
            return format!("bump_{}(&mut {}, {by})", ty.name(), local.name);
        }
        if ty == Ty::U32 && changed.iter().any(|local| local.extents == [4]) {
            let array =
                changed.iter().find(|local| local.extents == [4]).map_or("lanes", |local| &local.name);
            return format!("turn(&mut {array}, {by})");
        }
        let functions: Vec<_> =
            self.functions.iter().filter(|function| function.returned == ty).cloned().collect();
        if functions.is_empty() {
            return self.computed(ty, depth);
        }
        let function = self.rng.one_of(&functions).clone();
        let args: Vec<_> = function.params.iter().map(|&ty| self.expr(ty, depth.min(1))).collect();
        format!("{}({})", function.name, args.join(", "))
    }

    /// Generates a value of another type, converted to `ty`.
    fn converted(&mut self, ty: Ty, depth: usize) -> String {
        let name = ty.name();
        match ty {
            Ty::Bool => self.comparison(depth),
            Ty::U8 if self.rng.once_in(3) => {
                let narrow = *self.rng.one_of(&["e4m3", "e5m2"]);
                let from = self.numeric();
                let value = self.expr(from, depth);
                format!("bits_{narrow}(cast::<{narrow}>({value}))")
            }
            Ty::F16 | Ty::Bf16 | Ty::F32 | Ty::F64 if self.rng.once_in(3) => self.out_of_narrow(ty, depth),
            _ if ty.is_primitive() && self.rng.once_in(2) => {
                let from = *self.rng.one_of(&Ty::ALL);
                // Rust converts a bool only to integers, and floats that are structs to nothing.
                if !from.is_primitive() || (from == Ty::Bool && !ty.is_integer()) {
                    return self.converted(ty, depth);
                }
                format!("({} as {name})", self.expr(from, depth))
            }
            _ => {
                let from = self.numeric();
                format!("cast::<{name}>({})", self.expr(from, depth))
            }
        }
    }

    fn numeric(&self) -> Ty {
        *self.rng.one_of(&Ty::ALL[1..])
    }

    /// Generates a float that was in a format without arithmetic, or comes from bits.
    fn out_of_narrow(&mut self, ty: Ty, depth: usize) -> String {
        let name = ty.name();
        let from = self.numeric();
        match (self.rng.below(5), ty) {
            (0, _) => {
                let narrow = self.rng.one_of(&["tf32", "tf32", "e4m3", "e5m2"]).to_string();
                // The wider the type is, the more there is to round.
                let from = if self.rng.once_in(2) {
                    *self.rng.one_of(&[Ty::I64, Ty::U64, Ty::I32, Ty::F64])
                } else {
                    from
                };
                format!("cast::<{name}>(cast::<{narrow}>({}))", self.expr(from, depth))
            }
            (1, _) => {
                let narrow = self.rng.one_of(&["e4m3", "e5m2"]).to_string();
                format!("cast::<{name}>({narrow}::from_bits({}))", self.expr(Ty::U8, depth))
            }
            (2, Ty::F32) => format!("tf32::from_f32({}).to_f32()", self.expr(Ty::F32, depth)),
            (_, Ty::F16 | Ty::Bf16) => match self.rng.below(3) {
                0 => format!("{name}::from_bits({})", self.expr(Ty::U16, depth)),
                1 => format!("{name}::from_f32({})", self.expr(Ty::F32, depth)),
                _ => format!("{name}::from_f64({})", self.expr(Ty::F64, depth)),
            },
            (3, Ty::F32) => format!("f32::from_bits({})", self.expr(Ty::U32, depth)),
            (3, Ty::F64) => format!("f64::from_bits({})", self.expr(Ty::U64, depth)),
            _ => {
                let half = *self.rng.one_of(&[Ty::F16, Ty::Bf16]);
                format!("({}).to_{}()", self.expr(half, depth), if ty == Ty::F32 { "f32" } else { "f64" })
            }
        }
    }

    /// Generates `a == b` or another comparison.
    fn comparison(&mut self, depth: usize) -> String {
        let of = self.numeric();
        let (mut a, mut b) = (self.expr(of, depth), self.expr(of, depth));
        if of.is_integer() && self.rng.once_in(2) {
            // Few values, so that two are often equal.
            (a, b) = (format!("({a} & 3{})", of.name()), format!("({b} & 3{})", of.name()));
        }
        format!("({a} {} {b})", self.rng.one_of(&["==", "!=", "<", "<=", ">", ">="]))
    }

    /// Generates an operator or a function of numbers.
    fn computed(&mut self, ty: Ty, depth: usize) -> String {
        if ty == Ty::Bool {
            let (a, b) = (self.expr(Ty::Bool, depth), self.expr(Ty::Bool, depth));
            return match self.rng.below(8) {
                0 => format!("(!{a})"),
                1 => format!("({a} && {b})"),
                2 => format!("({a} || {b})"),
                3 => format!("({a} {} {b})", self.rng.one_of(&["&", "|", "^", "==", "!="])),
                4 => self.comparison_of_aggregates(depth),
                _ => self.comparison(depth),
            };
        }
        if ty.is_float() { self.float(ty, depth) } else { self.integer(ty, depth) }
    }

    fn float(&mut self, ty: Ty, depth: usize) -> String {
        let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
        match self.rng.below(12) {
            0 => format!("(-{a})"),
            1 => format!("min({a}, {b})"),
            2 => format!("max({a}, {b})"),
            3 => format!("abs({a})"),
            4 => format!("fma({a}, {b}, {})", self.expr(ty, depth)),
            5 if ty.is_primitive() => format!("({a}).mul_add({b}, {})", self.leaf(ty)),
            6 if ty.is_primitive() => format!("sqrt({a})"),
            7 if ty.is_primitive() => format!("({a}).{}()", self.rng.one_of(&["sqrt", "recip", "abs"])),
            8 if ty.is_primitive() => format!("recip({a})"),
            _ => format!("({a} {} {b})", self.rng.one_of(&["+", "-", "*", "/"])),
        }
    }

    fn integer(&mut self, ty: Ty, depth: usize) -> String {
        let a = self.expr(ty, depth);
        match self.rng.below(17) {
            14 | 15 => self.method(&a, ty, depth),
            16 if matches!(ty.bits(), 32 | 64) && ty != Ty::Usize => {
                format!("mul_hi({a}, {})", self.expr(ty, depth))
            }
            0 => format!("(!{a})"),
            1 if ty.is_signed() => format!("(-{a})"),
            2 => format!("min({a}, {})", self.expr(ty, depth)),
            3 => format!("({a}).{}({})", self.rng.one_of(&["min", "max"]), self.expr(ty, depth)),
            4 if ty.is_signed() => format!("abs({a})"),
            5 if ty.is_signed() => format!("({a}).abs()"),
            5 => format!("({a}).div_ceil({})", self.divisor(ty, depth)),
            6 | 7 => {
                format!("({a} {} {})", self.rng.one_of(&["/", "%"]), self.divisor(ty, depth))
            }
            8 | 9 => {
                format!("({a} {} {})", self.rng.one_of(&["<<", ">>"]), self.shift_amount(ty, depth))
            }
            _ => {
                let op = self.rng.one_of(&["+", "-", "*", "&", "|", "^"]).to_string();
                format!("({a} {op} {})", self.expr(ty, depth))
            }
        }
    }

    /// Generates a method of an integer. Those that Rust leaves open do not occur: a logarithm of
    /// zero, or a multiple that the type does not have.
    fn method(&mut self, a: &str, ty: Ty, depth: usize) -> String {
        let b = self.expr(ty, depth);
        match self.rng.below(6) {
            0 | 1 => {
                let method = self.rng.one_of(&["wrapping_add", "wrapping_sub", "wrapping_mul"]);
                format!("({a}).{method}({b})")
            }
            2 => format!("({a}).{}({b})", self.rng.one_of(&["saturating_add", "saturating_sub"])),
            3 if !ty.is_signed() => format!("({a}).abs_diff({b})"),
            3 => format!("(({a}).abs_diff({b}) as {})", ty.name()),
            4 => format!("({a}).pow({} & 7u32)", self.leaf(Ty::U32)),
            _ if ty == Ty::U32 => format!("(({a}) | 1u32).ilog2()"),
            _ => format!("({a}).wrapping_neg()"),
        }
    }

    /// Generates a number that is neither 0 nor -1: its second bit is cleared and its third set.
    pub(super) fn divisor(&mut self, ty: Ty, depth: usize) -> String {
        let (value, name) = (self.expr(ty, depth.min(1)), ty.name());
        if ty.is_signed() {
            format!("(({value} & !2{name}) | 4{name})")
        } else {
            format!("({value} | 1{name})")
        }
    }
}
