//! The C interface of a library: its description, calls with DLPack's tensors, and registration
//! with PyTorch. Each function returns null, or a message that ends in NUL.
//!
//! `python/_library.py` declares the same functions and structs.

mod describe;
mod dlpack;
mod torch;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;
use std::{ptr, slice};

use tma_runtime::{Device, DeviceTensor, Stream};

use crate::argument::Base;
use crate::call;
use crate::element;
use crate::failure::Failure;
use crate::operator::Operator;
use crate::value::Value;

use dlpack::DlTensor;
pub use torch::boxed;

/// A function that PyTorch calls: with values on a stack, which results replace.
pub type Boxed = unsafe extern "C-unwind" fn(*mut u64, u64, u64);

/// The version of the interface between library and Python module.
const INTERFACE: u32 = 1;

/// The operators of a C library, which [`library!`](crate::library) makes.
#[derive(Debug)]
pub struct Library {
    /// Name and version of the package.
    pub package: [&'static str; 2],
    /// The operators.
    pub operators: fn() -> Vec<&'static Operator>,
    description: OnceLock<CString>,
}

impl Library {
    /// Makes a library of a package with a name and a version.
    pub const fn new(package: [&'static str; 2], operators: fn() -> Vec<&'static Operator>) -> Self {
        Self { package, operators, description: OnceLock::new() }
    }

    /// Returns the description of the library, as JSON.
    pub fn describe(&self) -> *const c_char {
        let description = self.description.get_or_init(|| {
            CString::new(describe::json(self.package, &(self.operators)())).unwrap_or_default()
        });
        description.as_ptr()
    }

    /// Calls the operator with this index.
    ///
    /// # Safety
    ///
    /// `values` are the values of the operator's arguments and results, `count` in number. Texts
    /// and tensors are valid, and as [`call::run`] requires; the stream is one of the tensors' GPU.
    pub unsafe fn call(
        &self,
        index: usize,
        values: *const CValue,
        count: usize,
        stream: *mut c_void,
    ) -> *const c_char {
        reported(|| {
            let operators = (self.operators)();
            let none = || Failure::library(format_args!("there is no operator {index}"));
            let operator = operators.get(index).ok_or_else(none)?;
            let fields = operator.parts.arguments.iter().chain(operator.parts.results);
            // SAFETY: as the caller promises.
            let values = unsafe { slice::from_raw_parts(values, count) };
            let strides: Vec<_> = values.iter().map(CValue::compact_strides).collect();
            let read = fields.zip(values).zip(&strides).map(|((field, value), strides)| {
                // SAFETY: as the caller promises.
                unsafe { value.read(strides) }.map_err(|why| Failure::argument(field.name, why))
            });
            let values: Vec<_> = read.collect::<Result<_, _>>()?;
            // SAFETY: as the caller promises.
            unsafe { call::run(operator, &values, stream, None) }
        })
    }

    /// Registers the operators with PyTorch, for tensors on the CPU and on GPUs. Their schemas are
    /// defined by the Python module.
    ///
    /// # Safety
    ///
    /// The arguments are the namespace of the operators, and the paths of PyTorch's libraries that
    /// this process has loaded: `libtorch_cpu.so`, and `libtorch_cuda.so` or null.
    pub unsafe fn register(
        &self,
        namespace: *const c_char,
        cpu: *const c_char,
        cuda: *const c_char,
    ) -> *const c_char {
        reported(|| {
            // SAFETY: as the caller promises.
            unsafe {
                let text = |text: *const c_char| CStr::from_ptr(text).to_str();
                let cuda = if cuda.is_null() { None } else { Some(text(cuda)?) };
                torch::register(CStr::from_ptr(namespace), text(cpu)?, cuda, &(self.operators)())
            }
        })
    }
}

/// A value of an argument in C: `tag` says which it is.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CValue {
    /// 0 for `None`, 1 `int`, 2 `float`, 3 `bool`, 4 text, 5 element type, 6 tensor.
    tag: u64,
    /// The number, the bits of the float, the address of a text that ends in NUL, DLPack's code and
    /// bits as two bytes, or the address of a `DLTensor`.
    payload: u64,
}

impl CValue {
    /// Returns the strides of a tensor that has none, because it is in row-major order.
    fn compact_strides(&self) -> Vec<i64> {
        // SAFETY: as `Library::call` requires.
        if self.tag == 6 { unsafe { (*self.pointer::<DlTensor>()).compact_strides() } } else { vec![] }
    }

    fn pointer<T>(&self) -> *const T {
        ptr::with_exposed_provenance(self.payload as usize)
    }

