//! Errors of GEMMs.

use super::instances::Layout;
use crate::model::ModelError;
use crate::workspace::write_too_small;
use tma_runtime::{Error, MapError};

/// The reason why matrices cannot be multiplied. The message begins with a code that has a page in
/// `docs/errors`.
#[derive(Debug)]
#[non_exhaustive]
pub enum GemmError {
    /// The shapes of the matrices do not match.
    Shape {
        /// The matrix that does not match, such as `B`.
        matrix: &'static str,
        /// The matrix's shape.
        found: Vec<usize>,
        /// The shape that matches the others.
        wanted: Vec<usize>,
    },

    /// An extent that exceeds the range of coordinates of copies.
    TooLarge {
        /// The extents M, N and K, and the number of matrices.
        extents: [usize; 4],
    },

    /// No kernel supports this GEMM.
    Instance {
        /// The element types, as in instance names.
        types: &'static str,
        /// The requested property that is not supported.
        what: &'static str,
        /// The suggested fix.
        instead: &'static str,
    },

    /// With a transposed A, no kernel stores rows of C that are not multiples of 16 bytes.
    Rows {
        /// The element types, as in instance names.
        types: &'static str,
        /// The length of the rows of C in bytes, and the distance between two.
        bytes: [usize; 2],
    },

    /// The matrices of a scaled GEMM, or their scales, do not match.
    Scaled {
        /// The matrix that does not match, such as `B`.
        matrix: &'static str,
        /// The matrix's shape.
        found: Vec<usize>,
        /// The shape that matches the others.
        wanted: Vec<usize>,
    },

    /// The tensors of a grouped GEMM do not match.
    Grouped {
        /// The tensor that does not match, such as `B`.
        tensor: &'static str,
        /// The tensor's shape.
        found: Vec<usize>,
        /// The shape that matches the others.
        wanted: Vec<usize>,
    },

    /// The number of groups exceeds the maximum of the kernel.
    Groups {
        /// The number of groups.
        groups: usize,
        /// The maximum number of groups.
        most: usize,
    },

    /// Different numbers of matrices of a batch are picked by indices.
    Indices {
        /// The numbers picked of A, B and C; without indices, all of them.
        found: Vec<usize>,
    },

    /// Matrices of an array differ, or tensor maps cannot address them.
    Array {
        /// The index of the matrix.
        matrix: usize,
        /// The problem with the matrix.
        what: &'static str,
    },

    /// The gate cannot be applied to the products of a GEMM.
    Gate(ModelError),

    /// A workspace in the caller's memory is too small.
    Workspace {
        /// The bytes that it has.
        found: usize,
        /// The bytes that the call needs.
        wanted: usize,
    },

    /// A matrix of a rank has another shape than a GEMM on its team needs.
    Team {
        /// The matrix, such as `B`.
        matrix: &'static str,
        /// The rank.
        rank: usize,
        /// The matrix's shape.
        found: [usize; 2],
        /// The shape that matches the others.
        wanted: [usize; 2],
    },

    /// A workspace of a team is too small.
    TeamWorkspace {
        /// The bytes that it has on each rank.
        found: usize,
        /// The bytes that the call needs.
        wanted: usize,
    },

    /// The launch failed.
    Runtime(Error),
}

impl GemmError {
    /// Returns the error's code, such as `TMA0546`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Shape { .. } | Self::TooLarge { .. } | Self::Team { .. } => "TMA0546",
            Self::Instance { .. } | Self::Rows { .. } => "TMA0547",
            Self::Scaled { .. } => "TMA0557",
            Self::Grouped { .. } | Self::Groups { .. } => "TMA0558",
            Self::Indices { .. } => "TMA0561",
            Self::Array { .. } => "TMA0565",
            Self::Gate(error) => error.code(),
            Self::Workspace { .. } | Self::TeamWorkspace { .. } => "TMA0570",
            Self::Runtime(error) => error.code(),
        }
    }
}

