//! Kernels that do one load and one store or reduction by a tensor map, of every rank.

use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};
use ptx_sim::tensor_map::Mode;
use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module};

use crate::draw::{below, mostly, once_in};
use crate::launch::{BUFFER, Launch, address};
use crate::maps;

/// The kind of copy back to global memory; an empty name is a plain store.
const BACK: [&str; 9] = ["", ".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor"];

/// Where the tile begins: after the mbarrier, at a multiple of what every swizzle repeats after.
const TILE: u32 = 1024;

fn text(rank: usize, back: &str) -> String {
    let coordinates = ["%r1", "%r2", "%r3", "%r4", "%r5"][..rank].join(", ");
    let store = if back.is_empty() { "cp.async".to_owned() } else { "cp.reduce.async".to_owned() };
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 shared[];\n\
         .visible .entry copy(.param .align 64 .b8 map[128], .param .b32 c1, .param .b32 c2, .param .b32 c3,\n\
             .param .b32 c4, .param .b32 c5, .param .b32 bytes)\n{{\n\
         .reg .pred %p; .reg .b32 %r<10>; .reg .b64 %d<2>;\n\
         mov.b64 %d0, map;\ncvta.param.u64 %d1, %d0;\nmov.b32 %r8, shared;\nadd.s32 %r9, %r8, {TILE};\n\
         ld.param.b32 %r1, [c1];\nld.param.b32 %r2, [c2];\nld.param.b32 %r3, [c3];\nld.param.b32 %r4, [c4];\n\
         ld.param.b32 %r5, [c5];\nld.param.b32 %r7, [bytes];\n\
         mbarrier.init.shared::cta.b64 [%r8], 1;\nfence.mbarrier_init.release.cluster;\n\
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], %r7;\n\
         cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
             [%r9], [%d1, {{{coordinates}}}], [%r8];\n\
         again:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%r8], 0;\n@!%p bra again;\n\
         {store}.bulk.tensor.{rank}d.global.shared::cta{back}.tile.bulk_group [%d1, {{{coordinates}}}], [%r9];\n\
         cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n}}\n"
    )
}

/// A load and a store in im2col mode, with an offset of whatever size.
fn column(rank: usize) -> String {
    let offsets = ["%h1", "%h2", "%h3"][..rank - 2].join(", ");
    let text = text(rank, "").replace("global.tile.mbarrier", "global.im2col.mbarrier");
    let text = text.replace("}], [%r8];", &format!("}}], [%r8], {{{offsets}}};"));
    let offset = "cvt.u16.u32 %h1, %r5;\nmov.b16 %h2, 0;\nmov.b16 %h3, 1;\n";
    let text = text.replace(".reg .pred %p;", ".reg .b16 %h<4>; .reg .pred %p;");
    let text = text.replace("mbarrier.init", &format!("{offset}mbarrier.init"));
    text.replace("shared::cta.tile.bulk_group", "shared::cta.im2col_no_offs.bulk_group")
}

/// A kernel of each rank and way back, then those in im2col mode.
fn modules() -> &'static [Module] {
    static MODULES: LazyLock<Vec<Module>> = LazyLock::new(|| {
        let texts = (1..=5).flat_map(|rank| BACK.map(|back| text(rank, back)));
        let texts = texts.chain((3..=5).map(column));
        texts.map(|text| Module::load(&text).expect("the kernels load")).collect()
    });
    &MODULES
}

/// A launch, with parameters that nobody checked.
pub(crate) fn launch(u: &mut Unstructured<'_>) -> Result<Launch> {
    let mut memory = GlobalMemory::default();
    let address = address(&mut memory, u)?;
    let rank = 1 + below(u, 5)?;
    let sound = once_in(u, 3)?;
    let map = if sound { maps::sound(address, BUFFER, rank, u)? } else { maps::any(address, BUFFER, u)? };
    let rank = if once_in(u, 8)? { 1 + below(u, 5)? } else { map.rank().clamp(1, 5) };
    let word = |value: u32| Arg::Bytes(value.to_le_bytes().into());
    let inner = 16 / map.element.bytes() * below(u, 6)? as u32;
    let mut args = vec![Arg::Map(map.clone()), word(mostly(u, inner.into())? as u32)];
    for _ in 1..5 {
        args.push(word(maps::coordinate(u, 6)?));
    }
    args.push(word(mostly(u, map.box_bytes().into())? as u32));
    let back = below(u, BACK.len())?;
    let module = match map.mode {
        Mode::Im2col { .. } if rank > 2 => 5 * BACK.len() + rank - 3,
        Mode::Im2col { .. } | Mode::Tiled { .. } => (rank - 1) * BACK.len() + back,
    };
    let config = LaunchConfig {
        dynamic_shared_bytes: map.tile_bytes().saturating_add(TILE),
        ..LaunchConfig::default()
    };
    Ok(Launch { module: &modules()[module], name: "copy".to_owned(), config, memory, args })
}
