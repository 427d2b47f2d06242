//! The operators, called through the C interface as Python does, on the simulator.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr;

use serde_json::Value as Json;

// Links the library.
use tma_kernels_python as _;
use tma_runtime::prelude::bf16;

unsafe extern "C" {
    fn tma_python_describe() -> *const c_char;
    fn tma_python_call(
        index: usize,
        values: *const Value,
        count: usize,
        stream: *mut c_void,
    ) -> *const c_char;
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    tag: u64,
    payload: u64,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    rank: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

const NONE: Value = Value { tag: 0, payload: 0 };

fn tensor(data: &mut [bf16], shape: &[i64]) -> Tensor {
    memory(data.as_mut_ptr().cast(), shape)
}

/// Returns a tensor of `bf16` at this address.
fn memory(data: *mut c_void, shape: &[i64]) -> Tensor {
    Tensor {
        data,
        device: [1, 0],
        rank: shape.len() as i32,
        code: 4,
        bits: 16,
        lanes: 1,
        shape: shape.as_ptr(),
        strides: ptr::null(),
        byte_offset: 0,
    }
}

fn of(tensor: &Tensor) -> Value {
    Value { tag: 6, payload: ptr::from_ref(tensor).expose_provenance() as u64 }
}

fn text(text: &CStr) -> Value {
    Value { tag: 4, payload: text.as_ptr().expose_provenance() as u64 }
}

fn float(value: f64) -> Value {
    Value { tag: 2, payload: value.to_bits() }
}

fn call(index: usize, values: &[Value]) -> Result<(), String> {
    // SAFETY: the values are those of the operator, with tensors of the host.
    let message = unsafe { tma_python_call(index, values.as_ptr(), values.len(), ptr::null_mut()) };
    // SAFETY: a message of this thread.
    if message.is_null() { Ok(()) } else { Err(unsafe { CStr::from_ptr(message) }.to_string_lossy().into()) }
}

fn described() -> &'static str {
    // SAFETY: the description lives as long as the process.
    unsafe { CStr::from_ptr(tma_python_describe()) }.to_str().expect("UTF-8")
}

/// The type stubs are those of `tests/stubs`. `BLESS=1` accepts new ones.
#[test]
fn the_stubs_are_kept() {
    let json: Json = serde_json::from_str(described()).expect("JSON");
    let files = json["module"].as_array().expect("files").iter();
    let files = files.map(|file| [0, 1].map(|part| file[part].as_str().expect("text")));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stubs");
    let stubs: Vec<_> = files.filter(|[name, _]| name.ends_with(".pyi")).collect();
    assert_eq!(stubs.len(), 2);
    tma_golden::assert_all(stubs.into_iter().map(|[name, text]| (folder.join(name), text.to_owned())));
}

#[test]
fn the_library_has_no_mistakes() {
    let description = described();
    assert!(description.contains("\"mistakes\":[]"), "{description}");
    for schema in [
        "gemm(Tensor a, Tensor b, *, Tensor? bias=None, Tensor? residual=None, str activation=\\\"none\\\", ",
        "gemm_(Tensor(a0!) c, Tensor a, Tensor b, *, ",
        "gemm_scaled(Tensor a, Tensor b, Tensor? scale_a, Tensor? scale_b, *, ScalarType? out_dtype=None)",
        "attention(Tensor q, Tensor k, Tensor v, *, bool causal=False, float? scale=None, SymInt? window=None, ",
        "attention_with_lse(Tensor q, Tensor k, Tensor v, *, bool causal=False, ",
        "attention_backward(Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor grad_o, *, ",
    ] {
        assert!(description.contains(schema), "{schema} is not in {description}");
    }
}

#[test]
fn a_gemm_has_its_options() {
    const N: usize = 64;
    let number = |value: f32| bf16::from_f32(value);
    let (mut a, mut b) = (vec![number(0.5); N * N], vec![number(-0.25); N * N]);
    let (mut bias, mut c) = (vec![number(6.0); N], vec![number(0.0); N * N]);
    b[..N].fill(number(1.0));
    let shape = [N as i64, N as i64];
    let [a, b, c_tensor] = [&mut a, &mut b, &mut c].map(|data| tensor(data, &shape));
    let bias = tensor(&mut bias, &shape[..1]);
    let values =
        |activation| [of(&a), of(&b), of(&bias), NONE, text(activation), float(2.0), NONE, of(&c_tensor)];
    assert_eq!(call(0, &values(c"none")), Ok(()));
    // 2 · (0.5 · 1 - 63 · 0.125) + 6
    assert!(c.iter().all(|x| x.to_f32() == -8.75), "{}", c[0]);
    assert_eq!(call(0, &values(c"relu")), Ok(()));
    assert!(c.iter().all(|x| x.to_f32() == 0.0), "{}", c[0]);
    let error = call(0, &values(c"tanh")).unwrap_err();
    assert_eq!(error, "TMA0566: `activation` is `tanh`; pass `none`, `relu`, `gelu` or `silu`");
}

