//! Lists of the available types, for use in messages. `docs/language` has the same lists, and a
//! test compares them.

/// Types of a kernel's parameters.
pub(crate) const PARAMETERS: &str = "`TensorMap<Tile<..>>`, `Im2colMap<Tile<..>, RANK>`, `Maps<Tile<..>>`, `Global<T>`, \
     `Option<Global<T>>`, `Peers<..>` and scalars";

/// Types that reside in shared memory.
pub(crate) const SHARED: &str = "`Tile<..>`, `SharedArray<T, N>`, `Barrier`, `SharedMap<Tile<..>>`, `Stages<_, N>` of \
                                           these, and `Pipeline<(..), N>`";

/// Types of all other variables.
pub(crate) const VALUES: &str = "scalars, `[T; N]` of these, tuples, structs of the module, `Dim3`, `CachePolicy`, `Phase` and `Token`, and for tensor cores \
     `Accumulator<T, M, N>`, `Rows<T, M>` and `Fragment<E, M, K>`";
