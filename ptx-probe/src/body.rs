//! Rewrites the body of a kernel line by line.

use std::ops::Range;

use tma_model::shared_name::SharedName;
use tma_model::span::SpanMark;

use crate::ProbeError;
use crate::site::{Awaited, Site, SiteKind, classify};
use crate::text::{self, Source};

/// A replacement for the lines of a body.
pub(crate) trait Rewrite {
    /// Writes what comes before the first instruction.
    fn begin(&mut self, out: &mut String);

    /// Writes a line, or what replaces it.
    fn line(&mut self, out: &mut String, line: Line<'_>);

    /// Writes what comes after the last instruction.
    fn end(&mut self, out: &mut String);
}

/// A line of a kernel's body.
#[derive(Clone, Copy)]
pub(crate) struct Line<'t> {
    lines: &'t [&'t str],
    index: usize,
    source: Option<&'t Source>,
}

/// A text with other instructions, and the variables in the shared memory of its kernel.
pub(crate) struct Rewritten {
    pub(crate) ptx: String,
    pub(crate) names: Vec<SharedName>,
}

/// The name by which rewritten kernels know the beginning of their dynamic shared memory.
pub(crate) const SHARED: &str = "tma_probe_shared";

/// Rewrites the kernel `entry` of `ptx`.
///
/// # Errors
///
/// [`ProbeError::NoBody`] if there is none as the compiler writes it: braces of the body in lines
/// of their own, without indentation, and declarations first.
pub(crate) fn rewrite(ptx: &str, entry: &str, with: &mut impl Rewrite) -> Result<Rewritten, ProbeError> {
    let files = text::files(ptx);
    let header = [format!(".entry {entry}("), format!(".entry {entry}()")];
    let lines: Vec<&str> = ptx.lines().collect();
    let (mut out, mut region, mut source) = (String::with_capacity(2 * ptx.len()), Region::Before, None);
    for (index, &text) in lines.iter().enumerate() {
        match region {
            Region::Before if header.iter().any(|header| text.ends_with(header)) => {
                out.push_str(&format!(".extern .shared .align 16 .b8 {SHARED}[];\n"));
                region = Region::Signature;
            }
            Region::Signature if text == "{" => region = Region::Declarations,
            Region::Declarations if !is_declaration(text.trim()) => {
                with.begin(&mut out);
                region = Region::Body;
            }
            Region::Body if text == "}" => {
                with.end(&mut out);
                region = Region::After;
            }
            Region::Before | Region::Signature | Region::Declarations | Region::Body | Region::After => {}
        }
        if text.trim_start().starts_with(".loc\t") {
            source = text::location(text).map(|(file, line)| Source {
                file: files.get(&file).map_or_else(String::new, |name| (*name).to_owned()),
                line,
            });
        }
        if region != Region::Body {
            out.extend([text, "\n"]);
            continue;
        }
        with.line(&mut out, Line { lines: &lines, index, source: source.as_ref() });
    }
    if region != Region::After {
        return Err(ProbeError::NoBody(entry.to_owned()));
    }
    Ok(Rewritten { ptx: out, names: SharedName::in_ptx(ptx) })
}

/// A part of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Region {
    /// Before the kernel.
    Before,
    /// Its parameters and bounds.
    Signature,
    /// The declarations at the beginning of its body.
    Declarations,
    /// The rest of its body.
    Body,
    /// After the kernel.
    After,
}

/// Returns whether a statement declares something, or is nothing.
fn is_declaration(statement: &str) -> bool {
    let directives = [".reg", ".local", ".loc", "//"];
    if SpanMark::in_line(statement).is_some() {
        return false;
    }
    statement.is_empty() || directives.iter().any(|directive| statement.starts_with(directive))
}

/// The end of a loop that waits, and the instruction that it repeats.
#[derive(Clone, Copy)]
pub(crate) struct WaitLoop<'t> {
    /// The label of the loop.
    pub(crate) label: &'t str,
    /// The condition under which it goes on waiting, such as `!%done`. Without one, it is left by
    /// another branch.
    pub(crate) condition: Option<&'t str>,
    /// The instruction.
    pub(crate) waits: Instruction<'t>,
}

