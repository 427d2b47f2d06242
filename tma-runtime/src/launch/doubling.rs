//! A kernel of a few instructions, for the tests of recorded launches.

use crate::launch::{Arg, Grid, LaunchOn, launch};
use crate::spec::{KernelParts, KernelSpec, ParamKind, ParamSpec, Scalar};
use crate::{Device, DeviceTensor, Error};

/// Computes `out[i] = 2 * src[i] + 1` for 32 numbers.
pub(super) const PARTS: KernelParts = KernelParts {
    name: "double",
    entry: "double",
    ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n\
        .visible .entry double(.param .u64 src, .param .u64 src_len, .param .u64 out, .param .u64 out_len) {\n\
        .reg .b32 %r<3>; .reg .b64 %d<4>;\n\
        ld.param.b64 %d1, [src]; ld.param.b64 %d2, [out]; mov.u32 %r1, %tid.x;\n\
        mad.wide.u32 %d1, %r1, 4, %d1; mad.wide.u32 %d2, %r1, 4, %d2;\n\
        ld.global.b32 %r2, [%d1]; mad.lo.u32 %r2, %r2, 2, 1; st.global.b32 [%d2], %r2; ret; }",
    params: &[
        ParamSpec {
            name: "src",
            kind: ParamKind::Global { element: Scalar::U32, written: false, alignment: 4 },
        },
        ParamSpec {
            name: "out",
            kind: ParamKind::Global { element: Scalar::U32, written: true, alignment: 4 },
        },
    ],
    ..KernelParts::NOTHING
};

pub(super) const fn spec(parts: KernelParts) -> KernelSpec {
    // SAFETY: the entry reads and writes 32 numbers, and every tensor passed to it here has as
    // many.
    unsafe { KernelSpec::from_parts(parts) }
}

pub(super) static SPEC: KernelSpec = spec(PARTS);

pub(super) type Numbers = DeviceTensor<u32, 1>;

pub(super) fn double(on: &impl LaunchOn, src: &Numbers, out: &mut Numbers) -> Result<(), Error> {
    launch(on, &SPEC, Grid::x(1), &[Arg::global(src.slice()), Arg::global_mut(out.slice_mut())])
}

pub(super) fn numbers(device: &Device, first: u32) -> Result<Numbers, Error> {
    device.tensor(&(first..first + 32).collect::<Vec<_>>(), [32])
}

/// Returns the code of an error.
pub(super) fn code<T>(result: Result<T, Error>) -> Option<&'static str> {
    result.err().map(|error| error.code())
}
