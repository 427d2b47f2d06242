//! PyTorch's stable C interface: calls of operators without Python in between.
//!
//! The library links nothing of PyTorch. It looks these functions up in the library that Python has
//! loaded, so one build works with every version from 2.10 on.
//! Source: PyTorch, `torch/csrc/inductor/aoti_torch/c/shim.h` and `torch/csrc/stable/c/shim.h`.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt::Display;
use std::sync::OnceLock;
use std::{ptr, slice};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use tma_runtime::spec::Scalar;

use super::is_tensor;
use crate::argument::{Base, Kind};
use crate::call;
use crate::element;
use crate::failure::Failure;
use crate::operator::{Allocate, Declared, Operator, Parts};
use crate::value::{Place, RawTensor, Value, row_major};

/// `AtenTensorHandle`: an owned reference to a tensor.
type Handle = *mut c_void;
/// `AOTITorchError`: 0 for success.
type Status = i32;

/// The version of the interface that this file uses: PyTorch 2.10.
const VERSION: u64 = (2 << 56) | (10 << 48);
/// `c10::DeviceType`.
const CPU: i32 = 0;
const CUDA: i32 = 1;
/// The size of a `std::runtime_error`, which is a reference to its text after the table of virtual
/// functions.
const RUNTIME_ERROR_BYTES: usize = 16;

