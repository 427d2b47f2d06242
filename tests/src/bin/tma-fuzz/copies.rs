//! Kernels that do one load and one store or reduction by a tensor map, of every rank.

use ptx_sim::tensor_map::Mode;
use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module, launch};

use crate::draw::Draw;
use crate::maps;

/// What goes back to global memory: nothing by name is a plain store.
const BACK: [&str; 9] = ["", ".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor"];

/// Where the tile begins: after the mbarrier, at a multiple of what every swizzle repeats after.
const TILE: u32 = 1024;

/// Bytes of the buffer that the tensor lies in.
const BUFFER: u64 = 1 << 16;

/// Thread-instructions that a kernel may run.
const INSTRUCTIONS: u64 = 10_000;

/// A kernel of each rank and way back.
pub(crate) struct Copies {
    modules: Vec<Module>,
}

/// What a kernel is launched with.
#[derive(Debug)]
pub(crate) struct Copy {
    module: usize,
    config: LaunchConfig,
    memory: GlobalMemory,
    args: Vec<Arg>,
}

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

impl Copies {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let texts = (1..=5).flat_map(|rank| BACK.map(|back| text(rank, back)));
        let texts = texts.chain((3..=5).map(column));
        let modules = texts.map(|text| Module::load(&text)).collect::<Result<_, _>>()?;
        Ok(Self { modules })
    }

    /// A launch, with parameters that nobody checked.
    pub(crate) fn copy(&self, draw: &Draw) -> Option<Copy> {
        let mut memory = GlobalMemory::default();
        let address = memory.allocate(BUFFER, false)?;
        let map = if draw.once_in(3) {
            maps::sound(address, BUFFER, draw)
        } else {
            maps::any(address, BUFFER, draw)
        };
        let rank = if draw.once_in(8) { 1 + draw.below(5) } else { map.rank().clamp(1, 5) };
        let word = |value: u64| Arg::Bytes((value as u32).to_le_bytes().into());
        let inner = 16 / map.element.bytes() as usize * draw.below(6);
        let mut args = vec![Arg::Map(map.clone()), word(draw.mostly(inner as u64))];
        args.extend((1..5).map(|_| word(draw.mostly(draw.below(6) as u64))));
        args.push(word(draw.mostly(map.box_bytes().into())));
        let bytes = map.tile_bytes().saturating_add(TILE);
        let config = LaunchConfig {
            dynamic_shared_bytes: draw.mostly(bytes.into()) as u32,
            seed: draw.bits(),
            instruction_limit: INSTRUCTIONS,
            ..LaunchConfig::default()
        };
        let tiled = (rank - 1) * BACK.len() + draw.below(BACK.len());
        let module = match map.mode {
            Mode::Im2col { .. } if rank > 2 => 5 * BACK.len() + rank - 3,
            Mode::Im2col { .. } | Mode::Tiled { .. } => tiled,
        };
        Some(Copy { module, config, memory, args })
    }

    /// Launches; true if it ran.
    pub(crate) fn run(&self, copy: Copy) -> bool {
        let Copy { module, config, mut memory, args } = copy;
        let Some(module) = self.modules.get(module) else { return false };
        let report = launch(module, &mut memory, "copy", &config, &args);
        report.is_ok_and(|report| {
            report.findings.render(&module.sources(|_| None));
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_copies_run_to_their_end() -> anyhow::Result<()> {
        let (copies, draw) = (Copies::new()?, Draw::new(4));
        let launches = (0..300).filter_map(|_| copies.copy(&draw));
        let ran = launches.map(|copy| copies.run(copy)).filter(|&ran| ran).count();
        assert!((60..300).contains(&ran), "{ran} of 300 ran");
        Ok(())
    }
}
