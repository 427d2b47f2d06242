//! The interface between host and device: names of symbols and files, and the order and size of
//! parameters.

use std::path::PathBuf;

use tma_model::assertion;

use crate::ir::{Kernel, Param, ParamKind, Presence};
use crate::limits::{MAP_BYTES, TEAM_RANKS};

/// The types in the module of a generic kernel. These names are reserved: the launcher of an
/// instance is in a module of the instance's name.
pub(crate) const MODULE_TYPES: [&str; 5] = ["Instance", "Compiled", "Sealed", "Key", "Launcher"];

/// A parameter of the PTX entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbiParam {
    /// A 128-byte tensor map, 64-byte aligned, by value in constant memory.
    TensorMap,
    /// The tensor map of each rank, [`TEAM_RANKS`] of them, 64-byte aligned, by value in constant
    /// memory.
    PeerMaps,
    /// The addresses of a slice of global memory of each rank, [`TEAM_RANKS`] `u64`.
    PeerAddresses,
    /// The address of a slice of global memory (`u64`).
    GlobalAddress,
    /// The number of elements of that slice (`u64`).
    GlobalLen,
    /// A scalar of this size in bytes.
    Scalar(u32),
}

impl AbiParam {
    /// Returns the size in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::TensorMap => MAP_BYTES as u64,
            Self::PeerMaps => (TEAM_RANKS * MAP_BYTES) as u64,
            Self::PeerAddresses => TEAM_RANKS as u64 * 8,
            Self::GlobalAddress | Self::GlobalLen => 8,
            Self::Scalar(bytes) => bytes as u64,
        }
    }
}

/// Returns the PTX parameters of one parameter of the kernel.
///
/// An `Option<Global<T>>` is a slice like any other, and a `bool` of its own behind all parameters
/// of the signature. Without an argument, the address is null, the length 0 and the `bool` false.
/// The address alone would not do, since that of an empty tensor may be null as well.
///
/// The ranks that a team does not have repeat the last one. A team kernel's own rank and the number
/// of ranks are behind all other parameters. A rank's own slice is none: the kernel reads its
/// address among those of all ranks.
pub fn abi_params(param: &Param) -> Vec<AbiParam> {
    if matches!(param.presence, Presence::OwnOf(_)) {
        return vec![];
    }
    match param.kind() {
        Some(ParamKind::Tiles(_) | ParamKind::Columns(..)) => vec![AbiParam::TensorMap],
        Some(ParamKind::Global(_) | ParamKind::Maps(_)) => vec![AbiParam::GlobalAddress, AbiParam::GlobalLen],
        Some(ParamKind::PeerMaps(_)) => vec![AbiParam::PeerMaps],
        Some(ParamKind::PeerGlobals(_)) => vec![AbiParam::PeerAddresses, AbiParam::GlobalLen],
        Some(ParamKind::Scalar(scalar)) => vec![AbiParam::Scalar(scalar.bytes())],
        None => vec![],
    }
}

/// Returns the alignment of a slice's address in bytes.
pub fn alignment(param: &Param) -> u32 {
    let element = match param.kind() {
        Some(ParamKind::Global(element) | ParamKind::PeerGlobals(element)) => element.bytes(),
        Some(ParamKind::Maps(_)) => MAP_BYTES,
        Some(
            ParamKind::Tiles(_) | ParamKind::Columns(..) | ParamKind::PeerMaps(_) | ParamKind::Scalar(_),
        )
        | None => 1,
    };
    element.max(param.unit)
}

/// The symbol of the block's shared memory.
pub const SHARED_MEMORY: &str = "tma_shared";

/// Symbols that are reserved in a kernel's PTX: the shared memory, the variable for reports of
/// failed assertions, the two functions of the driver, and the only constant that PTX predefines.
/// Source: PTX ISA, "Predefined Identifiers".
const TAKEN: [&str; 5] = [SHARED_MEMORY, assertion::VARIABLE, "vprintf", "__assertfail", "WARP_SZ"];

/// Returns the symbol of the PTX entry: `copy`, or `copy__large` for an instance. Each PTX file has
/// one kernel, so the symbol must be valid in PTX but need not be unique.
pub fn entry(kernel: &Kernel) -> String {
    let name = match &kernel.instance {
        Some(instance) => format!("{}__{}", symbol(&kernel.name), symbol(instance)),
        None => symbol(&kernel.name),
    };
    if TAKEN.contains(&name.as_str()) { name + "_" } else { name }
}

/// Converts a Rust name to ASCII, as PTX requires. Source: PTX ISA, "Identifiers".
fn symbol(name: &str) -> String {
    let plain = |c: char| match c {
        '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => c.to_string(),
        other => format!("_u{:x}_", u32::from(other)),
    };
    name.trim_start_matches("r#").chars().map(plain).collect()
}

/// The file in the build script's `OUT_DIR` by which the macro requests another run of the script.
pub const NOTE: &str = "tma-missing";

/// Returns the file in `OUT_DIR` in which the build script leaves a template for the macro.
pub fn template_file(path: &str) -> PathBuf {
    PathBuf::from(format!("tma/{}.template", path.replace("::", "-")))
}

/// Returns the file in `OUT_DIR` in which the build script leaves what a module imports. The hash
/// is that of the module's place.
pub fn imports_file(module: &str, hash: u64) -> PathBuf {
    PathBuf::from(format!("tma/{module}-{hash:016x}{IMPORTS}"))
}

/// The end of the name of an [`imports_file`].
pub const IMPORTS: &str = ".imports";

/// Returns the PTX file of a kernel with this hash, relative to the build script's `OUT_DIR`.
pub fn ptx_file(kernel: &Kernel, hash: u64) -> String {
    ptx_file_of(&kernel.path(), hash)
}

/// Returns the PTX file of the kernel `kernel` or `kernel::instance`.
pub fn ptx_file_of(kernel: &str, hash: u64) -> String {
    format!("tma/{}-{hash:016x}.ptx", kernel.replacen("::", "-", 1))
}