/// An instruction that has a kind.
#[derive(Clone, Copy)]
pub(crate) struct Instruction<'t> {
    pub(crate) kind: SiteKind,
    /// The operand of its record or report; 0 if it has none.
    pub(crate) operand: &'t str,
    pub(crate) text: &'t str,
    /// Its line in the PTX, counted from 1.
    ptx_line: u32,
}

impl<'t> Line<'t> {
    /// Returns the text with its indentation.
    pub(crate) fn text(self) -> &'t str {
        self.at(0)
    }

    /// Returns the statement in this line, without the semicolon.
    pub(crate) fn statement(self) -> Option<&'t str> {
        self.statement_at(0)
    }

    /// Returns this line's instruction if it has a kind, unless a loop that waits repeats it.
    pub(crate) fn instruction(self) -> Option<Instruction<'t>> {
        let is_in_loop = self.at(-1).trim().strip_suffix(':').is_some_and(is_wait_label);
        self.instruction_at(0).filter(|_| !is_in_loop)
    }

    /// Returns the site of an instruction, with the source of this line.
    pub(crate) fn site(self, instruction: Instruction<'_>) -> Site {
        let Instruction { kind, operand: _, text, ptx_line } = instruction;
        Site { kind, ptx_line, instruction: text.to_owned(), source: self.source.cloned() }
    }

    /// Returns whether this is the label of a loop that waits. The compiler names such labels
    /// `wait_`, with the instruction that waits in the next line.
    pub(crate) fn begins_wait_loop(self) -> bool {
        let is_label = self.at(0).trim().strip_suffix(':').is_some_and(is_wait_label);
        is_label && self.instruction_at(1).is_some()
    }

    /// Returns the loop that this line ends, if it waits. Its branch is at most four lines behind
    /// the instruction.
    pub(crate) fn ends_wait_loop(self) -> Option<WaitLoop<'t>> {
        let (condition, label) = branch(self.statement()?)?;
        if !is_wait_label(label) || condition.is_none() {
            return None;
        }
        let first = (1..=5).find(|distance| self.at(-distance).trim().strip_suffix(':') == Some(label))?;
        let waits = self.instruction_at(1 - first)?;
        Some(WaitLoop { label, condition, waits })
    }

    /// Returns the loop that this line ends, if it polls memory or an mbarrier.
    pub(crate) fn ends_poll_loop(self) -> Option<WaitLoop<'t>> {
        self.ends_memory_loop().or_else(|| self.ends_mbarrier_loop())
    }

    /// Returns the loop that this line ends, if it polls memory: it has no label but its own, and
    /// loads with an order, or compares and exchanges, at an address that it does not compute.
    fn ends_memory_loop(self) -> Option<WaitLoop<'t>> {
        let (condition, label) = branch(self.statement()?)?;
        if is_wait_label(label) {
            return None;
        }
        let first = (1..=POLL_LINES).find(|distance| label_in(self.at(-distance)).is_some())?;
        if label_in(self.at(-first)) != Some(label) {
            return None;
        }
        let (distance, address) = (1 - first..0)
            .find_map(|distance| Some((distance, polled_address(self.statement_at(distance)?)?)))?;
        let computes = |distance| self.statement_at(distance).is_some_and(|text| defines(text, address));
        if (1 - first..0).any(computes) {
            return None;
        }
        let (kind, text) = (SiteKind::Wait(Awaited::Memory), self.statement_at(distance)?);
        Some(WaitLoop {
            label,
            condition,
            waits: Instruction { kind, operand: "0", text, ptx_line: self.number(distance)? },
        })
    }

    /// Returns the loop that this line ends, if it polls an mbarrier: it tries to wait for one that it
    /// does not choose, and otherwise only computes. The optimiser may repeat its body, with labels
    /// that are only branched to from inside.
    fn ends_mbarrier_loop(self) -> Option<WaitLoop<'t>> {
        let (condition, label) = branch(self.statement()?)?;
        if is_wait_label(label) {
            return None;
        }
        let first = (1..=MBARRIER_LINES).find(|distance| label_in(self.at(-distance)) == Some(label))?;
        let inside = 1 - first..0;
        let polls = |distance| polled_mbarrier(self.statement_at(distance)?);
        let (distance, mbarrier) = inside.clone().find_map(|distance| Some((distance, polls(distance)?)))?;
        let register = mbarrier.split('+').next().unwrap_or(mbarrier).trim();
        let is_alone = |distance| match (polls(distance), self.statement_at(distance)) {
            (Some(polled), _) => polled == mbarrier,
            (None, Some(statement)) => only_computes(statement) && !defines(statement, register),
            (None, None) => true,
        };
        let leads_back = |distance| {
            self.statement_at(distance).and_then(branch).is_some_and(|(_, target)| {
                (1 - first..=distance).any(|before| label_in(self.at(before)) == Some(target))
            })
        };
        if !inside.clone().all(is_alone) || inside.clone().any(leads_back) || self.is_entered(inside) {
            return None;
        }
        Some(WaitLoop { label, condition, waits: self.polling_instruction(distance, mbarrier)? })
    }

    /// Returns whether a line outside of these branches to a label inside.
    fn is_entered(self, inside: Range<isize>) -> bool {
        let labels: Vec<_> = inside.clone().filter_map(|distance| label_in(self.at(distance))).collect();
        let is_inside = |index: usize| {
            let distance = index.wrapping_sub(self.index).cast_signed();
            inside.contains(&distance)
        };
        let target = |line: &'t str| branch(line.trim().strip_suffix(';')?).map(|(_, label)| label);
        let outside = self.lines.iter().enumerate().filter(|(index, _)| !is_inside(*index));
        !labels.is_empty()
            && outside.filter_map(|(_, line)| target(line)).any(|label| labels.contains(&label))
    }

    fn polling_instruction(self, distance: isize, mbarrier: &'t str) -> Option<Instruction<'t>> {
        let (kind, text) = (SiteKind::Wait(Awaited::Mbarrier), self.statement_at(distance)?);
        Some(Instruction { kind, operand: mbarrier, text, ptx_line: self.number(distance)? })
    }

    /// Returns the label in this line, if it begins a loop that polls memory or an mbarrier.
    pub(crate) fn begins_poll_loop(self) -> Option<&'t str> {
        let label = label_in(self.at(0))?;
        let ends = |distance| {
            let index = self.index.checked_add_signed(distance)?;
            Self { index, ..self }.ends_poll_loop()
        };
        (1..=MBARRIER_LINES).filter_map(ends).any(|found| found.label == label).then_some(label)
    }

    /// Returns the label of the loop that polls to which this line branches from outside.
    pub(crate) fn enters_poll_loop(self) -> Option<&'t str> {
        let (_, label) = branch(self.statement()?)?;
        if self.ends_poll_loop().is_some() {
            return None;
        }
        let index = self.lines.iter().position(|line| label_in(line) == Some(label))?;
        Self { index, ..self }.begins_poll_loop()
    }

    fn at(self, distance: isize) -> &'t str {
        let index = self.index.checked_add_signed(distance);
        index.and_then(|index| self.lines.get(index)).copied().unwrap_or_default()
    }

    /// Returns the last statement of a line. The compiler writes one a line.
    fn statement_at(self, distance: isize) -> Option<&'t str> {
        let statements = self.at(distance).trim().strip_suffix(';')?;
        Some(statements.rsplit_once("; ").map_or(statements, |(_, last)| last))
    }

    fn instruction_at(self, distance: isize) -> Option<Instruction<'t>> {
        let line = self.at(distance);
        let (text, (kind, operand)) = match SpanMark::in_line(line) {
            Some(mark) => (line.trim(), (SiteKind::Span(mark.edge), None)),
            None => {
                let text = self.statement_at(distance)?;
                (text, classify(text)?)
            }
        };
        Some(Instruction { kind, operand: operand.unwrap_or("0"), text, ptx_line: self.number(distance)? })
    }

    /// Returns the number of a line in the PTX, counted from 1.
    fn number(self, distance: isize) -> Option<u32> {
        let line = self.index.checked_add_signed(distance)? + 1;
        Some(u32::try_from(line).unwrap_or(u32::MAX))
    }
}

