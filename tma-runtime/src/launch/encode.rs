//! The arguments of a kernel as bytes, for launches that other libraries make.

use crate::backend::Backend;
use crate::binding::{Bound, bind, same_device};
use crate::device::Device;
use crate::error::Error;
use crate::launch::args::erased::Arg;
use crate::map::options::MapSource;
use crate::map::{Descriptor, map_params};
use crate::spec::{KernelSpec, MapSpec};
use std::ffi::c_void;
use std::ptr;

/// Encodes the tensor map that moves the tile of `spec` over the tensor of `source`, as a launch on
/// the device does. `tensor` is its name in errors.
///
/// On a GPU the driver encodes the map (`cuTensorMapEncodeTiled`, `cuTensorMapEncodeIm2col`). A
/// simulated device has its own format, so one kind of device cannot use the bytes of the other.
///
/// ```
/// use tma_runtime::launch::{self, MapSource};
/// use tma_runtime::prelude::*;
/// use tma_runtime::spec::{MapMode, MapSpec, Scalar, TileSwizzle};
///
/// # fn main() -> Result<(), Error> {
/// let device = Device::simulator();
/// let tensor = device.zeros::<f32, 2>([300, 132])?;
/// let tile = MapSpec {
///     element: Scalar::F32,
///     mode: MapMode::Tiled,
///     box_extents: &[64, 32],
///     swizzle: TileSwizzle::None,
///     written: false,
/// };
/// let source = MapSource::from(tensor.view().layout());
/// let descriptor = launch::encode(&device, "tensor", &source, &tile)?;
/// assert_eq!(descriptor.as_bytes().len(), 128);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The errors of [`map_params`], [`Error::OtherDevice`] if the tensor belongs to another device,
/// and [`Error::MapRefused`].
pub fn encode(
    device: &Device,
    tensor: &'static str,
    source: &MapSource,
    spec: &MapSpec,
) -> Result<Descriptor, Error> {
    same_device(tensor, source.layout.device(), device.id())?;
    let params = map_params(tensor, source, spec)?;
    match device.backend() {
        Backend::Cuda(context) => context.encode(tensor, &params),
        Backend::Sim(context) => Ok(context.encode(&params)),
    }
}

/// The value of a PTX parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A tensor map: 128 bytes.
    Map(Descriptor),
    /// A number of up to 8 bytes, zero-extended: an address, a length or a scalar. The kernel reads
    /// as many bytes as it declares, lowest first.
    Number(u64),
    /// The tensor maps of all ranks, one after the other.
    Maps(Box<[Descriptor]>),
    /// The addresses of all ranks, one after the other.
    Addresses(Box<[u64]>),
}

impl Parameter {
    /// Returns the address of the value, as `cuLaunchKernel` takes it in `kernelParams`. It is
    /// valid for as long as the parameter is borrowed.
    pub fn as_ptr(&self) -> *const c_void {
        match self {
            Self::Map(descriptor) => ptr::from_ref(descriptor).cast(),
            Self::Number(bits) => ptr::from_ref(bits).cast(),
            Self::Maps(descriptors) => descriptors.as_ptr().cast(),
            Self::Addresses(addresses) => addresses.as_ptr().cast(),
        }
    }
}

