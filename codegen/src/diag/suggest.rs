//! Suggestions for unknown names: the closest known name, or the equivalent of a name from another
//! language.

use std::fmt;

/// A suggestion for an unknown name. It is displayed as a help line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Suggestion {
    /// A known name.
    Near(String),
    /// A name from another language, and its equivalent.
    Elsewhere(String, &'static Ours),
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Near(known) => write!(f, "did you mean `{known}`?"),
            Self::Elsewhere(name, Ours::Is(write)) => write!(f, "`{name}` is {write} here"),
            Self::Elsewhere(name, Ours::Absent(what)) => {
                write!(f, "`{name}` is not there: kernels do not have {what} yet")
            }
            Self::Elsewhere(name, Ours::Instead(what)) => write!(f, "kernels do not have `{name}`: {what}"),
        }
    }
}

impl From<Suggestion> for String {
    fn from(suggestion: Suggestion) -> Self {
        suggestion.to_string()
    }
}

/// Returns the name in `known` that is closest to `name`, if one is close enough: one letter in
/// four may differ, and one letter in short names.
pub(crate) fn did_you_mean(
    name: &str,
    known: impl IntoIterator<Item = impl AsRef<str>>,
) -> Option<Suggestion> {
    let edits = |candidate: &str| strsim::damerau_levenshtein(name, candidate);
    known
        .into_iter()
        .map(|candidate| (edits(candidate.as_ref()), candidate.as_ref().to_owned()))
        .filter(|(edits, candidate)| *edits <= (candidate.len().min(name.len()) / 4).max(1))
        .min()
        .map(|(_, candidate)| Suggestion::Near(candidate))
}

/// The use of an unknown name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Value,
    Function,
    /// A method of a `Global` or `SharedArray`.
    Access,
    Type,
    Macro,
}

/// Returns the equivalent of `name`, if that is a name from CUDA C++, PTX, Triton or Rust's
/// libraries with a known equivalent.
pub(crate) fn elsewhere(name: &str, kind: Kind) -> Option<Suggestion> {
    let table = match kind {
        Kind::Value => VALUES,
        Kind::Function => FUNCTIONS,
        Kind::Access => ACCESSES,
        Kind::Type => TYPES,
        Kind::Macro => MACROS,
    };
    let (_, ours) = table.iter().find(|(words, _)| words.contains(&name))?;
    Some(Suggestion::Elsewhere(name.to_owned(), ours))
}

