//! What a convolution is refused for.

use tma_runtime::Error;

/// Why images are not convolved. Its message begins with a code that has a page in `docs/errors`.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConvError {
    /// A tensor whose shape differs from what the others ask for.
    Shape {
        /// The argument.
        tensor: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that the others ask for.
        wanted: Vec<usize>,
    },

    /// More than coordinates can count.
    TooLarge {
        /// The shapes of images, filters and output.
        shapes: [[usize; 4]; 3],
    },

    /// A filter, or how it moves, that the copy engine does not follow.
    Window {
        /// What it is, along rows or columns.
        what: &'static str,
        /// What was asked for.
        found: i64,
        /// The least and the greatest that there are.
        bounds: [i64; 2],
        /// What to do instead.
        instead: &'static str,
    },

    /// The launch failed.
    Runtime(Error),
}

impl ConvError {
    /// The error's code, such as `TMA0559`: the name of its page in `docs/errors`.
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
                "{code}: a convolution takes images of N × H × W × C, filters of K × R × S × C, a bias of K and \
                 an output of N × P × Q × K, where P and Q follow from stride, padding and dilation, but \
                 `{tensor}` is {found:?}, where the others ask for {wanted:?}: pass tensors that fit, or views"
            ),
            Self::TooLarge { shapes: [images, filters, output] } => write!(
                f,
                "{code}: extents, pixels of the output and sums per pixel must be below 2^31, but the images \
                 are {images:?}, the filters {filters:?} and the output {output:?}: split the batch"
            ),
            Self::Window { what, found, bounds: [least, most], instead } => {
                write!(f, "{code}: {what} is {least} to {most}, not {found}: {instead}")
            }
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConvError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => error.source(), // the message is this one's already
            Self::Shape { .. } | Self::TooLarge { .. } | Self::Window { .. } => None,
        }
    }
}

impl From<Error> for ConvError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}
