//! Lets a kernel print without a call.
//!
//! The driver's `vprintf` is a call, and any call makes ptxas serialise the multiplications of a
//! kernel (its note C7510). [`without_calls`] replaces each by a record in a ring in memory: the
//! number of the call, and the values. The host reads the ring with a [`Reader`], which formats the
//! records as the driver would.
//!
//! All warps share the ring, so that a single thread may print as much as many. A warp takes the
//! places of its records in the order in which it prints, and the lanes that print together take
//! neighbouring places. New records replace the oldest.

mod reader;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use tma_model::printf::{Piece, pieces};

use crate::ProbeError;

pub use reader::{Progress, Reader, Taken};

/// Returns whether the kernel of `ptx` multiplies on tensor cores with `wgmma`, and prints.
pub fn is_needed(ptx: &str) -> bool {
    ptx.contains(CALL) && ptx.contains("\twgmma.mma_async")
}

/// The call as the compiler writes it.
const CALL: &str = "vprintf, (param0, param1);";

/// The variable that counts the records of all launches.
const COUNT: &str = "tma_printed";

/// A kernel that prints to a ring.
#[derive(Clone, Debug, PartialEq)]
pub struct Printing {
    /// The PTX.
    pub ptx: String,
    /// The ring's form, for the reader.
    pub form: Form,
}

/// The form of a ring, and the texts that its records refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The format of each call.
    formats: Vec<Vec<u8>>,
    /// The texts in the kernel's module.
    texts: Vec<Vec<u8>>,
    /// The number of records, a power of two.
    records: u32,
    /// The size of a record in 32-bit words, a power of two.
    words: u32,
}

/// The words of a record before its values: its number, counted from 1 over all launches, and the
/// index of the call. Its number is repeated in its last word.
const VALUES: u32 = 2;

/// Replaces the calls of `vprintf` in `ptx`. The ring is at `address`, and has `words` words of 32
/// bits. They begin as zeros.
///
/// # Errors
///
/// [`ProbeError::Print`] if a call is not as the compiler writes it, or the ring is too small.
pub fn without_calls(ptx: &str, address: u64, words: usize) -> Result<Printing, ProbeError> {
    let lines: Vec<&str> = ptx.lines().collect();
    let texts = texts(&lines);
    let addresses = addresses(&lines);
    let mut calls = Vec::new();
    for at in (0..lines.len()).filter(|&at| lines[at].ends_with(CALL)) {
        calls.push(Call::read(&lines, at, &addresses, &texts).ok_or(ProbeError::Print(at + 1))?);
    }
    let values = calls.iter().map(Call::value_words).max().unwrap_or(0);
    let record = (VALUES + values + 1).next_power_of_two().max(4);
    let fitting = u32::try_from(words / record as usize).unwrap_or(u32::MAX);
    let records = fitting.checked_ilog2().map_or(0, |log| 1 << log);
    if records == 0 {
        return Err(ProbeError::Print(0));
    }
    let ring = Ring { address, records, words: record, texts: &texts };
    let (mut out, mut next) = (String::with_capacity(2 * ptx.len()), 0);
    for (number, call) in calls.iter().enumerate() {
        for line in &lines[next..call.lines.start] {
            if line.contains(".entry ") {
                _ = writeln!(out, ".global .align 4 .u32 {COUNT} = 0;");
            }
            out.extend([line, "\n"]);
        }
        call.replace(&mut out, &lines, number, &ring);
        next = call.lines.end;
    }
    lines[next..].iter().for_each(|line| out.extend([line, "\n"]));
    let formats = calls.iter().map(|call| call.format.to_vec()).collect();
    let texts = texts.iter().map(|(_, text)| text.clone()).collect();
    Ok(Printing { ptx: out, form: Form { formats, texts, records, words: record } })
}

/// A text of the module, by its symbol.
type Text<'t> = (&'t str, Vec<u8>);

/// Returns the constants of bytes that end with a zero.
fn texts<'t>(lines: &[&'t str]) -> Vec<Text<'t>> {
    let texts = lines.iter().filter_map(|line| {
        let (declared, bytes) = line.strip_suffix("};")?.split_once(" = {")?;
        let (symbol, size) = declared.strip_prefix(".global .align 1 .b8 ")?.split_once('[')?;
        let size: usize = size.strip_suffix(']')?.parse().ok()?;
        let text: Vec<u8> = bytes.split(", ").map(str::parse).collect::<Result<_, _>>().ok()?;
        // What is not initialised is zero.
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        (end < size).then(|| (symbol, text[..end].to_vec()))
    });
    texts.collect()
}

/// Returns the symbols whose addresses registers hold.
fn addresses<'t>(lines: &[&'t str]) -> HashMap<&'t str, &'t str> {
    let mut addresses = HashMap::new();
    // An address is taken in one instruction and made generic in a later one.
    for line in lines {
        let Some(operands) = line.trim_start().strip_suffix(';') else { continue };
        let moved = operands.strip_prefix("mov.b64 \t").and_then(|operands| operands.split_once(", "));
        let generic = operands.strip_prefix("cvta.global.u64 \t").and_then(|both| both.split_once(", "));
        if let Some((register, symbol)) = moved.filter(|(_, symbol)| !symbol.starts_with('%')) {
            addresses.insert(register, symbol);
        } else if let Some((register, from)) = generic
            && let Some(symbol) = addresses.get(from)
        {
            addresses.insert(register, *symbol);
        }
    }
    addresses
}

/// A call of `vprintf`.
struct Call<'t> {
    /// The lines of its block, with the braces.
    lines: Range<usize>,
    format: &'t [u8],
    /// The generic address of the values, which are in local memory.
    values: &'t str,
}

