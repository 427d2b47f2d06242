//! Cases and their names.

use std::fmt;

use tma_model::Swizzle;
use tma_model::mma::{Descriptor, Form, Major, Operand, OperandTile, ROWS};

use crate::draw::{Addend, Kind};
use crate::instruction::{Instruction, Source};

/// An instruction with its operands, executed once or several times on the same accumulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// Instruction to execute.
    pub instruction: Instruction,
    /// Swizzles of A and B in shared memory.
    pub swizzles: [Swizzle; 2],
    /// Kind of numbers in A and B.
    pub kind: Kind,
    /// Kind of numbers in C.
    pub addend: Addend,
    /// Number of instructions, one after another along K.
    pub steps: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// The types and width that the cases of one kernel share. The kernel has all their instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Family(pub Form);

impl Case {
    /// Returns the family: the dense form of the case.
    pub const fn family(&self) -> Family {
        Family(Form { sparse: false, ..self.instruction.form })
    }

    /// Returns the types and the shape.
    pub const fn form(&self) -> Form {
        self.instruction.form
    }

    /// Returns A as a tile of its stored elements in shared memory, or `None` if A is in registers.
    pub fn left(&self) -> Option<OperandTile> {
        let Form { a, .. } = self.form();
        let k = self.steps * self.form().stored_k();
        let is_shared = self.instruction.source == Source::Shared;
        is_shared.then(|| tile(a, [ROWS, k], self.swizzles[0], self.instruction.majors[0]))
    }

    /// Returns B as a tile in shared memory.
    pub fn right(&self) -> OperandTile {
        let Form { b, n, .. } = self.form();
        let k = self.steps * self.form().k();
        tile(b, [n, k], self.swizzles[1], self.instruction.majors[1])
    }

    /// Returns the descriptors of A and B for a step, for tiles that start at these addresses.
    pub fn descriptors(&self, step: u32, [left, right]: [u32; 2]) -> [u64; 2] {
        let a = self.left().map_or(0, |tile| tile.descriptor(left + tile.advance_k(step)).encode());
        let tile = self.right();
        let dense_steps = if self.form().sparse { 2 } else { 1 };
        let whole = tile.descriptor(right + tile.advance_k(step * dense_steps));
        // 64 bytes along K are two panels of 32 bytes.
        let spans_panels = self.form().sparse && (tile.major, tile.swizzle) == (Major::K, Swizzle::B32);
        let leading = if spans_panels { tile.panel_bytes() } else { whole.leading };
        [a, Descriptor { leading, ..whole }.encode()]
    }
}

/// Creates a tile of `mn` rows of A or columns of B, and `k` elements. If it is MN-major it has
/// whole panels, and the last may only be used in part.
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

/// Formats the whole case, as a name that is unique within a list.
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
