//! Adds probes to a kernel's PTX.

use std::fmt::Write as _;

use tma_model::shared_name::SharedName;

use crate::ProbeError;
use crate::body::{Instruction, Line, Rewrite, Rewritten, SHARED, linear, rewrite};
use crate::ring::{COUNT_OF_OTHERS, HEADER_BYTES, Layout, OTHERS, RECORD_BYTES};
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
}

/// Adds probes to the kernel `entry` of `ptx`, which write to the buffer at `address` with this
/// layout.
///
/// # Errors
///
/// [`ProbeError::NoBody`].
pub fn instrument(ptx: &str, entry: &str, address: u64, layout: Layout) -> Result<Instrumented, ProbeError> {
    let mut probes = Probes { sites: Vec::new(), address, layout, is_multiplying: false };
    let Rewritten { ptx, names } = rewrite(ptx, entry, &mut probes)?;
    Ok(Instrumented { ptx, sites: probes.sites, names })
}

/// The probes of a kernel.
///
/// The first lane of a warp counts its records in a register, `%probe_next`: an atomic operation
/// for each would delay the warp by its latency. The other lanes have -1 there. They write records
/// only where the first one is not active, to places of their own, which they count in memory.
struct Probes {
    sites: Vec<Site>,
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
            self.end_warp(out);
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
    /// Writes what each warp does first: its first lane begins the header of its ring.
    fn begin_warp(&self, out: &mut String) {
        let Layout { warps, blocks, .. } = self.layout;
        let thread = linear(["%probe_x", "%probe_y", "%probe_z"], "tid", "ntid");
        let block = linear(["%probe_block", "%probe_y", "%probe_z"], "ctaid", "nctaid");
        let ring = self.ring();
        _ = write!(
            out,
            "\t.reg .b32 \t%probe_number, %probe_next, %probe_begin;
\t{{
\t.reg .pred \t%probe_other;
\t.reg .b32 \t%probe_x, %probe_y, %probe_z, %probe_block;
\t.reg .b64 \t%probe_ring, %probe_time;
{thread}\tshr.u32 \t%probe_number, %probe_x, 5;
{block}\tmin.u32 \t%probe_block, %probe_block, {blocks};
\tmad.lo.s32 \t%probe_number, %probe_block, {warps}, %probe_number;
\tmov.b32 \t%probe_next, -1;
\tand.b32 \t%probe_x, %probe_x, 31;
\tsetp.ne.s32 \t%probe_other, %probe_x, 0;
\t@%probe_other bra \tprobe_begun;
\tmov.b32 \t%probe_next, 0;
{ring}\tmov.u64 \t%probe_time, %clock64;
\tst.global.b64 \t[%probe_ring], %probe_time;
\tmov.u64 \t%probe_time, %globaltimer;
\tst.global.b64 \t[%probe_ring+8], %probe_time;
\tmov.u32 \t%probe_x, %smid;
\tst.global.b32 \t[%probe_ring+32], %probe_x;
\tmov.b32 \t%probe_x, {SHARED};
\tst.global.b32 \t[%probe_ring+40], %probe_x;
\tmov.b32 \t%probe_x, 1;
\tst.global.b32 \t[%probe_ring+44], %probe_x;
probe_begun:
\t}}
",
        );
    }

    /// Returns the instructions that compute the address of the warp's ring.
    fn ring(&self) -> String {
        let (address, bytes) = (self.address, self.layout.ring_bytes());
        format!(
            "\tmov.b64 \t%probe_ring, {address};
\tmad.wide.u32 \t%probe_ring, %probe_number, {bytes}, %probe_ring;
"
        )
    }

    /// Writes the record of an instruction, once for the active lanes. Lanes skip it by branches,
    /// because a value that is written under a predicate would keep its register through the whole
    /// kernel.
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
        let (ring, operand) = (self.ring(), load_operand("%probe_operand", instruction.operand));
        let records = self.layout.records;
        let (mask, mask_of_others) = (records - 1, OTHERS - 1);
        let (first, second) = (HEADER_BYTES, HEADER_BYTES + 8);
        _ = write!(
            out,
            "\t{{
\t.reg .pred \t%probe_is;
\t.reg .b32 \t%probe_now, %probe_lanes, %probe_first, %probe_place, %probe_site, %probe_operand;
\t.reg .b64 \t%probe_ring;
\tmov.u32 \t%probe_now, %clock;
\tactivemask.b32 \t%probe_lanes;
{ring}\tsetp.ne.s32 \t%probe_is, %probe_next, -1;
\t@%probe_is bra \tprobe_first_{site};
\tand.b32 \t%probe_first, %probe_lanes, 1;
\tsetp.ne.s32 \t%probe_is, %probe_first, 0;
\t@%probe_is bra \tprobe_{site};
\telect.sync \t_|%probe_is, %probe_lanes;
\t@!%probe_is bra \tprobe_{site};
\tatom.global.inc.u32 \t%probe_place, [%probe_ring+{COUNT_OF_OTHERS}], -1;
\tand.b32 \t%probe_place, %probe_place, {mask_of_others};
\tadd.s32 \t%probe_place, %probe_place, {records};
\tbra \tprobe_write_{site};
probe_first_{site}:
\tand.b32 \t%probe_place, %probe_next, {mask};
\tadd.s32 \t%probe_next, %probe_next, 1;
probe_write_{site}:
\tmad.wide.u32 \t%probe_ring, %probe_place, {RECORD_BYTES}, %probe_ring;
{cycles}\tst.global.v2.b32 \t[%probe_ring+{first}], {{%probe_now, %probe_begin}};
\tmov.b32 \t%probe_site, {site};
{operand}\tst.global.v2.b32 \t[%probe_ring+{second}], {{%probe_site, %probe_operand}};
probe_{site}:
\t}}
",
        );
        self.sites.push(line.site(instruction));
    }

    /// Writes what each thread does last: it completes its ring's header. The last thread of a warp
    /// that ends has the last word.
    fn end_warp(&self, out: &mut String) {
        let ring = self.ring();
        _ = write!(
            out,
            "\t{{
\t.reg .pred \t%probe_is;
\t.reg .b64 \t%probe_ring, %probe_time;
{ring}\tsetp.ne.s32 \t%probe_is, %probe_next, -1;
\t@%probe_is st.relaxed.gpu.global.b32 \t[%probe_ring+36], %probe_next;
\tmov.u64 \t%probe_time, %clock64;
\tst.relaxed.gpu.global.b64 \t[%probe_ring+16], %probe_time;
\tmov.u64 \t%probe_time, %globaltimer;
\tst.relaxed.gpu.global.b64 \t[%probe_ring+24], %probe_time;
\t}}
"
        );
    }
}
