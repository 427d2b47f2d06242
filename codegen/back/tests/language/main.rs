//! The meaning of kernels: the result of the front end, as the text of the IR.

use tma_codegen::Failure;

#[track_caller]
fn ir(source: &str) -> String {
    match tma_codegen::check("language.rs", source) {
        Ok(accepted) => accepted.kernels.iter().map(|checked| checked.kernel.kernel().to_string()).collect(),
        Err(failure) => panic!("refused:\n{failure}"),
    }
}

/// Returns the statements of a kernel with `n: u32`, `out: Global<u32>`, `map` and `x: f32`.
#[track_caller]
fn body(body: &str) -> String {
    let text = ir(&format!(
        "#[tma_kernel(threads = 64)]\nfn k(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>, x: f32) \
         {{\n{body}\n}}"
    ));
    let declared =
        |line: &&str| ["  param ", "  shared ", "  local "].iter().any(|word| line.starts_with(word));
    text.lines().skip(1).filter(|line| !declared(line)).map(|line| format!("{}\n", &line[2..])).collect()
}

#[track_caller]
fn means(source: &str, want: &str) {
    let found = body(source);
    let want: String =
        want.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    assert_eq!(found.trim_end(), want, "found:\n{found}");
}

/// Returns the kernels of a module with `items` and a kernel with the parameters `n: u32` and
/// `out: Global<u32>`.
#[track_caller]
fn module(items: &str, body: &str) -> String {
    ir(&format!(
        "#[tma_module]\nmod m {{\n{items}\n#[tma_kernel(threads = 32)]\nfn k(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {{\n{body}\n}}\n}}"
    ))
}

#[track_caller]
fn refused(source: &str) -> String {
    match tma_codegen::check("language.rs", source) {
        Ok(_) => panic!("accepted:\n{source}"),
        Err(Failure::Rules { errors, .. }) => errors.iter().map(|error| error.text() + "\n").collect(),
        Err(other) => panic!("{other}"),
    }
}

mod aggregates;
mod arrays;
mod bulk;
mod clusters;
mod constants;
mod copies;
mod descriptors;
mod generics;
mod grids;
mod im2col;
mod inference;
mod instances;
mod loops;
mod math;
mod messages;
mod mma;
mod names;
mod options;
mod order;
mod origins;
mod pipelines;
mod ptx_macro;
mod reuse;
mod scopes;
mod teams;
mod tiles;
mod values;
mod vectors;
mod vocabulary;
mod warps;
