//! Capabilities of a device, and the check that it can run a kernel.

use crate::error::Error;
use crate::spec::KernelParts;
use crate::spec::ptx::{self, Target, entry_params};

/// The capabilities of a device.
#[derive(Clone, Debug)]
pub(crate) struct Properties {
    pub(crate) name: String,
    /// Major and minor version.
    pub(crate) capability: (u32, u32),
    pub(crate) multiprocessors: u32,
    /// Dynamic shared memory that a block can opt in to, in bytes.
    pub(crate) shared_bytes: u32,
}

impl Properties {
    /// Checks that a device with these properties can run the kernel, and that the PTX agrees with
    /// the kernel's specification.
    pub(crate) fn accept(&self, spec: &KernelParts) -> Result<(), Error> {
        let kernel = spec.name;
        if !ptx::is_compiled(spec.ptx) {
            return Err(Error::NoPtx { kernel });
        }
        // A target that cannot be parsed is left to the backend.
        if let Some(target) = Target::of(spec.ptx).filter(|target| !target.runs_on(self.capability)) {
            return Err(Error::Architecture {
                kernel,
                target: target.to_string(),
                device: self.name.clone(),
                capability: self.capability,
            });
        }
        let wanted = spec.ptx_params();
        let found = entry_params(spec.ptx, spec.entry).ok_or(Error::NoEntry { kernel, entry: spec.entry })?;
        if found != wanted {
            return Err(Error::OtherParameters { kernel, found, wanted });
        }
        let (bytes, limit) = (spec.shared_bytes, self.shared_bytes);
        if bytes > limit { Err(Error::SharedMemory { kernel, bytes, limit }) } else { Ok(()) }
    }

    /// Returns why a block has too little shared memory for what was added to a kernel: `purpose`.
    #[cfg(feature = "trace")]
    pub(crate) fn lack_of_room(
        &self,
        kernel: &KernelParts,
        rewritten: &KernelParts,
        purpose: &str,
    ) -> Option<String> {
        let (bytes, limit) = (rewritten.shared_bytes, self.shared_bytes);
        let more = bytes.saturating_sub(kernel.shared_bytes);
        (bytes > limit).then(|| {
            format!(
                "its block needs {bytes} bytes of shared memory, {more} of them for {purpose}, but this \
                 device has at most {limit}; use smaller tiles or fewer stages"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::launch::{Arg, Grid, launch};
    use crate::spec::{KernelSpec, ParamKind, ParamSpec};

    const NUMBER: ParamSpec = ParamSpec { name: "n", kind: ParamKind::Scalar { bytes: 4 } };
    const PARTS: KernelParts = KernelParts {
        ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u32 n) { ret; }",
        params: &[NUMBER],
        ..KernelParts::NOTHING
    };

    const fn spec(parts: KernelParts) -> KernelSpec {
        // SAFETY: the entry does nothing.
        unsafe { KernelSpec::from_parts(parts) }
    }

    fn code(spec: &'static KernelSpec, args: &[Arg<'_>]) -> Option<&'static str> {
        launch(&Device::simulator(), spec, Grid::x(1), args).err().map(|error| error.code())
    }

    #[test]
    fn tma0620_the_parameters_of_the_ptx_match_the_specification() {
        static SPEC: KernelSpec = spec(PARTS);
        static FEWER: KernelSpec = spec(KernelParts { params: &[], ..PARTS });
        static MORE: KernelSpec = spec(KernelParts { params: &[NUMBER, NUMBER], ..PARTS });
        static SMALLER: KernelSpec = spec(KernelParts {
            ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n\
                .visible .entry k(.param .align 64 .b8 n[128]) { ret; }",
            ..PARTS
        });
        let number = || Arg::scalar(1u32);
        assert_eq!(code(&SPEC, &[number()]), None);
        assert_eq!(code(&FEWER, &[]), Some("TMA0620"));
        assert_eq!(code(&MORE, &[number(), number()]), Some("TMA0620"));
        assert_eq!(code(&SMALLER, &[number()]), Some("TMA0620"));
    }

    #[test]
    fn tma0614_the_ptx_has_the_entry() {
        static OTHER: KernelSpec = spec(KernelParts { entry: "not", ..PARTS });
        assert_eq!(code(&OTHER, &[Arg::scalar(1u32)]), Some("TMA0614"));
    }
}
