//! Gives each wait of a kernel a limit of time.
//!
//! A warp that waits longer writes a [`Report`] to memory of the host, which can still be read
//! after the kernel has stopped, gives the other warps time to write theirs, and traps.
//!
//! Barriers of the block and of the cluster are replaced by counters in shared memory, because the
//! hardware has no way to stop waiting at one. Where all lanes of a warp arrive together, the first
//! one counts and polls for all, between two barriers of the warp; otherwise each thread counts and
//! polls for itself. The thread that completes a round clears the count and starts the next one. Two
//! rules come from failures on an H200. Lanes must not be counted by `activemask`: ptxas moves it to
//! where other lanes are active. A lane that polls must let other lanes of its warp run, or one that
//! has yet to arrive never does.
//!
//! Polling loops of the kernel's own are recognised by their form: a straight piece of code that
//! branches back to its beginning, and loads with an order from an address that it does not compute;
//! or code that tries to wait for an mbarrier, and otherwise only computes.
//! Other ones, `setmaxnreg`, barriers of warps and the wait for previous grids have no limit. A
//! thread that has exited still counts at the cluster's barrier.

mod barrier;
mod report;

use std::fmt::Write as _;

use tma_model::limits::BARRIER_ARRIVALS;
use tma_model::shared_name::SharedName;

use crate::ProbeError;
use crate::body::{Instruction, Line, Rewrite, Rewritten, SHARED, WaitLoop, linear, rewrite};
use crate::site::{Awaited, Site, SiteKind, load_operand};

pub use report::{Report, describe};

/// A kernel whose waits are limited.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// The PTX.
    pub ptx: String,
    /// The instructions that wait. A report has the index of its site.
    pub sites: Vec<Site>,
    /// The variables in shared memory.
    pub names: Vec<SharedName>,
    /// The dynamic shared memory that a block needs, in bytes.
    pub shared_bytes: u32,
}

/// Reports of a multiprocessor: one for each warp that it can run at the same time. Source: CUDA
/// C++ Programming Guide, "Technical Specifications per Compute Capability".
const REPORTS: u32 = 64;

/// More multiprocessors than a GPU has.
const MULTIPROCESSORS: u32 = 256;

/// The size of a report in 32-bit words.
const REPORT_WORDS: usize = 8;

/// The size of the memory for reports in 32-bit words. It begins as zeros.
pub const WORDS: usize = REPORT_WORDS * (REPORTS * MULTIPROCESSORS) as usize;

/// Words of shared memory: the arrivals and the round of each barrier of the block, by number, and
/// of the cluster's, whose arrivals are counted in the first block; and the mbarriers that were
/// asked how many arrivals they lack.
const COUNTERS: u32 = ASKED + ASKED_MBARRIERS;
const ASKED: u32 = 2 * BLOCK_BARRIERS + 4;
const ASKED_MBARRIERS: u32 = 8;

/// Barriers of a block. Source: PTX ISA, "barrier".
const BLOCK_BARRIERS: u32 = 16;

/// Returns the dynamic shared memory that a block needs with limits, in bytes, if the kernel's need
/// `shared_bytes`.
pub const fn shared_bytes_with_limits(shared_bytes: u32) -> u32 {
    shared_bytes.next_multiple_of(16) + 4 * COUNTERS
}

/// Gives each wait of the kernel `entry` of `ptx` a limit of `budget` nanoseconds. Its blocks need
/// `shared_bytes` bytes of dynamic shared memory. Reports go to the host's memory at `address`,
/// which has [`WORDS`] words.
///
/// # Errors
///
/// [`ProbeError::NoBody`].
pub fn watch(
    ptx: &str,
    entry: &str,
    shared_bytes: u32,
    address: u64,
    budget: u64,
) -> Result<Watched, ProbeError> {
    let counters = shared_bytes.next_multiple_of(16);
    let budget = budget.clamp(1, u64::MAX / 4);
    let has_cluster = ptx.contains("barrier.cluster");
    let mut limits = Limits { sites: Vec::new(), counters, address, budget, has_cluster, labels: 0 };
    let Rewritten { ptx, names } = rewrite(ptx, entry, &mut limits)?;
    Ok(Watched { ptx, sites: limits.sites, names, shared_bytes: shared_bytes_with_limits(shared_bytes) })
}

/// The limits of a kernel's waits.
struct Limits {
    sites: Vec<Site>,
    /// The offset in shared memory of the barriers' counters.
    counters: u32,
    /// The address for reports.
    address: u64,
    /// The limit in nanoseconds.
    budget: u64,
    /// Whether blocks form clusters that synchronise.
    has_cluster: bool,
    /// The labels made so far.
    labels: u32,
}

impl Rewrite for Limits {
    fn begin(&mut self, out: &mut String) {
        self.prologue(out);
    }

