//! Errors of convolutions.

use tma_runtime::Error;

/// The reason why images cannot be convolved. The message begins with a code that has a page in
/// `docs/errors`.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConvError {
    /// A tensor whose shape does not match the others.
    Shape {
        /// The name of the argument.
        tensor: &'static str,
        /// The tensor's shape.
        found: Vec<usize>,
        /// The shape that matches the others.
        wanted: Vec<usize>,
    },

    /// Extents that exceed the range of coordinates.
    TooLarge {
        /// The shapes of images, filters and output.
        shapes: [[usize; 4]; 3],
    },

    /// Taps, a stride, a padding or a dilation that the copy engine does not support.
    Window {
        /// The parameter, along rows or columns.
        what: &'static str,
        /// The value that was passed.
        found: i64,
        /// The minimum and the maximum that are supported.
        bounds: [i64; 2],
        /// The suggested fix.
        instead: &'static str,
    },

    /// The launch failed.
    Runtime(Error),
}

impl ConvError {
    /// Returns the error's code, such as `TMA0559`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Shape { .. } | Self::TooLarge { .. } => "TMA0559",
            Self::Window { .. } => "TMA0563",
            Self::Runtime(error) => error.code(),
        }
    }
}

impl std::fmt::Display for ConvError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code();
        match self {
            Self::Shape { tensor, found, wanted } => write!(
                f,
                "{code}: shapes of a convolution do not match: for images of N × H × W × C, filters of K × R × S \
                 × C, a bias of K and an output of N × P × Q × K, where P and Q follow from stride, padding and \
                 dilation, `{tensor}` is {found:?}, but must be {wanted:?}; pass matching tensors or views"
            ),
            Self::TooLarge { shapes: [images, filters, output] } => write!(
                f,
                "{code}: extents, pixels of the output and products per pixel must be below 2^31: the images \
                 are {images:?}, the filters {filters:?} and the output {output:?}; split the batch"
            ),
            Self::Window { what, found, bounds: [least, most], instead } => {
                write!(f, "{code}: {what} must be {least} to {most}: it is {found}; {instead}")
            }
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConvError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => error.source(), // the message already shows this one
            Self::Shape { .. } | Self::TooLarge { .. } | Self::Window { .. } => None,
        }
    }
}

impl From<Error> for ConvError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}
