//! Calls of operators: on the GPU that has the tensors, or on the simulator with copies of tensors
//! in host memory.

use std::cell::RefCell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use tma_runtime::{Device, DeviceTensor, Stream};

use crate::argument::Base;
use crate::failure::Failure;
use crate::operator::{Allocate, Call, Operator, Values};
use crate::value::{Place, Value};

/// Runs an operator on the values of its arguments, followed by its results.
///
/// # Safety
///
/// Each tensor is memory of its shape and strides, which stays allocated until what the call queues
/// has run. Until then nothing else uses tensors that are written or results, and nothing writes
/// the others. The stream is one of the tensors' GPU, or null for its default stream. `memory`
/// allocates there for what is queued on that stream; without it, the runtime does.
pub(crate) unsafe fn run(
    operator: &Operator,
    values: &[Value<'_>],
    stream: *mut c_void,
    memory: Option<&dyn Allocate>,
) -> Result<(), Failure> {
    let place = place(operator, values)?;
    let work = || match place {
        Place::Cuda(ordinal) => {
            let device = Device::cuda(ordinal)?;
            // SAFETY: as the caller promises.
            let stream = unsafe { Stream::from_raw(&device, stream)? };
            let own = DeviceMemory::of(&stream);
            let call = Call { stream: &stream, memory: memory.unwrap_or(&own) };
            (operator.parts.run)(&Values { values, device: &device }, &call)
        }
        // SAFETY: as the caller promises.
        Place::Host => unsafe { simulated(operator, values) },
    };
    // A panic must not leave Rust. Nothing that it could leave half-changed is used afterwards.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(Failure::library(format_args!(
                "`{}` panicked: {text}; please report this",
                operator.parts.name
            )))
        }
    }
}

/// Memory of a stream's device. Freeing it waits until what is queued has run.
#[derive(Debug)]
struct DeviceMemory<'a> {
    stream: &'a Stream,
    tensors: RefCell<Vec<DeviceTensor<u8, 1>>>,
}

impl<'a> DeviceMemory<'a> {
    fn of(stream: &'a Stream) -> Self {
        Self { stream, tensors: RefCell::default() }
    }
}

impl Allocate for DeviceMemory<'_> {
    fn allocate(&self, bytes: usize) -> Result<u64, Failure> {
        if self.stream.is_capturing()? {
            let why =
                "it needs memory, which a capture of arrays cannot keep; capture the operator of PyTorch";
            return Err(Failure::library(why));
        }
        let tensor = self.stream.device().zeros([bytes])?;
        let address = tensor.as_ptr();
        self.tensors.borrow_mut().push(tensor);
        Ok(address)
    }
}

/// Returns the memory that has all tensors.
fn place(operator: &Operator, values: &[Value<'_>]) -> Result<Place, Failure> {
    let names = operator.parts.arguments.iter().chain(operator.parts.results).map(|field| field.name);
    let mut first = None;
    for (name, value) in names.zip(values) {
        let Value::Tensor(tensor) = value else { continue };
        let (of_first, place) = *first.get_or_insert((name, tensor.place));
        if place != tensor.place {
            let [found, wanted] = [tensor.place, place].map(named);
            return Err(Failure::argument(
                name,
                format_args!("is on {found}, but `{of_first}` on {wanted}; move one of them"),
            ));
        }
    }
    let none = || Failure::library(format_args!("`{}` was called without a tensor", operator.parts.name));
    first.map(|(_, place)| place).ok_or_else(none)
}

fn named(place: Place) -> String {
    match place {
        Place::Host => "the CPU".to_owned(),
        Place::Cuda(ordinal) => format!("cuda:{ordinal}"),
    }
}

#[cfg(feature = "ptx-sim")]
fn simulator() -> Result<Device, Failure> {
    use std::sync::OnceLock;
    static SIMULATOR: OnceLock<Device> = OnceLock::new();
    Ok(SIMULATOR.get_or_init(Device::simulator).clone())
}

#[cfg(not(feature = "ptx-sim"))]
fn simulator() -> Result<Device, Failure> {
    Err(tma_runtime::Error::NoSimulator.into())
}

/// The simulator encodes and rejects addresses like a GPU, so copies keep the alignment that their
/// originals have, up to this many bytes.
const ALIGNMENT: u64 = 128;

/// Runs an operator on the simulator: copies the tensors to it, and what was written back.
///
/// # Safety
///
/// As [`run`], with tensors in host memory.
unsafe fn simulated(operator: &Operator, values: &[Value<'_>]) -> Result<(), Failure> {
    let device = simulator()?;
    // SAFETY: null is the default stream.
    let stream = unsafe { Stream::from_raw(&device, ptr::null_mut())? };
    let fields = operator.parts.arguments.iter().chain(operator.parts.results);
    let mut copies = vec![];
    let mut moved = values.to_vec();
    for (field, value) in fields.zip(&mut moved) {
        let Value::Tensor(tensor) = value else { continue };
        let negative = || Failure::argument(field.name, "has a negative stride; pass a copy of it");
        let bytes = tensor.reach().ok_or_else(negative)?.saturating_mul(u64::from(tensor.element.bytes()));
        if bytes == 0 {
            continue;
        }
        let length = usize::try_from(bytes)?;
        let original = tensor.data;
        let shift = (original % ALIGNMENT) as usize;
        // SAFETY: the tensor's elements are in this memory, as the caller promises.
        let elements = unsafe { slice::from_raw_parts(address(original).cast_const(), length) };
        let mut padded = vec![0; shift];
        padded.extend_from_slice(elements);
        let copy = device.tensor(&padded, [padded.len()])?;
        tensor.data = copy.as_ptr() + shift as u64;
        copies.push((field.kind.base == Base::TensorMut, original, shift, *tensor, copy));
    }
    let memory = DeviceMemory::of(&stream);
    let call = Call { stream: &stream, memory: &memory };
    (operator.parts.run)(&Values { values: &moved, device: &device }, &call)?;
    for (is_written, original, shift, tensor, copy) in copies {
        if is_written {
            let bytes = copy.to_vec()?;
            let extents: Vec<_> = tensor.shape.iter().copied().zip(tensor.strides.iter().copied()).collect();
            let size = tensor.element.bytes() as usize;
            // SAFETY: each element is in both memories, as the caller promises.
            let copy_back = |index: i64| unsafe {
                let at = index as usize * size;
                ptr::copy_nonoverlapping(bytes.as_ptr().add(shift + at), address(original).add(at), size);
            };
            each_element(&extents, 0, &copy_back);
        }
    }
    Ok(())
}

/// Returns the pointer of an address that another library passed.
fn address(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Calls `visit` with the distance of each element from the first one.
fn each_element(extents: &[(i64, i64)], start: i64, visit: &impl Fn(i64)) {
    match extents.split_first() {
        None => visit(start),
        Some((&(extent, stride), inner)) => {
            for index in 0..extent {
                each_element(inner, start + index * stride, visit);
            }
        }
    }
}
