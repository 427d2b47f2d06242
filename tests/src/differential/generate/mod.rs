//! Generation of kernels from random numbers.

mod aggregate;
mod constants;
mod expr;
mod shared;
mod stmt;
mod types;

use std::fmt::Write as _;

use super::{INPUTS, OUTPUTS, THREADS};
use crate::rng::Rng;
use aggregate::{Object, Struct};
use types::Ty;

/// A generated kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name. The kernel is in the module `m_NAME`.
    pub name: String,
    /// The module, with everything that the kernel calls.
    pub text: String,
}

/// Device functions that modules include as needed. Those that return bits have one pattern for
/// NaN, and those with `&mut` have an effect in the middle of an expression.
const COMMON: [(&str, &str); 13] = [
    ("bits_f16", "(x: f16) -> u64 { if x == x { x.to_bits() as u64 } else { 0x7e00u64 } }"),
    ("bits_bf16", "(x: bf16) -> u64 { if x == x { x.to_bits() as u64 } else { 0x7fc0u64 } }"),
    ("bits_f32", "(x: f32) -> u64 { if x == x { x.to_bits() as u64 } else { 0x7fc00000u64 } }"),
    ("bits_f64", "(x: f64) -> u64 { if x == x { x.to_bits() } else { 0x7ff8000000000000u64 } }"),
    ("bits_e4m3", "(x: e4m3) -> u8 { if x.to_f32() == x.to_f32() { x.to_bits() } else { 0x7fu8 } }"),
    ("bits_e5m2", "(x: e5m2) -> u8 { if x.to_f32() == x.to_f32() { x.to_bits() } else { 0x7fu8 } }"),
    ("bump_u8", "(x: &mut u8, by: u8) -> u8 { let old: u8 = *x; *x = old.wrapping_add(by); old }"),
    ("bump_i32", "(x: &mut i32, by: i32) -> i32 { *x = (*x).wrapping_mul(3i32).wrapping_sub(by); *x }"),
    ("bump_u64", "(x: &mut u64, by: u64) -> u64 { let old: u64 = *x; *x ^= by; old.wrapping_add(*x) }"),
    (
        "turn",
        "(a: &mut [u32; 4], by: u32) -> u32 { let first: u32 = a[0]; a[0] = a[3].wrapping_add(by); a[3] = a[1]; a[1] = first; a[2] }",
    ),
    ("chosen", "<T>(first: bool, a: T, b: T) -> T { if first { a } else { b } }"),
    ("swapped", "<T, U>(pair: (T, U)) -> (U, T) { (pair.1, pair.0) }"),
    (
        "rotated",
        "<T: Copy, const N: usize>(list: [T; N]) -> [T; N] { let mut all: [T; N] = list; all[0] = list[N - 1]; all[N - 1] = list[0]; all }",
    ),
];

/// A variable in scope.
#[derive(Clone, Debug)]
struct Local {
    name: String,
    ty: Ty,
    /// The extents of a register array; empty for a scalar.
    extents: Vec<usize>,
    /// Whether statements may change it.
    mutable: bool,
}

/// A device function of the module.
#[derive(Clone, Debug)]
struct Function {
    name: String,
    params: Vec<Ty>,
    returned: Ty,
}

/// The text being written, and its context.
struct Writer<'d> {
    rng: &'d Rng,
    text: String,
    indent: usize,
    locals: Vec<Local>,
    objects: Vec<Object>,
    /// The tables of the module.
    tables: Vec<Local>,
    /// The constant functions of the module, from `u32` to `u32`.
    const_functions: Vec<String>,
    structs: Vec<Struct>,
    functions: Vec<Function>,
    /// The labels of the enclosing loops.
    loops: Vec<String>,
    names: usize,
    /// The type of `return` values; none in a kernel.
    returned: Option<Ty>,
}

