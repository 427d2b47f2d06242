//! The metrics of a launch: how long it takes, and which resources it uses up.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::nsight::kernel_of;
use super::table;
use crate::style::bold;

/// The metrics of a launch, by their names in `ncu`.
#[derive(Debug)]
pub(super) struct LaunchMetrics {
    /// Name of the entry point.
    entry: String,
    values: BTreeMap<String, (String, String)>,
}

/// Metrics with the names that JSON gives them: seconds, bytes, numbers, and shares of a peak in
/// percent.
const NAMES: [(&str, &str); 18] = [
    ("seconds", "gpu__time_duration.sum"),
    ("blocks", "launch__grid_size"),
    ("threads_per_block", "launch__block_size"),
    ("registers_per_thread", "launch__registers_per_thread"),
    ("shared_bytes_per_block", "launch__shared_mem_per_block_dynamic"),
    ("tensor_core_percent", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    ("memory_percent", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
    ("memory_read_bytes", "dram__bytes_read.sum"),
    ("memory_written_bytes", "dram__bytes_write.sum"),
    ("l2_percent", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
    ("l2_read_bytes", "l1tex__m_xbar2l1tex_read_bytes.sum"),
    ("l2_written_bytes", "l1tex__m_l1tex2xbar_write_bytes.sum"),
    ("occupancy_percent", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    ("warps_per_multiprocessor", "sm__warps_active.avg.per_cycle_active"),
    ("possible_occupancy_percent", "sm__maximum_warps_per_active_cycle_pct"),
    ("instructions", "smsp__inst_executed.sum"),
    ("loads_of_the_copy_engine", "smsp__inst_executed_op_tma_ld.sum"),
    ("stores_of_the_copy_engine", "smsp__inst_executed_op_tma_st.sum"),
];

/// The limits of the blocks of a multiprocessor, and the metric of each.
const LIMITS: [(&str, &str); 5] = [
    ("the number of blocks", "launch__occupancy_limit_blocks"),
    ("registers", "launch__occupancy_limit_registers"),
    ("shared memory", "launch__occupancy_limit_shared_mem"),
    ("threads", "launch__occupancy_limit_warps"),
    ("barriers", "launch__occupancy_limit_barriers"),
];

impl LaunchMetrics {
    /// Reads the first launch of a kernel from the page with all metrics: a row of names, one of
    /// units, and one for each launch.
    pub(super) fn read(page: &str, is_wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let mut rows = table::rows(page);
        let names = rows.find(|row| row.iter().any(|name| name == "Kernel Name"))?;
        let units = rows.next()?;
        let kernel = names.iter().position(|name| name == "Kernel Name")?;
        let row = rows.find(|row| row.get(kernel).is_some_and(|entry| is_wanted(entry)))?;
        let entry = row.get(kernel)?.clone();
        let values = names
            .into_iter()
            .zip(units.into_iter().zip(row))
            .map(|(name, (unit, value))| (name, (value, unit)));
        Some(Self { entry, values: values.collect() })
    }

    /// Returns a metric in its base unit: seconds, bytes, or the unit itself.
    fn number(&self, metric: &str) -> Option<f64> {
        let (value, unit) = self.values.get(metric)?;
        Some(table::number(value)? * scale(unit))
    }

    /// Returns a metric by its name in JSON.
    fn named(&self, name: &str) -> Option<f64> {
        let (_, metric) = NAMES.iter().find(|(own, _)| *own == name)?;
        self.number(metric)
    }

    /// Returns the number of blocks that a multiprocessor can run at once, and what limits it.
    fn limit(&self) -> Option<(f64, Vec<&'static str>)> {
        let limits: Vec<_> =
            LIMITS.iter().filter_map(|(name, metric)| Some((*name, self.number(metric)?))).collect();
        let least = limits.iter().map(|(_, limit)| *limit).reduce(f64::min)?;
        Some((least, limits.iter().filter(|(_, limit)| *limit == least).map(|(name, _)| *name).collect()))
    }

    pub(super) fn text(&self) -> String {
        let mut text = bold(kernel_of(&self.entry));
        if let Some((device, _)) = self.values.get("device__attribute_display_name") {
            text += &format!(" on {device}");
        }
        if let Some(seconds) = self.named("seconds") {
            text += &format!(": {}", time(seconds));
        }
        if let (Some(blocks), Some(threads)) = (self.named("blocks"), self.named("threads_per_block")) {
            text += &format!(", {blocks} blocks of {threads} threads");
        }
        text += "\n";
        let mut line = |name: &str, found: Option<String>| {
            text.extend(found.map(|found| format!("  {name:<15}{found}\n")));
        };
        let share = |name| self.named(name).map(|share| format!("{share:.1} %"));
        line("tensor cores", share("tensor_core_percent").map(|share| format!("{share} of the peak")));
        let traffic = |share_name, read, written| {
            let (share, read, written) = (share(share_name)?, self.named(read)?, self.named(written)?);
            Some(format!("{share} of the peak: {} read, {} written", bytes(read), bytes(written)))
        };
        line("global memory", traffic("memory_percent", "memory_read_bytes", "memory_written_bytes"));
        line("L2 cache", traffic("l2_percent", "l2_read_bytes", "l2_written_bytes"));
        line("occupancy", self.occupancy());
        line("instructions", self.named("instructions").map(|number| number.to_string()));
        line("copy engine", self.copies());
        text
    }

    fn occupancy(&self) -> Option<String> {
        let (share, possible) = (self.named("occupancy_percent")?, self.named("possible_occupancy_percent")?);
        let mut text = format!("{share:.1} % of the warps of a multiprocessor, {possible:.1} % possible");
        if let Some((blocks, limits)) = self.limit() {
            let noun = if blocks == 1.0 { "block" } else { "blocks" };
            let verb = if limits.len() == 1 && limits[0] != "registers" { "limits" } else { "limit" };
            let limits = match limits.as_slice() {
                [others @ .., one, last] => [others, &[&format!("{one} and {last}")]].concat().join(", "),
                few => few.concat(),
            };
            text += &format!(": {limits} {verb} it to {blocks} {noun}");
        }
        Some(text)
    }

    fn copies(&self) -> Option<String> {
        let (loads, stores) =
            (self.named("loads_of_the_copy_engine")?, self.named("stores_of_the_copy_engine")?);
        Some(format!("{loads} loads, {stores} stores"))
    }

    pub(super) fn json(&self) -> Value {
        let values = NAMES.iter().map(|(name, metric)| ((*name).to_owned(), json!(self.number(metric))));
        let mut values: Map<_, _> = values.collect();
        values.insert("kernel".to_owned(), kernel_of(&self.entry).into());
        values.insert("entry".to_owned(), self.entry.as_str().into());
        if let Some((blocks, limits)) = self.limit() {
            values.insert("blocks_per_multiprocessor".to_owned(), blocks.into());
            values.insert("limited_by".to_owned(), limits.into());
        }
        values.into()
    }
}

/// Returns the factor by which a value in this unit becomes one in the base unit. `ncu` chooses
/// units by magnitude. A share of a unit, such as `Kbyte/block`, is scaled like the unit.
fn scale(unit: &str) -> f64 {
    let unit = unit.split('/').next().unwrap_or(unit);
    match unit {
        "ns" | "nsecond" => 1e-9,
        "us" | "usecond" => 1e-6,
        "ms" | "msecond" => 1e-3,
        "Kbyte" => 1e3,
        "Mbyte" => 1e6,
        "Gbyte" => 1e9,
        "Tbyte" => 1e12,
        _ => 1.0,
    }
}

/// Formats a number of bytes, in powers of 1000 as `ncu` does.
pub(super) fn bytes(number: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(size, _)| number >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", number / size),
        None => format!("{number} B"),
    }
}

fn time(seconds: f64) -> String {
    if seconds < 1e-3 { format!("{:.1} µs", seconds * 1e6) } else { format!("{:.2} ms", seconds * 1e3) }
}
