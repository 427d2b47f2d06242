//! Suggestions for unknown names: the closest known name, or the equivalent of a name from another
//! language.

use std::fmt;

/// A suggestion for an unknown name. It is displayed as a help line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suggestion {
    /// A known name.
    Near(String),
    /// A call of a function of this language.
    Function(String),
    /// A method of a trait, which has this name and is not one of this language.
    OfTrait(String),
    /// A name from another language, and its equivalent.
    Elsewhere(String, &'static Equivalent),
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Near(known) => write!(f, "did you mean `{known}`?"),
            Self::Function(call) => write!(f, "call the function `{call}`"),
            Self::OfTrait(of) => write!(f, "kernels do not follow the trait `{of}`: {OPEN_FUNCTIONS}"),
            Self::Elsewhere(name, Equivalent::Is(write)) if write.starts_with(&format!("`{name}(")) => {
                write!(f, "call the function {write}")
            }
            Self::Elsewhere(name, Equivalent::Is(write)) => write!(f, "use {write} instead of `{name}`"),
            Self::Elsewhere(_, Equivalent::Absent(what)) => write!(f, "kernels do not support {what} yet"),
            Self::Elsewhere(_, Equivalent::Instead(what)) => f.write_str(what),
        }
    }
}

/// The help where a trait of the user is expected to select the code.
pub(crate) const OPEN_FUNCTIONS: &str = "write a `#[tma_device(open)]` function, which a `#[tma_module(from = ..)]` \
                                         replaces by its own";

impl From<Suggestion> for String {
    fn from(suggestion: Suggestion) -> Self {
        suggestion.to_string()
    }
}

