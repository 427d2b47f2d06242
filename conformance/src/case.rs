//! Cases and their names.

use std::fmt;

use tma_model::Swizzle;
use tma_model::mma::{Descriptor, Form, Major, Operand, OperandTile, ROWS};

use crate::draw::{Addend, Kind};
use crate::instruction::{Instruction, Source};

/// An instruction with its operands, run once or several times on the same accumulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// What is run.
    pub instruction: Instruction,
    /// How A and B are swizzled in shared memory.
    pub swizzles: [Swizzle; 2],
    /// What A and B hold.
    pub kind: Kind,
    /// What C is.
    pub addend: Addend,
    /// How many instructions, one after the other along K.
    pub steps: u32,
    /// The random numbers.
    pub seed: u64,
}

/// Kernels are made for these types and width, with all instructions of their cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Family(pub Form);

impl Case {
    /// The family of its kernel: its form, but dense.
    pub const fn family(&self) -> Family {
        Family(Form { sparse: false, ..self.instruction.form })
    }

    /// The types and the shape.
    pub const fn form(&self) -> Form {
        self.instruction.form
    }

    /// The tile in shared memory that A is, of the elements that are there; none if A is in
    /// registers.
    pub fn left(&self) -> Option<OperandTile> {
        let Form { a, .. } = self.form();
        let k = self.steps * self.form().stored_k();
        let is_shared = self.instruction.source == Source::Shared;
        is_shared.then(|| tile(a, [ROWS, k], self.swizzles[0], self.instruction.majors[0]))
    }

    /// The tile in shared memory that B is.
    pub fn right(&self) -> OperandTile {
        let Form { b, n, .. } = self.form();
        let k = self.steps * self.form().k();
        tile(b, [n, k], self.swizzles[1], self.instruction.majors[1])
    }

    /// The descriptors of A and B for a step, of tiles that start at these addresses.
    pub fn descriptors(&self, step: u32, [left, right]: [u32; 2]) -> [u64; 2] {
        let a = self.left().map_or(0, |tile| tile.descriptor(left + tile.advance_k(step)).encode());
        let tile = self.right();
        let dense_steps = if self.form().sparse { 2 } else { 1 };
        let whole = tile.descriptor(right + tile.advance_k(step * dense_steps));
        // 64 bytes along K are two panels of 32.
        let spans_panels = self.form().sparse && (tile.major, tile.swizzle) == (Major::K, Swizzle::B32);
        let leading = if spans_panels { tile.panel_bytes() } else { whole.leading };
        [a, Descriptor { leading, ..whole }.encode()]
    }
}

/// A tile of `mn` rows of A or columns of B, and `k` elements; MN-major it has whole panels, of
/// which the last may be used in part.
fn tile(element: Operand, [mn, k]: [u32; 2], swizzle: Swizzle, major: Major) -> OperandTile {
    let of = |extents| OperandTile { element, extents, swizzle, major };
    match major {
        Major::K => of([mn, k]),
        Major::Mn => {
            let panel = of([k, mn]).panel_elements();
            of([k, if mn > panel { mn.next_multiple_of(panel) } else { mn }])
        }
    }
}

const fn span(swizzle: Swizzle) -> u32 {
    match swizzle.span() {
        Some(span) => span,
        None => 0,
    }
}

/// The whole case: its name is found in no other of a list.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instruction, swizzles, kind, addend, steps, seed } = self;
        let [left, right] = swizzles.map(span);
        write!(f, "{instruction} {left}/{right} {kind}+{addend}")?;
        if *steps > 1 {
            write!(f, " x{steps}")?;
        }
        write!(f, " #{seed}")
    }
}
