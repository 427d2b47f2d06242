//! The rules that the driver has for the parameters of a map.

use std::fmt;

use super::{Fill, MAX_RANK, TensorMap, UNIT};

/// A rule of `cuTensorMapEncodeTiled` that the parameters break.
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

impl TensorMap {
    /// Checks the parameters. A launch does it before it runs.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, with what was found.
    pub fn check(&self) -> Result<(), MapError> {
        self.check_shape()?;
        self.check_box()?;
        require(self.fill == Fill::Zeros || self.element.is_float(), || {
            "elements that are not floating-point cannot be filled with NaN".to_owned()
        })
    }

    fn check_shape(&self) -> Result<(), MapError> {
        let rank = self.rank();
        require((1..=MAX_RANK).contains(&rank), || format!("a rank of {rank}; it is 1 to 5"))?;
        let lengths = [self.byte_strides.len() + 1, self.box_extents.len(), self.element_strides.len()];
        require(lengths == [rank; 3], || {
            format!(
                "rank {rank}, but {} strides, {} box extents, {} element strides",
                lengths[0] - 1,
                lengths[1],
                lengths[2]
            )
        })?;
        require(self.address.is_multiple_of(UNIT.into()), || {
            format!("the address {:#x} is not a multiple of 16", self.address)
        })?;
        for (dimension, &extent) in self.extents.iter().enumerate() {
            require((1..=1 << 32).contains(&extent), || {
                format!("extent {extent} of dimension {dimension}; it is 1 to 2^32")
            })?;
        }
        for (dimension, &stride) in self.byte_strides.iter().enumerate() {
            require(stride.is_multiple_of(UNIT.into()) && stride < 1 << 40, || {
                format!("stride {stride} of dimension {}; it is a multiple of 16 below 2^40", dimension + 1)
            })?;
        }
        Ok(())
    }

    fn check_box(&self) -> Result<(), MapError> {
        for (dimension, &extent) in self.box_extents.iter().enumerate() {
            require((1..=256).contains(&extent), || {
                format!("box extent {extent} of dimension {dimension}; it is 1 to 256")
            })?;
        }
        for (dimension, &stride) in self.element_strides.iter().enumerate() {
            require((1..=8).contains(&stride), || {
                format!("element stride {stride} of dimension {dimension}; it is 1 to 8")
            })?;
        }
        let row = self.row_bytes();
        require(row.is_multiple_of(UNIT), || {
            format!("rows of {row} bytes in the box, not a multiple of 16")
        })?;
        match self.swizzle.span() {
            Some(span) => {
                require(row <= span, || format!("rows of {row} bytes exceed the swizzle's span of {span}"))
            }
            None => Ok(()),
        }
    }
}
