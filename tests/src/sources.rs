//! The texts of the kernels, for tests that compile or mutate them.

use std::collections::BTreeMap;
use std::path::Path;

use tma_codegen::{Accepted, Checked, Failure};

/// A file with kernels.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The file's name, without folder and extension.
    pub name: &'static str,
    /// The file's path in the workspace.
    pub path: &'static str,
    /// The file's text.
    pub text: &'static str,
}

impl Source {
    /// Returns whether the target has all instructions of the file's kernels.
    pub fn is_for(&self, target: &str) -> bool {
        is_for(self.text, target)
    }

    /// Checks the file's kernels, which may import items from others of its package.
    ///
    /// # Errors
    ///
    /// The file's mistakes.
    pub fn checked(&self) -> Result<Accepted<Checked>, Failure> {
        let (package, within) = self.path.split_at(self.path.find("src/").unwrap_or_default());
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package);
        tma_codegen::check_in(&package, &BTreeMap::new(), within, self.text)
    }
}

/// Returns whether the target has all instructions of the kernels in this text. `sm_90` cannot
/// change tensor maps, and only `sm_90a` has matmuls of warpgroups.
pub fn is_for(text: &str, target: &str) -> bool {
    let changes_maps = text.contains("SharedMap<");
    match target {
        "sm_90a" => true,
        "sm_90" => !changes_maps && !multiplies(text),
        _ => !multiplies(text),
    }
}

/// Returns whether kernels in this text use matmuls of warpgroups.
pub fn multiplies(text: &str) -> bool {
    text.replace("WarpAccumulator", "").contains("Accumulator")
}

macro_rules! sources {
    ($($name:literal: $path:literal,)+) => {
        &[$(Source { name: $name, path: $path, text: include_str!(concat!("../../", $path)) },)+]
    };
}

/// Returns the examples.
pub fn examples() -> &'static [Source] {
    sources! {
        "attention": "examples/src/bin/attention.rs",
        "cluster_reduce": "examples/src/bin/cluster_reduce.rs",
        "dense_gemm": "examples/src/bin/dense_gemm.rs",
        "gemm_steps": "examples/src/bin/gemm_steps.rs",
        "row_sums": "examples/src/bin/row_sums.rs",
        "tma_coordinates": "examples/src/bin/tma_coordinates.rs",
        "tma_copy": "examples/src/bin/tma_copy.rs",
        "tma_copy_pipelined": "examples/src/bin/tma_copy_pipelined.rs",
        "tma_fp8": "examples/src/bin/tma_fp8.rs",
        "tma_grouped_copy": "examples/src/bin/tma_grouped_copy.rs",
        "tma_im2col": "examples/src/bin/tma_im2col.rs",
        "tma_multicast": "examples/src/bin/tma_multicast.rs",
        "tma_prefetch": "examples/src/bin/tma_prefetch.rs",
        "tma_reduce": "examples/src/bin/tma_reduce.rs",
        "tma_row_fill": "examples/src/bin/tma_row_fill.rs",
        "tma_scale": "examples/src/bin/tma_scale.rs",
        "transpose": "examples/src/bin/transpose.rs",
        "wgmma_atom": "examples/src/bin/wgmma_atom.rs",
    }
}

