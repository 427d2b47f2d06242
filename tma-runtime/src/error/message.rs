//! The messages of the host's errors. Each message begins with the error's code, which only this
//! `Display` prints. The families of errors ([`MapError`](super::MapError) and the like) have the
//! text of their own rules.

use super::status::KernelNames;
use super::{ArgumentKind, Error};
use crate::spec::Scalar;
use std::fmt;
use tma_model::rule::Rule;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code())?;
        match self {
            Self::Map(why) => why.fmt(f),
            Self::View(why) => why.fmt(f),
            Self::Foreign(why) => why.fmt(f),
            Self::Team(why) => why.fmt(f),
            Self::Picture(why) => why.fmt(f),
            Self::Tune(why) => why.fmt(f),
            Self::RankMismatch { tensor, found, wanted } => write!(
                f,
                "tensor and box must have the same rank: `{tensor}` has {}, but the kernel's box has \
                 {wanted}; pass a view of {}",
                counted(*found, "dimension"),
                counted(*wanted, "dimension")
            ),
            Self::ElementMismatch { tensor, found, wanted } => {
                write!(
                    f,
                    "element types must match: `{tensor}` takes a tensor of `{wanted}`, but got one of \
                     `{found}`; convert the tensor"
                )
            }
            Self::NotContiguous { tensor } => write!(
                f,
                "a `Global` parameter takes a contiguous tensor: the view passed as `{tensor}` has gaps or \
                 permuted dimensions; copy it into a `DeviceTensor`, or pass a view of its whole memory"
            ),
            Self::MisalignedGlobal { tensor, address, alignment } => write!(
                f,
                "`{tensor}` must start at a multiple of {alignment} bytes: the kernel moves {alignment} \
                 bytes at once, but the address is {address:#x} ({} bytes past one); start the view at an \
                 element whose address is a multiple of {alignment}",
                address % u64::from(*alignment)
            ),
            Self::NotMutable { kernel, tensor } => write!(
                f,
                "a tensor that a kernel writes must be passed mutably: kernel `{kernel}` writes `{tensor}`, \
                 but the argument is read-only; pass `Arg::map_mut(tensor.view_mut())` or \
                 `Arg::global_mut(tensor.slice_mut())`, or use the kernel's typed `launch`"
            ),
            Self::HostLength { found, wanted } => {
                write!(
                    f,
                    "slice and tensor must have the same length: the host slice has {}, but the tensor has \
                     {wanted}; pass a slice of {}",
                    counted(*found, "element"),
                    counted(*wanted, "element")
                )
            }
            Self::ShapeMismatch { found, wanted } => {
                write!(
                    f,
                    "a copy needs equal shapes: the source is {found:?}, but the destination is {wanted:?}; \
                     copy to a tensor of shape {found:?}"
                )
            }
            Self::OtherDevice { what, found, wanted } => write!(
                f,
                "a launch or copy uses a single device: {} belongs to {found}, but this runs on {wanted}; \
                 create it on {wanted}, or copy it through the host",
                subject(what)
            ),
            Self::TensorTooLarge { shape, element } => {
                write!(
                    f,
                    "a tensor must be smaller than 2^63 bytes: {shape:?} elements of `{element}` are not; \
                     check the computation of the shape"
                )
            }
            Self::ArgumentCount { kernel, found, wanted } => {
                let wanted = counted(*wanted, "argument");
                write!(
                    f,
                    "wrong number of arguments: kernel `{kernel}` takes {wanted}, but got {found}; use its \
                     typed `launch`"
                )
            }
            Self::ArgumentMismatch { kernel, parameter, found, wanted } => {
                let (found, wanted) = (argument(*found, None), argument(*wanted, Some(parameter)));
                write!(
                    f,
                    "wrong kind of argument: kernel `{kernel}` takes {wanted}, but got {found}; use its typed \
                     `launch`"
                )
            }
            Self::MapRefused { tensor, status, map } => {
                write!(
                    f,
                    "the driver rejected the tensor map of `{tensor}`: {status}; please report this: the map \
                     was {map}"
                )
            }
            Self::NoDriver { status } => write!(
                f,
                "no NVIDIA driver is running: {status}; install a driver for CUDA 12.0 or later (525 or \
                 later), which includes `libcuda.so.1`, or give the container access to its GPUs \
                 (`nvidia-smi` works where the driver does)"
            ),
            Self::NoDevice { ordinal, count } => write!(
                f,
                "there is no GPU {ordinal}: the driver reports {}, numbered from 0; check `nvidia-smi` and \
                 `CUDA_VISIBLE_DEVICES`",
                counted(*count as usize, "GPU")
            ),
            Self::NoBackend => f.write_str(
                "this build cannot run kernels on a GPU: enable the feature `cuda` of `tma-runtime` \
                 (`--features cuda`) on a machine with an NVIDIA driver",
            ),
            Self::NoSimulator => f.write_str(
                "this build has no simulator: enable the feature `ptx-sim` of `tma-runtime`, which is \
                 on by default",
            ),
            Self::Architecture { kernel, target, device, capability } => write!(
                f,
                "the device cannot run this kernel: `{kernel}` was compiled for {target}, but {device} is \
                 sm_{}{}; set a target of that device in the build script{}",
                capability.0,
                capability.1,
                elsewhere(target)
            ),
            Self::NoPtx { kernel } => write!(
                f,
                "kernel `{kernel}` has no PTX: the package was built without LLVM or with `TMA_PTX=off`; \
                 install LLVM 22 (`cargo xtask setup`), enable the feature `llvm` of `tma-codegen`, and leave \
                 `TMA_PTX` unset"
            ),
            Self::Jit { kernel, status, log } => {
                write!(f, "the driver cannot compile the PTX of kernel `{kernel}`: {status}\n{log}")
            }
            Self::Launch { kernel, status } => {
                write!(f, "the driver rejected the launch of kernel `{kernel}`: {status}{}", status.hint())
            }
            Self::KernelFault { kernels, status } => write!(
                f,
                "a kernel faulted: {status}{}; kernels launched since the device was last synchronised: {}; \
                 the CUDA context is lost; restart the process",
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
                "{address:#x} is not memory of this simulator: only GPUs accept the pointers of other \
                 libraries; create the tensor with this device"
            ),
            Self::UnknownDevice { name } => {
                write!(f, "`TMA_DEVICE` names no device: it is `{name}`; set it to `sim`, `cuda` or `cuda:N`")
            }
            Self::OutOfMemory { bytes, device } => {
                write!(
                    f,
                    "out of device memory: {device} has no {bytes} contiguous bytes left; drop unused \
                     tensors, or process the data in parts"
                )
            }
            Self::HostMemory { bytes } => write!(
                f,
                "out of host memory: there is no room for a copy of {bytes} bytes; copy smaller tensors, one \
                 at a time"
            ),
            Self::SimulatedGrid { kernel, found, limit, least_time } => write!(
                f,
                "the simulator runs grids of at most {limit} blocks: the grid of `{kernel}` has {found}, \
                 which would take {least_time} or more; launch a smaller grid, let each block process \
                 several tiles, or raise the limit with `Device::block_limit`"
            ),
            Self::PtxNotKept { package, kernels } => {
                let folder = package.join("tma-ptx");
                write!(f, "kept PTX must match the package's kernels: `{}` ", folder.display())?;
                match kernels[..] {
                    [] => write!(f, "cannot, because the package's build script compiles no kernels"),
                    _ => write!(
                        f,
                        "does not for `{}`; run `cargo tma ptx --keep` to rewrite it",
                        kernels.join("`, `")
                    ),
                }
            }
            Self::GridZero { kernel, axis } => write!(
                f,
                "a grid needs at least one block along each axis: the grid of `{kernel}` has none along \
                 {axis}; skip the launch if there is no work"
            ),
            Self::GridTooLarge { kernel, axis, found, limit } => write!(
                f,
                "a grid has at most {limit} blocks along {axis}: the grid of `{kernel}` has {found}; {}let \
                 each block process several tiles",
                if *axis == 'x' { "" } else { "put the longest dimension along x, or " }
            ),
            Self::Cluster { kernel, why } => write!(f, "cannot launch kernel `{kernel}`: {why}"),
            Self::GridNotResident { kernel, found, limit } => write!(
                f,
                "blocks that call `sync_grid` must all run at the same time: `{kernel}` was launched with \
                 {found}, but this device runs {limit} at once; launch at most \
                 `device.resident_blocks(&SPEC)` blocks, and let each process several tiles"
            ),
            Self::NeverWaits { kernel } => write!(
                f,
                "a kernel launched with `dependent()` must call `grid_dependency_wait()`: `{kernel}` never \
                 does; call it before the kernel touches what the previous kernel writes, or launch without \
                 `dependent()`"
            ),
            Self::Unowned { kernel, tensor } => write!(
                f,
                "recorded launches must keep the memory of their tensors alive: `{tensor}` of `{kernel}` is a \
                 view from an address, whose owner is unknown; pass a `DeviceTensor` or its view, for memory \
                 of another library one of `DeviceTensor::from_raw`"
            ),
            Self::PreparedOptions => write!(
                f,
                "prepared launches keep the options with which they were recorded: `Prepared::launch` was \
                 called with others; pass it the device, the stream or the capture itself, and the options \
                 to the launches in `Device::prepare`"
            ),
            Self::Deadlock { kernel, limit, report } => write!(
                f,
                "deadlock: warps of `{kernel}` waited longer than {limit:?}\n{report}\n  help: the simulator \
                 shows what is missing: `{}`; set `TMA_WATCH` to more seconds if the wait is as long as it \
                 should be\n  {}",
                report.replay,
                Rule::Deadlock.reference()
            ),
            Self::Ranks { ranks, failed } => {
                write!(
                    f,
                    "work of a team must succeed on all ranks: it failed on {} of {ranks}",
                    failed.len()
                )?;
                failed.iter().try_for_each(|(rank, error)| write!(f, "\nrank {rank}: {error}"))
            }
            Self::Unwatched { kernel, why } => {
                write!(f, "the waits of `{kernel}` cannot be limited: {why}")
            }
            Self::Trace { kernel, why } => write!(f, "the launch of `{kernel}` cannot be traced: {why}"),
            Self::SharedMemory { kernel, bytes, limit } => write!(
                f,
                "too much shared memory: kernel `{kernel}` needs {bytes} bytes per block, but this device \
                 has at most {limit}; use smaller tiles or fewer stages"
            ),
            Self::MissingEntryPoint { name } => write!(
                f,
                "the NVIDIA driver is too old: it has no `{name}`; install a driver for CUDA 12.0 or later \
                 (525 or later)"
            ),
            Self::NoEntry { kernel, entry } => {
                write!(f, "the PTX of kernel `{kernel}` has no entry `{entry}`: rebuild the package")
            }
            Self::OtherParameters { kernel, found, wanted } => write!(
                f,
                "PTX must have the parameters of its `KernelSpec`: that of kernel `{kernel}` has {}, but the \
                 PTX declares {}; rebuild the package, or correct the `params` of a hand-written entry",
                parameters(wanted),
                parameters(found)
            ),
            Self::Driver { operation, status } => write!(f, "the driver failed to {operation}: {status}"),
        }
    }
}

