//! Coordinates by tile: `tile_at` and `block_tile` expand to the coordinates that one would write.

use super::{ir, means, refused};

/// Returns the statements of a kernel with a map of three dimensions, without its first line.
#[track_caller]
fn loads(body: &str) -> String {
    let text = ir(&format!(
        "#[tma_kernel(threads = 32, cluster = 2)]\n\
         fn k(map: TensorMap<Tile<f32, Shape3<4, 1, 8>>>, rows: TensorMap<Tile<u8, Shape1<64>>>, n: u32, i: i32) {{\n\
         let t: Tile<f32, Shape3<4, 1, 8>> = shared(); let r: Tile<u8, Shape1<64>> = shared(); \
         let w: Tile<f32, Shape3<8, 1, 8>> = shared(); let b: Barrier = shared();\n{body}\n}}"
    ));
    let (_, statements) = text.split_once('\n').unwrap_or_default();
    statements.to_owned()
}

#[track_caller]
fn same(by_tile: &str, by_hand: &str) {
    assert_eq!(loads(by_tile), loads(by_hand));
}

#[test]
fn the_index_times_the_extents() {
    means(
        "let t: Tile<f32, Shape2<8, 8>> = shared(); let b: Barrier = shared(); map.load(t, map.tile_at([n, 3]), b);",
        "tma.load p2 [(p0 * 8u32), 24u32] s0 s1",
    );
    same("map.load(t, map.tile_at([n, n + 1, 2]), b);", "map.load(t, [n * 4, n + 1, 2 * 8], b);");
    same(
        "let at = map.tile_at([i, 0, -1]); map.load(t, at, b);",
        "let at = [i * 4, 0, -8]; map.load(t, at, b);",
    );
    same("map.load(t, t.tile_at([0, 1, 2]), b);", "map.load(t, [0, 1, 16], b);");
    same(
        "rows.prefetch(rows.hint(l2_evict_first(1.0)).tile_at([n]));",
        "rows.hint(l2_evict_first(1.0)); rows.prefetch([n * 64]);",
    );
    same(
        "let at = [n, 0, 1]; map.prefetch(map.tile_at(at));",
        "let at = [n, 0, 1]; map.prefetch([at[0] * 4, at[1], at[2] * 8]);",
    );
}

#[test]
fn the_tile_of_slices_counts_whole_tiles() {
    same(
        "map.load_sliced(w, w.tile_at([n, 0, 1]), b, ClusterAxis::X);",
        "map.load_sliced(w, [n * 8, 0, 8], b, ClusterAxis::X);",
    );
}

#[test]
fn an_index_is_read_once_and_in_order() {
    let found = loads("let mut k = n; map.load(t, map.tile_at([k, 0, { k += 1; k }]), b);");
    let wanted =
        "v0 = p2\n  v1 = v0\n  v0 = (v0 + 1u32)\n  tma.load p0 [(v1 * 4u32), 0u32, (v0 * 8u32)] s0 s3\n";
    assert!(found.ends_with(wanted), "{found}");
}

#[test]
fn the_type_of_an_open_literal_is_that_of_its_use() {
    same(
        "let at = map.tile_at([0, 0, 1]); map.prefetch([at[0], n, 0]);",
        "let at = [0, 0, 8]; map.prefetch([at[0], n, 0]);",
    );
    same("map.prefetch(map.tile_at([0, 0, 1]));", "map.prefetch([0, 0, 8]);");
}

#[test]
fn the_tile_of_a_block_is_that_of_the_grid() {
    same(
        "map.load(t, map.block_tile(), b);",
        "map.load(t, [block_idx().z * 4, block_idx().y, block_idx().x * 8], b);",
    );
    same("rows.prefetch(rows.block_tile());", "rows.prefetch([block_idx().x * 64]);");
}

/// Checks the error of a statement with maps of two and of four dimensions, and one of columns.
#[track_caller]
fn refuses(statement: &str, wanted: &[&str]) {
    let text = refused(&format!(
        "#[tma_kernel(threads = 32)]\n\
         fn k(map: TensorMap<Tile<f32, Shape2<8, 8>>>, four: TensorMap<Tile<f32, Shape4<1, 1, 8, 8>>>, \
         columns: Im2colMap<Tile<f32, Shape2<8, 8>>, 4>, n: u32, x: f32, w: u64) {{\n\
         let t: Tile<f32, Shape2<8, 8>> = shared(); let b: Barrier = shared();\n{statement}\n}}"
    ));
    for wanted in wanted {
        assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
    }
}