/// Returns the kernels of this package.
pub fn corpus() -> &'static [Source] {
    sources! {
        "atomics": "tests/src/kernels/atomics.rs",
        "barriers": "tests/src/kernels/barriers.rs",
        "bits": "tests/src/kernels/bits.rs",
        "bulk_clusters": "tests/src/kernels/bulk/clusters.rs",
        "bulk_copies": "tests/src/kernels/bulk/copies.rs",
        "bulk_operations": "tests/src/kernels/bulk/operations.rs",
        "bulk_reductions": "tests/src/kernels/bulk/reductions.rs",
        "casts_narrow": "tests/src/kernels/casts/narrow.rs",
        "casts_pairs": "tests/src/kernels/casts/pairs.rs",
        "clusters": "tests/src/kernels/clusters.rs",
        "control": "tests/src/kernels/control.rs",
        "copies": "tests/src/kernels/copies.rs",
        "derived": "tests/src/kernels/derived.rs",
        "descriptors": "tests/src/kernels/descriptors.rs",
        "faults": "tests/src/kernels/faults.rs",
        "fences": "tests/src/kernels/fences.rs",
        "floats": "tests/src/kernels/floats.rs",
        "forms": "tests/src/kernels/forms.rs",
        "im2col": "tests/src/kernels/im2col.rs",
        "integers": "tests/src/kernels/integers.rs",
        "launches": "tests/src/kernels/launches.rs",
        "math": "tests/src/kernels/math.rs",
        "mma_epilogues": "tests/src/kernels/mma/epilogues.rs",
        "mma_fragments": "tests/src/kernels/mma/fragments.rs",
        "mma_integers": "tests/src/kernels/mma/integers.rs",
        "mma_layouts": "tests/src/kernels/mma/layouts.rs",
        "mma_operands": "tests/src/kernels/mma/operands.rs",
        "mma_prints": "tests/src/kernels/mma/prints.rs",
        "mma_producers": "tests/src/kernels/mma/producers.rs",
        "mma_sparse": "tests/src/kernels/mma/sparse.rs",
        "mma_stops": "tests/src/kernels/mma/stops.rs",
        "mma_types": "tests/src/kernels/mma/types.rs",
        "mma_warp_integers": "tests/src/kernels/mma/warp/integers.rs",
        "mma_warp_narrow": "tests/src/kernels/mma/warp/narrow.rs",
        "mma_warp_operands": "tests/src/kernels/mma/warp/operands.rs",
        "mma_warp_rows": "tests/src/kernels/mma/warp/rows.rs",
        "mma_warp_types": "tests/src/kernels/mma/warp/types.rs",
        "generics": "tests/src/kernels/generics.rs",
        "multicast": "tests/src/kernels/multicast.rs",
        "multicast_pipelines": "tests/src/kernels/multicast_pipelines.rs",
        "multicast_ranks": "tests/src/kernels/multicast_ranks.rs",
        "numbers_loops": "tests/src/kernels/numbers/loops.rs",
        "numbers_methods": "tests/src/kernels/numbers/methods.rs",
        "optional": "tests/src/kernels/optional.rs",
        "orders": "tests/src/kernels/orders.rs",
        "overflow": "tests/src/kernels/overflow.rs",
        "packed": "tests/src/kernels/packed.rs",
        "phases": "tests/src/kernels/phases.rs",
        "pipelines": "tests/src/kernels/pipelines.rs",
        "places": "tests/src/kernels/places.rs",
        "printing": "tests/src/kernels/printing.rs",
        "ptx_macro": "tests/src/kernels/ptx_macro.rs",
        "reused": "tests/src/kernels/reused.rs",
        "reductions_elements": "tests/src/kernels/reductions/elements.rs",
        "reductions_ranks": "tests/src/kernels/reductions/ranks.rs",
        "remote_barriers": "tests/src/kernels/remote_barriers.rs",
        "sharing": "tests/src/kernels/sharing.rs",
        "spans": "tests/src/kernels/spans.rs",
        "structs": "tests/src/kernels/structs.rs",
        "swizzled": "tests/src/kernels/swizzled.rs",
        "tables": "tests/src/kernels/tables.rs",
        "teams": "tests/src/kernels/teams.rs",
        "tensors": "tests/src/kernels/tensors.rs",
        "tiles": "tests/src/kernels/tiles.rs",
        "map_options": "tests/src/kernels/map_options.rs",
        "values": "tests/src/kernels/values.rs",
        "vectors": "tests/src/kernels/vectors.rs",
        "warps": "tests/src/kernels/warps.rs",
    }
}

/// Returns the kernels of the conformance table: hundreds of instances of a few.
pub fn conformance() -> &'static [Source] {
    sources! {
        "columns": "tests/src/conformance/columns.rs",
        "columns_reduced": "tests/src/conformance/columns_reduced.rs",
        "multicast": "tests/src/conformance/multicast.rs",
        "reductions": "tests/src/conformance/reductions.rs",
        "tiles": "tests/src/conformance/tiles.rs",
    }
}

