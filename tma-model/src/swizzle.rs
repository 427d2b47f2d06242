//! The layout of a tile's rows in shared memory, and of a tensor's rows in global memory.

/// The permutation of the 16-byte chunks of a tile's rows in shared memory. Each variant has its
/// number in the driver's API. Source: CUDA driver API, `CUtensorMapSwizzle`; PTX ISA, "Swizzling
/// Modes".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// No permutation: row after row, as in the tensor.
    #[default]
    None,
    /// A permutation within spans of 32 bytes.
    B32,
    /// A permutation within spans of 64 bytes.
    B64,
    /// A permutation within spans of 128 bytes.
    B128,
}

impl Swizzle {
    /// Returns the span in bytes, which a row may not exceed. `None` means no permutation.
    #[inline]
    pub const fn span(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }

    /// Returns the bits of a byte offset that the pattern changes, which number the chunk within
    /// its span.
    #[inline]
    pub const fn chunk_bits(self) -> u32 {
        match self {
            Self::None => 0,
            Self::B32 => 0x10,
            Self::B64 => 0x30,
            Self::B128 => 0x70,
        }
    }

    /// Returns the shared offset of the byte whose offset in the plain layout is `at`.
    ///
    /// The bits that number the 128-byte line are XORed into those that number the chunk within its
    /// span. Source: PTX ISA, "Swizzling Modes".
    #[inline]
    pub const fn permute(self, at: u32) -> u32 {
        at ^ (at >> 3 & self.chunk_bits())
    }
}

/// The layout of the tensor's innermost elements in global memory. Each variant has its number in
/// the driver's API. Source: CUDA driver API, `CUtensorMapInterleave`; PTX ISA, "Interleave
/// layout".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interleave {
    /// One after another.
    #[default]
    None,
    /// In slices of 16 bytes, such as the 8 channels of 2 bytes in NC/8HWC8.
    B16,
    /// In slices of 32 bytes, such as the 16 channels of 2 bytes in NC/16HWC16.
    B32,
}

impl Interleave {
    /// Returns the bytes of a slice, if the layout has slices.
    #[inline]
    pub const fn slice(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::B16 => Some(16),
            Self::B32 => Some(32),
        }
    }
}

/// The third parameter of the language's `Tile`: a swizzle, or an interleaved layout together with
/// the only swizzle that it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the width of the permuted span, or of a pixel, in bytes
pub enum TileSwizzle {
    None,
    /// Unpermuted panels of 16 bytes: the core matrices of tensor cores.
    Panels16,
    B32,
    B64,
    B128,
    Interleave16,
    /// Uses the pattern of [`Swizzle::B32`].
    Interleave32,
}

impl TileSwizzle {
    /// All variants.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Panels16,
        Self::B32,
        Self::B64,
        Self::B128,
        Self::Interleave16,
        Self::Interleave32,
    ];

    /// Returns the permutation of chunks in shared memory.
    pub const fn pattern(self) -> Swizzle {
        match self {
            Self::None | Self::Panels16 | Self::Interleave16 => Swizzle::None,
            Self::B32 | Self::Interleave32 => Swizzle::B32,
            Self::B64 => Swizzle::B64,
            Self::B128 => Swizzle::B128,
        }
    }

    /// Returns the layout of the tensor in global memory.
    pub const fn interleave(self) -> Interleave {
        match self {
            Self::None | Self::Panels16 | Self::B32 | Self::B64 | Self::B128 => Interleave::None,
            Self::Interleave16 => Interleave::B16,
            Self::Interleave32 => Interleave::B32,
        }
    }

    /// Returns the width of a panel in bytes. A longer row is divided into panels, and a shorter
    /// one is padded to the width. `None` means that any row length is allowed, as in interleaved
    /// layouts.
    pub const fn span(self) -> Option<u32> {
        match self {
            Self::Panels16 => Some(16),
            Self::None | Self::B32 | Self::B64 | Self::B128 => self.pattern().span(),
            Self::Interleave16 | Self::Interleave32 => None,
        }
    }

    /// Returns the bits of an offset that the pattern changes, which number the chunk within its
    /// span.
    pub const fn chunk_bits(self) -> u32 {
        self.pattern().chunk_bits()
    }

    /// Returns the bytes within which 16-byte chunks are permuted; 16 if none are.
    pub const fn permuted_bytes(self) -> u32 {
        self.chunk_bits() + 16
    }

    /// Returns the bytes of a pixel's slice of channels. An interleaved layout counts pixels along
    /// the innermost dimension.
    pub const fn pixel_bytes(self) -> Option<u32> {
        self.interleave().slice()
    }

    /// Returns the name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NoSwizzle",
            Self::Panels16 => "Panels16",
            Self::B32 => "Swizzle32",
            Self::B64 => "Swizzle64",
            Self::B128 => "Swizzle128",
            Self::Interleave16 => "Interleave16",
            Self::Interleave32 => "Interleave32",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_is_its_own_inverse_within_its_span() {
        for swizzle in [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128] {
            let span = swizzle.span().unwrap_or(16);
            for at in 0..4096 {
                let moved = swizzle.permute(at);
                assert_eq!(moved / span, at / span);
                assert_eq!(moved % 16, at % 16);
                assert_eq!(swizzle.permute(moved), at);
            }
        }
    }

    #[test]
    fn the_widest_pattern_spreads_a_column_over_all_banks() {
        let chunks: std::collections::HashSet<u32> =
            (0..8).map(|row| Swizzle::B128.permute(row * 128) % 128 / 16).collect();
        assert_eq!(chunks.len(), 8);
    }

    #[test]
    fn the_permuted_bytes_are_the_spans() {
        let bytes = TileSwizzle::ALL.map(TileSwizzle::permuted_bytes);
        assert_eq!(bytes, [16, 16, 32, 64, 128, 16, 32]);
    }
}