    fn line(&mut self, out: &mut String, line: Line<'_>) {
        let put = |out: &mut String| out.extend([line.text(), "\n"]);
        if line.begins_wait_loop() {
            out.push_str(BEGIN);
            return put(out);
        }
        if let Some(inner) = line.ends_wait_loop().or_else(|| line.ends_poll_loop()) {
            return self.limit_loop(out, line, inner);
        }
        if let Some(label) = line.begins_poll_loop() {
            _ = write!(out, "{}:\n{BEGIN}", before(label));
            return put(out);
        }
        if let Some(label) = line.enters_poll_loop() {
            out.push_str(&line.text().replace(label, &before(label)));
            out.push('\n');
            return;
        }
        let statement = line.statement().unwrap_or_default();
        if statement.starts_with("barrier.cluster.arrive") {
            return self.arrive_at_cluster(out, statement);
        }
        if statement.starts_with("barrier.arrive") {
            return self.arrive(out, statement);
        }
        match line.instruction() {
            Some(waits) if waits.kind == SiteKind::Wait(Awaited::Barrier) => {
                self.wait_at_barrier(out, line, waits);
            }
            Some(waits) if waits.kind == SiteKind::Wait(Awaited::Cluster) => {
                self.wait_at_cluster(out, line, waits);
            }
            Some(_) | None => put(out),
        }
    }

    fn end(&mut self, out: &mut String) {
        self.report(out);
    }
}

/// Returns the label before a loop that polls, where the clock is read. The loop's own label may be
/// the target of other branches.
fn before(label: &str) -> String {
    format!("watch_{label}")
}

/// Reads the clock before a wait.
const BEGIN: &str = "\tmov.u64 \t%watch_since, %globaltimer;\n";

