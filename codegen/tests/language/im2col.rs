//! Columns of pixels.

use super::{ir, refused};

fn kernel(map: &str, statement: &str) -> String {
    format!(
        "#[tma_kernel(threads = 64)]\nfn k(m: {map}, n: u32) {{\nlet t: Tile<f32, Shape2<16, 8>> = shared();\n\
         let b: Barrier = shared();\n{statement}\n}}"
    )
}

const IMAGES: &str = "Im2colMap<Tile<f32, Shape2<16, 8>>, 4>";

#[test]
fn each_word_is_one_statement() {
    let text = ir(&kernel(
        IMAGES,
        "m.load(t, [1, -1, -1, 0], [2, n as u16], b);\nlet offsets = [1u16, 2];\n\
         m.hint(l2_evict_last(1.0)).prefetch([n, n, n, 0], offsets);\nm.store([0, 0, 0, 8], t);\n\
         m.reduce_add([0, 0, 0, 0], t);\nm.prefetch_descriptor();",
    ));
    for wanted in [
        "param p0 m: Im2colMap<Tile<f32, Shape2<16, 8>>, 4> written\n",
        "tma.load p0 [1i32, -1i32, -1i32, 0i32] offsets [2u16, (p1 as u16)] s0 s1\n",
        "tma.prefetch p0 [p1, p1, p1, 0u32] offsets [v0[0usize], v0[1usize]] hint v",
        "tma.store p0 [0i32, 0i32, 0i32, 8i32] s0\n",
        "tma.reduce_add p0 [0i32, 0i32, 0i32, 0i32] s0\n",
        "tma.prefetch_descriptor p0\n",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
}

#[track_caller]
fn wrong(map: &str, statement: &str, why: &str) {
    let found = refused(&kernel(map, statement));
    assert!(found.contains(why), "{why:?} is not in\n{found}");
}

#[test]
fn coordinates_and_offsets_are_those_of_the_tensor() {
    wrong(
        IMAGES,
        "m.load(t, [0, 0], [0, 0], b);",
        "TMA0204: 2 coordinates are given, but there are 4 dimensions",
    );
    wrong(
        IMAGES,
        "m.load(t, [0, 0, 0, 0], [0], b);",
        "TMA0204: 1 offset is given, but there are 2 dimensions",
    );
    wrong(IMAGES, "m.load(t, [0, 0, 0, 0], [n, n], b);", "TMA0102: offsets are `u16`, not `u32`");
    wrong(IMAGES, "m.load(t, [0, 0, 0, 0], n, b);", "TMA0102: offsets are an array");
    wrong(IMAGES, "m.load(t, [0, 0, 0, 0], b);", "TMA0104");
    wrong(IMAGES, "m.load(t, [0, 0, 0, 2], [0, 0], b);", "TMA0221");
    wrong(IMAGES, "m.store([0, -1, 0, 0], t);", "TMA0222");
}

#[test]
fn offsets_fit_the_bits_of_their_rank() {
    let of = |rank, most: u32, zeros| {
        let map = format!("Im2colMap<Tile<f32, Shape2<16, 8>>, {rank}>");
        let load = |offset| format!("m.load(t, [0; {rank}], [{zeros}{offset}], b);");
        ir(&kernel(&map, &load(most)));
        if most < 65535 {
            wrong(&map, &load(most + 1), "TMA0242");
        }
    };
    of(3, 65535, "");
    of(4, 255, "0, ");
    of(5, 31, "0, 0, ");
}

#[test]
fn the_type_is_pixels_by_channels_and_a_rank() {
    wrong(
        "Im2colMap<Tile<f32, Shape2<16, 8>>, 6>",
        "",
        "TMA0004: im2col mode is for tensors of 3 to 5 dimensions, not of 6",
    );
    wrong(
        "Im2colMap<Tile<f32, Shape1<8>>, 4>",
        "",
        "TMA0004: an im2col map moves a tile of pixels by channels",
    );
    wrong("Im2colMap<Tile<f32, Shape2<1025, 8>>, 4>", "", "TMA0201");
    wrong("Im2colMap<Tile<f32, Shape2<16, 260>>, 4>", "", "TMA0201");
    ir(&kernel("Im2colMap<Tile<f32, Shape2<1024, 8>>, 4>", ""));
}
