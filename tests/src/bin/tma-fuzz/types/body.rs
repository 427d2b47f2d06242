//! A body: its parameters, its device functions, and what it is written as for rustc and for the
//! front end.

use std::collections::HashMap;
use std::fmt::Write as _;

use tma_codegen::ir::Scalar;

use crate::draw::Draw;

/// A type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    Scalar(Scalar),
    /// Of so many elements.
    Array(Scalar, usize),
}

/// A variable that may be named.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) ty: Ty,
    pub(super) mutable: bool,
}

/// A device function: its value's type, and those of its parameters, of which the last may be a
/// `&mut`.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) gives: Scalar,
    pub(super) takes: Vec<Scalar>,
    pub(super) changes: Option<Scalar>,
}

/// Makes up a function.
pub(super) struct Maker<'d> {
    pub(super) draw: &'d Draw,
    /// What may be named at this point, innermost last.
    pub(super) variables: Vec<Variable>,
    pub(super) functions: Vec<Function>,
    /// Whether this is the kernel, which has memory, and no device function.
    pub(super) in_kernel: bool,
    /// What a `return` gives, but in the kernel.
    pub(super) gives: Option<Scalar>,
    /// The integers that this module has most of: where all have many types, none meets another.
    usual: [Scalar; 2],
    names: usize,
}

/// A line that names a variable alone begins with this.
const MARK: char = '\u{1}';

/// A line that asks for a type begins with this, for rustc.
const TAG: &str = "let _: <";

/// Whether a line for rustc asks for a type.
pub(super) fn is_tag(line: &str) -> bool {
    line.starts_with(TAG)
}

/// A module of a kernel and device functions. Lines of a mark and a variable's name stand where its
/// type is asked for.
pub(super) struct Template(String);

impl Template {
    /// As the front end reads it.
    pub(super) fn kernel(&self) -> String {
        self.0.lines().filter(|line| !line.starts_with(MARK)).map(|line| format!("{line}\n")).collect()
    }

    /// As rustc reads it: without attributes, and with a line for each type that is known.
    pub(super) fn rust(&self, types: &HashMap<String, String>) -> String {
        let mut text = String::new();
        for line in self.0.lines() {
            let line = match line.strip_prefix(MARK).map(|name| (name, types.get(name))) {
                Some((name, Some(ty))) => format!("{TAG}{ty} as Tagged>::Tag = tag({name});"),
                Some((_, None)) => String::new(),
                None if line.starts_with("#[") => String::new(),
                None => line.to_owned(),
            };
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

/// The scalars that integers may be.
pub(super) const INTEGERS: [Scalar; 9] = [
    Scalar::I8,
    Scalar::U8,
    Scalar::I16,
    Scalar::U16,
    Scalar::I32,
    Scalar::U32,
    Scalar::I64,
    Scalar::U64,
    Scalar::Usize,
];

/// The types of an index into global memory.
pub(super) const INDICES: [Scalar; 5] = [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64, Scalar::Usize];

/// Makes up the `number`-th module.
pub(super) fn draw(draw: &Draw, number: usize) -> Template {
    let mut text = format!("pub mod b{number} {{\nuse super::*;\n");
    let usual = [*draw.one_of(&INDICES), *draw.one_of(&INTEGERS)];
    let mut maker =
        Maker { draw, variables: vec![], functions: vec![], in_kernel: false, gives: None, usual, names: 0 };
    for _ in 0..draw.below(3) {
        maker.device_function(&mut text);
    }
    maker.kernel(&mut text);
    text.push_str("}\n");
    Template(format!("#[tma_module]\n{text}"))
}

impl Maker<'_> {
    pub(super) fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// Any scalar; most often one of those that numbers are.
    pub(super) fn scalar(&self) -> Scalar {
        match self.draw.below(10) {
            0 => *self.draw.one_of(&Scalar::ALL),
            1 => Scalar::Bool,
            2..4 => *self.draw.one_of(&[Scalar::F32, Scalar::F64]),
            _ => self.integer(),
        }
    }

    pub(super) fn integer(&self) -> Scalar {
        *self.draw.one_of(if self.draw.once_in(4) { &INTEGERS[..] } else { &self.usual })
    }

    /// One of `types`, most often a usual one.
    pub(super) fn one_of(&self, types: &[Scalar]) -> Scalar {
        match self.usual.iter().find(|ty| types.contains(ty)) {
            Some(&usual) if !self.draw.once_in(4) => usual,
            _ => *self.draw.one_of(types),
        }
    }

    /// Statements in a scope of their own, and maybe a value at their end.
    pub(super) fn block(&mut self, statements: usize, depth: usize, value: Option<Scalar>) -> String {
        let outside = self.variables.len();
        let mut text = String::new();
        for _ in 0..statements {
            text.push_str(&self.statement(depth));
        }
        if let Some(ty) = value {
            let value = self.expr(ty, depth.min(2));
            text.push_str(&value);
            text.push('\n');
        }
        self.variables.truncate(outside);
        text
    }

    /// A line that asks for the type of `name`.
    pub(super) fn ask(&self, name: &str) -> String {
        format!("\n{MARK}{name}\n")
    }

    fn device_function(&mut self, text: &mut String) {
        let name = format!("d{}", self.functions.len());
        let gives = self.scalar();
        let takes: Vec<_> = (0..self.draw.below(3)).map(|_| self.scalar()).collect();
        let changes = self.draw.once_in(3).then(|| self.scalar());
        let mut parameters = vec![];
        for &ty in &takes {
            let name = self.name();
            parameters.push(format!("{name}: {ty}"));
            self.variables.push(Variable { name, ty: Ty::Scalar(ty), mutable: false });
        }
        if let Some(ty) = changes {
            let name = self.name();
            parameters.push(format!("{name}: &mut {ty}"));
            self.variables.push(Variable { name: format!("*{name}"), ty: Ty::Scalar(ty), mutable: true });
        }
        self.gives = Some(gives);
        let statements = self.draw.below(4);
        let body = self.block(statements, 2, Some(gives));
        self.variables.clear();
        let parameters = parameters.join(", ");
        _ = write!(text, "#[tma_device]\npub fn {name}({parameters}) -> {gives} {{\n{body}}}\n");
        self.functions.push(Function { name, gives, takes, changes });
    }

    /// A kernel with a slice and a scalar of every type, and something of everything that is
    /// shared.
    fn kernel(&mut self, text: &mut String) {
        (self.in_kernel, self.gives) = (true, None);
        let mut parameters = vec!["map: TensorMap<Tile<f32, Shape2<8, 32>>>".to_owned()];
        for ty in Scalar::ALL {
            parameters.push(format!("g_{ty}: Global<{ty}>"));
            parameters.push(format!("p_{ty}: {ty}"));
            self.variables.push(Variable { name: format!("p_{ty}"), ty: Ty::Scalar(ty), mutable: false });
        }
        let statements = 4 + self.draw.below(8);
        let body = self.block(statements, 3, None);
        _ = write!(
            text,
            "#[tma_kernel(threads = 32)]\npub fn k({}) {{\nlet full: Barrier = shared();\n\
             let tile: Tile<f32, Shape2<8, 32>> = shared();\nlet words: Tile<u32, Shape2<8, 32>> = shared();\n\
             let part: SharedArray<f32, 64> = shared();\nlet stages: Stages<SharedArray<u32, 64>, 2> = shared();\n{body}}}\n",
            parameters.join(", ")
        );
    }
}
