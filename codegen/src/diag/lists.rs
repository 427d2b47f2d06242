//! Which types there are, as messages say it. `docs/language.md` has the same lists, which a test
//! compares.

/// What a kernel takes.
pub(crate) const PARAMETERS: &str =
    "`TensorMap<Tile<..>>`, `Im2colMap<Tile<..>, RANK>`, `Maps<Tile<..>>`, `Global<T>` and scalars";

/// What lives in shared memory.
pub(crate) const SHARED: &str = "`Tile<..>`, `SharedArray<T, N>`, `Barrier`, `SharedMap<Tile<..>>`, `Stages<_, N>` of \
                                           these, and `Pipeline<(..), N>`";

/// What variables hold besides.
pub(crate) const VALUES: &str = "scalars, `[T; N]` of these, `Dim3`, `CachePolicy`, `Phase` and `Token`, and for tensor cores \
     `Accumulator<T, M, N>`, `Rows<T, M>` and `Fragment<E, M, K>`";