impl GemmError {
    /// Returns the error that GEMMs of these element types, as in instance names, have no sums in
    /// `f16`.
    pub(crate) const fn no_half_sums(types: &'static str) -> Self {
        let instead = "remove `sums`, or use an A, B and C of `f16`";
        Self::Instance { types, what: "sums in `f16`", instead }
    }

    /// Returns the error that kernels with an epilogue do not pick matrices.
    pub(crate) const fn no_epilogue(types: &'static str) -> Self {
        let instead = "replace `place_a`, `place_b` and `place_c` of the template too, and call `gemm`";
        Self::Instance { types, what: "both an epilogue and indices", instead }
    }

    /// Returns the error that an epilogue has no instance for these element types.
    pub(crate) const fn missing_epilogue(types: &'static str, is_chosen: bool) -> Self {
        let instead = if is_chosen {
            "remove `choice`, or add an instance for these elements, this tile and these layouts to `only` of \
             the epilogue's module, such as `\"bf16_t128x256_cluster2x1_nt\"` for an A of M × K and a B of N × K"
        } else {
            "add an instance for these elements and layouts to `only` of the epilogue's module, such as \
             `\"bf16_t128x256_cluster2x1_nt\"` for an A of M × K and a B of N × K"
        };
        Self::Instance { types, what: "this epilogue in these layouts", instead }
    }

    /// Returns the error that no kernel picks matrices of these element types.
    pub(crate) const fn no_indices(types: &'static str) -> Self {
        let instead = "multiply these matrices one by one with `gemm`";
        Self::Instance { types, what: "indices or an array of matrices", instead }
    }

    /// Returns the error that kernels that pick matrices have other tiles.
    pub(crate) const fn no_choice_of_indices(types: &'static str) -> Self {
        let instead = "remove `choice`; with indices or an array, the tiles are `T128x256Cluster2x1`, `T128x128Cluster2x1` and `T64x64`";
        Self::Instance { types, what: "this choice", instead }
    }

    /// Returns the error that no kernel for these element types halves tiles in this case.
    pub(crate) const fn not_halved(types: &'static str) -> Self {
        let instead = "remove `choice`, or halve `T128x256Cluster2x1`, `T128x192Cluster2x1` or `T128x128Cluster2x1`, in layouts that they have, \
                       without options and without an epilogue";
        Self::Instance { types, what: "`Division::Halved` in this case", instead }
    }

    /// Returns the error that there is no instance for these element types and this layout.
    /// `is_more` states that options beyond the plain GEMM are requested.
    pub(super) fn missing(types: &'static str, layout: Layout, is_more: bool) -> Self {
        let Layout { transpose_a, transpose_b } = layout;
        let (what, instead) = match (transpose_a, transpose_b, is_more) {
            (false, true, true) => (
                "`alpha`, `beta`, `residual`, `bias`, `activation` or rows of C that are not multiples of 16 \
                 bytes, or with this `choice`",
                "remove these options, or remove `choice`",
            ),
            (false, true, false) => ("this `choice`", "remove `choice`"),
            (false, false, _) => (
                "these layouts",
                "pass a B of N × K with `transpose_b: true`, which elements of other than 16 bits need, or \
                 remove `choice`, since not every tile has every layout",
            ),
            (true, _, _) => (
                "these layouts",
                "pass an A of M × K, since only an A and B of 16 bits support `transpose_a`, and with a C of \
                 `f32` only without `transpose_b`; or remove `choice`, since not every tile has every layout",
            ),
        };
        Self::Instance { types, what, instead }
    }
}

