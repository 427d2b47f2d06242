//! The sizes of strong accesses.
//!
//! Two strong operations are morally strong only if they overlap completely. A race between two
//! that overlap partially voids every guarantee of the memory model (PTX ISA, "Morally Strong
//! Operations", "Limitations on Mixed-size Data-races"). Sizes are those of scalars: an access to a
//! vector or a packed type is as many operations as it has elements ("Vector Data-types", "Packed
//! Data-types"). A scalar is aligned to its size, so two accesses of the same size overlap
//! completely or not at all.

/// The sizes of scalars, in bytes.
pub(super) const SCALARS: [u32; 5] = [1, 2, 4, 8, 16];

/// A set of sizes that a strong access may be taken to have. A size of 2^n bytes is bit n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes(u8);

impl Sizes {
    /// The empty set, for weak accesses.
    pub(super) const WEAK: Self = Self(0);
    /// Every size, for an access whose elements are not known.
    pub(super) const ANY: Self = Self(0x1f);

    /// Returns the size of a scalar.
    #[inline]
    pub(super) const fn of(bytes: u32) -> Self {
        match bytes.is_power_of_two() && bytes <= 16 {
            true => Self(bytes as u8),
            false => Self::ANY,
        }
    }

    /// Returns the sizes of a packed pair of this many bytes: those of its elements and of the
    /// whole, since loads have no packed types.
    pub(super) const fn of_pair(bytes: u32) -> Self {
        Self(Self::of(bytes).0 | Self::of(bytes / 2).0)
    }

    /// Converts back from [`bits`](Self::bits).
    #[inline]
    pub(super) const fn from_bits(bits: u32) -> Self {
        Self(bits as u8 & Self::ANY.0)
    }

    /// Returns the set as five bits.
    #[inline]
    pub(super) const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// Returns whether overlapping accesses with these two sets of sizes may overlap completely.
    #[inline]
    pub(super) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the greatest size in bytes, for a message.
    pub(super) const fn bytes(self) -> u32 {
        match self.0.checked_ilog2() {
            Some(bit) => 1 << bit,
            None => 0,
        }
    }
}

/// The bytes of an atomic operation, and the sizes it may be taken to have.
#[derive(Clone, Copy, Debug)]
pub struct Width {
    pub(super) bytes: u32,
    pub(super) sizes: Sizes,
}

impl Width {
    /// Returns the width of a scalar.
    pub const fn scalar(bytes: u32) -> Self {
        Self { bytes, sizes: Sizes::of(bytes) }
    }

    /// Returns the width of a packed pair, such as `.f16x2`.
    pub const fn pair(bytes: u32) -> Self {
        Self { bytes, sizes: Sizes::of_pair(bytes) }
    }
}
