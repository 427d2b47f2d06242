//! Corrects the `.loc` directives of accesses to shared memory. They must be accurate: the line of
//! an access determines the variables that it may touch.
//!
//! LLVM removes the line of an instruction that it moves to another block or merges with another
//! one, and such an instruction is then attributed to the line of the preceding one. If the back
//! end replaces operations on a loaded value by a load of another width, that load has the line of
//! the operation. Neither is relevant to a computation. Accesses are therefore marked in the IR, by
//! column numbers that no source has. In the PTX, an access whose directive has no mark gets line
//! 0, which is LLVM's notation for "no line".

use std::collections::{BTreeSet, HashMap};

/// The offset that marks the column of an access. Columns have 16 bits.
const MARK: u32 = 1 << 15;

/// The offset from the number of a location to that of its marked copy.
const COPY: u32 = 1 << 24;

/// Returns LLVM IR with marked locations at the accesses to shared memory.
pub(super) fn with_marks(ir: &str) -> String {
    let mut out = String::with_capacity(ir.len() + ir.len() / 8);
    let mut copied = BTreeSet::new();
    let mut locations = HashMap::new();
    for line in ir.lines() {
        if let Some((number, location)) = defined_location(line) {
            locations.insert(number, location);
        }
        match located_access(line) {
            Some((access, number)) => {
                copied.insert(number);
                out += &format!("{access}{DEBUG}{}\n", number + COPY);
            }
            None => out.extend([line, "\n"]),
        }
    }
    for number in copied {
        if let Some((line, column, scope)) = locations.get(&number) {
            let (number, column) = (number + COPY, column % MARK + MARK);
            out += &format!("!{number} = !DILocation(line: {line}, column: {column}, {scope}\n");
        }
    }
    out
}

/// The text before the number of an instruction's location.
const DEBUG: &str = ", !dbg !";

/// Splits an access to shared memory into the text before its location and the location's number.
fn located_access(line: &str) -> Option<(&str, u32)> {
    let (access, number) = line.rsplit_once(DEBUG)?;
    let is_shared = access.contains("ptr addrspace(3)") || access.contains("ptr addrspace(7)");
    let is_plain = access.starts_with("  store ") || access.contains(" = load ");
    let is_matrix = access.contains("asm ") && (access.contains("ldmatrix.") || access.contains("stmatrix."));
    let number = number.parse().ok().filter(|&number: &u32| number < COPY)?;
    (is_shared && is_plain || is_matrix).then_some((access, number))
}

/// Parses the definition of a location: its number, line and column, and the rest.
fn defined_location(line: &str) -> Option<(u32, (u32, u32, &str))> {
    let (number, location) = line.strip_prefix('!')?.split_once(" = !DILocation(line: ")?;
    let (line, rest) = location.split_once(", ")?;
    let (column, scope) = match rest.strip_prefix("column: ").and_then(|rest| rest.split_once(", ")) {
        Some((column, scope)) => (column.parse().ok()?, scope),
        None => (0, rest),
    };
    Some((number.parse().ok()?, (line.parse().ok()?, column, scope)))
}

/// A `.loc` directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Location<'t> {
    file: &'t str,
    line: &'t str,
    column: u32,
}

impl<'t> Location<'t> {
    fn of(text: &'t str) -> Option<(Self, bool)> {
        let mut words = text.strip_prefix("\t.loc\t")?.split_whitespace();
        let (file, line, column) = (words.next()?, words.next()?, words.next()?.parse::<u32>().ok()?);
        Some((Self { file, line, column: column % MARK }, column >= MARK))
    }

    /// Adds a missing column. LLVM joins an access with the computation of its address; as their
    /// marks differ, the result has no column.
    fn completed(self, rest: &[&'t str]) -> Self {
        let next = rest.iter().find_map(|line| Self::of(line));
        match next {
            Some((next, _)) if self.column == 0 && (next.file, next.line) == (self.file, self.line) => next,
            Some(_) | None => self,
        }
    }

    fn is_unknown(self) -> bool {
        self.line == "0"
    }

    fn text(self) -> String {
        let Self { file, line, column } = self;
        format!("\t.loc\t{file} {line} {column}\n")
    }
}

/// Removes the marks, and gives accesses to shared memory only lines that are certain. Other
/// instructions without a line get a directive only at the beginning of a block.
pub(super) fn with_true_lines(ptx: &str) -> String {
    let lines: Vec<&str> = ptx.lines().collect();
    let mut out = String::with_capacity(ptx.len());
    let mut state = State { begins_block: true, ..State::default() };
    for (at, &line) in lines.iter().enumerate() {
        if let Some((location, is_marked)) = Location::of(line) {
            out.extend(state.directive(location.completed(&lines[at + 1..]), is_marked));
            continue;
        }
        out.extend(state.instruction(line));
        out.extend([line, "\n"]);
    }
    out
}

/// The state of a pass over the text.
#[derive(Default)]
struct State<'t> {
    /// The last directive, and whether it has a mark.
    directive: Option<(Location<'t>, bool)>,
    /// Whether that directive was omitted.
    is_left_out: bool,
    /// The last directive written.
    written: Option<Location<'t>>,
    begins_block: bool,
}

impl<'t> State<'t> {
    /// Returns the text to write for a directive.
    fn directive(&mut self, location: Location<'t>, is_marked: bool) -> Option<String> {
        let was_marked = self.directive.is_some_and(|(_, was_marked)| was_marked);
        let goes_back = self.is_left_out || was_marked != is_marked;
        self.directive = Some((location, is_marked));
        self.is_left_out = match location.is_unknown() {
            true => !self.begins_block,
            false => goes_back && self.written == Some(location),
        };
        if self.is_left_out { None } else { Some(self.write(location)) }
    }

