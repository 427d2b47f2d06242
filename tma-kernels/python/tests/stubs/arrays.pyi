"""Calls the operators on arrays of any library with DLPack: JAX, CuPy, NumPy, PyTorch."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, overload

class SupportsDLPack(Protocol):
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...

_Out = TypeVar("_Out", bound=SupportsDLPack)

class Array:
    """A result: an array in row-major order, for `from_dlpack` of any library."""

    shape: tuple[int, ...]
    dtype: str
    def __dlpack__(self, *, stream: Any = None, **_options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

@overload
def gemm(
    a: SupportsDLPack,
    b: SupportsDLPack,
    *,
    bias: SupportsDLPack | None = None,
    residual: SupportsDLPack | None = None,
    activation: str = "none",
    alpha: float = 1.0,
    out_dtype: object | None = None,
    out: None = None,
    stream: int | None = None,
) -> Array:
    """Returns activation(alpha · a · b + residual + bias).

    `a` is M × K and `b` is K × N, or both have a first dimension that counts the matrices of a
    batch. Either may be a transposed view. Elements are bfloat16, float16, float32 (multiplied
    as TF32), float8_e4m3fn, float8_e5m2 or int8; those that do not have 16 bits need a `b` that
    is a transposed view, such as `weight.t()`, and an `a` that is none. `bias` has N elements,
    `residual` has the shape of the result. The activation is `none`, `relu`, `gelu` (by tanh)
    or `silu`. `out_dtype` is that of `a` by default, or bfloat16 for elements of 8 bits and
    int32 for int8; it may be float32 for floats.

    `a`, `b`, `bias` and `residual` have gradients, unless elements have 8 bits. With an
    activation, they take one more GEMM, which computes the argument of the activation again. For
    that, PyTorch keeps all four until the backward pass, so none may be written before it.
    """

@overload
def gemm(
    a: SupportsDLPack,
    b: SupportsDLPack,
    *,
    bias: SupportsDLPack | None = None,
    residual: SupportsDLPack | None = None,
    activation: str = "none",
    alpha: float = 1.0,
    out_dtype: object | None = None,
    out: _Out,
    stream: int | None = None,
) -> _Out:
    """Returns activation(alpha · a · b + residual + bias).

    `a` is M × K and `b` is K × N, or both have a first dimension that counts the matrices of a
    batch. Either may be a transposed view. Elements are bfloat16, float16, float32 (multiplied
    as TF32), float8_e4m3fn, float8_e5m2 or int8; those that do not have 16 bits need a `b` that
    is a transposed view, such as `weight.t()`, and an `a` that is none. `bias` has N elements,
    `residual` has the shape of the result. The activation is `none`, `relu`, `gelu` (by tanh)
    or `silu`. `out_dtype` is that of `a` by default, or bfloat16 for elements of 8 bits and
    int32 for int8; it may be float32 for floats.

    `a`, `b`, `bias` and `residual` have gradients, unless elements have 8 bits. With an
    activation, they take one more GEMM, which computes the argument of the activation again. For
    that, PyTorch keeps all four until the backward pass, so none may be written before it.
    """

def gemm_(
    c: SupportsDLPack,
    a: SupportsDLPack,
    b: SupportsDLPack,
    *,
    bias: SupportsDLPack | None = None,
    residual: SupportsDLPack | None = None,
    activation: str = "none",
    alpha: float = 1.0,
    beta: float = 0.0,
    out: None = None,
    stream: int | None = None,
) -> None:
    """Replaces c by activation(alpha · a · b + beta · c + residual + bias).

    The arguments are those of `gemm`. With a `beta` of 0 the elements of `c` are not read. There
    are no gradients.
    """

@overload
def gemm_scaled(
    a: SupportsDLPack,
    b: SupportsDLPack,
    scale_a: SupportsDLPack | None,
    scale_b: SupportsDLPack | None,
    *,
    out_dtype: object | None = None,
    out: None = None,
    stream: int | None = None,
) -> Array:
    """Returns a · bᵀ of matrices of float8_e4m3fn, with scales as in DeepSeek's models.

    `a` is M × K and `b` is N × K. `scale_a` is M × K / 128 and `scale_b` is N / 128 × K / 128,
    both rounded up. `out_dtype` is bfloat16, the default, or float32.
    """

@overload
def gemm_scaled(
    a: SupportsDLPack,
    b: SupportsDLPack,
    scale_a: SupportsDLPack | None,
    scale_b: SupportsDLPack | None,
    *,
    out_dtype: object | None = None,
    out: _Out,
    stream: int | None = None,
) -> _Out:
    """Returns a · bᵀ of matrices of float8_e4m3fn, with scales as in DeepSeek's models.

    `a` is M × K and `b` is N × K. `scale_a` is M × K / 128 and `scale_b` is N / 128 × K / 128,
    both rounded up. `out_dtype` is bfloat16, the default, or float32.
    """

@overload
def attention(
    q: SupportsDLPack,
    k: SupportsDLPack,
    v: SupportsDLPack,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    window_after: int | None = None,
    soft_cap: float | None = None,
    out: None = None,
    stream: int | None = None,
) -> Array:
    """Returns softmax(q · kᵀ · scale) · v, without writing the scores to memory.

    `q` is batch × heads × queries × depth, `k` and `v` are batch × heads × keys × depth, of
    bfloat16 or float16, with a depth of at most 256, a multiple of 8. Values may have fewer
    columns than keys. There may be fewer heads of keys and values, each for as many adjacent
    heads of queries. With `causal`, query i sees the
    keys up to i + keys - queries, its position. `window` and `window_after` are the numbers of
    keys before its position and after it that a query sees. The default of `scale` is 1 / √depth.
    With `soft_cap`, a score x becomes soft_cap · tanh(x / soft_cap). It has no gradient;
    `attention_with_lse` has one.
    """

@overload
def attention(
    q: SupportsDLPack,
    k: SupportsDLPack,
    v: SupportsDLPack,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    window_after: int | None = None,
    soft_cap: float | None = None,
    out: _Out,
    stream: int | None = None,
) -> _Out:
    """Returns softmax(q · kᵀ · scale) · v, without writing the scores to memory.

    `q` is batch × heads × queries × depth, `k` and `v` are batch × heads × keys × depth, of
    bfloat16 or float16, with a depth of at most 256, a multiple of 8. Values may have fewer
    columns than keys. There may be fewer heads of keys and values, each for as many adjacent
    heads of queries. With `causal`, query i sees the
    keys up to i + keys - queries, its position. `window` and `window_after` are the numbers of
    keys before its position and after it that a query sees. The default of `scale` is 1 / √depth.
    With `soft_cap`, a score x becomes soft_cap · tanh(x / soft_cap). It has no gradient;
    `attention_with_lse` has one.
    """

@overload
def attention_with_lse(
    q: SupportsDLPack,
    k: SupportsDLPack,
    v: SupportsDLPack,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    window_after: int | None = None,
    soft_cap: float | None = None,
    out: None = None,
    stream: int | None = None,
) -> tuple[Array, Array]:
    """Returns the same as `attention`, and the natural logarithm of each row's sum of exponentials.

    `q`, `k` and `v` have gradients if the depth is at most 128. They are the same in every run if
    `torch.use_deterministic_algorithms(True)` was called. The logarithms, batch × heads × queries
    of float32, have none.
    """

@overload
def attention_with_lse(
    q: SupportsDLPack,
    k: SupportsDLPack,
    v: SupportsDLPack,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    window_after: int | None = None,
    soft_cap: float | None = None,
    out: Sequence[_Out],
    stream: int | None = None,
) -> tuple[_Out, ...]:
    """Returns the same as `attention`, and the natural logarithm of each row's sum of exponentials.

    `q`, `k` and `v` have gradients if the depth is at most 128. They are the same in every run if
    `torch.use_deterministic_algorithms(True)` was called. The logarithms, batch × heads × queries
    of float32, have none.
    """

@overload
def attention_backward(
    q: SupportsDLPack,
    k: SupportsDLPack,
    v: SupportsDLPack,
    o: SupportsDLPack,
    lse: SupportsDLPack,
    grad_o: SupportsDLPack,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    window_after: int | None = None,
    soft_cap: float | None = None,
    deterministic: bool = False,
    out: None = None,
    stream: int | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Returns the gradients of `q`, `k` and `v`, and the memory in which they were computed.

    `o` and `lse` are the results of `attention_with_lse` with the same options, and `grad_o` is
    the gradient of `o`. The depth is at most 128. With `deterministic`, the gradient of `q` has
    the same bits in every run.
    """