/// Returns the instructions that compute the linear number of a thread (`tid` of `ntid`) or block
/// (`ctaid` of `nctaid`) into the first of three registers, counted along x first.
pub(crate) fn linear(registers: [&str; 3], index: &str, extent: &str) -> String {
    let [number, a, b] = registers;
    format!(
        "\tmov.u32 \t{number}, %{index}.z;
\tmov.u32 \t{a}, %{extent}.y;
\tmov.u32 \t{b}, %{index}.y;
\tmad.lo.s32 \t{number}, {number}, {a}, {b};
\tmov.u32 \t{a}, %{extent}.x;
\tmov.u32 \t{b}, %{index}.x;
\tmad.lo.s32 \t{number}, {number}, {a}, {b};\n"
    )
}

/// The lines of a loop that polls memory, at most.
const POLL_LINES: isize = 32;

/// The lines of a loop that polls an mbarrier, at most. The optimiser may repeat its body some times.
const MBARRIER_LINES: isize = 128;

/// Returns the label in a line.
fn label_in(line: &str) -> Option<&str> {
    let label = line.trim().strip_suffix(':')?;
    label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_$".contains(&byte)).then_some(label)
}

/// Returns the condition and the label of a branch.
fn branch(statement: &str) -> Option<(Option<&str>, &str)> {
    let (condition, jump) = match statement.strip_prefix('@') {
        Some(conditional) => {
            let (condition, jump) = conditional.split_once(' ')?;
            (Some(condition), jump.trim_start())
        }
        None => (None, statement),
    };
    let (opcode, label) = jump.split_once([' ', '\t'])?;
    ["bra", "bra.uni"].contains(&opcode).then_some((condition, label.trim()))
}

