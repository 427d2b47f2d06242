//! Tutorial chapters: their kernels run on the simulator; the messages of rustc, the compiler and
//! the simulator that they quote are the actual ones, and so is the code that they quote.
#![cfg(feature = "llvm")]

use std::fs;
use std::path::Path;

use tma_codegen::ir::{Cluster, Kernel, Type};
use tma_codegen::{Target, check, compile};
use tma_runtime::launch::{Arg, KernelParts, KernelSpec, ParamKind, ParamSpec, launch};
use tma_runtime::picture::TileLayout;
use tma_runtime::prelude::*;
use tma_runtime::spec::{self, MapMode, MapSpec, Scalar};
use tma_tests::sources::{CodeBlock, code_blocks};

/// The chapter on tensor cores.
const TENSOR_CORES: &str = "tutorial-tensor-cores.md";

/// Reads a file of the workspace.
fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the blocks of code of a chapter.
fn chapter(name: &str) -> Vec<CodeBlock> {
    code_blocks(&file(&format!("docs/{name}")))
}

/// Returns the blocks of one kind, each with the text after the kind's name and with the block that
/// follows.
fn quotes<'a>(
    chapter: &'a [CodeBlock],
    kind: &'a str,
) -> impl Iterator<Item = (&'a CodeBlock, &'a str, &'a CodeBlock)> {
    chapter.windows(2).filter_map(move |pair| {
        let name = pair[0].info.strip_prefix(kind)?;
        Some((&pair[0], name, &pair[1]))
    })
}

/// Returns the problem with a quote, unless `text` has its lines in sequence, at any indentation.
/// Lines may be left out if the quote has `...` or `// ..`.
fn misquoted(quote: &CodeBlock, text: &str) -> Option<String> {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let wanted: Vec<_> = quote.code.lines().map(str::trim).collect();
    let is_gap = |line: &&str| ["...", "// .."].contains(line);
    let mut from = 0;
    for part in wanted.split(is_gap).filter(|part| !part.is_empty()) {
        let Some(at) = (from..lines.len()).find(|&at| lines[at..].starts_with(part)) else {
            let part = part.join("\n");
            return Some(format!("line {}: not in this place, or not so:\n{part}\nin\n{text}", quote.line));
        };
        from = at + part.len();
    }
    None
}

fn expect_none(wrong: impl IntoIterator<Item = String>) {
    let wrong: Vec<_> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Returns the parameters of a kernel that takes tensor maps only.
fn params(kernel: &Kernel) -> &'static [ParamSpec] {
    let param = |param: &tma_codegen::ir::Param| {
        let Type::TensorMap(tile) = &param.ty else { panic!("`{}` is no tensor map", param.name) };
        let (element, swizzle, box_extents) = (tile.element, tile.swizzle, &*tile.extents.clone().leak());
        let mode = MapMode::Tiled;
        let map = MapSpec { element, mode, box_extents, swizzle, written: param.written };
        ParamSpec { name: param.name.clone().leak(), kind: ParamKind::Map(map) }
    };
    kernel.params.iter().map(param).collect::<Vec<_>>().leak()
}

/// Returns the specification of the one kernel in `block`.
fn spec(block: &CodeBlock) -> &'static KernelSpec {
    let checked = check("chapter.rs", &block.code).expect("the kernel keeps every rule");
    let compiled = compile("chapter.rs", &block.code, Target::default()).expect("it compiles");
    let ([checked], [ptx]) = (&checked.kernels[..], &compiled.kernels[..]) else {
        panic!("one kernel a block")
    };
    let kernel = checked.kernel.kernel();
    let cluster = match kernel.launch.cluster {
        Cluster::None => spec::Cluster::None,
        Cluster::Fixed(cluster) => spec::Cluster::Fixed(cluster),
        Cluster::AtLaunch => panic!("the size of clusters is fixed"),
    };
    let parts = KernelParts {
        name: ptx.name.clone().leak(),
        entry: ptx.entry.clone().leak(),
        ptx: ptx.text.clone().leak(),
        threads: kernel.launch.threads,
        cluster,
        cooperative: false,
        dependency_wait: false,
        team: false,
        shared_bytes: checked.kernel.layout().bytes(),
        params: params(kernel),
    };
    // SAFETY: the compiler made the PTX of this kernel.
    Box::leak(Box::new(unsafe { KernelSpec::from_parts(parts) }))
}

/// Launches a kernel on 32 × 16 integers. Returns its output, 16 rows per block.
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
    let wrong: Vec<_> = quotes(&chapter, "rust,finding").collect();
    assert_eq!(wrong.len(), 5);
    expect_none(wrong.into_iter().filter_map(|(kernel, _, quoted)| match run(spec(kernel), 4) {
        Ok(_) => Some(format!("line {}: nothing is found", kernel.line)),
        Err(error) => misquoted(quoted, &error.to_string()),
    }));
}

