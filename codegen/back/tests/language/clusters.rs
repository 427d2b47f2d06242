//! Clusters: the options of the attribute, and the words of clusters.

use super::{ir, refused};

/// Returns the statements of a kernel with this cluster size.
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

/// Returns the first line of a kernel's text.
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
fn indices_in_the_cluster() {
    means(
        "out.set(cluster_rank(), block_in_cluster().y + cluster_idx().z + cluster_dim().y);",
        "global.set p1 cluster_rank ((block_in_cluster.y + cluster_idx.z) + 2u32)",
    );
    assert_eq!(body("launch", "out.set(0, cluster_dim().y);"), "global.set p1 0i32 cluster_dim.y");
}

#[test]
fn blocks_synchronise() {
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
fn a_fence_precedes_the_arrival_at_other_blocks() {
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

/// A kernel may have instances with clusters and without.
#[test]
fn a_release_that_a_constant_leaves_out_needs_no_cluster() {
    let kernel = |release: &str| {
        format!(
            "#[tma_kernel(threads = 64, instances(alone = <1>))]\n\
             fn k<const BLOCKS: u32>(n: u32) {{ {SLOT} {release} }}"
        )
    };
    for release in ["slot.release_cluster();", "slot.release_to(n);"] {
        ir(&kernel(&format!("if BLOCKS > 1 {{ {release} }} else {{ slot.release(); }}")));
        ir(&kernel(&format!("if BLOCKS == 1 {{ slot.release(); }} else {{ {release} }}")));
        for kept in [format!("if BLOCKS == 1 {{ {release} }}"), format!("if n > 1 {{ {release} }}")] {
            assert!(refused(&kernel(&kept)).contains("TMA0232"), "{kept}");
        }
    }
}
