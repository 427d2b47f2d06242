//! Chapters that teach: their kernels run on the simulator, and what a chapter quotes of the
//! simulator is what it says.
#![cfg(feature = "llvm")]

use std::fs;
use std::path::Path;

use tma_codegen::ir::{Cluster, Kernel, Scalar, Type};
use tma_codegen::{Target, check, compile};
use tma_runtime::launch::{Arg, KernelParts, KernelSpec, ParamKind, ParamSpec, launch};
use tma_runtime::prelude::*;
use tma_runtime::spec::{self, MapMode, MapSpec, TileSwizzle};
use tma_tests::sources::{CodeBlock, code_blocks};

/// The blocks of code of a chapter.
fn chapter(name: &str) -> Vec<CodeBlock> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    code_blocks(&fs::read_to_string(path).expect("the chapter is there"))
}

/// The parameters of a kernel that takes tensor maps of `i32` only.
fn params(kernel: &Kernel) -> &'static [ParamSpec] {
    let param = |param: &tma_codegen::ir::Param| {
        let Type::TensorMap(tile) = &param.ty else { panic!("`{}` is no tensor map", param.name) };
        assert_eq!(tile.element, Scalar::I32);
        let (element, box_extents) = (Scalar::I32, &*tile.extents.clone().leak());
        let mode = MapMode::Tiled;
        let map = MapSpec { element, mode, box_extents, swizzle: TileSwizzle::None, written: param.written };
        ParamSpec { name: param.name.clone().leak(), kind: ParamKind::Map(map) }
    };
    kernel.params.iter().map(param).collect::<Vec<_>>().leak()
}

/// What a launch must know of the one kernel in `block`.
fn spec(block: &CodeBlock) -> &'static KernelSpec {
    let checked = check("chapter.rs", &block.code).expect("the kernel keeps every rule");
    let compiled = compile("chapter.rs", &block.code, Target::default()).expect("it compiles");
    let ([checked], [ptx]) = (&checked.kernels[..], &compiled.kernels[..]) else {
        panic!("one kernel a block")
    };
    let kernel = checked.kernel.kernel();
    let Cluster::Fixed(cluster) = kernel.launch.cluster else { panic!("the size of clusters is fixed") };
    let parts = KernelParts {
        name: ptx.name.clone().leak(),
        entry: ptx.entry.clone().leak(),
        ptx: ptx.text.clone().leak(),
        threads: kernel.launch.threads,
        cluster: spec::Cluster::Fixed(cluster),
        cooperative: false,
        dependency_wait: false,
        shared_bytes: checked.kernel.layout().bytes(),
        params: params(kernel),
    };
    // SAFETY: the compiler made the PTX of this kernel.
    Box::leak(Box::new(unsafe { KernelSpec::from_parts(parts) }))
}

/// Launches a kernel on 32 × 16 integers, and what it then holds in as many rows a block.
fn run(spec: &'static KernelSpec, blocks: u32) -> Result<Vec<i32>, Error> {
    let device = Device::simulator();
    let source: Vec<i32> = (0..512).collect();
    let (src, mut held) = (device.tensor(&source, [32, 16])?, device.zeros([16 * blocks as usize, 16])?);
    launch(&device, spec, Grid::x(blocks), &[Arg::map(src.view()), Arg::map_mut(held.view_mut())])?;
    held.to_vec()
}

#[test]
fn multicast_brings_one_tile_to_both_blocks() {
    let tile: Vec<i32> = (0..256).collect();
    let chapter = chapter("tutorial-multicast.md");
    let kernels: Vec<_> = chapter.iter().filter(|block| block.info == "rust,kernel").collect();
    assert_eq!(kernels.len(), 2);
    for block in kernels {
        match run(spec(block), 2) {
            Ok(held) => assert_eq!(held, tile.repeat(2), "line {}", block.line),
            Err(error) => panic!("line {}: {error}", block.line),
        }
    }
}

#[test]
fn multicast_goes_wrong_as_the_chapter_says() {
    let chapter = chapter("tutorial-multicast.md");
    let wrong = chapter.windows(2).filter(|pair| pair[0].info == "rust,finding");
    let mut shown = 0;
    for pair in wrong {
        let [kernel, quoted] = pair else { continue };
        assert_eq!(quoted.info, "text", "after line {} comes what the simulator says", kernel.line);
        let Err(error) = run(spec(kernel), 4) else { panic!("line {}: nothing is found", kernel.line) };
        let error = error.to_string();
        for line in quoted.code.lines().filter(|line| *line != "...") {
            assert!(
                error.lines().any(|found| found == line),
                "line {}: no `{line}` in\n{error}",
                kernel.line
            );
        }
        shown += 1;
    }
    assert_eq!(shown, 5);
}