/// Returns the name in `known` that is closest to `name`, if one is close enough: one letter in
/// four may differ, and one letter in short names. A name of one or two letters may only differ in
/// its case.
pub(crate) fn did_you_mean(
    name: &str,
    known: impl IntoIterator<Item = impl AsRef<str>>,
) -> Option<Suggestion> {
    let edits = |candidate: &str| strsim::damerau_levenshtein(name, candidate);
    let is_close = |edits: usize, candidate: &str| match candidate.len().min(name.len()) {
        0..=2 => candidate.eq_ignore_ascii_case(name),
        shorter => edits <= (shorter / 4).max(1),
    };
    known
        .into_iter()
        .map(|candidate| (edits(candidate.as_ref()), candidate.as_ref().to_owned()))
        .filter(|(edits, candidate)| is_close(*edits, candidate))
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
pub enum Equivalent {
    /// This, including its quotes.
    Is(&'static str),
    /// None yet. The string is a noun for the missing feature.
    Absent(&'static str),
    /// None. The string describes what to write instead.
    Instead(&'static str),
}

/// Foreign names, and their equivalents.
type Table = &'static [(&'static [&'static str], Equivalent)];

// Sources: CUDA C++ Programming Guide, "C++ Language Extensions"; PTX ISA, "Special Registers" and
// "Instruction Set"; Triton's documentation, `triton.language`.

const VALUES: Table = &[
    (&["threadIdx"], Equivalent::Is("`thread_idx()`")),
    (&["blockIdx"], Equivalent::Is("`block_idx()`")),
    (&["blockDim"], Equivalent::Is("`block_dim()`")),
    (&["gridDim"], Equivalent::Is("`grid_dim()`")),
    (&["clusterIdx"], Equivalent::Is("`cluster_idx()`")),
    (&["warpSize"], Equivalent::Instead("write `32`: a warp has 32 threads")),
    (
        &["tl"],
        Equivalent::Instead(
            "move tiles with tensor maps, `map.load(tile, at, barrier)` and `map.store(at, tile)`, and \
             elements with `global.get(i)` and `global.set(i, value)`",
        ),
    ),
    (
        &["cuda", "cg"],
        Equivalent::Instead("call the functions of the kernel language: `sync_threads()`, `thread_idx()`"),
    ),
];

const FUNCTIONS: Table = &[
    (&["thread_id", "threadIdx", "tid"], Equivalent::Is("`thread_idx()`")),
    (&["block_id", "blockIdx", "program_id"], Equivalent::Is("`block_idx()`")),
    (&["blockDim"], Equivalent::Is("`block_dim()`")),
    (&["gridDim", "num_programs"], Equivalent::Is("`grid_dim()`")),
    (&["lane_id"], Equivalent::Is("`lane_idx()`")),
    (&["warp_id"], Equivalent::Is("`warp_idx()`")),
    (
        &["__syncthreads", "syncthreads", "debug_barrier", "__barrier_sync"],
        Equivalent::Is("`sync_threads()`"),
    ),
    (&["__syncwarp", "syncwarp"], Equivalent::Is("`sync_warp()`")),
    (&["__threadfence", "threadfence"], Equivalent::Is("`fence()`")),
    (
        &["__threadfence_block", "__threadfence_system"],
        Equivalent::Instead("write `fence()`: the only scope of a fence is the device"),
    ),
    (&["elect_sync", "elect"], Equivalent::Is("`elect_one()`")),
    (&["__trap"], Equivalent::Is("`trap()`")),
    (&["printf"], Equivalent::Is("a macro, `printf!(\"..\\n\", ..)`,")),
    (&["assert", "device_assert"], Equivalent::Is("a macro, `assert!(condition, \"message\")`,")),
    (&["atomicAdd", "atomic_add"], Equivalent::Is("`global.atomic_add(i, value)`")),
    (&["atomicMin", "atomic_min"], Equivalent::Is("`global.atomic_min(i, value)`")),
    (&["atomicMax", "atomic_max"], Equivalent::Is("`global.atomic_max(i, value)`")),
    (&["atomicAnd", "atomic_and"], Equivalent::Is("`global.atomic_and(i, value)`")),
    (&["atomicOr", "atomic_or"], Equivalent::Is("`global.atomic_or(i, value)`")),
    (&["atomicXor", "atomic_xor"], Equivalent::Is("`global.atomic_xor(i, value)`")),
    (&["atomicExch", "atomic_xchg"], Equivalent::Is("`global.atomic_exchange(i, value)`")),
    (
        &["atomicCAS", "atomic_cas"],
        Equivalent::Is("`global.compare_exchange(i, current, new, order, scope)`"),
    ),
    (&["fmaf", "__fmaf_rn"], Equivalent::Is("`fma(a, b, c)`")),
    (&["sqrtf", "__fsqrt_rn"], Equivalent::Is("`sqrt(x)`")),
    (&["rsqrtf"], Equivalent::Is("`rsqrt(x)`")),
    (&["exp2f"], Equivalent::Is("`exp2(x)`")),
    (&["log2f", "__log2f"], Equivalent::Is("`log2(x)`")),
    (&["fminf", "fmin", "minimum"], Equivalent::Is("`min(a, b)`")),
    (&["fmaxf", "fmax", "maximum"], Equivalent::Is("`max(a, b)`")),
    (&["fabs", "fabsf"], Equivalent::Is("`abs(x)`")),
    (&["cdiv", "ceil_div"], Equivalent::Is("`a.div_ceil(b)`")),
    (&["__ldg"], Equivalent::Is("`global.get(i)`")),
    (&["exp", "expf", "__expf"], Equivalent::Is("`exp(x)`")),
    (&["log", "logf", "__logf", "ln"], Equivalent::Is("`log(x)`")),
    (&["pow", "powf", "__powf"], Equivalent::Is("`pow(x, y)`")),
    (&["powi"], Equivalent::Is("`x.powi(n)`")),
    (&["__mulhi", "__umulhi", "__mul64hi", "__umul64hi", "mulhi"], Equivalent::Is("`mul_hi(a, b)`")),
    (&["sin", "sinf", "__sinf"], Equivalent::Is("`sin(x)`")),
    (&["cos", "cosf", "__cosf"], Equivalent::Is("`cos(x)`")),
    (&["sincosf", "sincos", "sin_cos"], Equivalent::Instead("write `sin(x)` and `cos(x)`")),
    (&["tanh", "tanhf"], Equivalent::Is("`tanh(x)`")),
    (&["tan", "tanf"], Equivalent::Instead("write `sin(x) / cos(x)`")),
    (&["copysignf"], Equivalent::Is("`copysign(x, sign)`")),
    (&["__saturatef", "saturate"], Equivalent::Is("`clamp(x, 0.0, 1.0)`")),
    (&["__popc", "__popcll", "popc", "popcount"], Equivalent::Is("`x.count_ones()`")),
    (&["__clz", "__clzll", "clz"], Equivalent::Is("`x.leading_zeros()`")),
    (&["__ffs", "__ffsll", "ctz"], Equivalent::Is("`x.trailing_zeros()`")),
    (&["__brev", "__brevll", "brev"], Equivalent::Is("`x.reverse_bits()`")),
    (&["__funnelshift_l", "rotl"], Equivalent::Is("`x.rotate_left(n)`")),
    (&["__funnelshift_r", "rotr"], Equivalent::Is("`x.rotate_right(n)`")),
    (
        &["to_f32", "to_f64"],
        Equivalent::Instead("write `cast::<f32>(x)`, or `cast::<f64>(x)`: `cast` takes every type of number"),
    ),
    (
        &["from_f32", "from_f64"],
        Equivalent::Instead("write `cast::<T>(x)`: `cast` converts to every type of number"),
    ),
    (&["is_nan", "isnan"], Equivalent::Instead("write `x != x`: only NaN differs from itself")),
    (&["is_infinite", "isinf"], Equivalent::Instead("write `x.abs() == f32::INFINITY`")),
    (&["is_finite", "isfinite"], Equivalent::Instead("write `x.abs() < f32::INFINITY`")),
    (&["sigmoid"], Equivalent::Instead("write `1.0 / (1.0 + exp(-x))`")),
    (&["softmax", "erf", "erff"], Equivalent::Absent("this function")),
    (
        &["floor", "ceil", "round", "trunc", "floorf", "ceilf", "roundf", "truncf"],
        Equivalent::Instead(
            "write `x as i32` to drop the fraction: kernels cannot round to whole floats yet",
        ),
    ),
    (&["__shfl_xor_sync", "shfl_xor", "shfl_xor_sync"], Equivalent::Is("`shuffle_xor(x, mask)`")),
    (&["__shfl_up_sync", "shfl_up", "shfl_up_sync"], Equivalent::Is("`shuffle_up(x, distance)`")),
    (&["__shfl_down_sync", "shfl_down", "shfl_down_sync"], Equivalent::Is("`shuffle_down(x, distance)`")),
    (
        &["__shfl_sync", "shfl", "shfl_sync", "shuffle", "shuffle_sync", "warp_shuffle"],
        Equivalent::Is("`shuffle_idx(x, lane)`"),
    ),
    (&["__ballot_sync", "ballot_sync"], Equivalent::Is("`ballot(condition)`")),
    (&["__any_sync", "any_sync"], Equivalent::Is("`vote_any(condition)`")),
    (&["__all_sync", "all_sync"], Equivalent::Is("`vote_all(condition)`")),
    (&["__match_any_sync"], Equivalent::Is("`match_any(x)`")),
    (&["__match_all_sync"], Equivalent::Is("`match_all(x)`")),
    (&["__reduce_add_sync", "warp_sum", "warp_reduce"], Equivalent::Is("`warp_reduce_add(x)`")),
    (&["__reduce_min_sync", "warp_min"], Equivalent::Is("`warp_reduce_min(x)`")),
    (&["__reduce_max_sync", "warp_max"], Equivalent::Is("`warp_reduce_max(x)`")),
    (&["__reduce_and_sync"], Equivalent::Is("`warp_reduce_and(x)`")),
    (&["__reduce_or_sync"], Equivalent::Is("`warp_reduce_or(x)`")),
    (&["__reduce_xor_sync"], Equivalent::Is("`warp_reduce_xor(x)`")),
    (
        &["__activemask", "activemask"],
        Equivalent::Instead("remove it: all lanes of a warp must take part in its operations"),
    ),
    (
        &["wgmma", "wgmma_mma_async", "mma", "dot", "gemm"],
        Equivalent::Is("a method of an accumulator, `sum.mma(a, b, keep)`,"),
    ),
    (
        &["warpgroup_wait", "wgmma_wait_group"],
        Equivalent::Is("`flight.wait()`, with the flight that `mma` returns,"),
    ),
    (
        &["warpgroup_arrive", "wgmma_fence", "warpgroup_commit_batch", "wgmma_commit_group"],
        Equivalent::Instead("remove it: `sum.mma(a, b, keep)` starts with the fence and commits the group"),
    ),
    (&["stmatrix", "store_matrix_sync"], Equivalent::Is("a method of an accumulator, `sum.store(tile)`,")),
    (
        &["mma_sync", "wmma_mma_sync", "mma_m16n8k16"],
        Equivalent::Is("a method of a warp's accumulator, `sum.mma_sync(a, b)`,"),
    ),
    (
        &["ldmatrix", "load_matrix_sync", "wmma_load"],
        Equivalent::Is("a function of an operand's type, `WarpLeft::<f16, 16, 16>::load(tile, [row, k])`,"),
    ),
    (&["setmaxnreg"], Equivalent::Is("`setmaxnreg_inc::<232>()` or `setmaxnreg_dec::<40>()`")),
    (
        &["clock", "clock64", "globaltimer", "__nanosleep", "nanosleep"],
        Equivalent::Absent("clocks and sleeping"),
    ),
    (
        &["load", "store"],
        Equivalent::Instead(
            "move tiles with tensor maps, `map.load(tile, at, barrier)` and `map.store(at, tile)`, and \
             elements with `global.get(i)` and `global.set(i, value)`",
        ),
    ),
    (
        &["zeros", "arange", "full"],
        Equivalent::Instead("write a register array as `[0.0; 4]`, and create a tile with `shared()`"),
    ),
    (
        &["malloc", "free", "memcpy", "memset", "memcpy_async"],
        Equivalent::Instead(
            "use the copies of tensor maps and `global.bulk_load(..)`: a kernel allocates nothing",
        ),
    ),
    (
        &["drop", "Some", "Ok", "Err", "Box", "Vec", "String"],
        Equivalent::Instead("use scalars, register arrays and handles: kernels have no other values"),
    ),
];

const ACCESSES: Table = &[
    (&["atomic_add", "atomicAdd"], Equivalent::Is("`fetch_add(i, value, order, scope)`")),
    (&["atomic_min", "atomicMin"], Equivalent::Is("`fetch_min(i, value, order, scope)`")),
    (&["atomic_max", "atomicMax"], Equivalent::Is("`fetch_max(i, value, order, scope)`")),
    (&["atomic_and", "atomicAnd"], Equivalent::Is("`fetch_and(i, value, order, scope)`")),
    (&["atomic_or", "atomicOr"], Equivalent::Is("`fetch_or(i, value, order, scope)`")),
    (&["atomic_xor", "atomicXor"], Equivalent::Is("`fetch_xor(i, value, order, scope)`")),
    (&["fetch_sub", "atomic_sub"], Equivalent::Instead("write `fetch_add` of the negated value")),
    (&["fetch_inc", "fetch_increment"], Equivalent::Instead("write `fetch_add` of 1")),
    (&["fetch_dec", "fetch_decrement"], Equivalent::Instead("write `fetch_add` of -1, or of `u32::MAX`")),
    (
        &["atomic_inc", "atomic_dec"],
        Equivalent::Instead("write `fetch_add` of 1, or a loop of `compare_exchange` if it wraps at a bound"),
    ),
    (
        &["fetch_nand", "fetch_update", "fetch_mul"],
        Equivalent::Instead("retry `compare_exchange` in a loop until it returns the value that was read"),
    ),
    (
        &["compare_exchange_weak", "compare_and_swap", "cas", "atomicCAS", "atomic_cas"],
        Equivalent::Is("`compare_exchange(i, current, new, order, scope)`"),
    ),
    (&["exchange", "atomic_exchange", "atomicExch"], Equivalent::Is("`swap(i, value, order, scope)`")),
    (
        &["read_volatile", "load_volatile", "volatile_load"],
        Equivalent::Is("`load(i, Order::Relaxed, scope)`"),
    ),
    (
        &["write_volatile", "store_volatile", "volatile_store"],
        Equivalent::Is("`store(i, value, Order::Relaxed, scope)`"),
    ),
];

const TYPES: Table = &[
    (&["half", "__half", "Half", "float16"], Equivalent::Is("`f16`")),
    (&["__nv_bfloat16", "bfloat16"], Equivalent::Is("`bf16`")),
    (&["float", "float32"], Equivalent::Is("`f32`")),
    (&["double", "float64"], Equivalent::Is("`f64`")),
    (&["int", "int32", "int32_t"], Equivalent::Is("`i32`")),
    (&["unsigned", "uint", "uint32", "uint32_t"], Equivalent::Is("`u32`")),
    (&["size_t"], Equivalent::Is("`usize`")),
    (&["isize"], Equivalent::Instead("write `i64`")),
    (&["i128", "u128", "char", "str"], Equivalent::Instead("use a scalar of at most 64 bits")),
    (&["float8_e4m3fn", "__nv_fp8_e4m3", "fp8"], Equivalent::Is("`e4m3`")),
    (&["float8_e5m2", "__nv_fp8_e5m2"], Equivalent::Is("`e5m2`")),
    (&["float4", "uint4", "int4", "float2"], Equivalent::Instead("write a register array: `[f32; 4]`")),
    (&["dim3", "uint3"], Equivalent::Is("`Dim3`")),
    (&["CUtensorMap", "TensorDescriptor", "tensor_descriptor"], Equivalent::Is("`TensorMap<Tile<..>>`")),
    (&["mbarrier", "Mbarrier"], Equivalent::Is("`Barrier`")),
    (
        &["Vec", "Box", "String", "Option", "Result"],
        Equivalent::Instead("use scalars, register arrays and handles: kernels have no other values"),
    ),
    (
        &["DeviceTensor", "TensorView", "TensorViewMut"],
        Equivalent::Instead("pass a tensor as a `TensorMap<Tile<..>>` or as a `Global<T>`"),
    ),
];

const MACROS: Table = &[
    (&["println", "print", "eprintln", "eprint", "dbg"], Equivalent::Is("`printf!(\"..\\n\", ..)`")),
    (&["assert_eq", "debug_assert_eq"], Equivalent::Is("`assert!(a == b, \"message\")`")),
    (&["assert_ne", "debug_assert_ne"], Equivalent::Is("`assert!(a != b, \"message\")`")),
    (&["debug_assert"], Equivalent::Is("`assert!(condition, \"message\")`")),
    (
        &["panic", "unreachable", "todo", "unimplemented"],
        Equivalent::Is("`trap()`, or `assert!(false, \"message\")`,"),
    ),
    (&["vec"], Equivalent::Instead("write a register array: `[0.0; 4]`")),
    (&["format", "write", "writeln"], Equivalent::Instead("print text with `printf!(\"..\\n\", ..)`")),
    (&["wgmma", "mma"], Equivalent::Is("a method of an accumulator, `sum.mma(a, b, keep)`,")),
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
        // A constant of the file is not a variable of one letter.
        assert_eq!(of("C"), None);
        assert_eq!(says("F").as_deref(), Some("did you mean `f`?"));
    }

    #[test]
    fn words_of_others_are_those_of_their_kind() {
        let says = |name, kind| elsewhere(name, kind).map(|ours| ours.to_string()).unwrap_or_default();
        assert_eq!(says("__syncthreads", Kind::Function), "use `sync_threads()` instead of `__syncthreads`");
        assert!(says("wgmma", Kind::Function).contains("`sum.mma(a, b, keep)`"));
        assert!(says("ldmatrix", Kind::Function).contains("`WarpLeft::<f16, 16, 16>::load(tile, [row, k])`"));
        assert!(says("threadIdx", Kind::Value).contains("`thread_idx()`"));
        assert_eq!(elsewhere("full", Kind::Value), None);
    }
}
