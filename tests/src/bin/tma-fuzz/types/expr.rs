//! Generation of expressions of a given type.

use tma_codegen::ir::Scalar;

use super::body::{Function, INDICES, INTEGERS, Maker, Ty, Variable};

/// The types that `as` supports, except `bool`.
pub(super) const PRIMITIVES: [Scalar; 11] = [
    Scalar::I8,
    Scalar::U8,
    Scalar::I16,
    Scalar::U16,
    Scalar::I32,
    Scalar::U32,
    Scalar::I64,
    Scalar::U64,
    Scalar::Usize,
    Scalar::F32,
    Scalar::F64,
];

/// Returns whether literals can have this type.
fn has_literals(ty: Scalar) -> bool {
    PRIMITIVES.contains(&ty) || ty == Scalar::Bool
}

fn is_unsigned(ty: Scalar) -> bool {
    ty.is_integer() && !ty.is_signed()
}

impl Maker<'_> {
    /// Generates an expression of type `ty`, assuming that omitted types are inferred as those for
    /// which they were generated.
    pub(super) fn expr(&mut self, ty: Scalar, depth: usize) -> String {
        if depth == 0 {
            return self.leaf(ty);
        }
        let made = match self.rng.below(17) {
            0..3 => self.arithmetic(ty, depth - 1),
            3 => self.shift(ty, depth - 1),
            4 => self.unary(ty, depth - 1),
            5 => self.as_cast(ty, depth - 1),
            6 => self.cast_word(ty, depth - 1),
            7 => self.math(ty, depth - 1),
            8 => self.method(ty, depth - 1),
            9 => Some(self.if_value(ty, depth - 1)),
            10 => Some(self.match_value(ty, depth - 1)),
            11 => {
                let statements = self.rng.below(3);
                Some(format!("({{\n{}}})", self.block(statements, depth - 1, Some(ty))))
            }
            12 => self.element(ty, depth - 1),
            13 => self.device_call(ty, depth - 1),
            14 => self.memory(ty, depth - 1),
            _ => None,
        };
        made.unwrap_or_else(|| self.leaf(ty))
    }

    fn leaf(&mut self, ty: Scalar) -> String {
        if !self.rng.once_in(3)
            && let Some(variable) = self.variable(ty, false)
        {
            return variable.name;
        }
        match ty {
            Scalar::U32 if self.rng.once_in(8) => {
                let places = [
                    "thread_idx().x",
                    "block_idx().y",
                    "lane_idx()",
                    "u32::BITS",
                    "u32::MAX",
                    "block_dim().x",
                ];
                (*self.rng.one_of(&places)).to_owned()
            }
            _ => self.literal(ty),
        }
    }

    /// Returns one of the variables of type `ty`, most likely one of the last.
    pub(super) fn variable(&self, ty: Scalar, mutable: bool) -> Option<Variable> {
        let fits = |variable: &&Variable| variable.ty == Ty::Scalar(ty) && (variable.mutable || !mutable);
        let fitting: Vec<_> = self.variables.iter().filter(fits).collect();
        let last = fitting.len().saturating_sub(3);
        let recent = if self.rng.once_in(4) { &fitting[..] } else { &fitting[last..] };
        (!recent.is_empty()).then(|| (*self.rng.one_of(recent)).clone())
    }

    /// Returns a literal, mostly without a suffix. Its value fits in every integer type.
    pub(super) fn literal(&self, ty: Scalar) -> String {
        let n = if self.rng.once_in(4) { self.rng.below(100) } else { self.rng.below(9) };
        let suffix = if self.rng.once_in(6) { ty.name() } else { "" };
        match ty {
            Scalar::Bool => (*self.rng.one_of(&["true", "false"])).to_owned(),
            Scalar::F32 | Scalar::F64 if self.rng.once_in(12) => format!("{n}{ty}"),
            Scalar::F32 | Scalar::F64 => format!("{n}.5{suffix}"),
            ty if ty.is_signed() && self.rng.once_in(8) => format!("(-{n}{suffix})"),
            ty if ty.is_integer() => format!("{n}{suffix}"),
            ty if self.rng.once_in(2) => format!("{ty}::from_f32({n}.25)"),
            ty => format!("{ty}::from_f64({n}.75)"),
        }
    }

    fn arithmetic(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        let sign = match ty {
            Scalar::Bool => return Some(self.condition(depth)),
            ty if ty.is_integer() => *self.rng.one_of(&["+", "-", "*", "&", "|", "^", "/", "%"]),
            ty if ty.is_arithmetic() => *self.rng.one_of(&["+", "-", "*", "/"]),
            _ => return None,
        };
        let left = self.expr(ty, depth);
        // No constant is divided by zero.
        let right = match sign {
            "/" | "%" if ty.is_integer() => (1 + self.rng.below(9)).to_string(),
            _ => self.expr(ty, depth),
        };
        Some(format!("({left} {sign} {right})"))
    }

    /// Generates a `bool`: a comparison of two values of the same type, or two `bool`s combined.
    pub(super) fn condition(&mut self, depth: usize) -> String {
        if self.rng.once_in(4) {
            let (left, right) = (self.expr(Scalar::Bool, depth), self.expr(Scalar::Bool, depth));
            let sign = self.rng.one_of(&["&&", "||", "&", "|", "^", "==", "!=", "<"]);
            return format!("({left} {sign} {right})");
        }
        let ty = *self.rng.one_of(&PRIMITIVES);
        let (left, right) = (self.expr(ty, depth), self.expr(ty, depth));
        let sign = self.rng.one_of(&["==", "!=", "<", "<=", ">", ">="]);
        format!("({left} {sign} {right})")
    }

    /// Generates a shift, by an amount of any type.
    fn shift(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        let amount = self.integer();
        ty.is_integer().then(|| {
            let (left, right) = (self.expr(ty, depth), self.operand(amount, depth));
            format!("({left} {} {right})", self.rng.one_of(&["<<", ">>"]))
        })
    }

    fn unary(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        match ty {
            ty if ty.is_arithmetic() && !is_unsigned(ty) && self.rng.once_in(2) => {
                Some(format!("(-{})", self.expr(ty, depth)))
            }
            ty if ty.is_integer() || ty == Scalar::Bool => Some(format!("(!{})", self.expr(ty, depth))),
            _ => None,
        }
    }

    fn as_cast(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        if !PRIMITIVES.contains(&ty) {
            return None;
        }
        let from = match ty {
            ty if ty.is_integer() && self.rng.once_in(6) => Scalar::Bool,
            _ => self.one_of(&PRIMITIVES),
        };
        let value = self.operand(from, depth);
        let to = if self.rng.once_in(40) { "_" } else { ty.name() };
        Some(format!("({value} as {to})"))
    }

    fn cast_word(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        let from = self.scalar();
        (ty != Scalar::Bool && from != Scalar::Bool).then(|| {
            let value = self.operand(from, depth);
            match self.rng.below(40) {
                0 => format!("cast({value})"),
                1 => format!("cast::<_>({value})"),
                _ => format!("cast::<{ty}>({value})"),
            }
        })
    }

    fn math(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        let words: &[(&str, usize)] = match ty {
            Scalar::F32 => &[
                ("min", 2),
                ("max", 2),
                ("abs", 1),
                ("fma", 3),
                ("sqrt", 1),
                ("recip", 1),
                ("rsqrt", 1),
                ("exp2", 1),
                ("exp2_ftz", 1),
                ("log2", 1),
            ],
            Scalar::F64 => &[("min", 2), ("max", 2), ("abs", 1), ("fma", 3), ("sqrt", 1), ("recip", 1)],
            Scalar::F16 | Scalar::Bf16 => &[("min", 2), ("max", 2), ("abs", 1), ("fma", 3)],
            ty if ty.is_integer() && ty.is_signed() => &[("min", 2), ("max", 2), ("abs", 1)],
            ty if ty.is_integer() => &[("min", 2), ("max", 2)],
            _ => return None,
        };
        let (word, count) = *self.rng.one_of(words);
        let arguments: Vec<_> = (0..count).map(|_| self.expr(ty, depth)).collect();
        Some(format!("{word}({})", arguments.join(", ")))
    }

    /// Generates a method call on a scalar. The receiver's type must be known before the call, so
    /// it is rarely left open.
    fn method(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        let receiver = |maker: &mut Self, ty: Scalar| match maker.variable(ty, false) {
            Some(variable) if maker.rng.once_in(8) => format!("({})", variable.name),
            _ if PRIMITIVES.contains(&ty) => format!("({} as {ty})", maker.expr(ty, depth)),
            _ => format!("cast::<{ty}>({})", maker.expr(Scalar::F32, depth)),
        };
        Some(match (ty, self.rng.below(3)) {
            (Scalar::F32 | Scalar::F64, 0) => {
                let small = [Scalar::F16, Scalar::Bf16, Scalar::Tf32, Scalar::E4m3, Scalar::E5m2];
                let small = *self.rng.one_of(&small);
                format!("{}.to_{ty}()", receiver(self, small))
            }
            (Scalar::F32 | Scalar::F64, 1) => {
                let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
                format!("{}.mul_add({a}, {b})", receiver(self, ty))
            }
            (Scalar::U32, 0) => format!("{}.to_bits()", receiver(self, Scalar::F32)),
            (Scalar::U16, 0) => format!("{}.to_bits()", receiver(self, Scalar::F16)),
            (Scalar::F32, 2) => format!("f32::from_bits({})", self.expr(Scalar::U32, depth)),
            (ty, 1) if is_unsigned(ty) => {
                format!("{}.div_ceil({})", receiver(self, ty), 1 + self.rng.below(9))
            }
            (ty, 1) if ty.is_integer() => format!("{}.abs()", receiver(self, ty)),
            (ty, _) if ty.is_integer() => {
                // The one method that rustc finds for an integer whose type is still open, since it
                // belongs to a trait.
                let left = self.expr(ty, depth);
                format!("({left}).{}({})", self.rng.one_of(&["min", "max"]), self.expr(ty, depth))
            }
            _ => return None,
        })
    }

    fn if_value(&mut self, ty: Scalar, depth: usize) -> String {
        let condition = self.condition(depth);
        let statements = self.rng.below(2);
        let then = self.block(statements, depth, Some(ty));
        let otherwise = self.block(0, depth, Some(ty));
        format!("(if {condition} {{\n{then}}} else {{\n{otherwise}}})")
    }

    fn match_value(&mut self, ty: Scalar, depth: usize) -> String {
        let on = if self.rng.once_in(8) { Scalar::Bool } else { self.integer() };
        let value = self.operand(on, depth);
        let arms: Vec<_> =
            self.patterns(on).iter().map(|arm| format!("{arm} => {},\n", self.expr(ty, depth))).collect();
        format!("(match {value} {{\n{}}})", arms.concat())
    }

    /// Returns patterns that cover every value of `ty`, and of any type that it may be inferred as.
    pub(super) fn patterns(&self, ty: Scalar) -> &'static [&'static str] {
        match (ty, self.rng.below(3)) {
            (Scalar::Bool, _) => &["true", "false"],
            (_, 0) => &["0 | 3", "4..=7", "_"],
            (_, 1) => &["..=9", "10.."],
            (_, _) => &["1..5", "100", "_"],
        }
    }

    /// Generates an element of a register array.
    fn element(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        let (name, len) = self.array(ty, false)?;
        let index = self.index_below(len, depth);
        Some(format!("{name}[{index}]"))
    }

    /// Returns an array of elements `ty`, and its length.
    pub(super) fn array(&self, ty: Scalar, mutable: bool) -> Option<(String, usize)> {
        let fitting = self.variables.iter().filter_map(|variable| match variable.ty {
            Ty::Array(element, len) if element == ty && (variable.mutable || !mutable) => {
                Some((variable.name.clone(), len))
            }
            _ => None,
        });
        let fitting: Vec<_> = fitting.collect();
        (!fitting.is_empty()).then(|| self.rng.one_of(&fitting).clone())
    }

    /// Generates a `usize` below `len`.
    pub(super) fn index_below(&mut self, len: usize, depth: usize) -> String {
        match self.rng.below(3) {
            0 => self.rng.below(len).to_string(),
            _ => format!("{} % {len}", self.expr(Scalar::Usize, depth)),
        }
    }

    fn device_call(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        let fitting: Vec<_> =
            self.functions.iter().filter(|function| function.gives == ty).cloned().collect();
        if fitting.is_empty() {
            return None;
        }
        let function = self.rng.one_of(&fitting).clone();
        self.call_of(&function, depth)
    }

    /// Generates a call of a device function, or `None` if there is no variable for its `&mut`.
    pub(super) fn call_of(&mut self, function: &Function, depth: usize) -> Option<String> {
        let changed = match function.changes {
            Some(ty) => Some(format!("&mut {}", self.variable(ty, true)?.name)),
            None => None,
        };
        let mut arguments: Vec<_> = function.takes.iter().map(|&ty| self.expr(ty, depth)).collect();
        arguments.extend(changed);
        Some(format!("{}({})", function.name, arguments.join(", ")))
    }

    /// Generates a read from memory.
    fn memory(&mut self, ty: Scalar, depth: usize) -> Option<String> {
        if !self.in_kernel {
            return None;
        }
        Some(match (ty, self.rng.below(4)) {
            (Scalar::F32, 0) => format!("tile.get({})", self.coordinates(depth)),
            (Scalar::U32, 0) => format!("words.get({})", self.coordinates(depth)),
            (Scalar::F32, 1) => format!("part.get({} & 63)", self.expr(Scalar::U32, depth)),
            (Scalar::U32, 1) => {
                let (stage, index) = (self.expr(Scalar::U32, depth), self.expr(Scalar::U32, depth));
                format!("stages[{stage} & 1].get({index} & 63)")
            }
            (Scalar::U64, 0) => "g_f32.len()".to_owned(),
            (Scalar::Bool, 0) => format!("full.test_wait({} & 1)", self.expr(Scalar::U32, depth)),
            _ => format!("g_{ty}.get({})", self.index(depth)),
        })
    }

    /// Generates coordinates within 8 × 32, of either type.
    pub(super) fn coordinates(&mut self, depth: usize) -> String {
        let ty = self.one_of(&[Scalar::U32, Scalar::I32]);
        let (row, column) = (self.operand(ty, depth), self.operand(ty, depth));
        format!("[{row} & 7, {column} & 31]")
    }

    /// Generates an index into global memory, of any type that it may have.
    pub(super) fn index(&mut self, depth: usize) -> String {
        let ty = self.one_of(&INDICES);
        self.operand(ty, depth)
    }

    /// Generates an operand that may have several types: most often a variable, whose other uses
    /// have to decide.
    pub(super) fn operand(&mut self, ty: Scalar, depth: usize) -> String {
        match self.variable(ty, false) {
            Some(variable) if !self.rng.once_in(4) => variable.name,
            _ => self.expr(ty, depth),
        }
    }

    /// Returns a type that literals can have.
    pub(super) fn literal_type(&self) -> Scalar {
        let ty = self.scalar();
        if has_literals(ty) { ty } else { *self.rng.one_of(&INTEGERS) }
    }
}