impl Limits {
    /// Adds an instruction to the sites, and returns its number, counted from 1.
    fn site(&mut self, line: Line<'_>, waits: Instruction<'_>) -> usize {
        self.sites.push(line.site(waits));
        self.sites.len()
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// Writes what each thread does first: the block's first one clears the counters.
    fn prologue(&self, out: &mut String) {
        let counters = self.counters;
        let thread = linear(["%watch_thread", "%watch_x", "%watch_y"], "tid", "ntid");
        let synchronize = if self.has_cluster {
            "\tbarrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;\n"
        } else {
            "\tbarrier.sync.aligned \t0;\n"
        };
        _ = write!(
            out,
            "\t.reg .pred \t%watch_more, %watch_leads;
\t.reg .b32 \t%watch_site, %watch_operand, %watch_phase, %watch_mbarrier, %watch_threads, %watch_thread, \
             %watch_lanes, %watch_counters, %watch_cluster;
\t.reg .b64 \t%watch_since, %watch_now;
\t{{
\t.reg .pred \t%watch_other;
\t.reg .b32 \t%watch_x, %watch_y, %watch_zero;
{thread}\tmov.u32 \t%watch_threads, %ntid.x;
\tmov.u32 \t%watch_x, %ntid.y;
\tmul.lo.s32 \t%watch_threads, %watch_threads, %watch_x;
\tmov.u32 \t%watch_x, %ntid.z;
\tmul.lo.s32 \t%watch_threads, %watch_threads, %watch_x;
\tand.b32 \t%watch_x, %watch_thread, 31;
\tsetp.eq.s32 \t%watch_leads, %watch_x, 0;
\tsub.s32 \t%watch_x, %watch_thread, %watch_x;
\tsub.s32 \t%watch_x, %watch_threads, %watch_x;
\tmin.u32 \t%watch_lanes, %watch_x, 32;
\tmov.b32 \t%watch_counters, {SHARED};
\tadd.s32 \t%watch_counters, %watch_counters, {counters};
\tmov.b32 \t%watch_cluster, 0;
\tmov.b32 \t%watch_mbarrier, 0;
\tsetp.ne.s32 \t%watch_other, %watch_thread, 0;
\t@%watch_other bra \twatch_begun;
\tmov.b32 \t%watch_zero, 0;
"
        );
        for quad in 0..COUNTERS / 4 {
            let offset = 16 * quad;
            _ = writeln!(
                out,
                "\tst.shared.v4.b32 \t[%watch_counters+{offset}], {{%watch_zero, %watch_zero, %watch_zero, \
                 %watch_zero}};"
            );
        }
        _ = write!(out, "watch_begun:\n{synchronize}\t}}\n");
    }

    /// Writes the instructions that end a loop that waits, or report when its time is over.
    fn limit_loop(&mut self, out: &mut String, line: Line<'_>, inner: WaitLoop<'_>) {
        let WaitLoop { label, condition, waits } = inner;
        let site = self.site(line, waits);
        let over = self.label();
        if let Some(condition) = condition {
            let done = condition.strip_prefix('!').map_or_else(|| format!("!{condition}"), str::to_owned);
            _ = writeln!(out, "\t@{done} bra \twatch_{over};");
        }
        let operand = load_operand("%watch_operand", waits.operand);
        let phase =
            load_operand("%watch_phase", phase(waits.text).or_else(|| value(waits.text)).unwrap_or("0"));
        out.push_str(&again(label, self.budget));
        let is_mbarrier = waits.kind == SiteKind::Wait(Awaited::Mbarrier);
        let mbarrier = if is_mbarrier { "\tmov.b32 \t%watch_mbarrier, %watch_operand;\n" } else { "" };
        _ = write!(
            out,
            "\tmov.b32 \t%watch_site, {site};\n{operand}{phase}{mbarrier}\tbra \twatch_report;\nwatch_{over}:\n"
        );
    }

    /// Writes the end of a thread whose time is over. The first one of its warp reports, waits a
    /// tenth of the limit so that others can report, and asks the mbarrier how many arrivals it lacks.
    ///
    /// Only an arrival tells that: it returns the state before it (PTX ISA, "mbarrier.arrive"), and a
    /// load finds zeros in place of an mbarrier (seen on an H200). So it comes after the reports,
    /// once for each mbarrier, and the kernel traps soon after.
    fn report(&self, out: &mut String) {
        let Self { address, budget, .. } = self;
        let bytes = 4 * REPORT_WORDS;
        let block = linear(["%watch_block", "%watch_x", "%watch_y"], "ctaid", "nctaid");
        let (of_asked, mask) = (4 * ASKED, 8 * (ASKED_MBARRIERS - 1));
        _ = write!(
            out,
            "watch_report:
\t{{
\t.reg .pred \t%watch_is_mbarrier;
\t.reg .b32 \t%watch_slot, %watch_x, %watch_y, %watch_block, %watch_zero;
\t.reg .b64 \t%watch_place;
\tmov.b32 \t%watch_zero, 0;
\tsetp.ne.s32 \t%watch_is_mbarrier, %watch_mbarrier, 0;
\t@!%watch_is_mbarrier bra \twatch_write;
\tmov.b32 \t%watch_x, {SHARED};
\tsub.s32 \t%watch_operand, %watch_operand, %watch_x;
watch_write:
\tmov.u32 \t%watch_slot, %smid;
\tmov.u32 \t%watch_x, %warpid;
\tmad.lo.s32 \t%watch_slot, %watch_slot, {REPORTS}, %watch_x;
\tmov.b64 \t%watch_place, {address};
\tmad.wide.u32 \t%watch_place, %watch_slot, {bytes}, %watch_place;
\tatom.global.cas.b32 \t%watch_x, [%watch_place], 0, -1;
\tsetp.ne.s32 \t%watch_more, %watch_x, 0;
\t@%watch_more bra \twatch_end;
{block}\tshr.u32 \t%watch_thread, %watch_thread, 5;
\tst.global.v4.b32 \t[%watch_place+16], {{%watch_operand, %watch_phase, %watch_zero, %watch_zero}};
\tfence.acq_rel.sys;
\tst.global.v4.b32 \t[%watch_place], {{%watch_site, %watch_block, %watch_thread, %watch_zero}};
\tfence.acq_rel.sys;
{}\t@!%watch_is_mbarrier bra \twatch_end;
\tand.b32 \t%watch_y, %watch_mbarrier, {mask};
\tshr.u32 \t%watch_y, %watch_y, 1;
\tadd.s32 \t%watch_y, %watch_y, %watch_counters;
\tatom.shared::cta.cas.b32 \t%watch_x, [%watch_y+{of_asked}], 0, %watch_mbarrier;
\tsetp.ne.s32 \t%watch_more, %watch_x, 0;
\t@%watch_more bra \twatch_end;
\tmbarrier.arrive.shared::cta.b64 \t%watch_now, [%watch_mbarrier];
\tmbarrier.pending_count.b64 \t%watch_x, %watch_now;
\tand.b32 \t%watch_x, %watch_x, {BARRIER_ARRIVALS};
\tadd.s32 \t%watch_x, %watch_x, 1;
\tst.global.b32 \t[%watch_place+24], %watch_x;
\tfence.acq_rel.sys;
watch_end:
{}\ttrap;
\t}}
",
            spin("watch_stop", budget + budget / 10),
            spin("watch_trap", budget + budget * 3 / 20),
        );
    }
}

/// Returns a loop that lasts until `limit` nanoseconds after the wait began.
fn spin(label: &str, limit: u64) -> String {
    format!("{label}:\n{}", again(label, limit))
}

/// Returns the branch back to `label` as long as there is time.
fn again(label: &str, budget: u64) -> String {
    format!(
        "\tmov.u64 \t%watch_now, %globaltimer;
\tsub.s64 \t%watch_now, %watch_now, %watch_since;
\tsetp.lt.u64 \t%watch_more, %watch_now, {budget};
\t@%watch_more bra \t{label};\n"
    )
}

/// Returns the parity that a wait or a poll of an mbarrier is for, unless it has a token.
fn phase(instruction: &str) -> Option<&str> {
    // The parity is followed by a hint of time in some.
    let operands = instruction.split_once("_wait.parity.")?.1.split(',');
    operands.map(str::trim).nth(2)
}

/// Returns the register that an access polls a value of 32 bits into.
fn value(instruction: &str) -> Option<&str> {
    let (opcode, operands) = instruction.split_once([' ', '\t'])?;
    let is_word = [".b32", ".u32", ".s32"].iter().any(|ty| opcode.ends_with(ty));
    is_word.then(|| operands.split(',').next().map(str::trim))?
}