/// Suggests the simulator for a `target` that it runs: the simulated device is an `sm_90`.
fn elsewhere(target: &str) -> &'static str {
    if target.starts_with("sm_90") { ", or set `TMA_DEVICE=sim` to run it on the simulator" } else { "" }
}

/// Quotes the name of a parameter, but not a description such as `the stream`.
fn subject(what: &str) -> String {
    if what.contains(' ') { what.to_owned() } else { format!("`{what}`") }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Describes an argument as it was passed, or as `parameter` takes it.
fn argument(kind: ArgumentKind, parameter: Option<&str>) -> String {
    let (element, article, noun) = match kind {
        ArgumentKind::TensorMap { element } => (element, "a ", "tensor map"),
        ArgumentKind::Im2colMap { element } => (element, "an ", "im2col map"),
        ArgumentKind::Global { element } => (element, "", "`Global`"),
        ArgumentKind::PeerMaps { element } => return of_ranks(element, "tensor maps", parameter),
        ArgumentKind::PeerGlobals { element } => return of_ranks(element, "`Global`s", parameter),
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

/// Describes the tensors of all ranks of a team.
fn of_ranks(element: Scalar, noun: &str, parameter: Option<&str>) -> String {
    let name = parameter.map(|name| format!(" `{name}`")).unwrap_or_default();
    format!("tensors of `{element}` of all ranks for the {noun}{name}")
}

/// Describes the sizes of a PTX entry's parameters, such as `3 parameters of 128, 8 and 8 bytes`.
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