#[test]
fn attention_averages_equal_values() {
    let shape = [1, 2, 64, 64];
    let number = |value: f32| vec![bf16::from_f32(value); 2 * 64 * 64];
    let (mut q, mut k, mut v, mut o) = (number(0.5), number(1.0), number(3.0), number(0.0));
    let [q, k, v, o_tensor] = [&mut q, &mut k, &mut v, &mut o].map(|data| tensor(data, &shape));
    let causal = Value { tag: 3, payload: 1 };
    let options = [causal, NONE, NONE, NONE, NONE];
    let values = [&[of(&q), of(&k), of(&v)][..], &options, &[of(&o_tensor)]].concat();
    assert_eq!(call(3, &values), Ok(()));
    assert!(o.iter().all(|x| x.to_f32() == 3.0), "{}", o[0]);
}

/// The gradient of a value is the sum of its weights times the gradient of the result: with equal
/// scores and as many queries as keys, 1. Queries and keys have none, since all values are equal.
#[test]
fn attention_has_gradients() {
    let shape = [1, 2, 64, 64];
    let number = |value: f32| vec![bf16::from_f32(value); 2 * 64 * 64];
    let (mut q, mut k, mut v, mut o) = (number(0.5), number(1.0), number(3.0), number(0.0));
    let (mut d_o, mut dq, mut dk, mut dv) = (number(1.0), number(9.0), number(9.0), number(9.0));
    let [q, k, v, o, d_o, dq_tensor, dk_tensor, dv_tensor] =
        [&mut q, &mut k, &mut v, &mut o, &mut d_o, &mut dq, &mut dk, &mut dv]
            .map(|data| tensor(data, &shape));
    let mut lse = vec![0.0f32; 2 * 64];
    let lse = Tensor { code: 2, bits: 32, ..memory(lse.as_mut_ptr().cast(), &shape[..3]) };
    let mut bytes = vec![0i8; 2 * 33796];
    let of_bytes = [bytes.len() as i64];
    let workspace = Tensor { code: 0, bits: 8, ..memory(bytes.as_mut_ptr().cast(), &of_bytes) };
    let inputs = [of(&q), of(&k), of(&v)];
    let options = [Value { tag: 3, payload: 0 }, NONE, NONE, NONE, NONE];
    assert_eq!(call(4, &[&inputs[..], &options, &[of(&o), of(&lse)]].concat()), Ok(()));
    let forward = [&inputs[..], &[of(&o), of(&lse), of(&d_o)]].concat();
    let results = [of(&dq_tensor), of(&dk_tensor), of(&dv_tensor), of(&workspace)];
    for is_deterministic in [0, 1] {
        let deterministic = [Value { tag: 3, payload: is_deterministic }];
        assert_eq!(call(5, &[&forward[..], &options, &deterministic, &results].concat()), Ok(()));
    }
    assert!(dv.iter().all(|x| x.to_f32() == 1.0), "{}", dv[0]);
    assert!(dq.iter().chain(&dk).all(|x| x.to_f32() == 0.0), "{} {}", dq[0], dk[0]);
}

/// The norm of a row of equal elements is 1, and the sum with the residual is written back.
#[test]
fn a_norm_adds_its_residual() {
    const ROWS: usize = 3;
    let shape = [ROWS as i64, 64];
    let number = |value: f32| vec![bf16::from_f32(value); ROWS * 64];
    let (mut x, mut residual, mut y, mut weight) = (number(1.0), number(2.0), number(0.0), number(0.5));
    let [x, of_residual, of_y] = [&mut x, &mut residual, &mut y].map(|data| tensor(data, &shape));
    let weight = tensor(&mut weight, &shape[1..]);
    let is_added = Value { tag: 3, payload: 1 };
    let values = [of(&of_residual), of(&x), of(&weight), float(1e-6), is_added, of(&of_y)];
    assert_eq!(call(7, &values), Ok(()));
    assert!(residual.iter().all(|sum| sum.to_f32() == 3.0), "{}", residual[0]);
    assert!(y.iter().all(|y| y.to_f32() == 1.5), "{}", y[0]);
}

/// Indices are of int32, as PyTorch has them.
#[test]
fn a_token_is_written_to_its_page() {
    let cache_shape = [2, 1, 16, 8];
    let [mut keys, mut values] = [(); 2].map(|()| vec![bf16::ZERO; 2 * 16 * 8]);
    let (mut k, mut lengths, mut table) = (vec![bf16::ONE; 8], [17i32], [1i32, 0]);
    let [of_keys, of_values] = [&mut keys, &mut values].map(|data| tensor(data, &cache_shape));
    let k = tensor(&mut k, &[1, 1, 1, 8]);
    let indices = |data: *mut c_void, shape| Tensor { code: 0, bits: 32, ..memory(data, shape) };
    let lengths = indices(lengths.as_mut_ptr().cast(), &[1]);
    let table = indices(table.as_mut_ptr().cast(), &[1, 2]);
    let arguments =
        [of(&of_keys), of(&of_values), of(&k), of(&k), of(&lengths), of(&table), NONE, NONE, NONE];
    assert_eq!(call(9, &arguments), Ok(()));
    for cache in [&keys, &values] {
        let written: Vec<_> = (0..32).filter(|row| cache[row * 8] == bf16::ONE).collect();
        assert_eq!(written, [1], "key 17 is row 1 of the second page, which is page 0");
    }
}
