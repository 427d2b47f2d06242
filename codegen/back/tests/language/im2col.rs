//! Columns of pixels.

use super::ir;

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

#[test]
fn offsets_fit_the_bits_of_their_rank() {
    for (rank, offsets) in [(3, "[65535]"), (4, "[0, 255]"), (5, "[0, 0, 31]")] {
        let map = format!("Im2colMap<Tile<f32, Shape2<16, 8>>, {rank}>");
        ir(&kernel(&map, &format!("m.load(t, [0; {rank}], {offsets}, b);")));
    }
}

#[test]
fn a_column_has_up_to_1024_pixels() {
    ir(&kernel("Im2colMap<Tile<f32, Shape2<1024, 8>>, 4>", ""));
}