@overload
def attention_backward(
    q: SupportsDLPack,
    k: SupportsDLPack,
    v: SupportsDLPack,
    o: SupportsDLPack,
    lse: SupportsDLPack,
    grad_o: SupportsDLPack,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    window_after: int | None = None,
    soft_cap: float | None = None,
    deterministic: bool = False,
    out: Sequence[_Out],
    stream: int | None = None,
) -> tuple[_Out, ...]:
    """Returns the gradients of `q`, `k` and `v`, and the memory in which they were computed.

    `o` and `lse` are the results of `attention_with_lse` with the same options, and `grad_o` is
    the gradient of `o`. The depth is at most 128. With `deterministic`, the gradient of `q` has
    the same bits in every run.
    """

@overload
def rms_norm(
    x: SupportsDLPack,
    weight: SupportsDLPack | None,
    *,
    epsilon: float = 1e-06,
    one_plus_weight: bool = False,
    out: None = None,
    stream: int | None = None,
) -> Array:
    """Returns x / √(mean(x²) + epsilon) · weight over the last dimension.

    `x` has two to four dimensions, of bfloat16, float16 or float32, and `weight` has as many
    elements as a row, or is None. With `one_plus_weight`, 1 is added to the weights. It has no
    gradient.
    """

@overload
def rms_norm(
    x: SupportsDLPack,
    weight: SupportsDLPack | None,
    *,
    epsilon: float = 1e-06,
    one_plus_weight: bool = False,
    out: _Out,
    stream: int | None = None,
) -> _Out:
    """Returns x / √(mean(x²) + epsilon) · weight over the last dimension.

    `x` has two to four dimensions, of bfloat16, float16 or float32, and `weight` has as many
    elements as a row, or is None. With `one_plus_weight`, 1 is added to the weights. It has no
    gradient.
    """

