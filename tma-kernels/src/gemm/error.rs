//! What a product of matrices is refused for.

use tma_runtime::Error;

/// Why matrices are not multiplied. Its message begins with a code that has a page in
/// `docs/errors`.
#[derive(Debug)]
#[non_exhaustive]
pub enum GemmError {
    /// The matrices do not fit each other.
    Shape {
        /// Which one does not fit, such as `B`.
        matrix: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that the others ask for.
        wanted: Vec<usize>,
    },

    /// An extent that coordinates of copies cannot reach.
    TooLarge {
        /// The extents of a matrix: M, N and K, and how many there are.
        extents: [usize; 4],
    },

    /// No kernel multiplies in this way.
    Instance {
        /// The elements, as in names of instances.
        types: &'static str,
        /// What is asked for and cannot be had.
        what: &'static str,
        /// What to do instead.
        instead: &'static str,
    },

    /// The matrices of a scaled product, or their scales, do not fit each other.
    Scaled {
        /// Which one does not fit, such as `B`.
        matrix: &'static str,
        /// Its shape.
        found: [usize; 2],
        /// The shape that the others ask for.
        wanted: [usize; 2],
    },

    /// The tensors of a product of groups do not fit each other.
    Grouped {
        /// Which one does not fit, such as `B`.
        tensor: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that the others ask for.
        wanted: Vec<usize>,
    },

    /// There are more groups than a kernel has room for.
    Groups {
        /// How many there are.
        groups: usize,
        /// How many there may be.
        most: usize,
    },

    /// Matrices of a batch are picked by different numbers of indices.
    Indices {
        /// How many are picked of A, B and C; all of them if there are no indices.
        found: Vec<usize>,
    },

    /// Matrices of an array are not alike, or tensor maps do not reach them.
    Array {
        /// Which one.
        matrix: usize,
        /// What is wrong with it.
        what: &'static str,
    },

    /// The launch failed.
    Runtime(Error),
}

impl GemmError {
    /// The error's code, such as `TMA0546`: the name of its page in `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Shape { .. } | Self::TooLarge { .. } => "TMA0546",
            Self::Instance { .. } => "TMA0547",
            Self::Scaled { .. } => "TMA0557",
            Self::Grouped { .. } | Self::Groups { .. } => "TMA0558",
            Self::Indices { .. } => "TMA0561",
            Self::Array { .. } => "TMA0565",
            Self::Runtime(error) => error.code(),
        }
    }
}

impl GemmError {
    /// That products of such elements, as names have them, have no sums in `f16`.
    pub(crate) const fn no_half_sums(types: &'static str) -> Self {
        let instead = "leave `sums` out, or multiply matrices of `f16` into one of `f16`";
        Self::Instance { types, what: "sums in `f16`", instead }
    }

    /// That kernels with an epilogue do not pick matrices.
    pub(crate) const fn no_epilogue(types: &'static str) -> Self {
        let instead = "replace `place_a`, `place_b` and `place_c` of the template as well, and call `gemm`";
        Self::Instance { types, what: "an epilogue and indices", instead }
    }

    /// That an epilogue has no instance for elements, as names have them.
    pub(crate) const fn missing_epilogue(types: &'static str, is_chosen: bool) -> Self {
        let instead = if is_chosen {
            "leave `choice` out, or add an instance for these elements, this tile and these layouts to `only` \
             of the epilogue's module, such as `\"bf16_pair_nt\"` for an A of M × K and a B of N × K"
        } else {
            "add an instance for these elements and layouts to `only` of the epilogue's module, such as \
             `\"bf16_pair_nt\"` for an A of M × K and a B of N × K"
        };
        Self::Instance { types, what: "this epilogue in these layouts", instead }
    }

    /// That no kernel picks matrices of such elements.
    pub(crate) const fn no_indices(types: &'static str) -> Self {
        let instead = "multiply these matrices one after the other by `gemm`";
        Self::Instance { types, what: "indices or an array of matrices", instead }
    }

