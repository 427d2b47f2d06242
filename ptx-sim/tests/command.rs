//! The command: its results, its output and its exit codes.
#![cfg(feature = "cli")]

use std::fs;

use crate::common;
use crate::common::command::{COPY, file, output_path, printed, run, wrong_bytes};

/// Doubles each of the `count` numbers in `data`.
const DOUBLE: &str = "\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry double(.param .u64 data, .param .u64 count) {
    .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<5>;
    ld.param.u64 %d1, [data];
    ld.param.u64 %d2, [count];
    mov.u32 %r1, %tid.x;
    cvt.u64.u32 %d3, %r1;
    setp.ge.u64 %p, %d3, %d2;
    @%p ret;
    mul.wide.u32 %d4, %r1, 4;
    add.s64 %d4, %d1, %d4;
    ld.global.u32 %r2, [%d4];
    shl.b32 %r2, %r2, 1;
    st.global.u32 [%d4], %r2;
    ret;
}
";

/// Returns an .npy file of 32-bit numbers, as NumPy writes it.
fn npy(numbers: &[i32]) -> Vec<u8> {
    let header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': ({},), }}", numbers.len());
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

#[test]
fn arrays_are_read_and_written() {
    let ptx = file("double.ptx", DOUBLE);
    let input = format!("npy:{}", file("in.npy", npy(&[1, -2, 3])));
    let target = output_path("out.npy");
    let out = format!("0={}", target.display());
    let paths = [&ptx, "--arg", &input, "--out", &out];
    let output = run(&paths, "--entry double --grid 1 --block 32 --arg len:0 --show 0 --show 0:1");
    let text = printed(&output, 0);
    for wanted in ["no findings\n", "buffer 0: 3 of i32\n       0: 2 -4 6\n", "       0: 2\n"] {
        assert!(text.contains(wanted), "{text}");
    }
    assert_eq!(fs::read(target).expect("it is written"), npy(&[2, -4, 6]));
}

#[test]
fn a_number_too_many_is_found() {
    let ptx = file("bounds.ptx", DOUBLE);
    let options = "--entry double --grid 1,1,1 --block 32 --no-checks --arg zeros:u32:3 --arg u64:4";
    let text = printed(&run(&[&ptx], options), 1);
    assert!(text.contains("out of bounds: "), "{text}");
    assert!(text.contains("ld.global.u32 %r2, [%d4];"), "{text}");
}

fn tma_copy() -> (String, String) {
    common::compile("examples/src/bin/tma_copy.rs").pop().expect("it has a kernel")
}

/// Returns the words after `name` on the line that starts with it.
fn words_after<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_default().split_whitespace()
}

#[test]
fn tma_copy_copies() {
    let (entry, text) = tma_copy();
    let ptx = file("tma_copy.ptx", text);
    let targets = [output_path("src.npy"), output_path("dst.npy")];
    let [src, dst] = [0, 1].map(|index| format!("{index}={}", targets[index].display()));
    let paths = [&ptx, "--entry", &entry, "--out", &src, "--out", &dst];
    for seed in 0..4 {
        let text = printed(&run(&paths, &format!("{COPY} --seed {seed}")), 0);
        // Nine whole tiles, including the part outside the matrix.
        for kind in ["tensor loads", "tensor stores"] {
            let counts: Vec<_> = words_after(&text, kind).collect();
            assert_eq!(counts, ["9", "147456"], "{text}");
        }
        assert!(text.contains("shared-memory bank conflicts: no accesses\n"), "{text}");
        let [src, dst] = targets.each_ref().map(|target| fs::read(target).expect("it is written"));
        assert!(src == dst, "seed {seed}: the copy differs");
        assert!(src[128..].iter().any(|byte| *byte != 0), "the source is zeros");
    }
}

#[test]
fn a_wrong_byte_count_is_found_and_shown_with_its_lines() {
    let (entry, text) = tma_copy();
    let ptx = file("wrong.ptx", wrong_bytes(&text));
    let text = printed(&run(&[&ptx, "--entry", &entry], COPY), 1);
    for wanted in ["wrong transaction bytes: ", "at PTX line ", "tma_copy.rs:", "full", "findings: "] {
        assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
    }
}

#[test]
fn columns_are_gathered() {
    let (entry, text) = common::compile("examples/src/bin/tma_im2col.rs").pop().expect("it has a kernel");
    let ptx = file("tma_im2col.ptx", text);
    let with = |corners: &str| {
        let options = format!(
            "--grid 3 --block 128 --shared 8200 --buffer random:f32:3x15x13x32 \
             --arg map:0:f32:extents=3x15x13x32:column=64x32:steps=1x2x2x1:swizzle=128{corners} \
             --arg random:f32:9216 --arg len:1 --arg zeros:f32:3x8x7x32 --arg len:2 --arg u32:8 --arg u32:7"
        );
        run(&[&ptx, "--entry", &entry], &options)
    };
    let text = printed(&with(":lower=-1x-1:upper=-1x-1"), 0);
    let counts: Vec<_> = words_after(&text, "tensor loads").collect();
    assert_eq!(counts, ["27", "221184"], "nine taps of three blocks: {text}");
    let text = printed(&with(""), 1);
    assert!(text.contains("bounding box"), "{text}");
}

