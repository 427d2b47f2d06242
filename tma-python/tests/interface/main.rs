//! The C interface of a library, called as Python does: on the simulator, with DLPack's tensors.

mod scaled;

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use scaled::{Panics, Scale, ScaleInPlace};
use serde_json::Value as Json;

tma_python::library!(Scale, ScaleInPlace, Panics);

unsafe extern "C" {
    fn tma_python_describe() -> *const c_char;
    fn tma_python_call(
        index: usize,
        values: *const Value,
        count: usize,
        stream: *mut c_void,
    ) -> *const c_char;
    fn tma_python_register(
        namespace: *const c_char,
        cpu: *const c_char,
        cuda: *const c_char,
    ) -> *const c_char;
}

#[repr(C)]
struct Value {
    tag: u64,
    payload: u64,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    rank: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

const NONE: Value = Value { tag: 0, payload: 0 };

fn tensor(data: &mut [f32], shape: &[i64], strides: Option<&[i64]>) -> Tensor {
    let strides = strides.map_or(ptr::null(), <[i64]>::as_ptr);
    let (data, rank) = (data.as_mut_ptr().cast(), shape.len() as i32);
    Tensor {
        data,
        device_type: 1,
        device_id: 0,
        rank,
        code: 2,
        bits: 32,
        lanes: 1,
        shape: shape.as_ptr(),
        strides,
        byte_offset: 0,
    }
}

fn of(tensor: &Tensor) -> Value {
    Value { tag: 6, payload: ptr::from_ref(tensor).expose_provenance() as u64 }
}

fn float(value: f64) -> Value {
    Value { tag: 2, payload: value.to_bits() }
}

fn call(index: usize, values: &[Value]) -> Result<(), String> {
    // SAFETY: the values are those of the operator, with tensors of the host.
    let message = unsafe { tma_python_call(index, values.as_ptr(), values.len(), ptr::null_mut()) };
    if message.is_null() {
        return Ok(());
    }
    // SAFETY: a message of this thread.
    Err(unsafe { CStr::from_ptr(message) }.to_str().expect("UTF-8").to_owned())
}

fn described() -> Json {
    // SAFETY: the description lives as long as the process.
    let text = unsafe { CStr::from_ptr(tma_python_describe()) };
    serde_json::from_slice(text.to_bytes()).expect("JSON")
}

#[test]
fn the_description_has_schemas_and_the_module() {
    let json = described();
    assert_eq!(json["interface"], 1);
    assert_eq!(json["mistakes"], serde_json::json!([]));
    let schema = |index: usize| json["operators"][index]["schema"].as_str().expect("a schema").to_owned();
    assert_eq!(schema(0), "scale(Tensor x, float factor) -> Tensor");
    assert_eq!(
        schema(1),
        "scale_(Tensor(a0!) x, *, Tensor? src=None, float factor=2.0, SymInt rows=-1, bool is_active=True, \
         str way=\"all\", ScalarType? like=None) -> ()"
    );
    assert_eq!(schema(2), "panics(Tensor x) -> (Tensor, Tensor)");
    let operator = &json["operators"][0];
    assert_eq!(
        operator["documentation"],
        "Multiplies each element by `factor`.\n\nIts gradient is scaled by the same factor."
    );
    assert_eq!(operator["gradients"][0][0], serde_json::json!(["x"]));
    let file = |name: &str| {
        let mut files = json["module"].as_array().expect("files").iter();
        files.find(|file| file[0] == name).and_then(|file| file[1].as_str()).expect("a text")
    };
    assert!(file("_torch.py").contains("def register(namespace):"));
    assert_eq!(file("py.typed"), "");
}

#[test]
fn stubs_have_the_types_and_defaults_of_arguments() {
    let json = described();
    let stub = |wanted: &str| {
        let mut files = json["module"].as_array().expect("files").iter();
        files.find(|file| file[0] == wanted).and_then(|file| file[1].as_str()).expect("a text").to_owned()
    };
    let module = stub("__init__.pyi");
    for function in [
        "\ndef scale(\n    x: Tensor,\n    factor: float,\n) -> Tensor:\n    \"\"\"Multiplies each element by `factor`.\n\n",
        "\ndef scale_(\n    x: Tensor,\n    *,\n    src: Tensor | None = None,\n    factor: float = 2.0,\n    rows: int = -1,\n    \
         is_active: bool = True,\n    way: str = \"all\",\n    like: torch.dtype | None = None,\n) -> None:\n",
        "\ndef panics(\n    x: Tensor,\n) -> tuple[Tensor, Tensor]:\n    \"\"\"Panics.\"\"\"\n",
    ] {
        assert!(module.contains(function), "{function} is not in {module}");
    }
    let arrays = stub("arrays.pyi");
    let options = |out: &str| format!("    *,\n    out: {out},\n    stream: int | None = None,\n)");
    for function in [
        format!(
            "@overload\ndef panics(\n    x: SupportsDLPack,\n{} -> tuple[Array, Array]:\n",
            options("None = None")
        ),
        format!(
            "@overload\ndef panics(\n    x: SupportsDLPack,\n{} -> tuple[_Out, ...]:\n",
            options("Sequence[_Out]")
        ),
        "    like: object | None = None,\n    out: None = None,\n    stream: int | None = None,\n) -> None:"
            .to_owned(),
    ] {
        assert!(arrays.contains(&function), "{function} is not in {arrays}");
    }
}

#[test]
fn results_are_written_to_the_host() {
    let mut x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let mut y = vec![-1.0; 12];
    // The columns 1 to 5 of rows 1 to 3 of a matrix of 10 × 10.
    let (shape, strides) = ([3, 4], [10, 1]);
    let from = tensor(&mut x[11..], &shape, Some(&strides));
    let to = tensor(&mut y, &shape, None);
    assert_eq!(call(0, &[of(&from), float(2.0), of(&to)]), Ok(()));
    assert_eq!(y, [22.0, 24.0, 26.0, 28.0, 42.0, 44.0, 46.0, 48.0, 62.0, 64.0, 66.0, 68.0]);
}

fn in_place(x: &Tensor, src: Value, way: &CStr) -> Result<(), String> {
    let way = Value { tag: 4, payload: way.as_ptr().expose_provenance() as u64 };
    let (rows, is_active) = (Value { tag: 1, payload: u64::MAX }, Value { tag: 3, payload: 1 });
    call(1, &[of(x), src, float(3.0), rows, is_active, way, NONE])
}

#[test]
fn only_elements_of_written_tensors_change() {
    let mut x: Vec<f32> = (0..30).map(|i| i as f32).collect();
    let (shape, strides) = ([2, 3], [10, 1]);
    let written = tensor(&mut x[12..], &shape, Some(&strides));
    assert_eq!(in_place(&written, NONE, c"all"), Ok(()));
    let wanted = (0..30).map(|i| if [12, 13, 14, 22, 23, 24].contains(&i) { 3 * i } else { i });
    assert!(x.iter().zip(wanted).all(|(found, wanted)| *found == wanted as f32), "{x:?}");

    let mut src = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let from = tensor(&mut src, &shape, None);
    assert_eq!(in_place(&tensor(&mut x[..6], &shape, None), of(&from), c"all"), Ok(()));
    assert_eq!(x[..6], [3.0, 6.0, 9.0, 12.0, 15.0, 18.0]);
}

#[track_caller]
fn refused(result: Result<(), String>, message: &str) {
    assert_eq!(result.err().as_deref(), Some(message));
}

#[test]
fn tma0566_errors_of_arguments_name_the_argument() {
    let (mut x, mut y) = ([0.0; 12], [0.0; 12]);
    let shape = [3, 4];
    let good = tensor(&mut x, &shape, None);
    let to = tensor(&mut y, &shape, None);
    let mut other = tensor(&mut y, &shape, None);
    let to_values = |x: Value| [x, float(2.0), of(&to)];

    refused(call(0, &to_values(float(1.0))), "TMA0566: `x` is a float; pass a tensor");
    refused(call(0, &to_values(NONE)), "TMA0566: `x` is None; pass a tensor");
    refused(call(0, &[of(&good), of(&good), of(&to)]), "TMA0566: `factor` is a tensor; pass a float");
    refused(call(0, &[of(&good), float(2.0)]), "TMA0566: `y` is missing");
    (other.code, other.bits) = (0, 32);
    refused(call(0, &to_values(of(&other))), "TMA0566: `x` has elements of int32; pass float32");
    (other.code, other.bits) = (5, 128);
    refused(
        call(0, &to_values(of(&other))),
        "TMA0566: `x` has elements of type 5 with 128 bits, for which there are no kernels",
    );
    let flat = tensor(&mut [0.0; 4], &shape[1..], None);
    refused(call(0, &to_values(of(&flat))), "TMA0566: `x` has 1 dimensions, not 2; pass one of 2");
    let backwards = tensor(&mut [0.0; 12], &shape, Some(&[-4, 1]));
    refused(call(0, &to_values(of(&backwards))), "TMA0566: `x` has a negative stride; pass a copy of it");
    let mut elsewhere = tensor(&mut [], &shape, None);
    elsewhere.device_type = 2;
    refused(
        call(0, &[of(&good), float(2.0), of(&elsewhere)]),
        "TMA0566: `y` is on cuda:0, but `x` on the CPU; move one of them",
    );
    elsewhere.device_type = 7;
    refused(
        call(0, &to_values(of(&elsewhere))),
        "TMA0566: `x` is on a device of type 7; move it to a GPU or the CPU",
    );
    refused(in_place(&good, NONE, c"some"), "TMA0566: `way` is `some`; pass `all`");
    let expanded = tensor(&mut [0.0; 4], &shape, Some(&[0, 1]));
    refused(
        in_place(&expanded, NONE, c"all"),
        "TMA0566: `x` has elements that share memory; pass a tensor that is not expanded",
    );
}

#[test]
fn errors_of_launches_keep_their_code() {
    let (mut x, mut y) = ([0.0; 4], [0.0; 4]);
    let shape = [2, 2];
    let [x, y] = [&mut x, &mut y].map(|data| tensor(data, &shape, Some(&[1, 2])));
    let result = call(0, &[of(&x), float(2.0), of(&y)]);
    assert!(result.as_ref().is_err_and(|text| text.starts_with("TMA0544: ")), "{result:?}");
}

#[test]
fn tma0567_panics_and_wrong_uses_stay_in_the_library() {
    let (mut x, mut y) = ([0.0; 2], [0.0; 2]);
    let (x, y) = (tensor(&mut x, &[2], None), tensor(&mut y, &[2], None));
    refused(
        call(2, &[of(&x), of(&y), of(&y)]),
        "TMA0567: `panics` panicked: on purpose, with 1 dimensions; please report this",
    );
    refused(call(9, &[]), "TMA0567: there is no operator 9");
    refused(call(2, &[NONE]), "TMA0567: `panics` was called without a tensor");
    // SAFETY: there is no such library.
    let message =
        unsafe { tma_python_register(c"name".as_ptr(), c"/no/libtorch_cpu.so".as_ptr(), ptr::null()) };
    // SAFETY: a message of this thread.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    assert!(text.starts_with("TMA0567: ") && text.contains("/no/libtorch_cpu.so"), "{text}");
}