    /// That kernels that pick matrices have other tiles.
    pub(crate) const fn no_choice_of_indices(types: &'static str) -> Self {
        let instead =
            "leave `choice` out: with indices or an array the tiles are `Pair`, `Square` and `Low64`";
        Self::Instance { types, what: "this choice", instead }
    }

    /// That no kernel for elements, as names have them, halves tiles so.
    pub(crate) const fn not_halved(types: &'static str) -> Self {
        let instead = "only `Pair`, `Middle` and `Square` are halved, in layouts that they have, and without \
                       options or an epilogue; or leave `choice` out";
        Self::Instance { types, what: "`Division::Halved` in this case", instead }
    }

    /// That there is no instance for elements, as names have them, and a layout; `is_more` if more
    /// is asked for than the product.
    pub(crate) fn missing(types: &'static str, layout: &str, is_more: bool) -> Self {
        let (what, instead) = match (layout, is_more) {
            ("nt", true) => (
                "`alpha`, `beta`, `residual`, `bias`, `activation` or rows of C that are no multiple of 16 \
                 bytes, or in this choice",
                "leave them out, or leave `choice` out",
            ),
            ("nt", false) => ("this choice", "leave `choice` out"),
            _ => (
                "these layouts",
                "only elements of 16 bits have other layouts than an A of M × K and a B of N × K, which is \
                 `transpose_b: true`; leave `choice` out, since not every tile has every layout",
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
                "{code}: C = A · B takes M × N, M × K and K × N elements, but the shape of {matrix} is \
                 {found:?}, where the others ask for {wanted:?}: pass matrices that fit, or set \
                 `transpose_a` or `transpose_b` if one is stored the other way"
            ),
            Self::TooLarge { extents: [m, n, k, batches] } => write!(
                f,
                "{code}: extents of matrices must be below 2^31, and their tiles below 2^32, but M, N \
                 and K are {m}, {n} and {k}, in a batch of {batches}: multiply parts of them"
            ),
            Self::Instance { types, what, instead } => {
                write!(f, "{code}: no kernel multiplies `{types}` with {what}: {instead}")
            }
            Self::Scaled { matrix, found, wanted } => write!(
                f,
                "{code}: a scaled product C = A · Bᵀ takes M × N, M × K and N × K elements, a scale for each \
                 128 columns of K of a row of A, and for each 128 × 128 elements of B, but the shape of \
                 {matrix} is {found:?}, where the others ask for {wanted:?}: pass what fits"
            ),
            Self::Grouped { tensor, found, wanted } => write!(
                f,
                "{code}: a product of groups takes a C of M × N, an A of M × K, and for each group K × N \
                 elements of B and an end, but the shape of {tensor} is {found:?}, where the others ask for \
                 {wanted:?}: pass what fits, or set `transpose_b` if B is stored the other way"
            ),
            Self::Groups { groups, most } => write!(
                f,
                "{code}: a product takes at most {most} groups, but there are {groups}: multiply some of \
                 them, and then the others, with views of B and of `ends`"
            ),
            Self::Indices { found } => write!(
                f,
                "{code}: a batch takes one matrix each of A, B and C for every product, but of these \
                 {found:?} are picked: pass as many indices for each, or none for one that has a matrix for \
                 every product"
            ),
            Self::Array { matrix, what } => write!(
                f,
                "{code}: matrices of an array are on one device, have the same shape and strides, begin at \
                 multiples of 16 bytes, and are at most 2^31 times what their distances have in common apart, \
                 but matrix {matrix} {what}: copy it to memory that fits, or multiply it by `gemm`"
            ),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GemmError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => error.source(), // the message is this one's already
            Self::Shape { .. }
            | Self::TooLarge { .. }
            | Self::Instance { .. }
            | Self::Scaled { .. }
            | Self::Grouped { .. }
            | Self::Groups { .. }
            | Self::Indices { .. }
            | Self::Array { .. } => None,
        }
    }
}

impl From<Error> for GemmError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}
