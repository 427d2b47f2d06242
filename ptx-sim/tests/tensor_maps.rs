//! Tensor maps that kernels change, and copies in im2col mode: handwritten kernels, and variants
//! that each break one thing.

use ptx_sim::tensor_map::{DataType, Fill, Interleave, Mode, Swizzle, TensorMap};
use ptx_sim::{Arg, Checks, FindingKind, GlobalMemory, LaunchConfig, Module, launch};

/// Rows and columns of the matrices of `u16`, and of the box.
const MATRIX: [u64; 2] = [12, 32];
const BOX: [u32; 2] = [4, 16];

/// A warp derives a map from a template by changing its address and number of rows in shared
/// memory, copies it to global memory, loads a box through it, and stores the box through the map
/// `to`.
const REPLACE: &str = "
.version 8.3
.target sm_90a
.address_size 64
.visible .entry replace(.param .align 64 .b8 template[128], .param .align 64 .b8 to[128],
    .param .u64 tensor, .param .u64 place)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    .shared .align 128 .b8 tile[128];
    .shared .align 64 .b8 map[128];
    .shared .align 8 .b64 full;
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p0, %r0, 0;
    mov.u32 %r1, map;
    mov.b64 %rd0, template;
    shl.b32 %r2, %r0, 2;
    cvt.u64.u32 %rd1, %r2;
    add.u64 %rd1, %rd0, %rd1;
    ld.param.b32 %r3, [%rd1];
    add.u32 %r4, %r1, %r2;
    st.shared.b32 [%r4], %r3;
    bar.warp.sync -1;                       // written
    ld.param.u64 %rd2, [tensor];
    ld.param.u64 %rd3, [place];
    @%p0 bra REPLACED;
    cvt.u64.u32 %rd4, %r1;
    cvta.shared.u64 %rd5, %rd4;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd2;
    tensormap.replace.tile.global_dim.b1024.b32 [%rd5], 1, 6;
    mbarrier.init.shared.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
REPLACED:
    bar.warp.sync -1;                       // replaced
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd3], [%r1], 128; // put
    @%p0 bra DONE;
    // change again
    fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128; // acquire
    // and again
    mov.u32 %r5, tile;
    mov.u32 %r6, 4;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r5], [%rd3, {0, %r6}], [full];
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 128;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
    @!%p1 bra WAIT;
    mov.b64 %rd6, to;
    cvta.param.u64 %rd6, %rd6;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd6, {0, 0}], [%r5];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
DONE:
    ret;
}
";

/// Returns a map of a matrix of `u16`.
fn matrix(address: u64) -> TensorMap {
    TensorMap {
        element: DataType::U16,
        address,
        extents: vec![MATRIX[1], MATRIX[0]],
        byte_strides: vec![MATRIX[1] * 2],
        mode: Mode::Tiled { box_extents: vec![BOX[1], BOX[0]] },
        element_strides: vec![1, 1],
        interleave: Interleave::None,
        swizzle: Swizzle::None,
        fill: Fill::Zeros,
    }
}

/// Returns the kind and text of each finding, and the first 4 rows of 16 numbers that the kernel
/// has stored.
fn run_replace(ptx: &str, seed: u64) -> (Vec<(FindingKind, String)>, Vec<u16>) {
    let module = Module::load(ptx).expect("it loads");
    let mut memory = GlobalMemory::default();
    let bytes = MATRIX[0] * MATRIX[1] * 2;
    let [template, tensor, to] = [0; 3].map(|_| memory.allocate(bytes, false).expect("there is room"));
    let buffer = memory.allocate(128, false).expect("there is room");
    let numbers: Vec<u8> = (0..bytes as u16 / 2).flat_map(u16::to_le_bytes).collect();
    memory.write(tensor, &numbers).expect("it fits");
    let config = LaunchConfig { block: [32, 1, 1], seed, checks: Checks::ALL, ..LaunchConfig::default() };
    let args = [Arg::Map(matrix(template)), Arg::Map(matrix(to)), Arg::Address(tensor), Arg::Address(buffer)];
    let report = launch(&module, &mut memory, "replace", &config, &args).expect("it starts");
    let found = report.findings.iter().map(|finding| (finding.kind, finding.message.clone())).collect();
    let stored = (0..BOX[0]).flat_map(|row| {
        let mut bytes = [0; BOX[1] as usize * 2];
        memory.read(to + u64::from(row) * MATRIX[1] * 2, &mut bytes).expect("it is there");
        bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect::<Vec<_>>()
    });
    (found, stored.collect())
}