impl std::fmt::Display for GemmError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code();
        match self {
            Self::Shape { matrix, found, wanted } => write!(
                f,
                "{code}: shapes of matrices do not match: for C = A · B (M × N, M × K and K × N), {matrix} is \
                 {found:?}, but must be {wanted:?}; pass matching matrices, or set `transpose_a` or \
                 `transpose_b` for one that is stored transposed"
            ),
            Self::TooLarge { extents: [m, n, k, batches] } => write!(
                f,
                "{code}: extents of matrices must be below 2^31, and their tiles below 2^32: M, N and K are \
                 {m}, {n} and {k}, in a batch of {batches}; split the GEMM"
            ),
            Self::Instance { types, what, instead } => {
                write!(f, "{code}: no kernel multiplies `{types}` with {what}: {instead}")
            }
            Self::Rows { types, bytes: [length, apart] } => write!(
                f,
                "{code}: with `transpose_a`, rows of C must be multiples of 16 bytes: those of this GEMM of \
                 `{types}` have {length} bytes, {apart} bytes apart; pad the rows of C, or pass an A of M × K"
            ),
            Self::Scaled { matrix, found, wanted } => write!(
                f,
                "{code}: shapes of a scaled GEMM do not match: for C = A · Bᵀ (M × N, M × K and N × K), with a \
                 scale per 128 columns of a row of A and per 128 × 128 elements of B, {matrix} is {found:?}, \
                 but must be {wanted:?}; pass matching matrices and scales"
            ),
            Self::Grouped { tensor, found, wanted } => write!(
                f,
                "{code}: shapes of a grouped GEMM do not match: for a C of M × N, an A of M × K, and per group a \
                 B of K × N and an end, {tensor} is {found:?}, but must be {wanted:?}; pass matching tensors, \
                 or set `transpose_b` if B is stored transposed"
            ),
            Self::Groups { groups, most } => write!(
                f,
                "{code}: a grouped GEMM has at most {most} groups: B has {groups}; split them into several \
                 calls, with views of B and of `ends`"
            ),
            Self::Indices { found } => write!(
                f,
                "{code}: a batch needs equal numbers of matrices of A, B and C: it has {found:?}; pass as many \
                 indices for each, or none for one that has a matrix for every GEMM"
            ),
            Self::Array { matrix, what } => write!(
                f,
                "{code}: matrices of an array must be on one device, have the same shape and strides, start at \
                 multiples of 16 bytes, and be less than 2^31 times the greatest common divisor of their \
                 distances apart: matrix {matrix} {what}; copy it to suitable memory, or multiply it with \
                 `gemm`"
            ),
            Self::Gate(error) => error.fmt(f),
            &Self::Workspace { found, wanted } => write_too_small(f, code, found, wanted),
            Self::Team { matrix, rank, found, wanted } => write!(
                f,
                "{code}: matrices of a team do not match: {matrix} of rank {rank} is {found:?}, but must be \
                 {wanted:?}; pass matrices of one shape on all ranks, and set `transpose_b` if B is stored N × K"
            ),
            Self::TeamWorkspace { found, wanted } => write!(
                f,
                "{code}: the workspace of a team is too small: it has {found} bytes on each rank, but this call \
                 needs {wanted}; make it with `new` for the most rows and columns of all calls"
            ),
            Self::Runtime(error) => write!(f, "{error}{}", transposition(error)),
        }
    }
}

/// Returns the option that replaces a transposed view of A or B, as the end of a message.
fn transposition(error: &Error) -> &'static str {
    match error {
        Error::Map(MapError::InnerStride { tensor: "a", .. }) => {
            "; instead of a transposed view of A, pass the stored matrix, and toggle `transpose_a` of `gemm`"
        }
        Error::Map(MapError::InnerStride { tensor: "b", .. }) => {
            "; instead of a transposed view of B, pass the stored matrix, and toggle `transpose_b`"
        }
        _ => "",
    }
}

impl std::error::Error for GemmError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Gate(error) => error.source(), // the message already shows this one
            Self::Runtime(error) => error.source(), // the same
            Self::Shape { .. }
            | Self::TooLarge { .. }
            | Self::Instance { .. }
            | Self::Rows { .. }
            | Self::Scaled { .. }
            | Self::Grouped { .. }
            | Self::Groups { .. }
            | Self::Indices { .. }
            | Self::Array { .. }
            | Self::Workspace { .. }
            | Self::Team { .. }
            | Self::TeamWorkspace { .. } => None,
        }
    }
}

impl From<ModelError> for GemmError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Runtime(error) => Self::Runtime(error),
            error => Self::Gate(error),
        }
    }
}

impl From<Error> for GemmError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}