/// Returns the kernels of the benchmarks.
pub fn benchmarks() -> &'static [Source] {
    sources! {
        "additions": "tests/src/gpu/bench/kernels/additions.rs",
        "products_dense": "tests/src/gpu/bench/kernels/products/dense.rs",
        "products_paired": "tests/src/gpu/bench/kernels/products/paired.rs",
        "products_persistent": "tests/src/gpu/bench/kernels/products/persistent.rs",
        "scales": "tests/src/gpu/bench/kernels/scales.rs",
        "streams": "tests/src/gpu/bench/kernels/streams.rs",
    }
}

/// Returns the kernels of `tma-kernels`.
pub fn library() -> &'static [Source] {
    sources! {
        "attention": "tma-kernels/src/attention/kernel.rs",
        "conv": "tma-kernels/src/conv/kernel.rs",
        "gemm": "tma-kernels/src/gemm/dense.rs",
        "gemm_split_k": "tma-kernels/src/gemm/split_k.rs",
        "gemm_full": "tma-kernels/src/gemm/full.rs",
        "gemm_grouped": "tma-kernels/src/gemm/grouped/kernel.rs",
        "gemm_scaled": "tma-kernels/src/gemm/scaled/kernel.rs",
        "gemm_ping_pong": "tma-kernels/src/gemm/ping_pong.rs",
    }
}

/// Returns the kernels of `tma-kernels` for teams.
pub fn team_library() -> &'static [Source] {
    sources! {
        "collectives": "tma-kernels/src/team/kernel.rs",
    }
}

/// The pages of the book whose kernels are compiled.
pub const BOOK: [&str; 18] = [
    "docs/language/kernels.md",
    "docs/language/values.md",
    "docs/language/control-flow.md",
    "docs/language/modules.md",
    "docs/language/shared-memory.md",
    "docs/language/global-memory.md",
    "docs/language/barriers.md",
    "docs/language/tma.md",
    "docs/language/tensor-maps.md",
    "docs/language/tensor-cores.md",
    "docs/language/warp-multiplications.md",
    "docs/language/ordering.md",
    "docs/language/warps-and-clusters.md",
    "docs/pipelines.md",
    "docs/protocol.md",
    "docs/tutorial.md",
    "docs/tutorial-store.md",
    "docs/tutorial-tensor-cores.md",
];

/// A block of code in a page of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeBlock {
    /// The text after the opening fence, such as `rust,kernel`.
    pub info: String,
    /// The line in which the code begins, from 1.
    pub line: usize,
    /// The code.
    pub code: String,
}

/// Returns the blocks of code of a Markdown page.
pub fn code_blocks(page: &str) -> Vec<CodeBlock> {
    let mut blocks = vec![];
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let inside = lines.by_ref().map(|(_, line)| line);
            let code: Vec<_> = inside.take_while(|line| !line.trim_start().starts_with("```")).collect();
            blocks.push(CodeBlock { info: info.to_owned(), line: number + 2, code: code.join("\n") });
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Returns the path of every file below `folder` in the workspace that has a kernel.
    fn with_kernels(folder: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = vec![];
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                found.extend(with_kernels(&path));
            } else if fs::read_to_string(entry.path()).unwrap().contains("#[tma_kernel") {
                found.push(path);
            }
        }
        found
    }

    #[test]
    fn no_file_with_kernels_is_left_out() {
        for (sources, folder) in [
            (examples(), "examples/src/bin"),
            (corpus(), "tests/src/kernels"),
            (conformance(), "tests/src/conformance"),
            (benchmarks(), "tests/src/gpu/bench/kernels"),
        ] {
            let mut listed: Vec<_> = sources.iter().map(|source| source.path.to_owned()).collect();
            let mut found = with_kernels(folder);
            listed.sort();
            found.sort();
            assert_eq!(listed, found);
        }
    }

    #[test]
    fn blocks_of_code_are_found_with_their_lines() {
        let page = "text\n```rust,kernel\nfn f() {}\n\nfn g() {}\n```\nmore\n```\nplain\n```\n";
        let block = |info: &str, line, code: &str| CodeBlock { info: info.into(), line, code: code.into() };
        assert_eq!(
            code_blocks(page),
            [block("rust,kernel", 3, "fn f() {}\n\nfn g() {}"), block("", 9, "plain")]
        );
    }
}