    /// # Safety
    ///
    /// Texts and tensors are valid for `'a`.
    unsafe fn read<'a>(&self, strides: &'a [i64]) -> Result<Value<'a>, String> {
        let payload = self.payload;
        Ok(match self.tag {
            0 => Value::None,
            1 => Value::Int(payload.cast_signed()),
            2 => Value::Float(f64::from_bits(payload)),
            3 => Value::Bool(payload != 0),
            // SAFETY: as the caller promises.
            4 => match unsafe { CStr::from_ptr(self.pointer()) }.to_str() {
                Ok(text) => Value::Text(text),
                Err(_) => return Err("is no UTF-8; pass other text".to_owned()),
            },
            5 => {
                let [code, bits, ..] = payload.to_le_bytes();
                Value::Element(element::of_dlpack(code, bits).ok_or("is an element type without kernels")?)
            }
            // SAFETY: as the caller promises.
            6 => Value::Tensor(unsafe { (*self.pointer::<DlTensor>()).read(strides)? }),
            tag => return Err(format!("has the unknown tag {tag}")),
        })
    }
}

/// Memory on a GPU, for results of calls without PyTorch.
#[derive(Debug)]
pub struct Memory(DeviceTensor<u8, 1>);

/// Allocates memory on a GPU, and stores its owner and its address.
///
/// # Safety
///
/// `owner` and `address` point to room for an address each.
pub unsafe fn allocate(gpu: u32, bytes: usize, owner: *mut *mut Memory, address: *mut u64) -> *const c_char {
    reported(|| {
        let memory = Memory(Device::cuda(gpu)?.zeros([bytes])?);
        // SAFETY: as the caller promises.
        unsafe {
            *address = memory.0.as_ptr();
            *owner = Box::into_raw(Box::new(memory));
        }
        Ok(())
    })
}

/// Frees memory, once everything that is queued has run.
///
/// # Safety
///
/// The memory is one that [`allocate`] made, and nobody uses it.
pub unsafe fn free(memory: *mut Memory) {
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(memory) });
}

/// Waits until everything queued on a stream of a GPU has run.
///
/// # Safety
///
/// The stream is one of the GPU, or null.
pub unsafe fn synchronize(gpu: u32, stream: *mut c_void) -> *const c_char {
    reported(|| {
        let device = Device::cuda(gpu)?;
        // SAFETY: as the caller promises.
        Ok(unsafe { Stream::from_raw(&device, stream)? }.synchronize()?)
    })
}

/// Returns null, or the message of a failure, which is valid until the thread's next call.
fn reported(work: impl FnOnce() -> Result<(), Failure>) -> *const c_char {
    thread_local! {
        static MESSAGE: RefCell<CString> = RefCell::default();
    }
    let Err(failure) = work() else { return ptr::null() };
    let text = failure.to_string().replace('\0', " ");
    MESSAGE.with_borrow_mut(|message| {
        *message = CString::new(text).unwrap_or_default();
        message.as_ptr()
    })
}

/// Returns whether the value of a kind owns something that PyTorch has allocated.
fn is_tensor(base: Base) -> bool {
    matches!(base, Base::Tensor | Base::TensorMut)
}

/// Makes the C library of a package: `library!(Scale, Head)` with the structs that
/// [`operator!`](crate::operator) declares.
#[macro_export]
macro_rules! library {
    ($($Operator:ident),+ $(,)?) => {
        /// The C interface that the Python module calls.
        mod tma_python_interface {
            use std::ffi::{c_char, c_void};

            static LIBRARY: $crate::Library = $crate::Library::new(
                [env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")],
                || vec![$(<super::$Operator<'static> as $crate::Declared>::operator()),+],
            );

            #[unsafe(no_mangle)]
            extern "C" fn tma_python_describe() -> *const c_char {
                LIBRARY.describe()
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn tma_python_call(
                index: usize,
                values: *const $crate::CValue,
                count: usize,
                stream: *mut c_void,
            ) -> *const c_char {
                // SAFETY: as the caller promises.
                unsafe { LIBRARY.call(index, values, count, stream) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn tma_python_register(
                namespace: *const c_char,
                cpu: *const c_char,
                cuda: *const c_char,
            ) -> *const c_char {
                // SAFETY: as the caller promises.
                unsafe { LIBRARY.register(namespace, cpu, cuda) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn tma_python_allocate(
                gpu: u32,
                bytes: usize,
                owner: *mut *mut $crate::Memory,
                address: *mut u64,
            ) -> *const c_char {
                // SAFETY: as the caller promises.
                unsafe { $crate::allocate(gpu, bytes, owner, address) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn tma_python_free(memory: *mut $crate::Memory) {
                // SAFETY: as the caller promises.
                unsafe { $crate::free(memory) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn tma_python_synchronize(gpu: u32, stream: *mut c_void) -> *const c_char {
                // SAFETY: as the caller promises.
                unsafe { $crate::synchronize(gpu, stream) }
            }
        }
    };
}
