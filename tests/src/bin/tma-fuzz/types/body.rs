//! A body: its parameters, its device functions, and its text for rustc and for the front
//! end.

use std::collections::HashMap;
use std::fmt::Write as _;

use tma_codegen::ir::Scalar;

use crate::rng::Rng;

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    Scalar(Scalar),
    /// An array with this many elements.
    Array(Scalar, usize),
}

/// A variable that may be named.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) ty: Ty,
    pub(super) mutable: bool,
}

/// A device function: the types of its result and of its parameters, the last of which may be a
/// `&mut`.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) gives: Scalar,
    pub(super) takes: Vec<Scalar>,
    pub(super) changes: Option<Scalar>,
}

/// A generator of functions.
pub(super) struct Maker<'d> {
    pub(super) rng: &'d Rng,
    /// The variables that may be named at this point, innermost last.
    pub(super) variables: Vec<Variable>,
    pub(super) functions: Vec<Function>,
    /// Whether this is the kernel, which has memory, rather than a device function.
    pub(super) in_kernel: bool,
    /// The type of a `return` value, except in the kernel.
    pub(super) gives: Option<Scalar>,
    /// The two types used for most integers. If types varied more, few operands would match.
    usual: [Scalar; 2],
    names: usize,
}

/// The prefix of a line that only names a variable.
const MARK: char = '\u{1}';

/// The prefix of a line that asks for a type, for rustc.
const TAG: &str = "let _: <";

/// Returns whether a line for rustc asks for a type.
pub(super) fn is_tag(line: &str) -> bool {
    line.starts_with(TAG)
}

/// A module with a kernel and device functions. A line with the mark and a variable's name asks for
/// the variable's type.
pub(super) struct Template(String);

impl Template {
    /// Returns the text for the front end.
    pub(super) fn kernel(&self) -> String {
        self.0.lines().filter(|line| !line.starts_with(MARK)).map(|line| format!("{line}\n")).collect()
    }

    /// Returns the text for rustc: without attributes, and with a line for each type that is known.
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

/// The integer types.
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

/// Generates the `number`-th module.
pub(super) fn generate(rng: &Rng, number: usize) -> Template {
    let mut text = format!("pub mod b{number} {{\nuse super::*;\n");
    let usual = [*rng.one_of(&INDICES), *rng.one_of(&INTEGERS)];
    let mut maker =
        Maker { rng, variables: vec![], functions: vec![], in_kernel: false, gives: None, usual, names: 0 };
    for _ in 0..rng.below(3) {
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

    /// Returns any scalar type, most often a type that numbers have.
    pub(super) fn scalar(&self) -> Scalar {
        match self.rng.below(10) {
            0 => *self.rng.one_of(&Scalar::ALL),
            1 => Scalar::Bool,
            2..4 => *self.rng.one_of(&[Scalar::F32, Scalar::F64]),
            _ => self.integer(),
        }
    }

    pub(super) fn integer(&self) -> Scalar {
        *self.rng.one_of(if self.rng.once_in(4) { &INTEGERS[..] } else { &self.usual })
    }

    /// Returns one of `types`, most often a usual one.
    pub(super) fn one_of(&self, types: &[Scalar]) -> Scalar {
        match self.usual.iter().find(|ty| types.contains(ty)) {
            Some(&usual) if !self.rng.once_in(4) => usual,
            _ => *self.rng.one_of(types),
        }
    }

    /// Generates statements in a scope of their own, and possibly a value at its end.
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

    /// Returns a line that asks for the type of `name`.
    pub(super) fn ask(&self, name: &str) -> String {
        format!("\n{MARK}{name}\n")
    }

    fn device_function(&mut self, text: &mut String) {
        let name = format!("d{}", self.functions.len());
        let gives = self.scalar();
        let takes: Vec<_> = (0..self.rng.below(3)).map(|_| self.scalar()).collect();
        let changes = self.rng.once_in(3).then(|| self.scalar());
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
        let statements = self.rng.below(4);
        let body = self.block(statements, 2, Some(gives));
        self.variables.clear();
        let parameters = parameters.join(", ");
        _ = write!(text, "#[tma_device]\npub fn {name}({parameters}) -> {gives} {{\n{body}}}\n");
        self.functions.push(Function { name, gives, takes, changes });
    }

    /// Writes a kernel with a slice and a scalar of every type, and an object of every shared
    /// kind.
    fn kernel(&mut self, text: &mut String) {
        (self.in_kernel, self.gives) = (true, None);
        let mut parameters = vec!["map: TensorMap<Tile<f32, Shape2<8, 32>>>".to_owned()];
        for ty in Scalar::ALL {
            parameters.push(format!("g_{ty}: Global<{ty}>"));
            parameters.push(format!("p_{ty}: {ty}"));
            self.variables.push(Variable { name: format!("p_{ty}"), ty: Ty::Scalar(ty), mutable: false });
        }
        let statements = 4 + self.rng.below(8);
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
