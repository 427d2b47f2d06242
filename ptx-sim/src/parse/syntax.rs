//! The syntax of a PTX module, as written. Names are not resolved, and modifiers are not
//! interpreted.

use std::collections::{HashMap, HashSet};

use tma_model::assertion::Remark;
use tma_model::limits::registers_at_entry;
use tma_model::span::SpanMark;

/// A module.
#[derive(Debug, Default)]
pub(crate) struct Source<'s> {
    pub(crate) functions: Vec<Function<'s>>,
    pub(crate) variables: Vec<Variable<'s>>,
    /// The numbers and names of `.file`.
    pub(crate) files: Vec<(u32, &'s str)>,
    /// Comments on the traps of assertions, by line.
    pub(crate) remarks: HashMap<u32, Remark<'s>>,
    /// The lines that a kernel wrote itself, with `ptx!`.
    pub(crate) own_lines: HashSet<u32>,
    /// The indices of functions with a body, and of variables. If several share a name, the first
    /// one counts.
    defined: HashMap<&'s str, usize>,
    declared: HashMap<&'s str, usize>,
}

impl<'s> Source<'s> {
    pub(crate) fn add_function(&mut self, function: Function<'s>) {
        if function.body.is_some() {
            self.defined.entry(function.name).or_insert(self.functions.len());
        }
        self.functions.push(function);
    }

    pub(crate) fn add_variable(&mut self, variable: Variable<'s>) {
        self.declared.entry(variable.name).or_insert(self.variables.len());
        self.variables.push(variable);
    }

    /// Returns the function of this name that has a body.
    pub(crate) fn function(&self, name: &str) -> Option<&Function<'s>> {
        self.functions.get(*self.defined.get(name)?)
    }

    /// Returns the variable of this name, and its index.
    pub(crate) fn variable(&self, name: &str) -> Option<(usize, &Variable<'s>)> {
        let index = *self.declared.get(name)?;
        Some((index, self.variables.get(index)?))
    }
}

/// A kernel (`.entry`) or a device function (`.func`).
#[derive(Debug)]
pub(crate) struct Function<'s> {
    pub(crate) name: &'s str,
    pub(crate) line: u32,
    pub(crate) entry: bool,
    pub(crate) returns: Vec<Variable<'s>>,
    pub(crate) params: Vec<Variable<'s>>,
    /// The body; `None` for a declaration.
    pub(crate) body: Option<Vec<Statement<'s>>>,
    /// `.reqntid`: the only shape of block for a launch.
    pub(crate) required_threads: Option<[u32; 3]>,
    /// `.maxnreg`: the most registers of a thread.
    pub(crate) most_registers: Option<u32>,
    /// `.minnctapersm`: the fewest blocks for which a multiprocessor must have room.
    pub(crate) resident_blocks: Option<u32>,
    /// `.maxntid`: the largest block.
    pub(crate) most_threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`.
    pub(crate) required_cluster: Option<[u32; 3]>,
}

/// The memory of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableSpace {
    Global,
    Const,
    Shared,
    Local,
    Param,
    /// A `.reg` parameter of a device function, in the older calling convention.
    Reg,
}

/// A variable or parameter in memory.
#[derive(Clone, Debug)]
pub(crate) struct Variable<'s> {
    pub(crate) name: &'s str,
    pub(crate) line: u32,
    pub(crate) space: VariableSpace,
    /// Bytes of one scalar.
    pub(crate) scalar_bytes: u32,
    pub(crate) align: u32,
    /// Bytes of the whole variable; `None` for an array without an extent.
    pub(crate) bytes: Option<u64>,
    pub(crate) external: bool,
    /// The values of the first scalars. The others are zero.
    pub(crate) initial: Vec<Initial<'s>>,
}

/// The initial value of one scalar.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Initial<'s> {
    /// Bits, to be truncated to the scalar's size.
    Bits(u64),
    /// A floating-point number, to be converted to the scalar's format.
    Number(f64),
    /// The address of another variable or of a function, generic or in its state space.
    Address { symbol: &'s str, offset: i64 },
}

/// One statement of a body.
#[derive(Debug)]
pub(crate) enum Statement<'s> {
    Label(&'s str, u32),
    /// Registers: the name or the prefix of `%r<100>`, their number in the latter case, and their
    /// width in bits.
    Registers {
        name: &'s str,
        count: Option<u32>,
        bits: u32,
        line: u32,
    },
    Variable(Variable<'s>),
    Block(Vec<Statement<'s>>),
    /// `.loc`, with the numbers of the file and the line.
    SourceLine {
        file: u32,
        line: u32,
    },
    /// `.branchtargets`, named by the preceding label.
    Targets(Vec<&'s str>),
    Instruction(Instruction<'s>),
    /// A comment that marks an end of a span, with its line.
    SpanMark(SpanMark<'s>, u32),
}

/// An instruction, with its modifiers in the order in which they are written.
#[derive(Clone, Debug)]
pub(crate) struct Instruction<'s> {
    pub(crate) line: u32,
    pub(crate) guard: Option<Guard<'s>>,
    pub(crate) opcode: &'s str,
    pub(crate) modifiers: Vec<&'s str>,
    pub(crate) operands: Vec<Operand<'s>>,
}

/// `@%p` or `@!%p`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard<'s> {
    pub(crate) name: &'s str,
    pub(crate) negated: bool,
}

/// An operand, as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand<'s> {
    /// A register, special register, label, function or variable.
    Name(&'s str),
    /// `symbol+8` or `%r1+8` outside brackets.
    Offset(&'s str, i64),
    /// `!%p`.
    Not(&'s str),
    /// An integer, as 64 bits of two's complement.
    Integer(u64),
    /// `0f…`: the bits of a single.
    Single(u32),
    /// `0d…` or a decimal fraction: the bits of a double.
    Double(u64),
    /// `_`.
    Nothing,
    /// `{a, b}`.
    Vector(Vec<Operand<'s>>),
    /// `(a, b)` of a call.
    List(Vec<Operand<'s>>),
    /// `p|q`.
    Pair(&'s str, &'s str),
    /// `[base+offset]`, or `[base, {coordinates}, more…]` for a tensor.
    Address { base: Box<Operand<'s>>, offset: i64, more: Vec<Operand<'s>> },
}

impl Function<'_> {
    /// Returns the registers of each thread at the start, if the kernel fixes them: by `.maxnreg`,
    /// or by the shape of the block together with the number of blocks for which a multiprocessor
    /// must have room. Without either, ptxas ignores `setmaxnreg`. Source: ptxas 13.0, its messages
    /// C7506 to C7508.
    pub(crate) fn thread_registers(&self) -> Option<u32> {
        let by_blocks = || {
            let threads: u32 = self.required_threads?.iter().product();
            registers_at_entry(threads, self.resident_blocks?)
        };
        self.most_registers.map(|most| most.next_multiple_of(8)).or_else(by_blocks)
    }
}

impl Instruction<'_> {
    /// Returns the opcode with its modifiers, as in the text.
    pub(crate) fn full_name(&self) -> String {
        std::iter::once(self.opcode).chain(self.modifiers.iter().copied()).collect::<Vec<_>>().join(".")
    }
}
