//! Clusters: the attribute's options, and the words that they bring.

use super::{ir, refused};

/// The statements of a kernel of clusters of `cluster`.
#[track_caller]
fn body(cluster: &str, body: &str) -> String {
    let text = ir(&format!(
        "#[tma_kernel(threads = 64, cluster = {cluster})]\n\
         fn k(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {{\n{body}\n}}"
    ));
    let declared =
        |line: &&str| ["  param ", "  shared ", "  local "].iter().any(|word| line.starts_with(word));
    let lines: Vec<_> = text.lines().skip(1).filter(|line| !declared(line)).map(str::trim_start).collect();
    lines.join("\n")
}

#[track_caller]
fn means(source: &str, want: &str) {
    assert_eq!(body("[2, 2]", source), want);
}

/// The first line of a kernel's text.
fn heading(attribute: &str) -> String {
    let text = ir(&format!("#[tma_kernel({attribute})]\nfn k(out: Global<u32>) {{ out.set(0, 1); }}"));
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn sizes_are_fixed_or_given_at_launch() {
    assert_eq!(heading("threads = 32"), "kernel k threads [32, 1, 1]");
    assert_eq!(heading("threads = 32, cluster = 2"), "kernel k threads [32, 1, 1] cluster [2, 1, 1]");
    assert_eq!(heading("threads = 32, cluster = [1, 2]"), "kernel k threads [32, 1, 1] cluster [1, 2, 1]");
    assert_eq!(heading("threads = 32, cluster = launch"), "kernel k threads [32, 1, 1] cluster launch");
    assert_eq!(
        heading("threads = 32, nonportable_cluster, cluster = [4, 2, 2]"),
        "kernel k threads [32, 1, 1] cluster [4, 2, 2] nonportable_cluster"
    );
    let instances = ir("#[tma_kernel(threads = 32, cluster = [N, 1], instances(a = <2>, b = <4>))]\n\
                        fn k<const N: u32>(out: Global<u32>) { out.set(0, cluster_dim().x); }");
    assert!(instances.contains("k::a threads [32, 1, 1] cluster [2, 1, 1]"), "{instances}");
    assert!(instances.contains("k::b threads [32, 1, 1] cluster [4, 1, 1]"), "{instances}");
}

#[test]
fn places_in_the_cluster() {
    means(
        "out.set(cluster_rank(), block_in_cluster().y + cluster_idx().z + cluster_dim().y);",
        "global.set p1 cluster_rank ((block_in_cluster.y + cluster_idx.z) + 2u32)",
    );
    assert_eq!(body("launch", "out.set(0, cluster_dim().y);"), "global.set p1 0i32 cluster_dim.y");
}

#[test]
fn blocks_meet() {
    means(
        "sync_cluster(); cluster_arrive(); cluster_wait();",
        "sync.cluster\nsync.cluster_arrive\nsync.cluster_wait",
    );
}

#[test]
fn what_other_blocks_share() {
    means(
        "let t: Tile<f32, Shape2<8, 8>> = shared(); let r = remote(t, n); r.set([0, 1], r.get([n, 2]) + 1.0); \
         out.set(r.bytes(), r.rows() + r.cols());",
        "v0 = remote(s0, p0)\nv1 = tile.get v0 [p0, 2u32]\ntile.set v0 [0i32, 1i32] (v1 + 1.0f32)\n\
         global.set p1 256u32 16u32",
    );
    means(
        "let s: Stages<SharedArray<u32, 4>, 2> = shared(); let r = remote(s, 3); r[n].set(0, remote(s[1], n).get(3)); \
         out.set(r.len(), r[0].len());",
        "v0 = remote(s0, 3u32)\nv1 = shared.get remote(s0[1u32], p0) 3u32\nshared.set v0[p0] 0u32 v1\n\
         global.set p1 2u32 4u32",
    );
    means(
        "let b: Barrier = shared(); let r: Remote<Barrier> = remote(b, 1); r.arrive(); r.arrive_expect_tx(n);",
        "v0 = remote(s0, 1u32)\nbarrier.arrive v0\nbarrier.arrive_expect_tx v0 p0",
    );
}

#[test]
fn loads_for_several_blocks() {
    means(
        "let t: Tile<f32, Shape2<8, 8>> = shared(); let w: Tile<f32, Shape2<16, 8>> = shared(); let b: Barrier = shared(); \
         map.load_multicast(t, [n, 8], b, 0b101); map.load_sliced(w, [0, n], b, ClusterAxis::Y);",
        "tma.load_multicast p2 [p0, 8u32] s0 s2 5u16\ntma.load_sliced p2 [0u32, p0] s1 s2 Y",
    );
    let axis = ir("#[tma_module]\nmod m {\n#[tma_device]\n\
         fn load(map: TensorMap<Tile<f32, Shape2<8, 8>>>, tile: Tile<f32, Shape2<16, 8>>, full: Barrier, axis: ClusterAxis) {\n\
         map.load_sliced(tile, [0, 0], full, axis);\n}\n\
         #[tma_kernel(threads = 32, cluster = 2)]\nfn k(map: TensorMap<Tile<f32, Shape2<8, 8>>>) {\n\
         let t: Tile<f32, Shape2<16, 8>> = shared(); let b: Barrier = shared(); load(map, t, b, ClusterAxis::All);\n}\n}");
    assert!(axis.contains("tma.load_sliced p0 [0i32, 0i32] s0 s1 All"), "{axis}");
}

#[test]
fn a_tile_is_sliced_along_its_outermost_dimension_of_more_than_one_element() {
    let sliced = |slice: &str, whole: &str, at: &str| {
        format!(
            "#[tma_kernel(threads = 32, cluster = 2)]\nfn k(map: TensorMap<Tile<f32, {slice}>>) {{\n\
             let w: Tile<f32, {whole}> = shared(); let b: Barrier = shared(); \
             map.load_sliced(w, {at}, b, ClusterAxis::X);\n}}"
        )
    };
    ir(&sliced("Shape3<1, 8, 8>", "Shape3<1, 16, 8>", "[0; 3]"));
    ir(&sliced("Shape3<1, 8, 8>", "Shape3<2, 8, 8>", "[0; 3]"));
    ir(&sliced("Shape5<1, 1, 1, 8, 8>", "Shape5<1, 1, 1, 16, 8>", "[0; 5]"));
    ir(&sliced("Shape2<1, 32>", "Shape2<1, 64>", "[0; 2]"));
    let refused = |slice, whole, wanted: &str| {
        let text = refused(&sliced(slice, whole, "[0; 3]"));
        assert!(text.contains("TMA0234") && text.contains(wanted), "no `{wanted}` in:\n{text}");
    };
    refused("Shape3<2, 8, 8>", "Shape3<2, 16, 8>", "are a `Tile<f32, Shape3<4, 8, 8>>`");
    refused("Shape3<1, 8, 8>", "Shape3<1, 8, 8>", "are a `Tile<f32, Shape3<1, 16, 8>>`");
    refused("Shape3<1, 2, 8>", "Shape3<1, 4, 8>", "along dimension 1 larger");
}

/// What is refused in a kernel of clusters of two, with a tile, an array and a barrier.
#[track_caller]
fn refuses(statement: &str, wanted: &[&str]) {
    let text = refused(&format!(
        "#[tma_kernel(threads = 32, cluster = 2)]\n\
         fn k(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {{\n\
         let tile: Tile<f32, Shape2<8, 8>> = shared(); let all: SharedArray<u32, 4> = shared(); \
         let full: Barrier = shared();\n{statement}\n}}"
    ));
    for wanted in wanted {
        assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
    }
}

#[test]
fn remote_things_do_what_remote_things_can() {
    refuses(
        "remote(full, 1).wait(0);",
        &["TMA0103", "no method `wait`", "made and waited for by its own block"],
    );
    refuses("remote(full, 1).init(1);", &["TMA0103", "no method `init`"]);
    refuses("remote(full, 1).expect_tx(1);", &["TMA0103", "arrive_expect_tx"]);
    refuses("remote(remote(full, 1), 1).arrive();", &["TMA0102", "the block's own tile, array or barrier"]);
    refuses("let x = remote(n, 1);", &["TMA0102", "`u32` is nothing that another block shares"]);
    refuses("let x = remote(full, 1i32);", &["TMA0102", "`u32` is wanted"]);
    refuses("let x = remote(full);", &["TMA0104", "takes 2 arguments"]);
    refuses("map.load(remote(tile, 1), [0, 0], full);", &["TMA0102", "not a remote one", "load_multicast"]);
    refuses("map.store([0, 0], remote(tile, 1));", &["TMA0102", "not a remote one"]);
    refuses("map.load(tile, [0, 0], remote(full, 1));", &["TMA0102", "`Barrier` is wanted"]);
    refuses("let x = remote(all, 1).get(4);", &["TMA0208", "the array's length is 4"]);
    refuses("let x = remote(tile, 1).get([8, 0]);", &["TMA0208", "the tile's extent here is 8"]);
    refuses("let x: Remote<u32> = remote(all, 1);", &["TMA0004", "what another block shares"]);
}

#[test]
fn multicast_takes_what_it_takes() {
    refuses("map.load_multicast(tile, [0, 0], full, n);", &["TMA0102", "`u16` is wanted"]);
    refuses("map.load_sliced(tile, [0, 0], full, 0);", &["TMA0102", "`ClusterAxis` is wanted"]);
    refuses("map.load_sliced(tile, [0, 0], full, ClusterAxis::W);", &["TMA0101", "`X`, `Y`, `Z` and `All`"]);
    refuses("map.load_sliced(all, [0, 0], full, ClusterAxis::X);", &["TMA0102"]);
    refuses(
        "let axis = if n > 0 { ClusterAxis::X } else { ClusterAxis::Y };",
        &["TMA0002", "`ClusterAxis` cannot be chosen at run time"],
    );
}

#[test]
fn the_attribute_is_judged() {
    let attribute = |options: &str| {
        refused(&format!(
            "#[tma_kernel(threads = 32, {options})]\nfn k(out: Global<u32>) {{ out.set(0, 1); }}"
        ))
    };
    for (options, wanted) in [
        ("nonportable_cluster", "TMA0006"),
        ("cluster = [1, 1, 1, 1]", "TMA0006"),
        ("cluster = []", "TMA0006"),
        ("cluster = 2, cluster = 2", "TMA0006"),
        ("cluster = 2, nonportable_cluster, nonportable_cluster", "TMA0006"),
        ("clusters = 2", "TMA0006"),
        ("cluster = 0", "TMA0231"),
        ("cluster = [4, 4]", "TMA0231"),
        ("cluster = [0xffff_ffff, 0xffff_ffff, 0xffff_ffff]", "TMA0231"),
        ("cluster = 17, nonportable_cluster", "TMA0231"),
    ] {
        let text = attribute(options);
        assert!(text.contains(wanted), "no {wanted} for `{options}` in:\n{text}");
    }
}

/// A ring of one stage, and a slot of it to read.
const SLOT: &str = "let ring: Pipeline<(Tile<f32, Shape2<8, 8>>,), 1> = shared(); let mut c = ring.consumer(); \
     let slot = c.wait();";
const WAIT: &str = "v0 = 0u32\nv1 = 0u32\nv2 = v0\nbarrier.wait s1[v2] v1\nv1 = (v1 ^ 1u32)\nv3 = v2\n";

#[test]
fn a_slot_is_released_to_one_block_or_to_all() {
    means(&format!("{SLOT} slot.release_to(n);"), &format!("{WAIT}barrier.arrive remote(s2[v3], p0)"));
    means(
        &format!("{SLOT} slot.release_cluster();"),
        &format!("{WAIT}l0: for v4 in 0u32..4u32 step 1usize\nbarrier.arrive remote(s2[v3], v4)"),
    );
    assert_eq!(
        body("launch", &format!("{SLOT} slot.release_cluster();")),
        format!(
            "{WAIT}l0: for v4 in 0u32..((cluster_dim.x * cluster_dim.y) * cluster_dim.z) step 1usize\n\
             barrier.arrive remote(s2[v3], v4)"
        )
    );
}

#[test]
fn a_fence_comes_before_all_blocks_are_told() {
    let read = "v4 = tile.get s0[v3] [0i32, 0i32]\n";
    means(
        &format!("{SLOT} slot.0.get([0, 0]); slot.release_to(n);"),
        &format!("{WAIT}{read}fence.proxy_async own\nbarrier.arrive remote(s2[v3], p0)"),
    );
    means(
        &format!("{SLOT} slot.0.get([0, 0]); slot.release_cluster();"),
        &format!(
            "{WAIT}{read}fence.proxy_async own\nl0: for v5 in 0u32..4u32 step 1usize\nbarrier.arrive remote(s2[v3], v5)"
        ),
    );
}

#[test]
fn a_slot_is_released_to_blocks_of_the_cluster_only() {
    let error = |cluster: &str, release: &str, want: &str| {
        let kernel =
            format!("#[tma_kernel(threads = 64{cluster})]\nfn k(n: u32) {{ {SLOT} slot.{release}; }}");
        let text = refused(&kernel);
        assert!(text.contains(want), "{text}");
    };
    error(", cluster = 2", "release_to(2)", "has no block of rank 2");
    error("", "release_to(0)", "`release_to` is about clusters, and this kernel has none");
    error("", "release_cluster()", "`release_cluster` is about clusters, and this kernel has none");
    error(", cluster = 2", "release_to()", "TMA0104");
    error(", cluster = 2", "release_to(1.5)", "TMA0102");
    error(", cluster = 2", "release_cluster(n)", "TMA0104");
}
