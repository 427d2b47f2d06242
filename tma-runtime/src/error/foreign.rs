//! Rules for streams, contexts and addresses that other libraries made.

use crate::layout::DeviceId;
use crate::spec::Scalar;

/// The reason why an object of another library cannot be used. Displays the rule;
/// [`Error`](super::Error) adds the code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignError {
    /// A stream or an allocation belongs to another context of the GPU.
    #[error(
        "contexts do not share memory or order: {what} belongs to another context than the device, \
         {device}; open the device with that context, using `Device::from_context`"
    )]
    Context {
        /// `the stream` or `the memory`.
        what: &'static str,
        /// The device.
        device: DeviceId,
    },

    /// An address that the driver has not allocated.
    #[error(
        "the device cannot access this address: {address:#x} is not memory of {device}; pass the address \
         of live memory that CUDA allocated, not of host memory"
    )]
    Memory {
        /// The address.
        address: u64,
        /// The device.
        device: DeviceId,
    },

    /// An address that is misaligned for the element type.
    #[error(
        "the address of an `{element}` must be a multiple of {}: {address:#x} is not; pass the address of \
         the first element", .element.bytes()
    )]
    Misaligned {
        /// The address.
        address: u64,
        /// The element type.
        element: Scalar,
    },

    /// A stream that is not null, for a simulated device.
    #[error(
        "a simulated device has only its own streams: {device} accepts only a null handle; use streams of \
         other libraries on GPUs only"
    )]
    Simulated {
        /// The device.
        device: DeviceId,
    },

    /// A device that cannot be shared with cust.
    #[error(
        "cust uses only the primary contexts of GPUs: {device} is not one; open the GPU with `Device::cuda`"
    )]
    NotPrimary {
        /// The device.
        device: DeviceId,
    },

    /// A tensor whose memory cannot be handed over.
    #[error(
        "cannot hand over memory that others use: that of a tensor on {device} also belongs to a graph or \
         to prepared launches; drop these first"
    )]
    Shared {
        /// The device.
        device: DeviceId,
    },

    /// A tensor whose memory another library frees.
    #[error(
        "cannot hand over memory that another library frees: a tensor on {device} was made from an \
         address; pass the address itself"
    )]
    Borrowed {
        /// The device.
        device: DeviceId,
    },
}
