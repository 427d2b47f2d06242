//! Errors of the kernels over rows.

use tma_runtime::Error;

use crate::workspace::write_too_small;

/// The reason why a kernel over rows cannot be queued. The message begins with a code that has a
/// page in `docs/errors`.
#[derive(Debug)]
#[non_exhaustive]
pub enum ModelError {
    /// A tensor whose shape does not match the others.
    Shape {
        /// The name of the argument.
        tensor: &'static str,
        /// The tensor's shape.
        found: Vec<usize>,
        /// The shape that matches the others.
        wanted: Vec<usize>,
    },

    /// Rows whose elements are not adjacent, or whose dimensions before the last two do not follow
    /// each other.
    Rows {
        /// The name of the argument.
        tensor: &'static str,
        /// The tensor's strides, in elements.
        strides: Vec<usize>,
    },

    /// Rows that do not begin at multiples of 16 bytes, which a kernel needs.
    Unaligned {
        /// The name of the argument.
        tensor: &'static str,
        /// The tensor's strides, in elements.
        strides: Vec<usize>,
    },

    /// More rows or columns than a kernel can address.
    TooLarge {
        /// The shape of the tensor.
        shape: Vec<usize>,
        /// The rows and columns that there may be.
        wanted: &'static str,
    },

    /// Rows that are longer than a kernel can keep in registers.
    TooLong {
        /// The shape of the tensor.
        shape: Vec<usize>,
        /// The number of elements that rows may have.
        most: usize,
        /// Whether rows begin and end at multiples of 16 bytes.
        aligned: bool,
    },

    /// More experts, or choices of them, than a router can have.
    Experts {
        /// The number of experts.
        experts: usize,
        /// The number of experts of each token.
        choices: usize,
    },

    /// An option out of its range.
    Number {
        /// The name of the option.
        option: &'static str,
        /// The number.
        number: f32,
        /// The range.
        wanted: &'static str,
    },

    /// A workspace in the caller's memory is too small.
    Workspace {
        /// The bytes that it has.
        found: usize,
        /// The bytes that the call needs.
        wanted: usize,
    },

    /// The launch failed.
    Runtime(Error),
}

impl ModelError {
    /// Returns the error's code, such as `TMA0575`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Shape { .. } => "TMA0575",
            Self::Rows { .. } | Self::Unaligned { .. } => "TMA0576",
            Self::TooLarge { .. } | Self::TooLong { .. } | Self::Experts { .. } => "TMA0577",
            Self::Number { .. } => "TMA0578",
            Self::Workspace { .. } => "TMA0570",
            Self::Runtime(error) => error.code(),
        }
    }
}

impl std::fmt::Display for ModelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code();
        match self {
            Self::Shape { tensor, found, wanted } => write!(
                f,
                "{code}: tensors over the same rows must match: `{tensor}` is {found:?}, but must be {wanted:?}; \
                 pass a view of that shape"
            ),
            Self::Rows { tensor, strides } => write!(
                f,
                "{code}: the elements of a row must be adjacent, and all dimensions before the last two must be \
                 mergeable to one: `{tensor}` has the strides {strides:?}, in elements; copy it to a tensor of its \
                 own, or pass its parts one by one"
            ),
            Self::Unaligned { tensor, strides } => write!(
                f,
                "{code}: rows must begin at multiples of 16 bytes: `{tensor}` has the strides {strides:?}, in \
                 elements; copy it to a tensor of its own"
            ),
            Self::TooLarge { shape, wanted } => {
                write!(f, "{code}: there must be {wanted}: a tensor is {shape:?}; split it")
            }
            Self::TooLong { shape, most, aligned: true } => write!(
                f,
                "{code}: rows that are quantised with a norm must have at most {most} elements: `x` is {shape:?}; \
                 quantise the results of the norm by another call"
            ),
            Self::TooLong { shape, most, aligned: false } => write!(
                f,
                "{code}: rows that are quantised with a norm must begin and end at multiples of 16 bytes, or have \
                 at most {most} elements: `x` is {shape:?}; quantise the results of the norm by another call"
            ),
            Self::Experts { experts, choices } => write!(
                f,
                "{code}: a token must have 1 to 16 of at most 512 experts: there are {experts}, and \
                 `routes.experts` has {choices} for each token; pass `logits` and `routes` within these limits"
            ),
            Self::Number { option, number, wanted } => {
                write!(f, "{code}: `{option}` must be {wanted}: it is {number}; pass such a number")
            }
            &Self::Workspace { found, wanted } => write_too_small(f, code, found, wanted),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ModelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => error.source(), // the message already shows this one
            Self::Shape { .. }
            | Self::Rows { .. }
            | Self::Unaligned { .. }
            | Self::TooLarge { .. }
            | Self::TooLong { .. }
            | Self::Experts { .. }
            | Self::Number { .. }
            | Self::Workspace { .. } => None,
        }
    }
}

impl From<Error> for ModelError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_names_code_rule_finding_and_remedy() {
        let errors = [
            ModelError::Shape { tensor: "weight", found: vec![100], wanted: vec![128] },
            ModelError::Rows { tensor: "x", strides: vec![1, 64] },
            ModelError::Unaligned { tensor: "x", strides: vec![132, 66, 1] },
            ModelError::TooLarge { shape: vec![1 << 31, 8], wanted: "fewer than 2^31 rows and 2^26 columns" },
            ModelError::TooLong { shape: vec![4, 32768], most: 16384, aligned: true },
            ModelError::TooLong { shape: vec![4, 1001], most: 128, aligned: false },
            ModelError::Experts { experts: 600, choices: 8 },
            ModelError::Workspace { found: 4096, wanted: 25_216 },
            ModelError::Number { option: "epsilon", number: -1.0, wanted: "finite and not negative" },
        ];
        let text = errors.map(|error| format!("{error}\n")).join("\n");
        assert_eq!(text, include_str!("messages.txt"));
    }
}