/// The equivalent of a foreign name in this language.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ours {
    /// This, including its quotes.
    Is(&'static str),
    /// None yet. The string is a noun for the missing feature.
    Absent(&'static str),
    /// None. The string describes what to write instead.
    Instead(&'static str),
}

/// Foreign names, and their equivalents.
type Table = &'static [(&'static [&'static str], Ours)];

// Sources: CUDA C++ Programming Guide, "C++ Language Extensions"; PTX ISA, "Special Registers" and
// "Instruction Set"; Triton's documentation, `triton.language`.

const VALUES: Table = &[
    (&["threadIdx"], Ours::Is("`thread_idx()`")),
    (&["blockIdx"], Ours::Is("`block_idx()`")),
    (&["blockDim"], Ours::Is("`block_dim()`")),
    (&["gridDim"], Ours::Is("`grid_dim()`")),
    (&["clusterIdx"], Ours::Is("`cluster_idx()`")),
    (&["warpSize"], Ours::Instead("a warp has 32 threads: write `32`")),
    (
        &["tl"],
        Ours::Instead(
            "tiles are moved by tensor maps, `map.load(tile, at, barrier)` and `map.store(at, tile)`, and \
             elements by `global.get(i)` and `global.set(i, value)`",
        ),
    ),
    (&["cuda", "cg"], Ours::Instead("the words of kernels are functions: `sync_threads()`, `thread_idx()`")),
];

const FUNCTIONS: Table = &[
    (&["thread_id", "threadIdx", "tid"], Ours::Is("`thread_idx()`")),
    (&["block_id", "blockIdx", "program_id"], Ours::Is("`block_idx()`")),
    (&["blockDim"], Ours::Is("`block_dim()`")),
    (&["gridDim", "num_programs"], Ours::Is("`grid_dim()`")),
    (&["lane_id"], Ours::Is("`lane_idx()`")),
    (&["warp_id"], Ours::Is("`warp_idx()`")),
    (&["__syncthreads", "syncthreads", "debug_barrier", "__barrier_sync"], Ours::Is("`sync_threads()`")),
    (&["__syncwarp", "syncwarp"], Ours::Is("`sync_warp()`")),
    (&["__threadfence", "threadfence"], Ours::Is("`fence()`")),
    (
        &["__threadfence_block", "__threadfence_system"],
        Ours::Instead("the only scope of a fence is the device: write `fence()`"),
    ),
    (&["elect_sync", "elect"], Ours::Is("`elect_one()`")),
    (&["__trap"], Ours::Is("`trap()`")),
    (&["printf"], Ours::Is("a macro, `printf!(\"..\\n\", ..)`,")),
    (&["assert", "device_assert"], Ours::Is("a macro, `assert!(condition, \"message\")`,")),
    (&["atomicAdd", "atomic_add"], Ours::Is("`global.atomic_add(i, value)`")),
    (&["atomicMin", "atomic_min"], Ours::Is("`global.atomic_min(i, value)`")),
    (&["atomicMax", "atomic_max"], Ours::Is("`global.atomic_max(i, value)`")),
    (&["atomicAnd", "atomic_and"], Ours::Is("`global.atomic_and(i, value)`")),
    (&["atomicOr", "atomic_or"], Ours::Is("`global.atomic_or(i, value)`")),
    (&["atomicXor", "atomic_xor"], Ours::Is("`global.atomic_xor(i, value)`")),
    (&["atomicExch", "atomic_xchg"], Ours::Is("`global.atomic_exchange(i, value)`")),
    (&["atomicCAS", "atomic_cas"], Ours::Is("`global.compare_exchange(i, current, new, order, scope)`")),
    (&["fmaf", "__fmaf_rn"], Ours::Is("`fma(a, b, c)`")),
    (&["sqrtf", "__fsqrt_rn"], Ours::Is("`sqrt(x)`")),
    (&["rsqrtf"], Ours::Is("`rsqrt(x)`")),
    (&["exp2f"], Ours::Is("`exp2(x)`")),
    (&["log2f", "__log2f"], Ours::Is("`log2(x)`")),
    (&["fminf", "fmin", "minimum"], Ours::Is("`min(a, b)`")),
    (&["fmaxf", "fmax", "maximum"], Ours::Is("`max(a, b)`")),
    (&["fabs", "fabsf"], Ours::Is("`abs(x)`")),
    (&["cdiv", "ceil_div"], Ours::Is("`a.div_ceil(b)`")),
    (&["__ldg"], Ours::Is("`global.get(i)`")),
    (&["exp", "expf", "__expf"], Ours::Is("`exp(x)`")),
    (&["log", "logf", "__logf", "ln"], Ours::Is("`log(x)`")),
    (&["pow", "powf", "powi", "__powf"], Ours::Is("`pow(x, y)`")),
    (&["sin", "sinf", "__sinf"], Ours::Is("`sin(x)`")),
    (&["cos", "cosf", "__cosf"], Ours::Is("`cos(x)`")),
    (&["sincosf", "sincos", "sin_cos"], Ours::Instead("write `sin(x)` and `cos(x)`")),
    (&["tanh", "tanhf"], Ours::Is("`tanh(x)`")),
    (&["tan", "tanf"], Ours::Instead("write `sin(x) / cos(x)`")),
    (&["copysignf"], Ours::Is("`copysign(x, sign)`")),
    (&["__saturatef", "saturate"], Ours::Is("`clamp(x, 0.0, 1.0)`")),
    (&["__popc", "__popcll", "popc", "popcount"], Ours::Is("`x.count_ones()`")),
    (&["__clz", "__clzll", "clz"], Ours::Is("`x.leading_zeros()`")),
    (&["__ffs", "__ffsll", "ctz"], Ours::Is("`x.trailing_zeros()`")),
    (&["__brev", "__brevll", "brev"], Ours::Is("`x.reverse_bits()`")),
    (&["__funnelshift_l", "rotl"], Ours::Is("`x.rotate_left(n)`")),
    (&["__funnelshift_r", "rotr"], Ours::Is("`x.rotate_right(n)`")),
    (&["sigmoid", "softmax", "erf", "erff"], Ours::Absent("this function")),
    (
        &["floor", "ceil", "round", "trunc", "floorf", "ceilf", "roundf", "truncf"],
        Ours::Instead("there is no rounding to whole floats yet; `x as i32` drops the fraction"),
    ),
    (&["__shfl_xor_sync", "shfl_xor", "shfl_xor_sync"], Ours::Is("`shuffle_xor(x, mask)`")),
    (&["__shfl_up_sync", "shfl_up", "shfl_up_sync"], Ours::Is("`shuffle_up(x, distance)`")),
    (&["__shfl_down_sync", "shfl_down", "shfl_down_sync"], Ours::Is("`shuffle_down(x, distance)`")),
    (
        &["__shfl_sync", "shfl", "shfl_sync", "shuffle", "shuffle_sync", "warp_shuffle"],
        Ours::Is("`shuffle_idx(x, lane)`"),
    ),
    (&["__ballot_sync", "ballot_sync"], Ours::Is("`ballot(condition)`")),
    (&["__any_sync", "any_sync"], Ours::Is("`vote_any(condition)`")),
    (&["__all_sync", "all_sync"], Ours::Is("`vote_all(condition)`")),
    (&["__match_any_sync"], Ours::Is("`match_any(x)`")),
    (&["__match_all_sync"], Ours::Is("`match_all(x)`")),
    (&["__reduce_add_sync", "warp_sum", "warp_reduce"], Ours::Is("`warp_reduce_add(x)`")),
    (&["__reduce_min_sync", "warp_min"], Ours::Is("`warp_reduce_min(x)`")),
    (&["__reduce_max_sync", "warp_max"], Ours::Is("`warp_reduce_max(x)`")),
    (&["__reduce_and_sync"], Ours::Is("`warp_reduce_and(x)`")),
    (&["__reduce_or_sync"], Ours::Is("`warp_reduce_or(x)`")),
    (&["__reduce_xor_sync"], Ours::Is("`warp_reduce_xor(x)`")),
    (
        &["__activemask", "activemask"],
        Ours::Instead("all lanes of a warp take part in its words: they stand where no lane is missing"),
    ),
    (
        &["wgmma", "wgmma_mma_async", "mma", "dot", "gemm"],
        Ours::Is("a method of an accumulator, `sum.mma(a, b, keep)`,"),
    ),
    (&["warpgroup_wait", "wgmma_wait_group"], Ours::Is("a method of what `mma` gives, `flight.wait()`,")),
    (
        &["warpgroup_arrive", "wgmma_fence", "warpgroup_commit_batch", "wgmma_commit_group"],
        Ours::Instead("`sum.mma(a, b, keep)` begins with the fence and ends the group"),
    ),
    (&["stmatrix", "store_matrix_sync"], Ours::Is("a method of an accumulator, `sum.store(tile)`,")),
    (
        &["mma_sync", "wmma_mma_sync", "mma_m16n8k16"],
        Ours::Is("a method of a warp's accumulator, `sum.mma_sync(a, b)`,"),
    ),
    (
        &["ldmatrix", "load_matrix_sync", "wmma_load"],
        Ours::Is("a function of an operand's type, `WarpLeft::<f16, 16, 16>::load(tile, [row, k])`,"),
    ),
    (&["setmaxnreg"], Ours::Is("`setmaxnreg_inc::<232>()` or `setmaxnreg_dec::<40>()`")),
    (&["clock", "clock64", "globaltimer", "__nanosleep", "nanosleep"], Ours::Absent("clocks and sleeping")),
    (
        &["load", "store"],
        Ours::Instead(
            "tiles are moved by tensor maps, `map.load(tile, at, barrier)` and `map.store(at, tile)`, and \
             elements by `global.get(i)` and `global.set(i, value)`",
        ),
    ),
    (
        &["zeros", "arange", "full"],
        Ours::Instead("a register array is written `[0.0; 4]`, and a tile is made by `shared()`"),
    ),
    (
        &["malloc", "free", "memcpy", "memset", "memcpy_async"],
        Ours::Instead(
            "a kernel allocates nothing; copies are those of tensor maps and `global.bulk_load(..)`",
        ),
    ),
    (
        &["drop", "Some", "Ok", "Err", "Box", "Vec", "String"],
        Ours::Instead("its values are scalars, register arrays and handles"),
    ),
];

const ACCESSES: Table = &[
    (&["fetch_sub", "atomic_sub"], Ours::Instead("write `fetch_add` of the negated value")),
    (&["fetch_inc", "fetch_increment"], Ours::Instead("write `fetch_add` of 1")),
    (&["fetch_dec", "fetch_decrement"], Ours::Instead("write `fetch_add` of -1, or of `u32::MAX`")),
    (
        &["atomic_inc", "atomic_dec"],
        Ours::Instead("write `fetch_add` of 1, or a loop of `compare_exchange` if it wraps at a bound"),
    ),
    (
        &["fetch_nand", "fetch_update", "fetch_mul"],
        Ours::Instead("write a loop that tries `compare_exchange` until it returns what was read"),
    ),
    (
        &["compare_exchange_weak", "compare_and_swap", "cas"],
        Ours::Is("`compare_exchange(i, current, new, order, scope)`"),
    ),
    (&["exchange"], Ours::Is("`swap(i, value, order, scope)`")),
    (&["read_volatile", "load_volatile", "volatile_load"], Ours::Is("`load(i, Order::Relaxed, scope)`")),
    (
        &["write_volatile", "store_volatile", "volatile_store"],
        Ours::Is("`store(i, value, Order::Relaxed, scope)`"),
    ),
];

const TYPES: Table = &[
    (&["half", "__half", "Half", "float16"], Ours::Is("`f16`")),
    (&["__nv_bfloat16", "bfloat16"], Ours::Is("`bf16`")),
    (&["float", "float32"], Ours::Is("`f32`")),
    (&["double", "float64"], Ours::Is("`f64`")),
    (&["int", "int32", "int32_t"], Ours::Is("`i32`")),
    (&["unsigned", "uint", "uint32", "uint32_t"], Ours::Is("`u32`")),
    (&["size_t"], Ours::Is("`usize`")),
    (&["isize"], Ours::Instead("write `i64`")),
    (&["i128", "u128", "char", "str"], Ours::Instead("its widest scalars are of 64 bits")),
    (&["float8_e4m3fn", "__nv_fp8_e4m3", "fp8"], Ours::Is("`e4m3`")),
    (&["float8_e5m2", "__nv_fp8_e5m2"], Ours::Is("`e5m2`")),
    (&["float4", "uint4", "int4", "float2"], Ours::Instead("a register array is written `[f32; 4]`")),
    (&["dim3", "uint3"], Ours::Is("`Dim3`")),
    (&["CUtensorMap", "TensorDescriptor", "tensor_descriptor"], Ours::Is("`TensorMap<Tile<..>>`")),
    (&["mbarrier", "Mbarrier"], Ours::Is("`Barrier`")),
    (
        &["Vec", "Box", "String", "Option", "Result"],
        Ours::Instead("its values are scalars, register arrays and handles"),
    ),
    (
        &["DeviceTensor", "TensorView", "TensorViewMut"],
        Ours::Instead("a tensor is passed as a `TensorMap<Tile<..>>` or as a `Global<T>`"),
    ),
];

const MACROS: Table = &[
    (&["println", "print", "eprintln", "eprint", "dbg"], Ours::Is("`printf!(\"..\\n\", ..)`")),
    (
        &["assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"],
        Ours::Is("`assert!(a == b, \"message\")`"),
    ),
    (
        &["panic", "unreachable", "todo", "unimplemented"],
        Ours::Is("`trap()`, or `assert!(false, \"message\")`,"),
    ),
    (&["vec"], Ours::Instead("a register array is written `[0.0; 4]`")),
    (&["format", "write", "writeln"], Ours::Instead("text is printed by `printf!(\"..\\n\", ..)`")),
    (&["wgmma", "mma"], Ours::Is("a method of an accumulator, `sum.mma(a, b, keep)`,")),
];

#[cfg(test)]
mod tests {
    use super::{Kind, did_you_mean, elsewhere};

    #[test]
    fn near_names_are_suggested_and_others_not() {
        let of = |name| did_you_mean(name, ["tile", "sync_threads", "min", "f"]);
        let says = |name| of(name).map(|near| near.to_string());
        assert_eq!(says("sync_thread").as_deref(), Some("did you mean `sync_threads`?"));
        assert_eq!(says("mni").as_deref(), Some("did you mean `min`?"));
        assert_eq!(of("twice"), None);
        assert_eq!(of("fence"), None);
    }

    #[test]
    fn words_of_others_are_those_of_their_kind() {
        let says = |name, kind| elsewhere(name, kind).map(|ours| ours.to_string()).unwrap_or_default();
        assert_eq!(says("__syncthreads", Kind::Function), "`__syncthreads` is `sync_threads()` here");
        assert!(says("wgmma", Kind::Function).contains("`sum.mma(a, b, keep)`"));
        assert!(says("ldmatrix", Kind::Function).contains("`WarpLeft::<f16, 16, 16>::load(tile, [row, k])`"));
        assert!(says("threadIdx", Kind::Value).contains("`thread_idx()`"));
        assert_eq!(elsewhere("full", Kind::Value), None);
    }
}
