//! A line of PTX, as far as the workarounds read it.

/// A line of PTX, or of an inline assembly's template. LLVM and this crate write at most one label
/// or one instruction in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'t> {
    /// A label, without its colon.
    Label(&'t str),
    Instruction(Instruction<'t>),
    /// A directive, a brace, a comment, or nothing.
    Other,
}

/// An instruction in a line of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction<'t> {
    pub(super) predicate: Option<Predicate<'t>>,
    /// The opcode with all its modifiers.
    pub(super) opcode: &'t str,
    /// The text between the opcode and the semicolon.
    operands: &'t str,
}

/// The condition of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Predicate<'t> {
    pub(super) register: &'t str,
    pub(super) is_negated: bool,
}

impl<'t> Line<'t> {
    /// Parses a line.
    pub(super) fn parse(line: &'t str) -> Self {
        let code = line.split_once("//").map_or(line, |(code, _)| code).trim();
        if let Some(label) = code.strip_suffix(':') {
            return Self::Label(label);
        }
        Instruction::parse(code).map_or(Self::Other, Self::Instruction)
    }
}

impl<'t> Instruction<'t> {
    fn parse(code: &'t str) -> Option<Self> {
        let code = code.strip_suffix(';')?;
        let (predicate, code) = match code.strip_prefix('@') {
            Some(code) => {
                let (register, code) = code.split_once(char::is_whitespace)?;
                let predicate = match register.strip_prefix('!') {
                    Some(register) => Predicate { register, is_negated: true },
                    None => Predicate { register, is_negated: false },
                };
                (Some(predicate), code.trim_start())
            }
            None => (None, code),
        };
        let (opcode, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
        let is_opcode = opcode.starts_with(|first: char| first.is_ascii_lowercase());
        is_opcode.then_some(Self { predicate, opcode, operands: operands.trim() })
    }

    /// Whether it multiplies on the tensor cores of a warpgroup.
    pub(super) fn multiplies(&self) -> bool {
        self.opcode.starts_with("wgmma.mma_async.")
    }

    /// Returns the operands. Registers in braces are one operand.
    pub(super) fn operands(&self) -> impl Iterator<Item = &'t str> {
        let mut rest = (!self.operands.is_empty()).then_some(self.operands);
        std::iter::from_fn(move || {
            let text = rest?;
            let mut depth = 0;
            let comma = text.find(|symbol: char| {
                depth += i32::from("{[(".contains(symbol)) - i32::from("}])".contains(symbol));
                depth == 0 && symbol == ','
            });
            let (operand, after) = match comma {
                Some(at) => (&text[..at], Some(&text[at + 1..])),
                None => (text, None),
            };
            rest = after;
            Some(operand.trim())
        })
    }
}

/// Returns the elements of an operand in braces.
pub(super) fn elements(operand: &str) -> impl Iterator<Item = &str> {
    let list = operand.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    list.into_iter().flat_map(|list| list.split(',').map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> (Option<(&str, bool)>, &str, Vec<&str>) {
        let Line::Instruction(instruction) = Line::parse(line) else { panic!("no instruction: {line}") };
        let predicate = instruction.predicate.map(|predicate| (predicate.register, predicate.is_negated));
        (predicate, instruction.opcode, instruction.operands().collect())
    }

    #[test]
    fn instructions_have_predicates_opcodes_and_operands() {
        assert_eq!(parts("\tret;"), (None, "ret", vec![]));
        assert_eq!(
            parts("\t@!%p1 bra \t$L__BB0_2; // a comment"),
            (Some(("%p1", true)), "bra", vec!["$L__BB0_2"])
        );
        assert_eq!(parts("@%stops trap;"), (Some(("%stops", false)), "trap", vec![]));
        assert_eq!(
            parts("\twgmma.mma_async.sync {%f1, %f2}, %rd1, [%r1+4], -1;"),
            (None, "wgmma.mma_async.sync", vec!["{%f1, %f2}", "%rd1", "[%r1+4]", "-1"])
        );
        assert_eq!(elements("{%f1, %f2}").collect::<Vec<_>>(), ["%f1", "%f2"]);
        assert_eq!(elements("%rd1").count(), 0);
    }

    #[test]
    fn other_lines_are_none() {
        assert_eq!(Line::parse("$L__BB0_2:"), Line::Label("$L__BB0_2"));
        for other in ["", "{", "\t}", "// wgmma.fence;", ".reg .b32 %r<5>;", "call.uni (retval0),", "\t("] {
            assert_eq!(Line::parse(other), Line::Other, "{other}");
        }
    }
}
