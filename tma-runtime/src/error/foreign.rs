//! Rules for what other libraries made: streams, contexts and addresses.

use crate::spec::Scalar;
use crate::tensor::layout::DeviceId;

/// Why something that another library made cannot be used. Displays the rule;
/// [`Error`](super::Error) adds the code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignError {
    /// A stream or an allocation belongs to another context of the GPU.
    #[error(
        "{what} belongs to another context than the device, {device}, and contexts do not share \
         memory or order: open the device with that context, by `Device::from_context`"
    )]
    Context {
        /// `the stream` or `the memory`.
        what: &'static str,
        /// The device.
        device: DeviceId,
    },

    /// An address that the driver has not allocated.
    #[error(
        "{address:#x} is no memory that {device} reaches: pass the address of memory that CUDA \
         allocated and that is still there, not one of the host"
    )]
    Memory {
        /// The address.
        address: u64,
        /// The device.
        device: DeviceId,
    },

    /// An address that no element can have.
    #[error(
        "an element of `{element}` has an address that is a multiple of {}, but {address:#x} is not: \
         pass the address of the first element", .element.bytes()
    )]
    Misaligned {
        /// The address.
        address: u64,
        /// The element type.
        element: Scalar,
    },

    /// A stream for a simulated device.
    #[error(
        "{device} has no streams but its own, so the only handle is null: ask for a stream of another \
         library on a GPU only"
    )]
    Simulated {
        /// The device.
        device: DeviceId,
    },

    /// A device that cust cannot have a part in.
    #[error(
        "cust uses only the primary contexts of GPUs, and {device} has none: open the GPU with \
         `Device::cuda`"
    )]
    NotPrimary {
        /// The device.
        device: DeviceId,
    },

    /// A tensor whose memory cannot be given away.
    #[error(
        "the memory of a tensor on {device} is also that of a graph, and cannot be given away: drop \
         the graph first"
    )]
    Shared {
        /// The device.
        device: DeviceId,
    },
}