#[test]
fn a_changed_map_is_used() {
    // From row 4 of the 6 rows in the changed map: two rows of data, and two of zeros.
    let wanted: Vec<u16> = (4..8)
        .flat_map(|row| (0..16).map(move |column| if row < 6 { row * 32 + column } else { 0 }))
        .collect();
    for seed in 0..64 {
        assert_eq!(run_replace(REPLACE, seed), (Vec::new(), wanted.clone()), "seed {seed}");
    }
}

/// Checks that the kernel with `new` in place of `old` has a finding of `kind` with `expected` in
/// its message, under each seed.
fn replaced(old: &str, new: &str, kind: FindingKind, expected: &str) {
    assert_eq!(REPLACE.matches(old).count(), 1, "{old}");
    let ptx = REPLACE.replace(old, new);
    for seed in 0..16 {
        let (found, _) = run_replace(&ptx, seed);
        let hit = found.iter().any(|(have, message)| *have == kind && message.contains(expected));
        assert!(hit, "seed {seed}, {old:?} as {new:?}: {found:?}");
    }
}

const ACQUIRE: &str = "fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128; // acquire";
const PUT: &str = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd3], [%r1], 128; // put";

#[test]
fn a_map_is_acquired_before_it_is_used() {
    replaced(ACQUIRE, "", FindingKind::MissingProxyFence, "is used, but was not acquired");
    let change = "tensormap.replace.tile.global_dim.global.b1024.b32 [%rd3], 1, 5;\n";
    replaced("// and again", change, FindingKind::MissingProxyFence, "has changed since it was acquired");
    let store = "st.global.b32 [%rd3+48], %r0;\n";
    replaced("// and again", store, FindingKind::MissingProxyFence, "has changed since it was acquired");
}

#[test]
fn a_change_is_released_before_it_is_acquired() {
    let change = "tensormap.replace.tile.global_dim.global.b1024.b32 [%rd3], 1, 6;";
    replaced("// change again", change, FindingKind::MissingProxyFence, "its change was not released");
    let released = format!("{change} fence.proxy.tensormap::generic.release.gpu;");
    for seed in 0..16 {
        let (found, _) = run_replace(&REPLACE.replace("// change again", &released), seed);
        assert_eq!(found, []);
    }
}

#[test]
fn lanes_that_build_a_map_are_ordered() {
    replaced("bar.warp.sync -1;                       // written", "", FindingKind::Race, "shared memory");
}

#[test]
fn a_warp_writes_a_map_to_global_memory() {
    replaced(PUT, &format!("@!%p0 {PUT}\nbar.warp.sync -1;"), FindingKind::Deadlock, "");
}

#[test]
fn copies_take_maps_of_parameters_and_global_memory_only() {
    replaced("[%rd3, {0, %r6}]", "[%rd5, {0, %r6}]", FindingKind::IllegalCopy, "in shared memory");
    replaced(PUT, "", FindingKind::IllegalCopy, "there is no tensor map at");
    replaced("[%rd3, {0, %r6}]", "[%rd3+16, {0, %r6}]", FindingKind::Misaligned, "not aligned to 64 bytes");
}

#[test]
fn changed_maps_are_checked_at_their_use() {
    let again = |change: &str, expected: &str| {
        let text = format!("{change} fence.proxy.tensormap::generic.release.gpu;");
        replaced("// change again", &text, FindingKind::IllegalCopy, expected);
    };
    again(
        "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd3], 0, 4;",
        "a tensor map with rows of 8 bytes in the box",
    );
    again(
        "tensormap.replace.tile.rank.global.b1024.b32 [%rd3], 2;",
        "a copy has 2 coordinates, but its tensor map has rank 3",
    );
    again(
        "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%rd3], 1; tensormap.replace.tile.elemtype.global.b1024.b32 [%rd3], 5;",
        "exceed the swizzle's span of 32",
    );
    again(
        "tensormap.replace.tile.global_address.global.b1024.b64 [%rd3], 8;",
        "the address 0x8 is not a multiple",
    );
}

/// A row that ends within 16 bytes: loads are exact to the element, but stores write all 16.
#[test]
fn stores_through_a_changed_map_keep_to_its_rows() {
    let with = |columns: u32, through: &str| {
        let rows = "tensormap.replace.tile.global_dim.b1024.b32 [%rd5], 1, 6;";
        let both = format!("{rows}\n    tensormap.replace.tile.global_dim.b1024.b32 [%rd5], 0, {columns};");
        let store = format!("tile.bulk_group [{through}, {{0, 0}}]");
        let ptx = REPLACE.replace(rows, &both).replace("tile.bulk_group [%rd6, {0, 0}]", &store);
        assert!(ptx.contains(&both) && ptx.contains(&store), "the kernel has other lines");
        ptx
    };
    for seed in 0..4 {
        assert_eq!(run_replace(&with(16, "%rd3"), seed).0, [], "seed {seed}");
        assert_eq!(run_replace(&with(13, "%rd6"), seed).0, [], "seed {seed}");
        let (found, _) = run_replace(&with(13, "%rd3"), seed);
        assert!(
            matches!(&found[..], [(FindingKind::OutOfBounds, text)] if text.contains("rows of 26 bytes")),
            "seed {seed}: {found:?}"
        );
    }
}