@overload
def add_rms_norm_(
    residual: SupportsDLPack,
    x: SupportsDLPack,
    weight: SupportsDLPack | None,
    *,
    epsilon: float = 1e-06,
    one_plus_weight: bool = False,
    out: None = None,
    stream: int | None = None,
) -> Array:
    """Replaces `residual` by residual + x, and returns `rms_norm` of the sum."""

@overload
def add_rms_norm_(
    residual: SupportsDLPack,
    x: SupportsDLPack,
    weight: SupportsDLPack | None,
    *,
    epsilon: float = 1e-06,
    one_plus_weight: bool = False,
    out: _Out,
    stream: int | None = None,
) -> _Out:
    """Replaces `residual` by residual + x, and returns `rms_norm` of the sum."""

@overload
def rotary(
    x: SupportsDLPack,
    positions: SupportsDLPack,
    cos: SupportsDLPack,
    sin: SupportsDLPack,
    *,
    layout: str = "halves",
    inverse: bool = False,
    out: None = None,
    stream: int | None = None,
) -> Array:
    """Returns the rotary embedding of heads: pairs of columns are rotated by the angle of the
    token's position.

    `x` is tokens × heads × depth, of bfloat16 or float16. `positions` has the position of each
    token, of int32. `cos` and `sin` are positions × half of the rotated columns, of float32.
    With the layout `halves`, column i and column i + rotated / 2 are a pair, as in Llama; with
    `pairs`, columns 2 · i and 2 · i + 1. Other columns are copied. A position beyond the angles
    leaves the token's result undefined. With `inverse`, the angles are negated. `x` has a gradient.
    """

