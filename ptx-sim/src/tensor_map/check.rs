//! The rules for the parameters of a map: those of the documentation, and what a driver refuses beside them.

use std::fmt;

use super::{Fill, Interleave, MAX_RANK, Mode, Swizzle, TensorMap, UNIT};

/// A rule of `cuTensorMapEncodeTiled` or `cuTensorMapEncodeIm2col` that the parameters break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapError(String);

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MapError {}

/// Fails with a message unless `holds`.
fn require(holds: bool, message: impl FnOnce() -> String) -> Result<(), MapError> {
    if holds { Ok(()) } else { Err(MapError(message())) }
}

/// The most pixels of a column. Source: `pixelsPerColumn` of `cuTensorMapEncodeIm2col`.
const MOST_PIXELS: u32 = 1024;

/// The most bytes of a box.
const MOST_BYTES: u32 = 228 * 1024;

/// The corners of a bounding box are from `-reach` to `reach - 1`. Source: `pixelBoxLowerCorner` of
/// `cuTensorMapEncodeIm2col`.
const fn corner_reach(rank: usize) -> i32 {
    match rank {
        ..=3 => 1 << 15,
        4 => 1 << 7,
        _ => 1 << 4,
    }
}

impl TensorMap {
    /// Checks the parameters. A launch does it before it runs, and a copy with a map that a kernel has changed.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, with what was found.
    pub fn check(&self) -> Result<(), MapError> {
        self.check_rank()?;
        self.check_tensor()?;
        self.check_steps()?;
        match &self.mode {
            Mode::Tiled { box_extents } => self.check_box(box_extents)?,
            Mode::Im2col { lower, upper, channels, pixels } => {
                self.check_columns(lower, upper, *channels, *pixels)?;
            }
        }
        self.check_size()?;
        self.check_swizzle()?;
        require(self.fill == Fill::Zeros || self.element.is_float(), || {
            "elements that are not floating-point cannot be filled with NaN".to_owned()
        })
    }

    fn check_rank(&self) -> Result<(), MapError> {
        let rank = self.rank();
        let (least, why) = match (&self.mode, self.interleave) {
            (Mode::Im2col { .. }, _) => (3, " in im2col mode"),
            (Mode::Tiled { .. }, Interleave::B16 | Interleave::B32) => (3, " with an interleaved layout"),
            (Mode::Tiled { .. }, Interleave::None) => (1, ""),
        };
        require((least..=MAX_RANK).contains(&rank), || {
            format!("a rank of {rank}; it is {least} to {MAX_RANK}{why}")
        })?;
        let lengths = [self.byte_strides.len() + 1, self.element_strides.len()];
        require(lengths == [rank; 2], || {
            format!("rank {rank}, but {} strides, {} element strides", lengths[0] - 1, lengths[1])
        })
    }

    /// What addresses and strides are multiples of.
    fn unit(&self) -> u64 {
        match self.interleave {
            Interleave::B32 => 32,
            Interleave::None | Interleave::B16 => UNIT.into(),
        }
    }

    fn check_tensor(&self) -> Result<(), MapError> {
        let unit = self.unit();
        require(self.address.is_multiple_of(unit), || {
            format!("the address {:#x} is not a multiple of {unit}", self.address)
        })?;
        for (dimension, &extent) in self.extents.iter().enumerate() {
            require((1..=1 << 32).contains(&extent), || {
                format!("extent {extent} of dimension {dimension}; it is 1 to 2^32")
            })?;
        }
        for (dimension, &stride) in self.byte_strides.iter().enumerate() {
            require(stride.is_multiple_of(unit) && stride < 1 << 40, || {
                format!(
                    "stride {stride} of dimension {}; it is a multiple of {unit} below 2^40",
                    dimension + 1
                )
            })?;
        }
        Ok(())
    }

    fn check_steps(&self) -> Result<(), MapError> {
        for (dimension, &step) in self.element_strides.iter().enumerate() {
            require((1..=8).contains(&step), || {
                format!("element stride {step} of dimension {dimension}; it is 1 to 8")
            })?;
        }
        Ok(())
    }

    fn check_box(&self, box_extents: &[u32]) -> Result<(), MapError> {
        let rank = self.rank();
        require(box_extents.len() == rank, || format!("rank {rank}, but {} box extents", box_extents.len()))?;
        for (dimension, &extent) in box_extents.iter().enumerate() {
            require((1..=256).contains(&extent), || {
                format!("box extent {extent} of dimension {dimension}; it is 1 to 256")
            })?;
        }
        self.check_row(box_extents.first().copied().unwrap_or(0))
    }

    fn check_columns(
        &self,
        lower: &[i32],
        upper: &[i32],
        channels: u32,
        pixels: u32,
    ) -> Result<(), MapError> {
        let (rank, spatial) = (self.rank(), self.rank() - 2);
        require([lower.len(), upper.len()] == [spatial; 2], || {
            format!(
                "rank {rank} has {spatial} dimensions of pixels, but {} lower and {} upper corners",
                lower.len(),
                upper.len()
            )
        })?;
        let reach = corner_reach(rank);
        for &corner in lower.iter().chain(upper) {
            require((-reach..reach).contains(&corner), || {
                format!("a corner at {corner}; with rank {rank} it is {} to {}", -reach, reach - 1)
            })?;
        }
        for index in 0..spatial {
            let (first, last) = self.bounding_box(lower, upper, index);
            let dimension = self.spatial_dimensions().start + index;
            require(first <= last, || {
                format!("an empty bounding box: from {first} to {last} in dimension {dimension}")
            })?;
            // No document says so; a driver refuses it.
            require(last <= i32::MAX.into(), || {
                format!("a bounding box to {last} in dimension {dimension}; it ends below 2^31")
            })?;
        }
        require((1..=256).contains(&channels), || {
            format!("{channels} channels of a pixel; they are 1 to 256")
        })?;
        require((1..=MOST_PIXELS).contains(&pixels), || {
            format!("{pixels} pixels of a column; they are 1 to {MOST_PIXELS}")
        })?;
        self.check_row(channels)
    }

    /// A driver asks it also with an interleaved layout, where the documentation does not.
    fn check_row(&self, elements: u32) -> Result<(), MapError> {
        let row = elements * self.element.bytes();
        require(row.is_multiple_of(UNIT), || format!("rows of {row} bytes in the box, not a multiple of 16"))
    }

    /// No document says so: a driver refuses larger ones.
    fn check_size(&self) -> Result<(), MapError> {
        let bytes = self.box_bytes();
        require(bytes <= MOST_BYTES, || {
            format!("a box of {bytes} bytes; {MOST_BYTES}, a multiprocessor's shared memory, is the most")
        })
    }

    fn check_swizzle(&self) -> Result<(), MapError> {
        match (self.interleave, self.swizzle.span()) {
            // So says the documentation. A driver takes others, and what they do is not known.
            (Interleave::B32, _) => require(self.swizzle == Swizzle::B32, || {
                "an interleaved layout of 32 bytes without a swizzle of 32".to_owned()
            }),
            (Interleave::None, Some(span)) => {
                let row = self.row_bytes();
                require(row <= span, || format!("rows of {row} bytes exceed the swizzle's span of {span}"))
            }
            (Interleave::None, None) | (Interleave::B16, _) => Ok(()),
        }
    }
}
