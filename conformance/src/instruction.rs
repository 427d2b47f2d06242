//! Instructions as text.

use std::fmt;

use tma_model::mma::{Form, Major, Operand};

/// The location of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Shared memory.
    Shared,
    /// Registers.
    Registers,
}

impl Source {
    /// Both locations.
    pub const ALL: [Self; 2] = [Self::Shared, Self::Registers];
}

/// A `wgmma.mma_async` with all of its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Types and shape.
    pub form: Form,
    /// Location of A.
    pub source: Source,
    /// Contiguous dimensions of A and B.
    pub majors: [Major; 2],
    /// Whether A and B are negated.
    pub negates: [bool; 2],
    /// Whether integer sums are clamped.
    pub saturates: bool,
    /// Selector of the threads that hold the metadata of a sparse A.
    pub selector: u32,
}

impl Instruction {
    /// Returns the simplest instruction of a form: K-major, without negation.
    pub const fn plain(form: Form, source: Source) -> Self {
        let majors = [Major::K; 2];
        Self { form, source, majors, negates: [false; 2], saturates: false, selector: 0 }
    }

    /// Returns all instructions of a form in the PTX ISA. Source: PTX ISA, "wgmma.mma_async" and
    /// "wgmma.mma_async.sp".
    pub fn all(form: Form) -> Vec<Self> {
        let Form { a, sparse, .. } = form;
        let majors: &[Major] = if a.is_transposable() { &[Major::K, Major::Mn] } else { &[Major::K] };
        let signs: &[bool] = if a.is_negatable() { &[false, true] } else { &[false] };
        let saturations: &[bool] = if a.is_saturable() { &[false, true] } else { &[false] };
        let selectors = if sparse { a.selectors() } else { 1 };
        let mut all = Vec::new();
        for source in Source::ALL {
            let left_majors = if source == Source::Shared { majors } else { &[Major::K] };
            let pairs = left_majors.iter().flat_map(|left| majors.iter().map(move |right| [*left, *right]));
            for majors in pairs {
                for negates in signs.iter().flat_map(|a| signs.iter().map(move |b| [*a, *b])) {
                    for &saturates in saturations {
                        let of = |selector| Self { form, source, majors, negates, saturates, selector };
                        all.extend((0..selectors).map(of));
                    }
                }
            }
        }
        all
    }

    /// Returns the text of the instruction with these operands: registers of D in braces; the
    /// descriptor of A, or its registers in braces; the descriptor of B; metadata; the predicate
    /// `scale-d`.
    pub fn text(&self, [d, a, b, metadata, scale]: [&str; 5]) -> String {
        let Self { form, source, majors, negates, saturates, selector } = *self;
        let sparse = if form.sparse { ".sp" } else { "" };
        let suffix = match form.a {
            Operand::B1 => ".and.popc",
            _ if saturates => ".satfinite",
            _ => "",
        };
        let mut text = format!("wgmma.mma_async{sparse}.sync.aligned.{form}{suffix} {d}, {a}, {b}");
        if form.sparse {
            text += &format!(", {metadata}, {selector}");
        }
        text += &format!(", {scale}");
        if form.a.is_negatable() {
            negates.iter().for_each(|negates| text.push_str(if *negates { ", -1" } else { ", 1" }));
        }
        if form.a.is_transposable() {
            let in_memory = if source == Source::Shared { &majors[..] } else { &majors[1..] };
            in_memory.iter().for_each(|major| text.push_str(if *major == Major::Mn { ", 1" } else { ", 0" }));
        }
        text + ";"
    }
}

/// Formats the instruction for the names of cases: `m64n8k16.f32.f16.f16 A·-B^T`.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { form, source, majors, negates, saturates, selector } = self;
        if form.sparse {
            write!(f, "sp{selector}.")?;
        }
        write!(f, "{form}")?;
        if *saturates {
            f.write_str(".satfinite")?;
        }
        let sign = |side: usize| if negates[side] { "-" } else { "" };
        let transposed = |side: usize| if majors[side] == Major::Mn { "^T" } else { "" };
        let left = if *source == Source::Shared { "A" } else { "R" };
        write!(f, " {}{left}{}·{}B{}", sign(0), transposed(0), sign(1), transposed(1))
    }
}

#[cfg(test)]
mod tests {
    use tma_model::mma::Accumulator;

    use super::*;

    fn form(d: Accumulator, a: Operand, sparse: bool) -> Form {
        Form { d, a, b: a, n: 8, sparse }
    }

    const NAMES: [&str; 5] = ["{d}", "a", "b", "m", "p"];

    #[test]
    fn operands_are_in_the_order_of_the_isa() {
        let half = Instruction::plain(form(Accumulator::F32, Operand::F16, false), Source::Shared);
        let transposed = Instruction { majors: [Major::K, Major::Mn], negates: [false, true], ..half };
        let wanted = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d}, a, b, p, 1, -1, 0, 1;";
        assert_eq!(transposed.text(NAMES), wanted);
        let sparse = Instruction { form: Form { sparse: true, ..half.form }, selector: 1, ..half };
        let sparse = Instruction { source: Source::Registers, ..sparse };
        let wanted = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {d}, a, b, m, 1, p, 1, 1, 0;";
        assert_eq!(sparse.text(NAMES), wanted);
        let bits = Instruction::plain(form(Accumulator::S32, Operand::B1, false), Source::Shared);
        let wanted = "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {d}, a, b, p;";
        assert_eq!(bits.text(NAMES), wanted);
    }

    #[test]
    fn every_modifier_is_there_where_the_isa_has_it() {
        let count = |d, a, sparse| Instruction::all(form(d, a, sparse)).len();
        assert_eq!(count(Accumulator::F32, Operand::Bf16, false), (4 + 2) * 4);
        assert_eq!(count(Accumulator::F32, Operand::Bf16, true), (4 + 2) * 4 * 2);
        assert_eq!(count(Accumulator::F32, Operand::Tf32, true), 2 * 4 * 2);
        assert_eq!(count(Accumulator::F16, Operand::E4m3, true), 2 * 4);
        assert_eq!(count(Accumulator::S32, Operand::S8, false), 2 * 2);
        assert_eq!(count(Accumulator::S32, Operand::B1, false), 2);
    }
}
