//! Exchange of driver objects with cust.

use super::context::Context;
use super::driver::{Driver, Function, Status};
use super::kernel::{opt_in, refusal};
use super::stream::{Handle, Stream};
use crate::error::{Error, ForeignError};
use crate::layout::DeviceId;
use crate::spec::KernelSpec;
use cust::error::{CudaError, CudaResult};
use cust::module::{Module, ModuleJitOption};
use cust::stream::StreamFlags;
use std::ffi::{CString, c_uint, c_void};

/// A cust stream, which cust destroys.
#[derive(Debug)]
pub(super) struct OwnedStream(cust::stream::Stream);

impl OwnedStream {
    /// Creates a stream in the current context.
    pub(super) fn new(_driver: &'static Driver, flags: c_uint) -> Result<Self, Status> {
        let stream = cust::stream::Stream::new(StreamFlags::from_bits_truncate(flags), None);
        stream.map(Self).map_err(|error| error as Status)
    }

    pub(super) fn raw(&self) -> *mut c_void {
        self.0.as_inner().cast()
    }
}

impl Context {
    /// Returns a cust reference to the GPU's primary context, which becomes current.
    pub(crate) fn to_cust(&self) -> Result<cust::context::Context, Error> {
        let DeviceId::Cuda(ordinal) = self.id() else {
            return Err(ForeignError::NotPrimary { device: self.id() }.into());
        };
        let context = cust::device::Device::get_device(ordinal).and_then(cust::context::Context::new);
        self.checked("open the device's context", context)
    }

    /// Loads a kernel's PTX in this context, with line information.
    pub(crate) fn cust_module(&self, spec: &'static KernelSpec) -> Result<Module, Error> {
        self.properties().accept(spec)?;
        let missing = || Error::NoEntry { kernel: spec.name, entry: spec.entry };
        let text = CString::new(spec.ptx).map_err(|_| missing())?;
        // cust panics on a name with a NUL byte.
        if spec.entry.contains('\0') {
            return Err(missing());
        }
        let _current = self.make_current()?;
        let refused = |error| refusal(self.driver, spec, &text, error as Status);
        let options = [ModuleJitOption::GenerateLineInfo(true)];
        let module = Module::from_ptx_cstr(&text, &options).map_err(refused)?;
        // A lazily loading driver may compile only now.
        let function = module.get_function(spec.entry).map_err(|error| match error {
            CudaError::NotFound => missing(),
            error => refused(error),
        })?;
        opt_in(self.driver, Function(function.to_raw().cast()), spec)?;
        Ok(module)
    }

    /// Waits for streams of other libraries, for which cust does not wait when it frees memory.
    pub(crate) fn wait_for_non_blocking(&self) -> Result<(), Error> {
        let _current = self.make_current()?;
        let waited = self.non_blocking.synchronize(self.driver);
        waited.map_err(|code| self.failure("synchronise streams of other libraries", code))
    }

    /// Converts the result of a call to cust.
    fn checked<T>(&self, operation: &'static str, result: CudaResult<T>) -> Result<T, Error> {
        result.map_err(|error| self.failure(operation, error as Status))
    }
}

impl Stream {
    /// Takes over a cust stream. It waits for the default stream by itself: cust makes no other
    /// streams.
    pub(crate) fn of_cust(context: &'static Context, stream: cust::stream::Stream) -> Result<Self, Error> {
        let _current = context.make_current()?;
        // SAFETY: the stream is alive until it is dropped.
        unsafe { context.accept(stream.as_inner().cast())? };
        Ok(Self { context, handle: Handle::Own(OwnedStream(stream)) })
    }

    /// Returns the stream as a cust stream, or `None` if another library made it.
    pub(crate) fn as_cust(&self) -> Option<&cust::stream::Stream> {
        match &self.handle {
            Handle::Own(stream) => Some(&stream.0),
            Handle::Waits(_) | Handle::NonBlocking(_) => None,
        }
    }
}