#[test]
fn indices_are_as_coordinates_are() {
    refuses("map.load(t, map.tile_at([n]), b);", &["TMA0204", "expected 2 tile coordinates, found 1"]);
    refuses(
        "map.load(t, map.tile_at(n), b);",
        &["TMA0102", "expected an array of tile coordinates, found `u32`"],
    );
    refuses(
        "map.load(t, map.tile_at([w, w]), b);",
        &["TMA0102", "coordinates must be `u32` or `i32`, not `u64`"],
    );
    refuses("map.load(t, map.tile_at([x, x]), b);", &["TMA0102", "not `f32`"]);
    refuses("map.load(t, map.tile_at([0.5, 1.0]), b);", &["TMA0102", "not a float"]);
    refuses("map.load(t, map.tile_at(n, n), b);", &["TMA0104"]);
    refuses("map.load(t, map.block_tile(0), b);", &["TMA0104"]);
    refuses("map.store(map.tile_at([0, -1]), t);", &["TMA0222", "the column coordinate is -8"]);
}

#[test]
fn a_tile_begins_where_a_coordinate_can() {
    refuses(
        "map.prefetch(map.tile_at([268435456, 0]));",
        &["TMA0226", "tile 268435456 of 8 elements starts at 2147483648"],
    );
    refuses("map.prefetch(map.tile_at([n, 4294967295]));", &["TMA0226", "starts at 34359738360"]);
    refuses("map.prefetch(map.tile_at([-268435457, 0]));", &["TMA0226"]);
    ir("#[tma_kernel(threads = 32)]\nfn k(map: TensorMap<Tile<f32, Shape2<8, 8>>>) {\n\
        map.prefetch(map.tile_at([268435455, -268435456]));\n}");
}

/// Like all values of constants: see "Instances" in docs/language/kernels.md.
#[test]
fn a_branch_that_a_constant_leaves_out_is_not_judged() {
    let instances = |body: &str| {
        format!(
            "#[tma_kernel(threads = 32, instances(a = <1, 40>))]\n\
             fn k<const N: u32, const S: u32>(map: TensorMap<Tile<f32, Shape2<8, 8>>>, n: u32) {{\n{body}\n}}"
        )
    };
    let (tile, shift) = ("map.prefetch(map.tile_at([268435456, 0]));", "map.prefetch([n << S, 0]);");
    for left_out in ["if N > 1 { .. }", "if N == 1 {} else { .. }", "if N > 1 { if n == 0 { .. } }"] {
        ir(&instances(&left_out.replace("..", tile)));
        ir(&instances(&left_out.replace("..", shift)));
    }
    for kept in ["if N == 1 { .. }", "if n > 1 { .. }", "if N > 1 {} else { .. }", "if N > 1 {} .."] {
        assert!(refused(&instances(&kept.replace("..", tile))).contains("TMA0226"), "{kept}");
        refused(&instances(&kept.replace("..", shift)));
    }
}

#[test]
fn columns_are_no_tiles_of_a_grid() {
    for word in ["tile_at([0, 0])", "block_tile()"] {
        let name = word.split('(').next().unwrap_or_default();
        refuses(
            &format!("columns.prefetch(columns.{word}, [0, 0]);"),
            &["TMA0103", &format!("an im2col map has no `{name}`"), "[image, y, x, channel]"],
        );
    }
}

#[test]
fn a_block_has_an_index_along_three_axes() {
    refuses("four.prefetch(four.block_tile());", &["TMA0238", "tiles have 4 dimensions", "tile_at([..])"]);
}

#[test]
fn tiles_are_printed() {
    means("let t: Tile<f32, Shape2<8, 8>> = shared(); print_tile(t);", "print_tile s0");
    means(
        "let t: Stages<Tile<f16, Shape2<64, 64>, Swizzle128>, 2> = shared(); print_tile(t[n].band::<8>(3));",
        "print_tile s0[p0][3u32]",
    );
}