#[test]
fn invalid_maps_cannot_be_changed() {
    let garbage = "st.shared.b32 [map], %r0; tensormap.replace.tile.rank.shared::cta.b1024.b32 [map], 1;";
    replaced("// change again", garbage, FindingKind::IllegalCopy, "neither a tensor map nor 128 zeros");
}

#[test]
fn wrong_replacements_do_not_load() {
    for (old, new, expected) in [
        ("[%rd5], 1, 6", "[%rd5], 5, 6", "0 to 4"),
        ("global_dim.b1024.b32", "global_dim.b1024.b64", "32 bits"),
        ("tile.global_dim", "tile.global_size", "not supported"),
        ("[%rd3], [%r1], 128", "[%rd3], [%r1], 64", "expected a size of 128"),
        ("acquire.gpu [%rd3], 128", "acquire.gpu [%rd3], 256", "expected a size of 128"),
    ] {
        let error = Module::load(&REPLACE.replace(old, new)).err().map(|error| error.to_string());
        assert!(error.as_ref().is_some_and(|error| error.contains(expected)), "{new}: {error:?}");
    }
}

/// A thread gathers the pixels that tap `offset` of a filter sees, and stores them as a column.
const COLUMNS: &str = "
.version 8.3
.target sm_90a
.address_size 64
.visible .entry columns(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128])
{
    .reg .pred %p<2>;
    .reg .b16 %h<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 128 .b8 tile[192];
    .shared .align 8 .b64 full;
    mbarrier.init.shared.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    mov.u32 %r0, tile;
    mov.u32 %r1, -1;
    mov.u16 %h0, 2;
    mov.u16 %h1, 1;
    mov.b64 %rd0, from;
    cvta.param.u64 %rd0, %rd0;
    cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
        [%r0], [%rd0, {0, %r1, 0, 1}], [full], {%h0, %h1};
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 192;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p0, [full], 0;
    @!%p0 bra WAIT;
    mov.b64 %rd1, to;
    cvta.param.u64 %rd1, %rd1;
    cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%rd1, {0, 2, 0}], [%r0];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
";

/// Runs the kernel on 3 images of 4×5 pixels of 8 channels of `u16`, numbered from 1. It gathers 12
/// pixels, and stores them to 2 rows of 7 pixels.
fn run_columns(ptx: &str, change: impl Fn(&mut TensorMap, &mut TensorMap)) -> Result<Vec<u16>, String> {
    let module = Module::load(ptx).map_err(|error| error.to_string())?;
    let mut memory = GlobalMemory::default();
    let from = memory.allocate(3 * 4 * 5 * 16, false).expect("there is room");
    let to = memory.allocate(2 * 7 * 16, false).expect("there is room");
    let numbers: Vec<u8> = (1..=3 * 4 * 5 * 8_u16).flat_map(u16::to_le_bytes).collect();
    memory.write(from, &numbers).expect("it fits");
    let mode = |lower: &[i32], upper: &[i32]| Mode::Im2col {
        lower: lower.into(),
        upper: upper.into(),
        channels: 8,
        pixels: 12,
    };
    let mut source = TensorMap {
        extents: vec![8, 5, 4, 3],
        byte_strides: vec![16, 80, 320],
        element_strides: vec![1; 4],
        mode: mode(&[-1, -1], &[-1, -1]),
        ..matrix(from)
    };
    let mut target = TensorMap {
        extents: vec![8, 7, 2],
        byte_strides: vec![16, 112],
        element_strides: vec![1; 3],
        mode: mode(&[1], &[0]),
        ..matrix(to)
    };
    change(&mut source, &mut target);
    let args = [Arg::Map(source), Arg::Map(target)];
    let config = LaunchConfig { checks: Checks::ALL, ..LaunchConfig::default() };
    let report =
        launch(&module, &mut memory, "columns", &config, &args).map_err(|error| error.to_string())?;
    if !report.findings.is_empty() {
        return Err(report.findings.render(&module.sources(|_| None)));
    }
    let mut bytes = [0; 2 * 7 * 16];
    memory.read(to, &mut bytes).expect("it is there");
    Ok(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())
}