@overload
def rotary(
    x: SupportsDLPack,
    positions: SupportsDLPack,
    cos: SupportsDLPack,
    sin: SupportsDLPack,
    *,
    layout: str = "halves",
    inverse: bool = False,
    out: _Out,
    stream: int | None = None,
) -> _Out:
    """Returns the rotary embedding of heads: pairs of columns are rotated by the angle of the
    token's position.

    `x` is tokens × heads × depth, of bfloat16 or float16. `positions` has the position of each
    token, of int32. `cos` and `sin` are positions × half of the rotated columns, of float32.
    With the layout `halves`, column i and column i + rotated / 2 are a pair, as in Llama; with
    `pairs`, columns 2 · i and 2 · i + 1. Other columns are copied. A position beyond the angles
    leaves the token's result undefined. With `inverse`, the angles are negated. `x` has a gradient.
    """

def append_(
    keys: SupportsDLPack,
    values: SupportsDLPack,
    k: SupportsDLPack,
    v: SupportsDLPack,
    lengths: SupportsDLPack | None,
    *,
    table: SupportsDLPack | None = None,
    counts: SupportsDLPack | None = None,
    key_scales: SupportsDLPack | None = None,
    value_scales: SupportsDLPack | None = None,
    out: None = None,
    stream: int | None = None,
) -> None:
    """Writes new keys and values to a cache.

    `k` and `v` are batch × heads × tokens × depth, of bfloat16 or float16. `keys` and `values`
    are batch × heads × keys × depth or, with a `table`, pages × heads × rows × depth, with 16,
    32, 64, 128 or 256 rows per page. They have the same elements, or are of float8_e4m3fn: new
    keys and values are then divided by `key_scales` and `value_scales`, pages or sequences ×
    heads, where either extent may be 1. `lengths` has the number of keys of each sequence
    before the call, or is None for empty sequences. `table` is batch × pages, the numbers of
    each sequence's pages. `counts` has the number of valid tokens of each sequence. All three
    are of int32, and are read on the device. A token beyond the cache is not written.
    """

@overload
def attention_cached(
    q: SupportsDLPack,
    keys: SupportsDLPack,
    values: SupportsDLPack,
    lengths: SupportsDLPack | None,
    *,
    table: SupportsDLPack | None = None,
    key_scales: SupportsDLPack | None = None,
    value_scales: SupportsDLPack | None = None,
    slopes: SupportsDLPack | None = None,
    bias: SupportsDLPack | None = None,
    sinks: SupportsDLPack | None = None,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    window_after: int | None = None,
    soft_cap: float | None = None,
    out: None = None,
    stream: int | None = None,
) -> Array:
    """Returns softmax(q · kᵀ · scale) · v over the keys and values of a cache, for one query of
    each sequence or a few.

    `q` is batch × heads × queries × depth, of bfloat16 or float16. `keys` and `values` are
    batch × heads × keys × depth or, with a `table`, pages × heads × rows × depth, with 16, 32,
    64, 128 or 256 rows per page. They have the elements of `q`, or are of float8_e4m3fn, whose
    factors `key_scales` and `value_scales` are pages or sequences × heads, where either extent
    may be 1. There may be fewer heads of keys and values, and values may have fewer columns.
    `lengths` has the number of keys of each sequence, or is None if all have as many as fit. `table` is
    batch × pages, the numbers of each sequence's pages. Both are of int32, and are read on the
    device.

    With `causal`, the last query of a sequence is at the position of its last key. `slopes`
    (ALiBi) and `sinks` have a float32 for each head of queries. `bias` is added to the scores:
    batch × heads × queries × keys, where any extent may be 1. The other options are those of
    `attention`. It has no gradient.
    """

