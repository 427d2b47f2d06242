//! Maps that kernels make.

use super::ir;

fn kernel(statements: &str) -> String {
    format!(
        "#[tma_kernel(threads = 32)]\nfn k(from: TensorMap<Tile<f32, Shape2<8, 32>>>, data: Global<f32>, \
         maps: Maps<Tile<f32, Shape2<8, 32>>>, n: u32, halves: Global<f16>) {{\n\
         let m: SharedMap<Tile<f32, Shape2<8, 32>>> = shared();\nlet t: Tile<f32, Shape2<8, 32>> = shared();\n\
         let b: Barrier = shared();\n{statements}\n}}"
    )
}

#[test]
fn each_word_is_one_statement() {
    let text = ir(&kernel(
        "m.copy_from(from);\nm.set_address(data, n * 4);\nm.set_extent::<0>(n);\nm.set_extent::<1>(32);\n\
         m.set_stride::<0>(n as u64 * 16);\nm.publish(maps, 1);\nmaps.acquire(n);\n\
         maps.at(n + 1).load(t, [0, 0], b);",
    ));
    for wanted in [
        "param p1 data: Global<f32> written\n",
        "param p2 maps: Maps<Tile<f32, Shape2<8, 32>>>\n",
        "shared s0 m: SharedMap<Tile<f32, Shape2<8, 32>>>\n",
        "map.copy_from s0 p0\n",
        "map.set_address s0 p1[(p3 * 4u32)]\n",
        "map.set_extent s0 0 p3\n",
        "map.set_extent s0 1 32u32\n",
        "map.set_stride s0 0 ((p3 as u64) * 16u64)\n",
        "map.publish s0 p2[1u32]\n",
        "map.acquire p2[p3]\n",
        "v0 = (p3 + 1u32)\n",
        "tma.load p2[v0] [0i32, 0i32] s1 s2\n",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
}

#[test]
fn a_map_that_is_kept_is_the_one_that_it_was() {
    let text = ir(&kernel(
        "let mut i = n;\nlet map = maps.at(i);\ni += 1;\nmap.hint(l2_evict_last(1.0)).store([0, 0], t);\n\
         map.prefetch_descriptor();",
    ));
    assert!(
        text.contains("v1 = v0\n") && text.contains("tma.store p2[v1] [0i32, 0i32] s1 hint v2\n"),
        "{text}"
    );
    assert!(text.contains("tma.prefetch_descriptor p2[v1]\n"), "{text}");
}

#[test]
fn fields_are_what_the_copy_engine_takes() {
    ir(&kernel("m.set_stride::<0>((1 << 40) - 16); m.set_extent::<0>(1); m.set_address(data, 4);"));
}

/// A map is a parameter, which must be known at compile time.
#[test]
fn no_map_is_chosen_at_run_time() {
    for map in [
        "TensorMap<Tile<f32, Shape2<8, 32>>>",
        "Im2colMap<Tile<f32, Shape2<8, 32>>, 4>",
        "Maps<Tile<f32, Shape2<8, 32>>>",
    ] {
        let source = format!(
            "#[tma_kernel(threads = 32)] fn k(a: {map}, b: {map}, n: u32) {{ let one = if n > 0 {{ a }} else {{ b }}; }}"
        );
        let error = tma_codegen::check("k.rs", &source).expect_err(map).to_string();
        assert!(error.contains(&format!("`{map}` cannot be selected at run time")), "{error}");
    }
}
