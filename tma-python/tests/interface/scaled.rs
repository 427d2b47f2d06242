//! Operators with a kernel in PTX, so that the tests need no LLVM.

use tma_python::{Call, Failure, Tensor, TensorMut, operator};
use tma_runtime::launch::{Arg, GlobalSlice, GlobalSliceMut, Grid, KernelParts, KernelSpec, launch};
use tma_runtime::launch::{ParamKind, ParamSpec};
use tma_runtime::spec::{Cluster, Scalar};
use tma_runtime::{TensorView, TensorViewMut};

const PTX: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry scaled(.param .u64 src, .param .u64 len, .param .u64 dst, .param .u64 dst_len, .param .f32 factor)
{
    .reg .pred %p1;
    .reg .b32 %r<5>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<8>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r1, 32, %r2;
    cvt.u64.u32 %rd1, %r3;
    ld.param.u64 %rd2, [len];
    setp.ge.u64 %p1, %rd1, %rd2;
    @%p1 bra done;
    ld.param.u64 %rd3, [src];
    ld.param.u64 %rd4, [dst];
    shl.b64 %rd5, %rd1, 2;
    add.u64 %rd6, %rd3, %rd5;
    add.u64 %rd7, %rd4, %rd5;
    ld.global.f32 %f1, [%rd6];
    ld.param.f32 %f2, [factor];
    mul.f32 %f3, %f1, %f2;
    st.global.f32 [%rd7], %f3;
done:
    ret;
}
";

const fn global(name: &'static str, written: bool) -> ParamSpec {
    ParamSpec { name, kind: ParamKind::Global { element: Scalar::F32, written, alignment: 4 } }
}

// SAFETY: the entry reads the elements of `src`, and writes as many of `dst`, which is as long.
static SPEC: KernelSpec = unsafe {
    KernelSpec::from_parts(KernelParts {
        name: "scaled",
        entry: "scaled",
        ptx: PTX,
        threads: [32, 1, 1],
        cluster: Cluster::None,
        cooperative: false,
        dependency_wait: false,
        team: false,
        shared_bytes: 0,
        params: &[
            global("src", false),
            global("dst", true),
            ParamSpec { name: "factor", kind: ParamKind::Scalar { bytes: 4 } },
        ],
    })
};

fn scaled(
    call: &Call<'_>,
    src: TensorView<'_, f32, 1>,
    dst: TensorViewMut<'_, f32, 1>,
    factor: f32,
) -> Result<(), Failure> {
    let count = src.shape()[0];
    if count == 0 {
        return Ok(());
    }
    let [src, dst] = [Arg::global(GlobalSlice::new(src)), Arg::global_mut(GlobalSliceMut::new(dst))];
    let grid = Grid::x(u32::try_from(count.div_ceil(32))?);
    Ok(launch(call.stream(), &SPEC, grid, &[src, dst, Arg::scalar(factor)])?)
}

operator! {
    /// Multiplies each element by `factor`.
    ///
    /// Its gradient is scaled by the same factor.
    pub struct Scale<'a>("scale") {
        x: TensorView<'a, f32, 2>,
        factor: f64,
    } -> {
        y: TensorViewMut<'a, f32, 2> = "empty(x.shape, x.dtype)",
    }
    gradients { x: "scale(grad_y.contiguous(), factor)" }
}

impl Scale<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { x, factor, y } = self;
        let [rows, columns] = x.shape();
        let mut y = y;
        for row in 0..rows {
            let from = x.slice([row..row + 1, 0..columns])?.with_strides([columns], [1])?;
            let to = y.reborrow().slice([row..row + 1, 0..columns])?.with_strides([columns], [1])?;
            scaled(call, from, to, factor as f32)?;
        }
        Ok(())
    }
}

operator! {
    /// Multiplies each element by a factor, in place.
    pub struct ScaleInPlace<'a>("scale_") {
        x: TensorMut<'a>,
        src: Option<Tensor<'a>> = "None",
        factor: f32 = "2.0",
        rows: i64 = "-1",
        is_active: bool = "True",
        way: &'a str = "\"all\"",
        like: Option<Scalar> = "None",
    }
}

impl ScaleInPlace<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { x, src, factor, rows, is_active, way, like } = self;
        if way != "all" {
            return Err(Failure::argument("way", format_args!("is `{way}`; pass `all`")));
        }
        let _unused = (rows, like);
        let [height, width] = [0, 1].map(|i| x.shape().get(i).copied().unwrap_or(0) as usize);
        let mut x = x.view::<f32, 2>()?;
        for row in (0..height).filter(|_| is_active) {
            let to = x.reborrow().slice([row..row + 1, 0..width])?;
            // SAFETY: the kernel reads each element before it writes the same one.
            let [to, from] = unsafe { to.alias() };
            let (from, to) = (from.with_strides([width], [1])?, to.with_strides([width], [1])?);
            match src {
                None => scaled(call, from.as_view(), to, factor)?,
                Some(src) => {
                    let src = src.view::<f32, 2>()?.slice([row..row + 1, 0..width])?;
                    scaled(call, src.with_strides([width], [1])?, to, factor)?;
                }
            }
        }
        Ok(())
    }
}

operator! {
    /// Panics.
    pub struct Panics<'a>("panics") {
        x: Tensor<'a>,
    } -> {
        y: TensorMut<'a> = "empty_like(x)",
        z: TensorMut<'a> = "empty([len(x.shape)], int32)",
    }
}

impl Panics<'_> {
    fn run(self, _call: &Call<'_>) -> Result<(), Failure> {
        panic!("on purpose, with {} dimensions", self.x.rank());
    }
}
