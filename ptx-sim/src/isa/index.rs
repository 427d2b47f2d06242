//! Indices, with a type for each kind so that they cannot be confused.

/// Declares index types.
macro_rules! indices {
    ($($(#[$doc:meta])* $vis:vis $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis struct $name($vis u32);

        impl $name {
            /// Converts to an index of a slice.
            #[inline(always)]
            $vis const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}
pub(crate) use indices;

indices! {
    /// A register of a warp or, with the top bit set, a constant of the program.
    pub(crate) Reg;
    /// An instruction of a program.
    pub(crate) Pc;
    /// A label of a kernel. Its instruction is known once the label has been passed.
    pub(crate) Label;
    /// A variable of the module, in global or constant memory.
    pub(crate) VariableId;
}

impl Reg {
    /// The bit that marks a constant.
    const CONSTANT: u32 = 1 << 31;
    /// The register that receives discarded results (`_`).
    pub(crate) const SINK: Reg = Reg(0);
    /// The carry flag (`.cc`).
    pub(crate) const CARRY: Reg = Reg(1);
    /// The first register after those that every program has.
    pub(crate) const FIRST_FREE: u32 = 2;

    /// Returns the constant with this index.
    pub(crate) fn constant(index: usize) -> Reg {
        debug_assert!(index < Self::CONSTANT as usize, "too many constants");
        Reg(index as u32 | Self::CONSTANT)
    }

    /// Returns the index of a constant, and `None` for a register.
    #[inline(always)]
    pub(crate) const fn as_constant(self) -> Option<usize> {
        if self.0 & Self::CONSTANT == 0 { None } else { Some((self.0 & !Self::CONSTANT) as usize) }
    }

    /// Returns the upper half of a 128-bit register.
    pub(crate) fn upper(self) -> Reg {
        debug_assert!(self.as_constant().is_none(), "constants have 64 bits");
        if self == Reg::SINK { self } else { Reg(self.0 + 1) }
    }
}

impl Pc {
    /// Returns the instruction after this one.
    #[inline(always)]
    pub(crate) const fn next(self) -> Pc {
        Pc(self.0 + 1)
    }
}