/// A value that a call prints.
struct Value {
    /// Its offset in bytes, a multiple of its size.
    offset: u32,
    bytes: u32,
    is_text: bool,
}

impl<'t> Call<'t> {
    /// Reads the call in the line `at`.
    fn read(
        lines: &[&'t str],
        at: usize,
        addresses: &HashMap<&str, &str>,
        texts: &'t [Text<'_>],
    ) -> Option<Self> {
        let start = (0..at).rev().find(|&line| lines[line].trim() == "{")?;
        let end = at + 1;
        if lines.get(end)?.trim() != "}" {
            return None;
        }
        let passed = |parameter: &str| {
            let prefix = format!("\tst.param.b64 \t[{parameter}], ");
            let mut lines = lines[start..at].iter();
            lines.find_map(|line| line.strip_prefix(prefix.as_str())?.strip_suffix(';'))
        };
        let symbol = addresses.get(passed("param0")?)?;
        let (_, format) = texts.iter().find(|(name, _)| name == symbol)?;
        Some(Self { lines: start..end + 1, format, values: passed("param1")? })
    }

    fn values(&self) -> Vec<Value> {
        let mut next = 0_u32;
        let specs = pieces(self.format).into_iter().filter_map(|piece| match piece {
            Piece::Value(spec) => Some(spec),
            Piece::Text(_) | Piece::TooWide => None,
        });
        let place = specs.map(|spec| {
            let offset = next.next_multiple_of(spec.bytes);
            next = offset + spec.bytes;
            Value { offset, bytes: spec.bytes, is_text: spec.is_text() }
        });
        place.collect()
    }

    /// Returns the words that the values take.
    fn value_words(&self) -> u32 {
        self.values().last().map_or(0, |value| (value.offset + value.bytes) / 4)
    }

    /// Writes the record in place of the call. The first of the active lanes takes places for all.
    fn replace(&self, out: &mut String, lines: &[&str], number: usize, ring: &Ring<'_>) {
        let is_of_call = |line: &str| {
            let line = line.trim_start();
            line.starts_with(".param") || line.starts_with("st.param") || line.ends_with(CALL)
        };
        let block = &lines[self.lines.start..self.lines.end - 1];
        block.iter().filter(|line| !is_of_call(line)).for_each(|line| out.extend([line, "\n"]));
        let Ring { address, records, words, texts } = ring;
        let (mask, bytes, last) = (records - 1, 4 * words, 4 * (words - 1));
        _ = write!(
            out,
            "\t.reg .pred \t%print_other;
\t.reg .b32 \t%print_lanes, %print_rank, %print_number, %print_word;
\t.reg .b64 \t%print_record, %print_count, %print_values, %print_wide, %print_text;
\tactivemask.b32 \t%print_lanes;
\tmov.u32 \t%print_rank, %lanemask_lt;
\tand.b32 \t%print_rank, %print_lanes, %print_rank;
\tpopc.b32 \t%print_rank, %print_rank;
\tmov.b32 \t%print_number, 0;
\tsetp.ne.s32 \t%print_other, %print_rank, 0;
\t@%print_other bra \tprint_{number};
\tmov.b64 \t%print_count, {COUNT};
\tpopc.b32 \t%print_word, %print_lanes;
\tatom.global.add.u32 \t%print_number, [%print_count], %print_word;
print_{number}:
\tbrev.b32 \t%print_word, %print_lanes;
\tclz.b32 \t%print_word, %print_word;
\tshfl.sync.idx.b32 \t%print_number, %print_number, %print_word, 31, %print_lanes;
\tadd.s32 \t%print_number, %print_number, %print_rank;
\tand.b32 \t%print_rank, %print_number, {mask};
\tadd.s32 \t%print_number, %print_number, 1;
\tmov.b64 \t%print_record, {address};
\tmad.wide.u32 \t%print_record, %print_rank, {bytes}, %print_record;
\tmov.b32 \t%print_word, {number};
\tst.global.v2.b32 \t[%print_record], {{%print_number, %print_word}};
"
        );
        let values = self.values();
        if !values.is_empty() {
            _ = writeln!(out, "\tcvta.to.local.u64 \t%print_values, {};", self.values);
        }
        for Value { offset, bytes, is_text } in values {
            let to = 4 * VALUES + offset;
            let (register, bits) = if bytes == 8 { ("%print_wide", 64) } else { ("%print_word", 32) };
            _ = writeln!(out, "\tld.local.b{bits} \t{register}, [%print_values+{offset}];");
            if is_text {
                number_of_text(out, texts);
            }
            _ = writeln!(out, "\tst.global.b{bits} \t[%print_record+{to}], {register};");
        }
        _ = write!(out, "\tst.release.sys.global.b32 \t[%print_record+{last}], %print_number;\n\t}}\n");
    }
}

/// Writes what turns the address of a text in `%print_wide` into its number, counted from 1.
fn number_of_text(out: &mut String, texts: &[Text<'_>]) {
    out.push_str("\tmov.b32 \t%print_word, 0;\n");
    for (number, (symbol, _)) in texts.iter().enumerate() {
        let number = number + 1;
        _ = write!(
            out,
            "\tmov.b64 \t%print_text, {symbol};
\tcvta.global.u64 \t%print_text, %print_text;
\tsetp.eq.b64 \t%print_other, %print_wide, %print_text;
\tselp.b32 \t%print_word, {number}, %print_word, %print_other;
"
        );
    }
    out.push_str("\tcvt.u64.u32 \t%print_wide, %print_word;\n");
}

/// The ring of a kernel.
struct Ring<'t> {
    address: u64,
    records: u32,
    words: u32,
    texts: &'t [Text<'t>],
}
