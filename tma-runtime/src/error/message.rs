//! The messages of the host's errors. Each begins with the error's code, which only the `Display`
//! here prints; families of errors ([`MapError`](super::MapError) and the like) have the text of
//! their own rules.

use super::status::KernelNames;
use super::{ArgumentKind, Error};
use std::fmt;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code())?;
        match self {
            Self::Map(why) => why.fmt(f),
            Self::View(why) => why.fmt(f),
            Self::Foreign(why) => why.fmt(f),
            Self::Picture(why) => why.fmt(f),
            Self::Tune(why) => why.fmt(f),
            Self::RankMismatch { tensor, found, wanted } => write!(
                f,
                "a tensor has as many dimensions as the box that moves over it, but `{tensor}` has \
                 {found} and the box {wanted}: pass a view of {wanted} dimensions"
            ),
            Self::ElementMismatch { tensor, found, wanted } => {
                write!(f, "`{tensor}` takes a tensor of `{wanted}`, but this one is of `{found}`")
            }
            Self::NotContiguous { tensor } => write!(
                f,
                "a `Global` parameter takes elements that lie one after the other, but the view \
                 passed as `{tensor}` has gaps or another order: copy it into a `DeviceTensor`, or \
                 pass a view of its whole memory"
            ),
            Self::MisalignedGlobal { tensor, address, alignment } => write!(
                f,
                "the kernel moves {alignment} bytes of `{tensor}` at once, so its address must be a \
                 multiple of {alignment}, but it is {address:#x} ({} bytes past one): start the view at \
                 an element whose address is a multiple of {alignment}",
                address % u64::from(*alignment)
            ),
            Self::NotMutable { kernel, tensor } => write!(
                f,
                "kernel `{kernel}` writes `{tensor}`, but the tensor passed there is lent to be \
                 read: pass `Arg::map_mut(tensor.view_mut())` or \
                 `Arg::global_mut(tensor.slice_mut())`, or use the kernel's typed `launch`"
            ),
            Self::HostLength { found, wanted } => {
                write!(f, "the host slice has {found} elements, but the tensor {wanted}: pass as many")
            }
            Self::ShapeMismatch { found, wanted } => {
                write!(f, "a copy needs equal shapes, but goes from {found:?} to {wanted:?}")
            }
            Self::OtherDevice { what, found, wanted } => write!(
                f,
                "everything in a launch or copy must belong to one device, but `{what}` belongs to \
                 {found} and this runs on {wanted}: create it there, or copy it through the host"
            ),
            Self::TensorTooLarge { shape, element } => {
                write!(f, "a tensor's bytes must fit 63 bits, but {shape:?} elements of `{element}` do not")
            }
            Self::ArgumentCount { kernel, found, wanted } => {
                let (found, wanted) = (counted(*found, "argument"), counted(*wanted, "argument"));
                write!(f, "kernel `{kernel}` takes {wanted}, but was given {found}: use its typed `launch`")
            }
            Self::ArgumentMismatch { kernel, parameter, found, wanted } => {
                let (found, wanted) = (argument(*found, None), argument(*wanted, Some(parameter)));
                write!(f, "kernel `{kernel}` takes {wanted}, but was given {found}: use its typed `launch`")
            }
            Self::MapRefused { tensor, status, map } => {
                write!(f, "the driver refused the tensor map of `{tensor}`: {status}; the map was {map}")
            }
            Self::NoDriver { status } => write!(
                f,
                "no NVIDIA driver is running: {status}. Install one for CUDA 12.0 or later (525 or \
                 later), which brings `libcuda.so.1`, or give the container its GPUs; `nvidia-smi` \
                 works where the driver does"
            ),
            Self::NoDevice { ordinal, count } => write!(
                f,
                "GPU {ordinal} was asked for, but the driver sees {count}: check `nvidia-smi` and \
                 `CUDA_VISIBLE_DEVICES`"
            ),
            Self::NoBackend => f.write_str(
                "this build has no way to run kernels: enable the feature `cuda` of `tma-runtime` \
                 (`--features cuda`) on a machine with an NVIDIA driver",
            ),
            Self::NoSimulator => f.write_str(
                "this build has no simulator: enable the feature `ptx-sim` of `tma-runtime`, which is \
                 on by default",
            ),
            Self::Architecture { kernel, target, device, capability } => write!(
                f,
                "kernel `{kernel}` was compiled for {target}, which {device} (sm_{}{}) does not \
                 run: compile it for that device, by the target in the build script{}",
                capability.0,
                capability.1,
                elsewhere(target)
            ),
            Self::NoPtx { kernel } => write!(
                f,
                "kernel `{kernel}` has no PTX, because the package was built without LLVM: build \
                 it with the feature `llvm` of `tma-codegen` and LLVM 22 installed (`cargo xtask \
                 setup` installs it)"
            ),
            Self::Jit { kernel, status, log } => {
                write!(f, "the driver could not compile kernel `{kernel}`: {status}\n{log}")
            }
            Self::Launch { kernel, status } => {
                write!(f, "kernel `{kernel}` could not be launched: {status}{}", status.hint())
            }
            Self::KernelFault { kernels, status } => write!(
                f,
                "a kernel stopped: {status}{}; it was one of those launched since the device was \
                 last synchronised: {}. The device is lost to this process, which has to be \
                 started anew",
                status.hint(),
                KernelNames(kernels)
            ),
            Self::Assertion { kernel, place, message, block, thread } => write!(
                f,
                "an assertion in kernel `{kernel}` failed at {place}, in thread {thread:?} of block \
                 {block:?}: {message}"
            ),
            Self::Findings { kernel, seed, count, text } => write!(
                f,
                "the simulator found {} in `{kernel}`, with seed {seed}:\n\n{text}",
                counted(*count, "mistake")
            ),
            Self::SimulatedLaunch { kernel, why } => write!(f, "the simulator cannot run `{kernel}`: {why}"),
            Self::SimulatedMemory { address } => write!(
                f,
                "{address:#x} is no memory of this simulator: views of pointers from elsewhere \
                 work on GPUs only"
            ),
            Self::UnknownDevice { name } => {
                write!(f, "`TMA_DEVICE` is `{name}`, but devices are `sim`, `cuda` and `cuda:N`")
            }
            Self::OutOfMemory { bytes, device } => {
                write!(f, "{device} has no {bytes} bytes of memory left in one piece")
            }
            Self::HostMemory { bytes } => write!(
                f,
                "the host has no memory left for a copy of {bytes} bytes: copy smaller tensors, \
                 one at a time"
            ),
            Self::SimulatedGrid { kernel, found, limit, least_time } => write!(
                f,
                "the simulator takes grids of at most {limit} blocks, but that for `{kernel}` has \
                 {found}, which would take {least_time} or more: launch a smaller grid, let each block work \
                 on several tiles, or raise the limit with `Device::block_limit`"
            ),
            Self::PtxNotKept { package, kernels } => {
                let folder = package.join("tma-ptx");
                write!(
                    f,
                    "`{}` must hold the PTX of the package's kernels as they are now, ",
                    folder.display()
                )?;
                match kernels[..] {
                    [] => write!(f, "but the package has none: its build script compiles no kernels"),
                    _ => write!(
                        f,
                        "but does not for `{}`: `cargo tma ptx --keep` writes it anew",
                        kernels.join("`, `")
                    ),
                }
            }
            Self::GridZero { kernel, axis } => write!(
                f,
                "a grid has at least one block along each axis, but that for `{kernel}` has none \
                 along {axis}"
            ),
            Self::GridTooLarge { kernel, axis, found, limit } => write!(
                f,
                "a grid has at most {limit} blocks along {axis}, but that for `{kernel}` has \
                 {found}: put the longest dimension along x, or give each block several tiles"
            ),
            Self::Cluster { kernel, why } => write!(f, "kernel `{kernel}` cannot be launched so: {why}"),
            Self::GridNotResident { kernel, found, limit } => write!(
                f,
                "all blocks of `{kernel}` run at the same time, since it says `sync_grid`, but of \
                 {found} this device runs {limit}: launch at most so many, as \
                 `device.resident_blocks(&SPEC)` tells, and give each several tiles"
            ),
            Self::NeverWaits { kernel } => write!(
                f,
                "a kernel launched with `dependent()` says `grid_dependency_wait()` before it \
                 touches what the one before writes, but `{kernel}` never does: say it there, or \
                 launch without `dependent()`"
            ),
            Self::Unowned { kernel, tensor } => write!(
                f,
                "a graph keeps the memory of its tensors, but `{tensor}` of `{kernel}` is a view \
                 from an address, whose owner is not known: capture with the `DeviceTensor` itself \
                 or its view"
            ),
            Self::PreparedCapture { kernel } => write!(
                f,
                "a prepared launch of `{kernel}` is repeated by itself and cannot be captured: \
                 `launch` it on the capture"
            ),
            Self::SharedMemory { kernel, bytes, limit } => write!(
                f,
                "kernel `{kernel}` needs {bytes} bytes of shared memory, but a block on this \
                 device has at most {limit}: use smaller tiles or fewer stages"
            ),
            Self::MissingEntryPoint { name } => write!(
                f,
                "the NVIDIA driver has no `{name}`: install a driver for CUDA 12.0 or later (525 \
                 or later)"
            ),
            Self::NoEntry { kernel, entry } => {
                write!(f, "the PTX of kernel `{kernel}` has no entry `{entry}`: build the package anew")
            }
            Self::OtherParameters { kernel, found, wanted } => write!(
                f,
                "the PTX of kernel `{kernel}` takes what its `KernelSpec` says, {}, but \
                 declares {}: build the package anew, or let `params` say what a hand-written \
                 entry takes",
                parameters(wanted),
                parameters(found)
            ),
            Self::Driver { operation, status } => write!(f, "the driver failed to {operation}: {status}"),
        }
    }
}