macro_rules! shims {
    ($($(#[$attribute:meta])* $field:ident = $name:literal ($($argument:ty),*) $(-> $result:ty)?;)+) => {
        /// Functions of PyTorch and of the C++ library that it uses.
        #[derive(Debug)]
        struct Shims {
            $($(#[$attribute])* $field: unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?,)+
            /// `typeid(std::runtime_error)`.
            runtime_error: *const c_void,
            /// Returns the current stream of a GPU, if this is a build for GPUs.
            current_stream: Option<unsafe extern "C-unwind" fn(i32, *mut *mut c_void) -> Status>,
            /// Frees the value of an optional argument, in PyTorch 2.13 and later.
            delete_value: Option<unsafe extern "C-unwind" fn(*mut u64) -> Status>,
        }

        impl Shims {
            /// # Safety
            ///
            /// The libraries are those of PyTorch that this process uses.
            unsafe fn find(cpu: &Library, cuda: Option<&Library>) -> Result<Self, libloading::Error> {
                // SAFETY: the functions have these types in all versions that have them.
                unsafe {
                    let stream = |library: &Library| {
                        library.get(b"aoti_torch_get_current_cuda_stream").map(|symbol| *symbol)
                    };
                    Ok(Self {
                        $($field: *cpu.get($name)?,)+
                        runtime_error: *cpu.get(b"_ZTISt13runtime_error")?,
                        current_stream: cuda.map(stream).transpose()?,
                        delete_value: cpu.get(b"torch_delete_stable_ivalue").map(|symbol| *symbol).ok(),
                    })
                }
            }
        }
    };
}

shims! {
    library_init = b"aoti_torch_library_init_impl" (*const c_char, *const c_char, *const c_char, u32, *mut *mut c_void) -> Status;
    library_impl = b"torch_library_impl" (*mut c_void, *const c_char, super::Boxed, u64) -> Status;
    data = b"aoti_torch_get_data_ptr" (Handle, *mut *mut c_void) -> Status;
    rank = b"aoti_torch_get_dim" (Handle, *mut i64) -> Status;
    sizes = b"aoti_torch_get_sizes" (Handle, *mut *const i64) -> Status;
    strides = b"aoti_torch_get_strides" (Handle, *mut *const i64) -> Status;
    element = b"aoti_torch_get_dtype" (Handle, *mut i32) -> Status;
    device_type = b"aoti_torch_get_device_type" (Handle, *mut i32) -> Status;
    device_index = b"aoti_torch_get_device_index" (Handle, *mut i32) -> Status;
    delete = b"aoti_torch_delete_tensor_object" (Handle) -> Status;
    empty = b"aoti_torch_empty_strided" (i64, *const i64, *const i64, i32, i32, i32, *mut Handle) -> Status;
    text = b"torch_string_c_str" (*mut c_void, *mut *const c_char) -> Status;
    text_length = b"torch_string_length" (*mut c_void, *mut usize) -> Status;
    delete_text = b"torch_delete_string" (*mut c_void) -> Status;
    /// Frees memory of C++: `operator delete`.
    delete_plain = b"_ZdlPv" (*mut c_void);
    allocate_exception = b"__cxa_allocate_exception" (usize) -> *mut c_void;
    /// Makes a `std::runtime_error` of a text, which it copies.
    make_runtime_error = b"_ZNSt13runtime_errorC1EPKc" (*mut c_void, *const c_char);
    delete_runtime_error = b"_ZNSt13runtime_errorD1Ev" (*mut c_void);
    throw = b"__cxa_throw" (*mut c_void, *const c_void, unsafe extern "C-unwind" fn(*mut c_void)) -> !;
}

// SAFETY: `runtime_error` is the address of constant data.
unsafe impl Send for Shims {}
// SAFETY: as above.
unsafe impl Sync for Shims {}

static SHIMS: OnceLock<Shims> = OnceLock::new();

/// Registers the operators for tensors on the CPU, and on GPUs if PyTorch supports them.
///
/// # Safety
///
/// The paths are those of PyTorch's libraries in this process.
pub(super) unsafe fn register(
    namespace: &CStr,
    cpu: &str,
    cuda: Option<&str>,
    operators: &[&'static Operator],
) -> Result<(), Failure> {
    if SHIMS.get().is_none() {
        // SAFETY: the process has loaded these libraries already.
        let open = |path: &str| unsafe {
            Library::open(Some(path), RTLD_NOW | RTLD_LOCAL)
                .map_err(|error| Failure::library(format_args!("cannot open {path}: {error}")))
        };
        let (cpu, cuda) = (open(cpu)?, cuda.map(open).transpose()?);
        // SAFETY: as the caller promises.
        let shims = unsafe { Shims::find(&cpu, cuda.as_ref()) };
        let old = |error| {
            Failure::library(format_args!("this PyTorch is older than 2.10 ({error}); install a newer one"))
        };
        // Python never unloads PyTorch, so the functions stay where they are.
        std::mem::forget((cpu, cuda));
        let _another_thread_was_first = SHIMS.set(shims.map_err(old)?);
    }
    let shims = shims()?;
    let keys: &[&CStr] = if shims.current_stream.is_some() { &[c"CPU", c"CUDA"] } else { &[c"CPU"] };
    for key in keys {
        let mut library = ptr::null_mut();
        // SAFETY: all texts end in NUL; the registration lives as long as the process.
        unsafe {
            let file = c"tma-python".as_ptr();
            let status = (shims.library_init)(namespace.as_ptr(), key.as_ptr(), file, 0, &mut library);
            checked(status, "register a library")?;
            for (name, operator) in operators.iter().flat_map(|operator| overloads(operator)) {
                let (name, boxed) = (CString::new(name)?, operator.parts.boxed);
                let status = (shims.library_impl)(library, name.as_ptr(), boxed, VERSION);
                checked(status, "register an operator")?;
            }
        }
    }
    Ok(())
}

/// Returns the overloads of an operator by name. One with gradients has a second overload, to which
/// the Python module adds none.
fn overloads(operator: &'static Operator) -> Vec<(String, &'static Operator)> {
    let Parts { name, gradients, .. } = operator.parts;
    let native = (!gradients.is_empty()).then(|| format!("{name}.no_grad"));
    [Some(name.to_owned()), native].into_iter().flatten().map(|name| (name, operator)).collect()
}

fn shims() -> Result<&'static Shims, Failure> {
    SHIMS.get().ok_or_else(|| Failure::library("the operators are not registered with PyTorch"))
}

fn checked(status: Status, what: impl Display) -> Result<(), Failure> {
    if status == 0 { Ok(()) } else { Err(Failure::library(format_args!("PyTorch could not {what}"))) }
}

/// Runs an operator for PyTorch: takes its arguments from the stack, and puts its results there. A
/// failure is thrown as a C++ exception, which PyTorch turns into a `RuntimeError` of Python.
///
/// # Safety
///
/// PyTorch calls it, for a schema that [`Operator::schema`] made.
pub unsafe extern "C-unwind" fn boxed<O: Declared>(stack: *mut u64, arguments: u64, results: u64) {
    let operator = O::operator();
    let text = {
        // SAFETY: as the caller promises. A call has at least one value.
        let values = unsafe { slice::from_raw_parts_mut(stack, arguments.max(results) as usize) };
        match call_boxed(operator, values) {
            Ok(()) => return,
            Err(failure) => CString::new(failure.to_string().replace('\0', " ")).unwrap_or_default(),
        }
    };
    // Without the functions PyTorch could not have called this one.
    if let Some(shims) = SHIMS.get() {
        // SAFETY: PyTorch calls kernels from C++, which handles exceptions, and this frame lets
        // them pass.
        unsafe { raise(shims, text) }
    }
}

/// Throws a `std::runtime_error` with a text. The caller has nothing left to drop.
///
/// # Safety
///
/// All frames up to PyTorch's let exceptions pass.
unsafe fn raise(shims: &Shims, text: CString) -> ! {
    // SAFETY: this is what `throw std::runtime_error(text)` compiles to (Itanium C++ ABI, 2.4).
    unsafe {
        let exception = (shims.allocate_exception)(RUNTIME_ERROR_BYTES);
        (shims.make_runtime_error)(exception, text.as_ptr());
        drop(text);
        (shims.throw)(exception, shims.runtime_error, shims.delete_runtime_error)
    }
}

/// Values that PyTorch has passed, which their receiver frees.
#[derive(Debug, Default)]
struct Owned {
    tensors: Vec<Handle>,
    texts: Vec<*mut c_void>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        let Some(shims) = SHIMS.get() else { return };
        // SAFETY: each is owned, and used no more.
        unsafe {
            self.tensors.iter().for_each(|tensor| _ = (shims.delete)(*tensor));
            self.texts.iter().for_each(|text| _ = (shims.delete_text)(*text));
        }
    }
}

/// Tensors of PyTorch that last as long as a call. PyTorch reuses their memory for what is queued
/// later in the same stream.
#[derive(Debug)]
struct Temporary {
    shims: &'static Shims,
    place: Place,
    owned: RefCell<Owned>,
}

impl Allocate for Temporary {
    fn allocate(&self, bytes: usize) -> Result<u64, Failure> {
        let handle = empty(self.shims, &[i64::try_from(bytes)?], Scalar::I8, self.place)?;
        self.owned.borrow_mut().tensors.push(handle);
        let mut address = ptr::null_mut();
        // SAFETY: the tensor was just made.
        checked(unsafe { (self.shims.data)(handle, &mut address) }, "tell an address")?;
        Ok(address.expose_provenance() as u64)
    }
}

fn call_boxed(operator: &'static Operator, stack: &mut [u64]) -> Result<(), Failure> {
    let shims = shims()?;
    let mut owned = Owned::default();
    // First everything gets an owner, so that a failure frees it all.
    let mut present = Vec::with_capacity(operator.parts.arguments.len());
    for (field, word) in operator.parts.arguments.iter().zip(&*stack) {
        // SAFETY: the schema has this kind.
        let word = unsafe { unwrapped(shims, field.kind, *word) };
        if let Some(word) = word {
            let pointer = ptr::with_exposed_provenance_mut(word as usize);
            if is_tensor(field.kind.base) {
                owned.tensors.push(pointer);
            } else if field.kind.base == Base::Text {
                owned.texts.push(pointer);
            }
        }
        present.push(word);
    }
    let mut values = Vec::with_capacity(present.len() + operator.parts.results.len());
    for (field, word) in operator.parts.arguments.iter().zip(present) {
        // SAFETY: as above; `owned` keeps what the value refers to.
        let value = word.map(|word| unsafe { read(shims, field.kind.base, word) });
        values.push(
            value.transpose().map_err(|why| Failure::argument(field.name, why))?.unwrap_or(Value::None),
        );
    }
    let place = values
        .iter()
        .find_map(|value| if let Value::Tensor(tensor) = value { Some(tensor.place) } else { None });
    let place = place.unwrap_or(Place::Host);
    let made = operator.results(&values)?;
    let mut results = Owned::default();
    for (shape, element) in made {
        let result = empty(shims, &shape, element, place)?;
        results.tensors.push(result);
        // SAFETY: the tensor was just made.
        values.push(unsafe { tensor(shims, result) }.map_err(Failure::library)?);
    }
    let stream = current_stream(shims, place)?;
    let memory = Temporary { shims, place, owned: RefCell::default() };
    let on_gpu = matches!(place, Place::Cuda(_)).then_some(&memory as &dyn Allocate);
    // SAFETY: PyTorch keeps the memory of tensors until what is queued in the current stream has
    // run, and orders what it does with them in that stream.
    unsafe { call::run(operator, &values, stream, on_gpu)? };
    drop(values);
    // The results belong to PyTorch now.
    for (word, result) in stack.iter_mut().zip(std::mem::take(&mut results.tensors)) {
        *word = result.expose_provenance() as u64;
    }
    Ok(())
}

/// Returns the word of a value without its option.
///
/// # Safety
///
/// The word is one of this kind.
unsafe fn unwrapped(shims: &Shims, kind: Kind, word: u64) -> Option<u64> {
    if !kind.is_optional {
        return Some(word);
    }
    let inner: *mut u64 = ptr::with_exposed_provenance_mut(word as usize);
    if inner.is_null() {
        return None;
    }
    // SAFETY: an optional value that is there is the address of a word that C++ allocated.
    unsafe {
        let word = *inner;
        match shims.delete_value {
            Some(delete) => _ = delete(inner),
            None => (shims.delete_plain)(inner.cast()),
        }
        Some(word)
    }
}

/// Reads a value.
///
/// # Safety
///
/// The word is one of this kind. What it refers to is alive for `'a`.
unsafe fn read<'a>(shims: &Shims, base: Base, word: u64) -> Result<Value<'a>, String> {
    Ok(match base {
        // SAFETY: as the caller promises.
        Base::Tensor | Base::TensorMut => unsafe {
            tensor(shims, ptr::with_exposed_provenance_mut(word as usize))?
        },
        Base::Float => Value::Float(f64::from_bits(word)),
        Base::Int => Value::Int(word.cast_signed()),
        Base::Bool => Value::Bool(word & 0xff != 0),
        Base::Element => {
            let number = word as u32;
            let scalar = element::of_torch(number.cast_signed());
            Value::Element(
                scalar.ok_or_else(|| {
                    format!("is the dtype {number} of PyTorch, for which there are no kernels")
                })?,
            )
        }
        // SAFETY: as the caller promises.
        Base::Text => unsafe {
            let handle = ptr::with_exposed_provenance_mut(word as usize);
            let (mut text, mut length) = (ptr::null(), 0);
            let failed = (shims.text)(handle, &mut text) | (shims.text_length)(handle, &mut length);
            if failed != 0 || text.is_null() {
                return Err("cannot be read".to_owned());
            }
            let bytes = slice::from_raw_parts(text.cast(), length);
            Value::Text(str::from_utf8(bytes).map_err(|_| "is no UTF-8; pass other text".to_owned())?)
        },
    })
}

/// Reads a tensor.
///
/// # Safety
///
/// The handle is alive for `'a`.
unsafe fn tensor<'a>(shims: &Shims, handle: Handle) -> Result<Value<'a>, String> {
    let (mut data, mut rank, mut number) = (ptr::null_mut(), 0, 0);
    let (mut sizes, mut strides) = (ptr::null(), ptr::null());
    let (mut device, mut index) = (0, 0);
    // SAFETY: as the caller promises; each call writes one value.
    let failed = unsafe {
        (shims.data)(handle, &mut data)
            | (shims.rank)(handle, &mut rank)
            | (shims.sizes)(handle, &mut sizes)
            | (shims.strides)(handle, &mut strides)
            | (shims.element)(handle, &mut number)
            | (shims.device_type)(handle, &mut device)
            | (shims.device_index)(handle, &mut index)
    };
    if failed != 0 {
        return Err("is a tensor without strides, such as a sparse one; pass a dense one".to_owned());
    }
    let element = element::of_torch(number);
    let element = element
        .ok_or_else(|| format!("has the dtype {number} of PyTorch, for which there are no kernels"))?;
    let place = match device {
        CPU => Place::Host,
        CUDA => Place::Cuda(u32::try_from(index).map_err(|_| "is on no GPU")?),
        _ => return Err("is on a device that is neither the CPU nor a GPU".to_owned()),
    };
    let rank = usize::try_from(rank).unwrap_or(0);
    // SAFETY: the tensor has `rank` extents and strides, which live as long as it does.
    let numbers =
        |at: *const i64| unsafe { if rank == 0 { &[][..] } else { slice::from_raw_parts(at, rank) } };
    let data = data.expose_provenance() as u64;
    Ok(Value::Tensor(RawTensor { data, element, place, shape: numbers(sizes), strides: numbers(strides) }))
}

/// Allocates a tensor in row-major order.
fn empty(shims: &Shims, shape: &[i64], element: Scalar, place: Place) -> Result<Handle, Failure> {
    let (device, index) = match place {
        Place::Host => (CPU, 0),
        Place::Cuda(ordinal) => (CUDA, i32::try_from(ordinal)?),
    };
    let number =
        element::to_torch(element).ok_or_else(|| Failure::library("a result has no dtype of PyTorch"))?;
    let (strides, mut tensor) = (row_major(shape), ptr::null_mut());
    // SAFETY: shape and strides have as many numbers as the tensor has dimensions.
    let status = unsafe {
        let (sizes, strides) = (shape.as_ptr(), strides.as_ptr());
        (shims.empty)(shape.len() as i64, sizes, strides, number, device, index, &mut tensor)
    };
    checked(status, format_args!("allocate a result of shape {shape:?}"))?;
    Ok(tensor)
}

/// Returns PyTorch's current stream of a GPU.
fn current_stream(shims: &Shims, place: Place) -> Result<*mut c_void, Failure> {
    let (Place::Cuda(ordinal), Some(current)) = (place, shims.current_stream) else {
        return Ok(ptr::null_mut());
    };
    let mut stream = ptr::null_mut();
    // SAFETY: the function writes one address.
    checked(unsafe { current(i32::try_from(ordinal)?, &mut stream) }, "tell its current stream")?;
    Ok(stream)
}
