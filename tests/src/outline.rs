//! PTX in outline: what a test of one instruction is about, without what LLVM may choose
//! differently.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Opcodes that compute, move or branch, up to their first dot. LLVM orders and combines them.
const ARITHMETIC: &[&str] = &[
    "abs", "add", "and", "bfe", "bfi", "bmsk", "bra", "brev", "clz", "cnot", "copysign", "cos", "cvt",
    "cvta", "div", "dp4a", "ex2", "fma", "lg2", "lop3", "mad", "max", "min", "mov", "mul", "neg", "not",
    "or", "popc", "prmt", "rcp", "rem", "rsqrt", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct",
    "sqrt", "sub", "szext", "tanh", "testp", "xor",
];

/// Directives of the launch.
const LAUNCH: &[&str] = &[".reqntid", ".maxnreg", ".minnctapersm", ".reqnctapercluster", ".explicitcluster"];

/// The directives of the kernel, its instructions that touch memory, synchronise or use tensor
/// cores, in order and with a `%` for each register, and the number of each opcode that only
/// computes.
///
/// Instructions that repeat are one line with their number. Calls of `__assertfail` are one word:
/// the texts that they print name lines of the source.
///
/// ```text
/// .reqntid 32, 1, 1
/// mbarrier.init.shared::cta.b64 [%], %;
/// st.shared.b32 [%], %; ×4
/// assert
///
/// 3 add.s32
/// ```
pub fn outline(ptx: &str) -> String {
    let mut lines = vec![];
    let mut arithmetic = BTreeMap::<&str, usize>::new();
    let kernel = ptx.split_once(".visible .entry").map_or(ptx, |(_, kernel)| kernel);
    let mut is_in_call = false;
    for line in kernel.lines().map(str::trim) {
        if line.contains("__assertfail") {
            // The call and the scope of its parameters.
            let scope = lines.iter().rposition(|line| line == "{").unwrap_or(lines.len());
            lines.truncate(scope);
            lines.push("assert".to_owned());
            is_in_call = true;
        } else if is_in_call {
            is_in_call = line != "}";
        } else if let Some(opcode) = opcode(line) {
            let family = opcode.split('.').next().unwrap_or_default();
            if ARITHMETIC.contains(&family) || opcode.starts_with("ld.param") {
                *arithmetic.entry(opcode).or_default() += 1;
            } else {
                lines.push(without_registers(line));
            }
        } else if line == "{" || LAUNCH.iter().any(|directive| line.starts_with(directive)) {
            lines.push(line.to_owned());
        }
    }
    lines.retain(|line| line != "{");
    let mut text = String::new();
    for same in lines.chunk_by(|one, next| one == next) {
        let times = if same.len() > 1 { format!(" ×{}", same.len()) } else { String::new() };
        let _ = writeln!(text, "{}{times}", same[0]);
    }
    text.push('\n');
    for (opcode, count) in arithmetic {
        let _ = writeln!(text, "{count} {opcode}");
    }
    text
}

/// The opcode of a line, behind its guard, if it holds an instruction.
fn opcode(line: &str) -> Option<&str> {
    let instruction = match line.strip_prefix('@') {
        Some(guarded) => guarded.split_once(char::is_whitespace)?.1.trim_start(),
        None => line,
    };
    let is_instruction = instruction.starts_with(|c: char| c.is_ascii_alphabetic()) && line.ends_with(';');
    is_instruction.then(|| instruction.split([' ', '\t', ';']).next().unwrap_or_default())
}

/// PTX with `%` alone for each register, and one space for each tab.
pub fn without_registers(ptx: &str) -> String {
    let mut pieces = ptx.split('%');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.push('%');
        text.push_str(piece.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'));
    }
    text.replace(" \t", " ").replace('\t', " ")
}
