//! A line of PTX as an instruction: guard, opcode and operands.

/// An instruction that is alone on its line, as the compiler writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction<'t> {
    /// The predicate with its `@`, or an empty string.
    pub guard: &'t str,
    /// The operation with its modifiers: `mbarrier.init.shared::cta.b64`.
    pub opcode: &'t str,
    /// The operands, split at commas outside of brackets.
    pub operands: Vec<&'t str>,
}

impl<'t> Instruction<'t> {
    /// Parses a line. Returns `None` if it is not an instruction but a label, a directive, a
    /// bracket or a comment.
    pub fn parse(line: &'t str) -> Option<Self> {
        let code = line.split("//").next()?.trim().strip_suffix(';')?.trim_end();
        if code.starts_with('.') || code.contains([';', '{', '}']) && !code.contains('[') {
            return None;
        }
        let (guard, rest) = match code.starts_with('@') {
            true => code.split_once(char::is_whitespace)?,
            false => ("", code),
        };
        let rest = rest.trim_start();
        let (opcode, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        opcode.starts_with(|first: char| first.is_ascii_lowercase()).then(|| Self {
            guard,
            opcode,
            operands: split(operands),
        })
    }

    /// Returns whether the opcode begins with all of these parts: `is("mbarrier.arrive")` matches
    /// `mbarrier.arrive.expect_tx`, but not `mbarrier.arrive_drop`.
    pub fn is(&self, parts: &str) -> bool {
        self.opcode.strip_prefix(parts).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Returns whether the opcode has this modifier, without its dot.
    pub fn has(&self, modifier: &str) -> bool {
        self.opcode.split('.').skip(1).any(|part| part == modifier)
    }

    /// Formats the instruction, with its semicolon.
    pub fn text(&self) -> String {
        let words = [self.guard, self.opcode, &self.operands.join(", ")];
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        words.join(" ") + ";"
    }
}

/// Splits a list of operands.
fn split(list: &str) -> Vec<&str> {
    let (mut operands, mut start, mut depth) = (vec![], 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                operands.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = list[start..].trim();
    if !last.is_empty() {
        operands.push(last);
    }
    operands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_guard_opcode_and_operands() {
        let text = "\t@!%done bra wait_0;  // again";
        let read = Instruction::parse(text).unwrap();
        assert_eq!((read.guard, read.opcode, read.operands.as_slice()), ("@!%done", "bra", &["wait_0"][..]));
        assert_eq!(read.text(), "@!%done bra wait_0;");

        let text =
            "\tcp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd6, {%r31, %r32}], [%r33];";
        let read = Instruction::parse(text).unwrap();
        assert_eq!(read.operands, ["[%rd6, {%r31, %r32}]", "[%r33]"]);
        assert_eq!(read.text(), text.trim());

        let read = Instruction::parse("cp.async.bulk.commit_group;").unwrap();
        assert_eq!((read.guard, read.operands.len()), ("", 0));
    }

    #[test]
    fn other_lines_are_no_instructions() {
        for line in [
            "",
            "}",
            "\t{",
            "wait_0:",
            "\t.reg .pred %done;",
            "\t.loc\t1 18 0",
            "// mbarrier.init;",
            ".extern .shared .align 128 .b8 tma_shared[];",
            ".noreturn;",
        ] {
            assert_eq!(Instruction::parse(line), None, "{line}");
        }
    }

    #[test]
    fn opcodes_are_compared_part_by_part() {
        let read = Instruction::parse("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;").unwrap();
        assert!(read.is("mbarrier.arrive") && read.is("mbarrier.arrive.expect_tx"));
        assert!(!read.is("mbarrier.arr") && !read.is("mbarrier.arrive.expect"));
        assert!(read.has("expect_tx") && read.has("b64") && !read.has("mbarrier"));
    }
}
