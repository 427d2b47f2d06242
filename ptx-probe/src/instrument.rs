//! Adds probes to a kernel's PTX.

use std::fmt::Write as _;

use tma_model::shared_name::SharedName;

use crate::ProbeError;
use crate::body::{Instruction, Line, Rewrite, Rewritten, SHARED, linear, rewrite};
use crate::ring::{HEADER_BYTES, Layout, RECORD_BYTES, SHARED_BYTES};
use crate::site::{Awaited, Site, SiteKind, load_operand};

/// A kernel with probes.
#[derive(Clone, Debug, PartialEq)]
pub struct Instrumented {
    /// The PTX.
    pub ptx: String,
    /// The instructions with probes. A record has the index of its site.
    pub sites: Vec<Site>,
    /// The variables in shared memory.
    pub names: Vec<SharedName>,
    /// The dynamic shared memory that a block needs, in bytes.
    pub shared_bytes: u32,
}

/// Adds probes to the kernel `entry` of `ptx`, whose blocks need `shared_bytes` bytes of dynamic
/// shared memory. The probes write to the buffer at `address`, which has this layout.
///
/// # Errors
///
/// [`ProbeError::NoBody`].
pub fn instrument(
    ptx: &str,
    entry: &str,
    shared_bytes: u32,
    address: u64,
    layout: Layout,
) -> Result<Instrumented, ProbeError> {
    let slots = shared_bytes.next_multiple_of(SHARED_BYTES);
    let mut probes = Probes { sites: Vec::new(), slots, address, layout, is_multiplying: false };
    let Rewritten { ptx, names } = rewrite(ptx, entry, &mut probes)?;
    let shared_bytes = slots + layout.warps * SHARED_BYTES;
    Ok(Instrumented { ptx, sites: probes.sites, names, shared_bytes })
}

/// The probes of a kernel.
struct Probes {
    sites: Vec<Site>,
    /// The offset in shared memory of the warps' slots.
    slots: u32,
    /// The address of the buffer.
    address: u64,
    layout: Layout,
    /// Whether a group of multiplications has begun. The warp waits at its later instructions until
    /// the tensor cores take them, so the group begins with the first.
    is_multiplying: bool,
}

impl Rewrite for Probes {
    fn begin(&mut self, out: &mut String) {
        self.begin_warp(out);
    }

    fn line(&mut self, out: &mut String, line: Line<'_>) {
        let put = |out: &mut String| out.extend([line.text(), "\n"]);
        if line.statement() == Some("ret") {
            end_warp(out);
            put(out);
        } else if line.begins_wait_loop() {
            out.push_str(BEGIN_WAIT);
            put(out);
        } else if let Some(inner) = line.ends_wait_loop() {
            put(out);
            self.probe(out, line, inner.waits);
        } else if let Some(instruction) = line.instruction() {
            match instruction.kind {
                // Outside of a loop nobody knows whether it has waited for long enough.
                SiteKind::Wait(Awaited::Memory | Awaited::Mbarrier) => return put(out),
                SiteKind::Wait(_) => out.push_str(BEGIN_WAIT),
                SiteKind::Copy(_) | SiteKind::CommitCopies | SiteKind::Span(_) => {}
                SiteKind::CommitMultiplications => self.is_multiplying = false,
            }
            put(out);
            self.probe(out, line, instruction);
        } else {
            let multiplies = line.statement().is_some_and(|text| text.starts_with("wgmma.mma_async"));
            if multiplies && !self.is_multiplying {
                out.push_str(BEGIN_WAIT);
                self.is_multiplying = true;
            }
            put(out);
        }
    }

    fn end(&mut self, _: &mut String) {}
}

/// Reads the clock before a wait, or before multiplications.
const BEGIN_WAIT: &str = "\tmov.u32 \t%probe_begin, %clock;\n";