/// Computes `c = a · bᵀ` of integers, 64 × 16 and 8 × 16, by a kernel of the chapter. Returns its
/// result and the expected one.
fn multiply(spec: &'static KernelSpec) -> Result<[Vec<f32>; 2], Error> {
    let numbers = |len: usize, step: usize| (0..len).map(move |i| (i * step % 9) as f32 - 4.0);
    let (a, b): (Vec<f32>, Vec<f32>) = (numbers(64 * 16, 5).collect(), numbers(8 * 16, 7).collect());
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    let wanted = a.chunks(16).flat_map(|x| b.chunks(16).map(move |y| dot(x, y))).collect();

    let device = Device::simulator();
    let halves = |numbers: &[f32]| numbers.iter().copied().map(f16::from_f32).collect::<Vec<_>>();
    let (a, b) = (device.tensor(&halves(&a), [64, 16])?, device.tensor(&halves(&b), [8, 16])?);
    let mut c = device.zeros::<f32, 2>([64, 8])?;
    let args = [Arg::map(a.view()), Arg::map(b.view()), Arg::map_mut(c.view_mut())];
    launch(&device, spec, Grid::x(1), &args)?;
    Ok([c.to_vec()?, wanted])
}

#[test]
fn tensor_cores_multiply() {
    let chapter = chapter(TENSOR_CORES);
    let kernels: Vec<_> = chapter.iter().filter(|block| block.info == "rust,kernel").collect();
    assert_eq!(kernels.len(), 1);
    for block in kernels {
        match multiply(spec(block)) {
            Ok([found, wanted]) => assert_eq!(found, wanted, "line {}", block.line),
            Err(error) => panic!("line {}: {error}", block.line),
        }
    }
}

#[test]
fn tensor_cores_go_wrong_as_the_chapter_says() {
    let chapter = chapter(TENSOR_CORES);
    let wrong: Vec<_> = quotes(&chapter, "rust,finding").collect();
    assert_eq!(wrong.len(), 4);
    expect_none(wrong.into_iter().filter_map(|(kernel, _, quoted)| match multiply(spec(kernel)) {
        Ok(_) => Some(format!("line {}: nothing is found", kernel.line)),
        Err(error) => misquoted(quoted, &error.to_string()),
    }));
}

#[test]
fn the_compiler_refuses_what_the_chapter_says() {
    let chapter = chapter(TENSOR_CORES);
    let refused: Vec<_> = quotes(&chapter, "rust,refused").collect();
    assert_eq!(refused.len(), 2);
    expect_none(refused.into_iter().filter_map(|(kernel, _, quoted)| {
        match check("kernel.rs", &kernel.code) {
            Ok(_) => Some(format!("line {}: accepted", kernel.line)),
            Err(error) => misquoted(quoted, &error.to_string()),
        }
    }));
}

/// The test `rustc` compares the errors of rustc for these files.
#[test]
fn rustc_refuses_what_the_chapter_says() {
    let chapter = chapter(TENSOR_CORES);
    let refused: Vec<_> = quotes(&chapter, "rust,rustc:").collect();
    assert_eq!(refused.len(), 3);
    expect_none(refused.into_iter().flat_map(|(code, name, quoted)| {
        let read = |extension| file(&format!("tests/rustc/tests/ui/refused/{name}.{extension}"));
        misquoted(code, &read("rs")).into_iter().chain(misquoted(quoted, &read("stderr")))
    }));
}

#[test]
fn chapters_show_the_examples_as_they_are() -> anyhow::Result<()> {
    let chapter = chapter(TENSOR_CORES);
    let shown: Vec<_> = quotes(&chapter, "rust,example:").collect();
    assert_eq!(shown.len(), 5);
    let example = |name| file(&format!("examples/src/bin/{name}.rs"));
    expect_none(shown.into_iter().filter_map(|(code, name, _)| misquoted(code, &example(name))));
    let pictures: Vec<_> = chapter.iter().filter(|block| block.info == "text,picture").collect();
    let [picture] = pictures[..] else { panic!("`wgmma_atom` prints one picture") };
    expect_none(misquoted(picture, &TileLayout::accumulator(Scalar::F32, [64, 8])?.to_string()));
    Ok(())
}

#[test]
fn chapters_have_the_figures_of_the_benchmarks() {
    let (page, measured) = (file(&format!("docs/{TENSOR_CORES}")), file("docs/benchmarks.md"));
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert!(measured.lines().any(|line| line == row), "docs/benchmarks.md has no\n{row}");
    }
}