    /// Returns the text to write before a line that is not a directive.
    fn instruction(&mut self, line: &str) -> Option<String> {
        if line.ends_with(':') && !line.starts_with("$L__tmp") {
            self.begins_block = true;
        } else if !line.trim_start().is_empty() && !line.trim_start().starts_with("//") {
            self.begins_block = branches(line);
        }
        let (location, is_marked) = self.directive?;
        let is_untrue = is_access(line) && !is_marked;
        let unknown = Location { line: "0", ..location };
        if is_untrue && self.written.is_none_or(|written| !written.is_unknown()) {
            return Some(self.write(unknown));
        }
        let goes_on = !is_untrue && self.written == Some(unknown) && !location.is_unknown();
        goes_on.then(|| self.write(location))
    }

    fn write(&mut self, location: Location<'t>) -> String {
        self.written = Some(location);
        location.text()
    }
}

fn branches(line: &str) -> bool {
    line.split_whitespace().any(|word| word == "bra" || word.starts_with("bra."))
}

/// Whether the instruction is a direct access of threads to shared memory.
fn is_access(line: &str) -> bool {
    let Some(opcode) = line.split_whitespace().find(|word| !word.starts_with('@')) else { return false };
    let plain = ["ld.", "st.", "ldmatrix.", "stmatrix."].iter().any(|start| opcode.starts_with(start));
    plain && opcode.contains(".shared") && !opcode.starts_with("st.async.") && !opcode.starts_with("st.bulk.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_marked_by_their_columns() {
        let ir = "  %1 = load i32, ptr addrspace(3) %0, align 4, !dbg !8\n\
            \x20 store i32 %1, ptr addrspace(1) %2, align 4, !dbg !8\n\
            !8 = !DILocation(line: 7, column: 5, scope: !3)\n";
        let wanted = "  %1 = load i32, ptr addrspace(3) %0, align 4, !dbg !16777224\n\
            \x20 store i32 %1, ptr addrspace(1) %2, align 4, !dbg !8\n\
            !8 = !DILocation(line: 7, column: 5, scope: !3)\n\
            !16777224 = !DILocation(line: 7, column: 32773, scope: !3)\n";
        assert_eq!(with_marks(ir), wanted);
    }

    #[test]
    fn accesses_without_a_mark_have_no_line() {
        let ptx = "{\n\t.loc\t1 6 0\n\tmov.b32 %r1, 1;\n\t.loc\t1 7 5\n\tadd.u32 %r2, %r1, 1;\n\
            \t.loc\t1 7 32773\n\tst.shared.b32 [%r2], %r1;\n\t.loc\t1 7 5\n\tld.shared.b16 %r3, [%r2];\n\
            \tadd.u32 %r4, %r3, 1;\n\t.loc\t1 0 5\n\tmov.b32 %r5, 1;\n\tld.shared.b32 %r6, [%r2];\n\
            $L__BB0_1:\n\t.loc\t1 0 5\n\tmov.b32 %r7, 1;\n\t.loc\t1 8 5\n\tret;\n}\n";
        let wanted = "{\n\t.loc\t1 6 0\n\tmov.b32 %r1, 1;\n\t.loc\t1 7 5\n\tadd.u32 %r2, %r1, 1;\n\
            \tst.shared.b32 [%r2], %r1;\n\t.loc\t1 0 5\n\tld.shared.b16 %r3, [%r2];\n\
            \t.loc\t1 7 5\n\tadd.u32 %r4, %r3, 1;\n\tmov.b32 %r5, 1;\n\
            \t.loc\t1 0 5\n\tld.shared.b32 %r6, [%r2];\n\
            $L__BB0_1:\n\t.loc\t1 0 5\n\tmov.b32 %r7, 1;\n\t.loc\t1 8 5\n\tret;\n}\n";
        assert_eq!(with_true_lines(ptx), wanted);
    }
}