/// Returns the values of a kernel's PTX parameters, in order, checked and encoded as by a launch on
/// the device. They are meant for programs that load [`spec.ptx`](crate::spec::KernelParts::ptx)
/// and launch [`spec.entry`](crate::spec::KernelParts::entry) by other means.
///
/// A launch also needs a grid, blocks of exactly `spec.threads`, `spec.shared_bytes` of dynamic
/// shared memory, and the attributes that `spec.cluster` and `spec.cooperative` require. The
/// function must be opted in to more than 48 KiB of shared memory.
///
/// The values borrow nothing. Until the kernel has run, its tensors must stay allocated, and
/// nothing else may use the tensors that it writes.
///
/// # Errors
///
/// The errors of [`launch`](crate::launch::launch) for arguments that break a rule.
pub fn parameters(
    device: &Device,
    spec: &'static KernelSpec,
    args: &[Arg<'_>],
) -> Result<Vec<Parameter>, Error> {
    let mut all = Vec::with_capacity(2 * args.len());
    bind(device.id(), spec, args, |bound| {
        match bound {
            Bound::Map { tensor, spec, source } => {
                all.push(Parameter::Map(encode(device, tensor, source, spec)?));
            }
            Bound::Global { address, len } => all.extend([*address, *len].map(Parameter::Number)),
            Bound::PeerMaps { tensor, spec, sources } => {
                let maps = sources.each().map(|source| encode(device, tensor, &source, spec));
                all.push(Parameter::Maps(maps.into_iter().collect::<Result<Box<[_]>, Error>>()?));
            }
            Bound::PeerGlobals { addresses, len } => {
                all.extend([Parameter::Addresses(Box::new(*addresses)), Parameter::Number(*len)]);
            }
            Bound::Scalar { bits } => all.push(Parameter::Number(*bits)),
        }
        Ok(())
    })?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{KernelParts, MapMode, ParamKind, ParamSpec, Scalar, TileSwizzle};

    const TILE: MapSpec = MapSpec {
        element: Scalar::F32,
        mode: MapMode::Tiled,
        box_extents: &[64, 32],
        swizzle: TileSwizzle::None,
        written: false,
    };

    // SAFETY: never launched.
    static SPEC: KernelSpec = unsafe {
        KernelSpec::from_parts(KernelParts {
            params: &[
                ParamSpec { name: "src", kind: ParamKind::Map(TILE) },
                ParamSpec {
                    name: "sums",
                    kind: ParamKind::Global { element: Scalar::U32, written: true, alignment: 4 },
                },
                ParamSpec { name: "factor", kind: ParamKind::Scalar { bytes: 4 } },
            ],
            ..KernelParts::NOTHING
        })
    };

    #[test]
    fn parameters_are_those_of_the_ptx_in_order() {
        let device = Device::simulator();
        let src = device.zeros::<f32, 2>([300, 132]).expect("a tensor");
        let mut sums = device.zeros::<u32, 1>([7]).expect("a tensor");
        let address = sums.as_ptr();
        let args = [Arg::map(src.view()), Arg::global_mut(sums.slice_mut()), Arg::scalar(-2.0f32)];
        let found = parameters(&device, &SPEC, &args).expect("parameters");
        let [Parameter::Map(map), rest @ ..] = &found[..] else { panic!("no map: {found:?}") };
        assert_eq!(rest, [address, 7, 0xc000_0000].map(Parameter::Number));
        let decoded = ptx_sim::tensor_map::decode(map.as_bytes()).expect("a simulator's descriptor");
        assert_eq!(decoded, map_params("src", &src.view().layout().into(), &TILE).expect("a map").map);
        assert!(found[0].as_ptr().addr().is_multiple_of(128));
        // SAFETY: the address points to eight bytes.
        assert_eq!(unsafe { found[3].as_ptr().cast::<u64>().read() }, 0xc000_0000);
    }

    #[test]
    fn rejected_launches_are_not_encoded() {
        let (device, other) = (Device::simulator(), Device::simulator());
        let src = device.zeros::<f32, 2>([300, 132]).expect("a tensor");
        let odd = device.zeros::<f32, 2>([300, 131]).expect("a tensor");
        let code = |device: &Device, tensor: &crate::DeviceTensor<f32, 2>| {
            encode(device, "src", &tensor.view().layout().into(), &TILE).err().map(|error| error.code())
        };
        assert_eq!(code(&device, &src), None);
        assert_eq!(code(&other, &src), Some("TMA0514"));
        assert_eq!(code(&device, &odd), Some("TMA0503"));
        let refused = parameters(&device, &SPEC, &[Arg::map(src.view())]);
        assert_eq!(refused.err().map(|error| error.code()), Some("TMA0516"));
    }
}
