//! The sizes of strong accesses.
//!
//! Two strong operations are strong for each other only if they overlap completely, and a race of
//! two that overlap in part voids all that the memory model says (PTX ISA, "Morally Strong
//! Operations", "Limitations on Mixed-size Data-races"). What counts are scalars: a vector or a
//! packed type is as many operations as it has elements ("Vector Data-types", "Packed Data-types").
//! A scalar lies at a multiple of its size, so that two of one size overlap completely or not at
//! all.

/// The sizes of scalars.
pub(super) const SCALARS: [u32; 5] = [1, 2, 4, 8, 16];

/// The sizes that a strong access may be taken to have, as bits: that of 4 bytes is bit 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes(u8);

impl Sizes {
    /// Those of a weak access.
    pub(super) const WEAK: Self = Self(0);
    /// Those of an access whose elements are not known.
    pub(super) const ANY: Self = Self(0x1f);

    /// That of a scalar.
    #[inline]
    pub(super) const fn of(bytes: u32) -> Self {
        match bytes.is_power_of_two() && bytes <= 16 {
            true => Self(bytes as u8),
            false => Self::ANY,
        }
    }

    /// Those of a pair of such bytes: its elements', and its own, since loads know no packed types.
    pub(super) const fn of_pair(bytes: u32) -> Self {
        Self(Self::of(bytes).0 | Self::of(bytes / 2).0)
    }

    /// Those of bits from [`bits`](Self::bits).
    #[inline]
    pub(super) const fn from_bits(bits: u32) -> Self {
        Self(bits as u8 & Self::ANY.0)
    }

    /// Five bits.
    #[inline]
    pub(super) const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// Whether an access of one and an access of the other that overlap may do so completely.
    #[inline]
    pub(super) const fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The bytes, for a message: of several sizes the greatest.
    pub(super) const fn bytes(self) -> u32 {
        match self.0.checked_ilog2() {
            Some(bit) => 1 << bit,
            None => 0,
        }
    }
}

/// Bytes of an atomic operation, and its sizes.
#[derive(Clone, Copy, Debug)]
pub struct Width {
    pub(super) bytes: u32,
    pub(super) sizes: Sizes,
}

impl Width {
    /// Of a scalar.
    pub const fn scalar(bytes: u32) -> Self {
        Self { bytes, sizes: Sizes::of(bytes) }
    }

    /// Of a packed pair, such as `.f16x2`.
    pub const fn pair(bytes: u32) -> Self {
        Self { bytes, sizes: Sizes::of_pair(bytes) }
    }
}