/// Generates a kernel named by `index`.
pub fn kernel(rng: &Rng, index: u64) -> Kernel {
    let name = format!("k{index}");
    let mut writer = Writer {
        rng,
        text: String::new(),
        indent: 1,
        locals: vec![],
        objects: vec![],
        tables: vec![],
        const_functions: vec![],
        structs: vec![],
        functions: vec![],
        loops: vec![],
        names: 0,
        returned: None,
    };
    if rng.once_in(3) {
        writer.constants();
    }
    for _ in 0..rng.below(3) {
        writer.structure();
    }
    for _ in 0..rng.below(3) {
        writer.function();
    }
    writer.body(&name);
    let written = writer.text;
    let is_called =
        |function: &str| ["(", "::<"].iter().any(|rest| written.contains(&format!("{function}{rest}")));
    let called = COMMON.iter().filter(|(function, _)| is_called(function));
    let called: String =
        called.map(|(function, rest)| format!("    #[tma_device]\n    fn {function}{rest}\n")).collect();
    let text =
        format!("#[tma_module]\nmod m_{name} {{\n    use tma_runtime::prelude::*;\n{called}{written}}}\n");
    Kernel { name, text }
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        _ = writeln!(self.text, "{}{text}", "    ".repeat(self.indent));
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Writes a device function of a few statements.
    fn function(&mut self) {
        let params: Vec<Ty> = (0..1 + self.rng.below(3)).map(|_| *self.rng.one_of(&Ty::ALL)).collect();
        let returned = *self.rng.one_of(&Ty::ALL);
        let name = self.fresh("f");
        let mut list = vec![];
        for &ty in &params {
            let name = self.fresh("p");
            list.push(format!("{name}: {}", ty.name()));
            self.locals.push(Local { name, ty, extents: vec![], mutable: false });
        }
        self.line("#[tma_device]");
        self.line(&format!("fn {name}({}) -> {} {{", list.join(", "), returned.name()));
        self.returning(returned);
        self.functions.push(Function { name, params, returned });
    }

    /// Writes the statements and the value of a function whose parameters are in scope.
    fn returning(&mut self, returned: Ty) {
        self.returned = Some(returned);
        self.indent += 1;
        self.statements(1 + self.rng.below(4), 1);
        let value = self.expr(returned, 2);
        self.line(&value);
        self.end_of_function();
        self.returned = None;
    }

    /// Closes a function, and forgets its variables.
    fn end_of_function(&mut self) {
        self.indent -= 1;
        self.line("}");
        self.locals.clone_from(&self.tables);
        self.objects.clear();
    }

    /// Writes the kernel: its inputs as variables of any types, statements, and the final values of
    /// the variables.
    fn body(&mut self, name: &str) {
        let option = self.rng.one_of(&["", ", checked", ", unchecked"]);
        self.line(&format!("#[tma_kernel(threads = {THREADS}{option})]"));
        self.line(&format!("pub fn {name}(words: Global<u64>, out: Global<u64>) {{"));
        self.indent += 1;
        self.line("let lane: u64 = thread_idx().x as u64;");
        for index in 0..INPUTS {
            self.input(index);
        }
        if self.rng.once_in(3) {
            self.exchange();
        }
        // An array for the function that changes one.
        let elements: Vec<_> = (0..4).map(|_| self.expr(Ty::U32, 1)).collect();
        self.line(&format!("let mut lanes: [u32; 4] = [{}];", elements.join(", ")));
        self.locals.push(Local { name: "lanes".into(), ty: Ty::U32, extents: vec![4], mutable: true });
        self.statements(3 + self.rng.below(6), 2);
        for output in 0..OUTPUTS {
            let value = self.output();
            self.line(&format!("out.set(lane * {OUTPUTS}u64 + {output}u64, {value});"));
        }
        self.end_of_function();
    }

    /// Declares a variable with one of the thread's input words.
    fn input(&mut self, index: usize) {
        let ty = *self.rng.one_of(&Ty::ALL);
        let word = format!("words.get(lane * {INPUTS}u64 + {index}u64)");
        let value = match ty {
            Ty::Bool => format!("{word} & 1u64 == 1u64"),
            Ty::F16 | Ty::Bf16 => format!("{}::from_bits({word} as u16)", ty.name()),
            Ty::F32 => format!("f32::from_bits({word} as u32)"),
            Ty::F64 => format!("f64::from_bits({word})"),
            Ty::U64 => word,
            _ => format!("{word} as {}", ty.name()),
        };
        let name = self.fresh("v");
        self.line(&format!("let mut {name}: {} = {value};", ty.name()));
        self.locals.push(Local { name, ty, extents: vec![], mutable: true });
    }

    /// Returns the bits of a variable's value, or of an expression.
    fn output(&mut self) -> String {
        if self.rng.once_in(4) {
            let ty = *self.rng.one_of(&Ty::ALL);
            let value = self.expr(ty, 3);
            return bits(ty, &value);
        }
        let local = self.rng.one_of(&self.locals).clone();
        let place = self.constant_place(&local);
        bits(local.ty, &place)
    }

    /// Returns a variable, or an element of it at constant indices.
    fn constant_place(&self, local: &Local) -> String {
        let indices = local.extents.iter().map(|&extent| format!("[{}]", self.rng.below(extent)));
        local.name.clone() + &indices.collect::<String>()
    }
}

/// Returns an expression's value as a `u64`.
fn bits(ty: Ty, value: &str) -> String {
    match ty {
        Ty::F16 | Ty::Bf16 | Ty::F32 | Ty::F64 => format!("bits_{}({value})", ty.name()),
        Ty::U64 => value.to_owned(),
        _ => format!("({value}) as u64"),
    }
}