#[test]
fn columns_are_gathered_and_stored() {
    // The base of the filter covers columns -1 to 3 and rows -1 to 2, from (0, -1) of image 1. The
    // tap is 2 to the right and 1 down.
    let mut bases = (1..3).flat_map(|n| (-1..3_i64).flat_map(move |h| (-1..4_i64).map(move |w| (n, h, w))));
    let pixels = bases.by_ref().skip_while(|base| *base != (1, 0, -1)).take(12).map(|(n, h, w)| {
        let (h, w) = (h + 1, w + 2);
        ((0..4).contains(&h) && (0..5).contains(&w)).then_some((n * 20 + h * 5 + w) * 8 + 1)
    });
    // Stored from column 2 on, in columns 1 to 6 of both rows.
    let mut wanted = vec![0; 2 * 7 * 8];
    let indices = (2..7).chain(8..14);
    for (index, pixel) in indices.zip(pixels) {
        for channel in 0..8 {
            wanted[index * 8 + channel] = pixel.map_or(0, |first| first as u16 + channel as u16);
        }
    }
    assert_eq!(run_columns(COLUMNS, |_, _| ()), Ok(wanted));
}

#[test]
fn columns_that_break_a_rule_are_found() {
    let found = |ptx: &str, expected: &str| {
        let error = run_columns(ptx, |_, _| ()).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    found(
        &COLUMNS.replace("{0, %r1, 0, 1}", "{0, 4, 0, 1}"),
        "coordinate 4 in dimension 1 is outside of the bounding box, -1 to 3",
    );
    found(&COLUMNS.replace("{0, %r1, 0, 1}", "{4, %r1, 0, 1}"), "innermost coordinate 4 is 8 bytes");
    found(
        &COLUMNS.replace("%h0, 2", "%h0, 256"),
        "the im2col offset 256 is out of range; with rank 4 it is 0 to 255",
    );
    found(&COLUMNS.replace("{0, 2, 0}", "{0, 2, %r1}"), "a store starts at coordinate -1 in dimension 2");
    found(&COLUMNS.replace(", 192;", ", 208;"), "wrong transaction bytes");
    found(&COLUMNS.replace("{%h0, %h1}", "{%h0}"), "expected 2 offsets in braces");
    found(&COLUMNS.replace("im2col_no_offs.", "tile."), "in tiled mode uses a tensor map in im2col mode");
    found(&COLUMNS.replace("im2col_no_offs", "im2col"), "not supported");

    let corners = run_columns(COLUMNS, |_, target| {
        target.mode = Mode::Im2col { lower: vec![-1], upper: vec![0], channels: 8, pixels: 12 };
    });
    assert!(corners.is_err_and(|error| error.contains("a store has corners -1 and 0 in dimension 1")));
    let tiled = run_columns(COLUMNS, |source, _| {
        source.mode = Mode::Tiled { box_extents: vec![8, 3, 4, 1] };
    });
    assert!(tiled.is_err_and(|error| error.contains("an im2col copy uses a tensor map in tiled mode")));
    let refused = run_columns(COLUMNS, |source, _| source.element_strides[1] = 9);
    assert!(refused.is_err_and(|error| error.contains("argument 0: element stride 9 of dimension 1")));
}

/// One load into the tile after the mbarrier.
const LOAD: &str = "
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 dyn[];
.visible .entry load(.param .align 64 .b8 map[128], .param .u32 bytes)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    mov.b64 %rd0, map;
    cvta.param.u64 %rd1, %rd0;
    ld.param.u32 %r1, [bytes];
    mbarrier.init.shared.b64 [dyn], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [dyn], %r1;
    cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [dyn+128], [%rd1, {0, 0, 0}], [dyn];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p1, [dyn], 0;
    @!%p1 bra WAIT;
    ret;
}
";

#[test]
fn swizzled_slices_require_their_whole_last_span() {
    let module = Module::load(LOAD).expect("it loads");
    let run = |shared: u32| {
        let mut memory = GlobalMemory::default();
        let address = memory.allocate(480, true).expect("there is room");
        let map = TensorMap {
            element: DataType::F64,
            address,
            extents: vec![30, 1, 1],
            byte_strides: vec![480, 480],
            mode: Mode::Tiled { box_extents: vec![30, 1, 1] },
            element_strides: vec![1; 3],
            interleave: Interleave::B16,
            swizzle: Swizzle::B128,
            fill: Fill::Zeros,
        };
        let config = LaunchConfig { dynamic_shared_bytes: 128 + shared, ..LaunchConfig::default() };
        let args = [Arg::Map(map), Arg::Bytes(480_u32.to_le_bytes().into())];
        let report = launch(&module, &mut memory, "load", &config, &args).expect("it starts");
        report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    assert_eq!(run(512), []);
    assert_eq!(run(480), [FindingKind::OutOfBounds]);
}