@overload
def attention_cached(
    q: SupportsDLPack,
    keys: SupportsDLPack,
    values: SupportsDLPack,
    lengths: SupportsDLPack | None,
    *,
    table: SupportsDLPack | None = None,
    key_scales: SupportsDLPack | None = None,
    value_scales: SupportsDLPack | None = None,
    slopes: SupportsDLPack | None = None,
    bias: SupportsDLPack | None = None,
    sinks: SupportsDLPack | None = None,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    window_after: int | None = None,
    soft_cap: float | None = None,
    out: _Out,
    stream: int | None = None,
) -> _Out:
    """Returns softmax(q · kᵀ · scale) · v over the keys and values of a cache, for one query of
    each sequence or a few.

    `q` is batch × heads × queries × depth, of bfloat16 or float16. `keys` and `values` are
    batch × heads × keys × depth or, with a `table`, pages × heads × rows × depth, with 16, 32,
    64, 128 or 256 rows per page. They have the elements of `q`, or are of float8_e4m3fn, whose
    factors `key_scales` and `value_scales` are pages or sequences × heads, where either extent
    may be 1. There may be fewer heads of keys and values, and values may have fewer columns.
    `lengths` has the number of keys of each sequence, or is None if all have as many as fit. `table` is
    batch × pages, the numbers of each sequence's pages. Both are of int32, and are read on the
    device.

    With `causal`, the last query of a sequence is at the position of its last key. `slopes`
    (ALiBi) and `sinks` have a float32 for each head of queries. `bias` is added to the scores:
    batch × heads × queries × keys, where any extent may be 1. The other options are those of
    `attention`. It has no gradient.
    """

@overload
def mla_attention(
    q: SupportsDLPack,
    latents: SupportsDLPack,
    rotated: SupportsDLPack,
    lengths: SupportsDLPack | None,
    *,
    table: SupportsDLPack | None = None,
    causal: bool = False,
    scale: float | None = None,
    out: None = None,
    stream: int | None = None,
) -> Array:
    """Returns softmax(q · kᵀ · scale) · v over latents: the multi-head latent attention of
    DeepSeek-V2 and V3, after their matrices have been absorbed into the queries.

    `q` is batch × heads × queries × 576, of bfloat16 or float16. `latents` are batch × 1 × keys
    × 512 and `rotated` batch × 1 × keys × 64 or, with a `table`, pages × 1 × rows × 512 and 64,
    with 32, 64, 128 or 256 rows per page. Each key is a latent and then its rotated columns,
    and each value is the latent. `lengths` and `table` are those of `attention_cached`. The
    default of `scale` is 1 / √192. It has no gradient.
    """

@overload
def mla_attention(
    q: SupportsDLPack,
    latents: SupportsDLPack,
    rotated: SupportsDLPack,
    lengths: SupportsDLPack | None,
    *,
    table: SupportsDLPack | None = None,
    causal: bool = False,
    scale: float | None = None,
    out: _Out,
    stream: int | None = None,
) -> _Out:
    """Returns softmax(q · kᵀ · scale) · v over latents: the multi-head latent attention of
    DeepSeek-V2 and V3, after their matrices have been absorbed into the queries.

    `q` is batch × heads × queries × 576, of bfloat16 or float16. `latents` are batch × 1 × keys
    × 512 and `rotated` batch × 1 × keys × 64 or, with a `table`, pages × 1 × rows × 512 and 64,
    with 32, 64, 128 or 256 rows per page. Each key is a latent and then its rotated columns,
    and each value is the latent. `lengths` and `table` are those of `attention_cached`. The
    default of `scale` is 1 / √192. It has no gradient.
    """