impl Probes {
    /// Writes what each warp does first: it begins its ring, whose address its slot in shared
    /// memory holds.
    fn begin_warp(&self, out: &mut String) {
        let Self { slots, address, layout, .. } = self;
        let (Layout { warps, blocks, .. }, ring) = (layout, layout.ring_bytes());
        let thread = linear(["%probe_x", "%probe_y", "%probe_z"], "tid", "ntid");
        let block = linear(["%probe_block", "%probe_y", "%probe_z"], "ctaid", "nctaid");
        _ = write!(
            out,
            "\t.reg .b32 \t%probe_slot, %probe_begin;
\t{{
\t.reg .pred \t%probe_other;
\t.reg .b32 \t%probe_x, %probe_y, %probe_z, %probe_warp, %probe_lanes, %probe_block, %probe_shared;
\t.reg .b64 \t%probe_ring, %probe_time;
{thread}\tshr.u32 \t%probe_warp, %probe_x, 5;
\tand.b32 \t%probe_x, %probe_x, 31;
\tmov.b32 \t%probe_shared, {SHARED};
\tshl.b32 \t%probe_slot, %probe_warp, 4;
\tadd.s32 \t%probe_slot, %probe_slot, %probe_shared;
\tadd.s32 \t%probe_slot, %probe_slot, {slots};
\tactivemask.b32 \t%probe_lanes;
\tsetp.ne.s32 \t%probe_other, %probe_x, 0;
\t@%probe_other bra \tprobe_begun;
{block}\tmin.u32 \t%probe_block, %probe_block, {blocks};
\tmad.lo.s32 \t%probe_block, %probe_block, {warps}, %probe_warp;
\tmov.b64 \t%probe_ring, {address};
\tmad.wide.u32 \t%probe_ring, %probe_block, {ring}, %probe_ring;
\tst.shared.b64 \t[%probe_slot], %probe_ring;
\tmov.b32 \t%probe_x, 0;
\tst.shared.b32 \t[%probe_slot+8], %probe_x;
\tmov.u64 \t%probe_time, %clock64;
\tst.global.b64 \t[%probe_ring], %probe_time;
\tmov.u64 \t%probe_time, %globaltimer;
\tst.global.b64 \t[%probe_ring+8], %probe_time;
\tmov.u32 \t%probe_x, %smid;
\tst.global.b32 \t[%probe_ring+32], %probe_x;
\tst.global.b32 \t[%probe_ring+40], %probe_shared;
\tmov.b32 \t%probe_x, 1;
\tst.global.b32 \t[%probe_ring+44], %probe_x;
probe_begun:
\tbar.warp.sync \t%probe_lanes;
\t}}
",
        );
    }

    /// Writes the record of an instruction: one of the active lanes takes the next place of the
    /// warp's ring. The others skip it by a branch, because a value that is written under a
    /// predicate would keep its register through the whole kernel.
    ///
    /// A GEMM of 4096³ takes 1.13 times as long with these probes. Two forms that save the latency
    /// of the atomic operation were slower, because they have more instructions and branches: 1.20
    /// if the place is taken before a wait, and 1.28 if the first lane counts in a register.
    /// Source: `tma-gpu-bench --only probes/` on an H200.
    fn probe(&mut self, out: &mut String, line: Line<'_>, instruction: Instruction<'_>) {
        let site = self.sites.len();
        let cycles = match instruction.kind {
            SiteKind::Wait(_) | SiteKind::CommitMultiplications => {
                "\tsub.s32 \t%probe_begin, %probe_now, %probe_begin;\n"
            }
            SiteKind::Copy(_) | SiteKind::CommitCopies | SiteKind::Span(_) => {
                "\tmov.b32 \t%probe_begin, 0;\n"
            }
        };
        let operand = load_operand("%probe_operand", instruction.operand);
        let (mask, first, second) = (self.layout.records - 1, HEADER_BYTES, HEADER_BYTES + 8);
        _ = write!(
            out,
            "\t{{
\t.reg .pred \t%probe_first;
\t.reg .b32 \t%probe_now, %probe_lanes, %probe_count, %probe_site, %probe_operand;
\t.reg .b64 \t%probe_ring;
\tmov.u32 \t%probe_now, %clock;
\tactivemask.b32 \t%probe_lanes;
\telect.sync \t_|%probe_first, %probe_lanes;
\t@!%probe_first bra \tprobe_{site};
\tatom.shared.inc.u32 \t%probe_count, [%probe_slot+8], -1;
\tld.shared.b64 \t%probe_ring, [%probe_slot];
\tand.b32 \t%probe_count, %probe_count, {mask};
\tmad.wide.u32 \t%probe_ring, %probe_count, {RECORD_BYTES}, %probe_ring;
{cycles}\tst.global.v2.b32 \t[%probe_ring+{first}], {{%probe_now, %probe_begin}};
\tmov.b32 \t%probe_site, {site};
{operand}\tst.global.v2.b32 \t[%probe_ring+{second}], {{%probe_site, %probe_operand}};
probe_{site}:
\t}}
",
        );
        self.sites.push(line.site(instruction));
    }
}

/// Writes what each warp does last: it completes its ring's header. The last of its threads to end
/// has the last word.
fn end_warp(out: &mut String) {
    out.push_str(
        "\t{
\t.reg .b32 \t%probe_count;
\t.reg .b64 \t%probe_ring, %probe_time;
\tatom.shared.add.u32 \t%probe_count, [%probe_slot+8], 0;
\tld.shared.b64 \t%probe_ring, [%probe_slot];
\tst.relaxed.gpu.global.b32 \t[%probe_ring+36], %probe_count;
\tmov.u64 \t%probe_time, %clock64;
\tst.relaxed.gpu.global.b64 \t[%probe_ring+16], %probe_time;
\tmov.u64 \t%probe_time, %globaltimer;
\tst.relaxed.gpu.global.b64 \t[%probe_ring+24], %probe_time;
\t}
",
    );
}