#[test]
fn bad_arguments_are_named() {
    let ptx = file("bad.ptx", DOUBLE);
    let broken = file("broken.ptx", ".version 8.0\n.target sm_90a\n.visible .entry k() { frob.u32; }\n");
    let kernel = "--entry double --grid 1 --block 32";
    let whole = format!("{kernel} --arg zeros:u32:3 --arg len:0");
    for (ptx, words, wanted) in [
        (ptx.as_str(), "--entry double --grid 1", "--block"),
        (&ptx, "--entry triple --grid 1 --block 1", "no kernel `triple`; available: double"),
        (&ptx, "--entry double --grid 1,1,1,1 --block 1", "X,Y,Z"),
        (&ptx, &format!("{whole} --grid 0"), "cannot be used multiple times"),
        (&ptx, &format!("{whole} --show 1"), "no buffer 1"),
        (&ptx, &format!("{whole} --cluster 4294967295,4294967295,2"), "a cluster has at most 16 blocks"),
        (
            &ptx,
            &format!("{whole} --cluster 4294967295,4294967295,4294967295"),
            "a cluster has at most 16 blocks",
        ),
        (&ptx, &format!("{whole} --out 0"), "INDEX=FILE.npy"),
        (&ptx, &format!("{whole} --shared 300000"), "at most 232448 bytes"),
        (&ptx, &format!("{kernel} --arg zeros:u32:3"), "takes 2 arguments, not 1"),
        (&ptx, &format!("{kernel} --arg zeros:u32:3 --arg u32:3"), "argument 1 has 8 bytes, not 4"),
        (&ptx, &format!("{kernel} --arg zeros:u32:3 --arg len:1"), "no buffer 1: there are 1"),
        (&ptx, &format!("{kernel} --arg zeros:f64:4294967296 --arg len:0"), "more than 4294967296 bytes"),
        (&ptx, &format!("{kernel} --arg npy:nowhere.npy --arg len:0"), "nowhere.npy"),
        (&ptx, &format!("{kernel} --arg npy:README.md --arg len:0"), "README.md: not an .npy file"),
        (&ptx, &format!("{kernel} --arg u31:3"), "unknown type `u31`"),
        (
            &ptx,
            &format!("{kernel} --arg zeros:f16:64 --arg map:0:f16:extents=64x8:box=8x8"),
            "needs 1024 bytes, but buffer 0 has 128",
        ),
        (
            &ptx,
            &format!("{kernel} --arg zeros:f16:64 --arg map:0:f16:extents=8x8:box=512x8"),
            "box extent 512",
        ),
        (&broken, "--entry k --grid 1 --block 1", "frob"),
        ("nowhere.ptx", kernel, "nowhere.ptx"),
    ] {
        let text = printed(&run(&[ptx], words), 2);
        assert!(text.contains(wanted), "{words}: no `{wanted}` in:\n{text}");
    }
}

#[test]
fn a_grid_that_would_run_for_hours_is_refused() {
    let ptx = file("grid.ptx", DOUBLE);
    let options = "--entry double --block 1 --arg zeros:u32:1 --arg len:0 --grid";
    let text = printed(&run(&[&ptx], &format!("{options} 2147483647")), 2);
    assert!(text.contains("2147483647 blocks are more than 4194304"), "{text}");
    let text = printed(&run(&[&ptx], &format!("{options} 65 --block-limit 64")), 2);
    assert!(text.contains("`--block-limit`"), "{text}");
    printed(&run(&[&ptx], &format!("{options} 65 --block-limit 65 --no-checks")), 0);
}

/// Runs with less address space than the buffers need.
#[cfg(unix)]
#[test]
fn buffers_that_do_not_fit_the_host_are_an_error() {
    let ptx = file("large.ptx", DOUBLE);
    for buffer in ["zeros:u8:4294967296", "random:f32:1073741824"] {
        let output = std::process::Command::new("sh")
            .args([
                "-c",
                "ulimit -v 1000000 && exec \"$0\" \"$@\"",
                env!("CARGO_BIN_EXE_ptx-sim"),
                "run",
                &ptx,
            ])
            .args("--entry double --grid 1 --block 32 --arg len:0 --arg".split_whitespace())
            .arg(buffer)
            .output()
            .expect("there is a shell");
        let text = printed(&output, 2);
        assert!(text.contains("cannot allocate 4294967296 bytes"), "{buffer}: {text}");
    }
}

#[test]
fn a_grid_that_is_too_large_is_noted_and_is_no_mistake() {
    let (entry, text) = tma_copy();
    let ptx = file("tma_copy_noted.ptx", text);
    // Of 4 columns of tiles, 3 are in the tensor.
    let options = "--grid 4,32 --block 128 --shared 16392 --buffer random:f16:1000x520 --buffer zeros:f16:1000x520 \
                   --arg map:0:f16:extents=1000x520:box=32x256 --arg map:1:f16:extents=1000x520:box=32x256";
    let text = printed(&run(&[&ptx, "--entry", &entry], options), 0);
    let wanted = "no findings\n\nnote: box outside of the tensor: a box at [0, 768] is entirely outside of a tensor of \
                  [1000, 520] (outermost dimension first), so the load brings only fill values\n";
    assert!(text.starts_with(wanted), "{text}");
    for wanted in [
        ", so the store writes nothing\n",
        "  and 31 more, of thread 0 of blocks from (3, 1, 0) to (3, 31, 0)\n",
        "\n\nnotes: 2\n",
    ] {
        assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
    }
}