/// Returns the register with the address, if a loop can poll by this instruction.
fn polled_address(statement: &str) -> Option<&str> {
    let (opcode, operands) = statement.split_once([' ', '\t'])?;
    let is_load = ["ld.acquire.", "ld.relaxed.", "ld.volatile."].iter().any(|load| opcode.starts_with(load));
    let is_exchange = opcode.starts_with("atom.") && opcode.contains(".cas.");
    if !(is_load || is_exchange) {
        return None;
    }
    let address = operands.split_once('[')?.1.split(['+', ']']).next()?;
    Some(address.trim())
}

/// Returns the mbarrier's address, if a loop can poll by this instruction.
fn polled_mbarrier(statement: &str) -> Option<&str> {
    let is_poll =
        ["mbarrier.try_wait.", "mbarrier.test_wait."].iter().any(|poll| statement.starts_with(poll));
    Some(statement.split_once('[').filter(|_| is_poll)?.1.split_once(']')?.0.trim())
}

/// Returns a statement without its predicate.
fn unconditional(statement: &str) -> &str {
    match statement.strip_prefix('@') {
        Some(conditional) => conditional.split_once(' ').map_or("", |(_, rest)| rest.trim_start()),
        None => statement,
    }
}

/// Returns whether a statement changes nothing but registers, or where the loop continues.
fn only_computes(statement: &str) -> bool {
    if statement.starts_with('.') {
        return true;
    }
    let opcode = unconditional(statement).split([' ', '\t', '.']).next().unwrap_or_default();
    ["add", "and", "bra", "mov", "not", "or", "selp", "setp", "shl", "shr", "sub", "xor"].contains(&opcode)
}

/// Returns whether a statement writes the register.
fn defines(statement: &str, register: &str) -> bool {
    let operands = unconditional(statement).split_once([' ', '\t']).map_or("", |(_, operands)| operands);
    // A vector of results is in braces, and two predicates are separated by a bar.
    let results = match operands.trim_start().strip_prefix('{') {
        Some(vector) => vector.split('}').next(),
        None => operands.split(',').next(),
    };
    results.unwrap_or_default().split([',', '|']).any(|result| result.trim() == register)
}

fn is_wait_label(label: &str) -> bool {
    label.starts_with("wait_")
}
