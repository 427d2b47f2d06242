//! An encoded tensor map.

use std::fmt;

use tma_model::limits::MAP_BYTES;

/// A tensor map as the 128 bytes of a kernel's parameter: CUDA's `CUtensorMap`. It is aligned to
/// 128 bytes: the driver requires 64, its header since CUDA 13 128.
///
/// The driver's format is not documented, and a simulated device has its own format. The bytes
/// contain the tensor's address, and borrow nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C, align(128))]
pub struct Descriptor([u8; 128]);

const _: () = assert!(size_of::<Descriptor>() == MAP_BYTES as usize);

impl Descriptor {
    pub(crate) const fn new(bytes: [u8; 128]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8; 128] {
        &self.0
    }
}

/// A descriptor of zeros, which no kernel may use.
impl Default for Descriptor {
    fn default() -> Self {
        Self::new([0; 128])
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Descriptor(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}