#[test]
fn nothing_else_is_printed_as_a_tile() {
    let sum = "let mut sum = Accumulator::<f32, 64, 64>::zero();";
    let kernel = |body: &str| {
        refused(&format!("#[tma_kernel(threads = 128, cluster = 2)]\nfn k(n: u32) {{ {body} }}"))
    };
    for (body, found, help) in [
        (&*format!("{sum} print_tile(sum);"), "not `Accumulator<f32, 64, 64>`", "store it to a tile"),
        (&format!("{sum} print_tile(sum.columns::<8>(0));"), "takes a tile, not", "store it to a tile"),
        ("print_tile(n);", "not `u32`", "print single values with `printf!`"),
        ("let a: SharedArray<u32, 4> = shared(); print_tile(a);", "takes a tile, not", "pass a `Tile`"),
        (
            "let t: Tile<f32, Shape2<8, 8>> = shared(); print_tile(remote(t, 0));",
            "takes a tile, not",
            "of the block's own",
        ),
    ] {
        let text = kernel(body);
        assert!(text.contains(found) && text.contains(help), "{body}: {text}");
    }
}

/// An index that is known after unrolling is checked like a constant.
#[test]
fn tma0208_indices_in_iterations_of_unrolled_loops() {
    let of = |body: &str| {
        format!(
            "#[tma_kernel(threads = 32)]\nfn k(n: u32, out: Global<u32>) {{\n\
             let lines: Stages<SharedArray<u32, 32>, 2> = shared();\n\
             let tile: Tile<u32, Shape2<4, 32>> = shared();\nlet parts = [1u32, 2, 3];\n{body}\n}}"
        )
    };
    for (broken, message, kept) in [
        (
            "for i in unroll(0..4) { out.set(0, parts[i]); }",
            "index 3 is out of bounds: the array has 3 elements\nnote: in the iteration of the unrolled loop where `i` is 3",
            "for i in unroll(0..3) { out.set(0, parts[i]); }",
        ),
        (
            "let mut own = [[0u32; 2]; 3]; for i in unroll(0..3) { own[i][i] = n; } out.set(0, own[0][0]);",
            "index 2 is out of bounds: the array has 2 elements",
            "let mut own = [[0u32; 2]; 3]; for i in unroll(0..2) { own[i][i] = n; } out.set(0, own[0][0]);",
        ),
        (
            "for i in unroll(0..3u32) { lines[i].set(0, n); }",
            "index 2 is out of bounds: there are 2 stages",
            "for i in unroll(0..3u32) { lines[i % 2].set(0, n); }",
        ),
        (
            "for i in unroll(0..3u32) { out.set(0, lines[0].get(16 * i)); }",
            "index 32 is out of bounds: the array has 32 elements",
            "for i in unroll(0..3u32) { out.set(0, lines[0].get(15 * i)); }",
        ),
        (
            "for i in unroll(0..2) { for j in unroll(0..=4u32) { tile.set([j, 0], n); } }",
            "index 4 is out of bounds: the tile has 4 rows\nnote: in the iteration of the unrolled loop where \
             `i` is 0 and `j` is 4",
            "for i in unroll(0..2) { for j in unroll(0..=3u32) { tile.set([j, 0], n); } }",
        ),
    ] {
        let text = refused(&of(broken));
        assert_eq!(text.matches("TMA0").count(), 1, "{text}");
        assert!(text.starts_with("TMA0208") && text.contains(message), "{text}");
        ir(&of(kept));
    }
    // Indices that are known only at run time are left to checked kernels, as are unreachable ones.
    for kept in [
        "for i in 0..4 { out.set(0, parts[i]); }",
        "for i in unroll(0..4) { if i == 3 { break; } out.set(0, parts[i]); }",
        "for i in unroll(0..4) { if i == 3 { continue; } out.set(0, parts[i]); }",
        "let mut i = 2; while i > 0 { i -= 1; out.set(0, parts[i]); } out.set(0, parts[i + 3]);",
    ] {
        ir(&of(kept));
    }
}