/// Where else a kernel for `target` runs: the simulated device is an `sm_90`.
fn elsewhere(target: &str) -> &'static str {
    if target.starts_with("sm_90") { ", or run it on the simulator: `TMA_DEVICE=sim`" } else { "" }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// An argument as it was passed, or as `parameter` takes it.
fn argument(kind: ArgumentKind, parameter: Option<&str>) -> String {
    let (element, article, noun) = match kind {
        ArgumentKind::TensorMap { element } => (element, "a ", "tensor map"),
        ArgumentKind::Im2colMap { element } => (element, "an ", "im2col map"),
        ArgumentKind::Global { element } => (element, "", "`Global`"),
        ArgumentKind::Scalar { bytes } => {
            let of = parameter.map(|name| format!(" for `{name}`")).unwrap_or_default();
            return format!("a scalar of {bytes} bytes{of}");
        }
    };
    match parameter {
        Some(name) => format!("a tensor of `{element}` for the {noun} `{name}`"),
        None => format!("a tensor of `{element}` for {article}{noun}"),
    }
}

/// The sizes of a PTX entry's parameters, such as `3 parameters of 128, 8 and 8 bytes`.
fn parameters(sizes: &[Option<u64>]) -> String {
    let Some((last, others)) = sizes.split_last() else { return "no parameters".to_owned() };
    let size = |bytes: &Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string());
    let others = others.iter().map(size).collect::<Vec<_>>().join(", ");
    let and = if others.is_empty() { "" } else { " and " };
    format!("{} of {others}{and}{} bytes", counted(sizes.len(), "parameter"), size(last))
}

#[cfg(test)]
mod tests {
    use super::parameters;

    #[test]
    fn sizes_are_listed_as_in_a_sentence() {
        assert_eq!(parameters(&[]), "no parameters");
        assert_eq!(parameters(&[Some(8)]), "1 parameter of 8 bytes");
        assert_eq!(parameters(&[Some(128), Some(8), None]), "3 parameters of 128, 8 and unknown bytes");
    }
}
