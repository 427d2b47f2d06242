//! Runs the conformance table of tensor cores, and either compares the results with those of an
//! H200 or records those of this GPU. The last line of output is 'N passed, N failed'.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Parser;
use tma_conformance::corpus::{Corpus, List, hash};
use tma_conformance::run::{self, CaseOutcome};
use tma_conformance::{Case, batch, double, layout, list, metadata, warp};
use tma_model::mma::DoubleForm;
use tma_runtime::Device;

/// Maximum bytes of results that are written for the failed cases of a list.
const MOST_DUMPED: usize = 8 << 20;

/// Compares the results of tensor cores with plain Rust and with the results of an H200. Runs on
/// the first GPU and on the simulator, which must agree in every bit, or on the simulator alone.
#[derive(Parser)]
struct Args {
    /// A folder for the results of this GPU: a hash of each result, in the format of
    /// `conformance/corpus`, and the full results of cases that failed. Nothing is compared with
    /// the corpus.
    #[arg(long, conflicts_with_all = ["filter", "simulator"])]
    record: Option<PathBuf>,
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// Only this list: arithmetic, table, warps, doubles or layout.
    #[arg(long, value_parser = list_of)]
    list: Option<List>,
    /// Writes the PTX of all kernels to this folder, and runs nothing.
    #[arg(long)]
    ptx: Option<PathBuf>,
    /// Uses only the simulator, even if there is a GPU.
    #[arg(long)]
    simulator: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if let Some(folder) = &args.ptx {
        write_kernels(folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let simulator = Device::simulator();
    let first = if args.simulator { simulator.clone() } else { Device::open()? };
    let is_gpu = first.name() != simulator.name();
    println!("on {}", first.name());
    let devices = if is_gpu { vec![first, simulator] } else { vec![first] };
    if let Some(folder) = &args.record {
        anyhow::ensure!(is_gpu, "there is no GPU of which anything could be recorded");
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let (mut passed, mut failed) = (0, 0);
    for list in List::ALL.into_iter().filter(|list| args.list.is_none_or(|only| only == *list)) {
        let tally = run_list(list, &devices, &args)?;
        passed += tally[0];
        failed += tally[1];
    }
    if let (Some(folder), None) = (&args.record, args.list) {
        ask_for_metadata(&devices[0], folder)?;
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list_of(name: &str) -> Result<List, String> {
    let named = List::ALL.into_iter().find(|list| list.name() == name);
    named.ok_or_else(|| format!("there is {}", List::ALL.map(List::name).join(", ")))
}

/// Runs the cases of a list that match the filter. Returns how many passed and failed.
fn run_list(list: List, devices: &[Device], args: &Args) -> anyhow::Result<[usize; 2]> {
    match list {
        List::Arithmetic => run_with(list, devices, args, &list::arithmetic(), run::each),
        List::Table => run_with(list, devices, args, &list::table(), run::each),
        List::Warps => run_with(list, devices, args, &warp::cases(), warp::each),
        List::Doubles => run_with(list, devices, args, &double::cases(), double::each),
        List::Layout => run_with(list, devices, args, &layout::probes(), layout::each),
    }
}

fn run_with<C: ToString + Copy>(
    list: List,
    devices: &[Device],
    args: &Args,
    cases: &[C],
    each: impl FnOnce(&[Device], &[C], &mut dyn FnMut(CaseOutcome)),
) -> anyhow::Result<[usize; 2]> {
    let start = Instant::now();
    let names: Vec<String> = cases.iter().map(ToString::to_string).collect();
    let taken: Vec<usize> = (0..cases.len()).filter(|&index| names[index].contains(&args.filter)).collect();
    let mut report = Report::new(list, names, args.record.as_deref())?;
    let some: Vec<C> = taken.iter().map(|&index| cases[index]).collect();
    each(devices, &some, &mut |outcome| report.take(CaseOutcome { index: taken[outcome.index], ..outcome }));
    let failed = report.failed;
    if let Some(folder) = &args.record {
        let corpus = Corpus::new(devices[0].name(), &report.names, report.hashes);
        write(&folder.join(format!("{}.txt", list.name())), &corpus.to_string())?;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{}: {} cases, {failed} failed, {seconds:.1} s", list.name(), taken.len());
    Ok([taken.len() - failed, failed])
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The progress and results of a list.
struct Report {
    names: Vec<String>,
    /// The expected results, unless they are being recorded.
    recorded: Option<Corpus>,
    hashes: Vec<u64>,
    failed: usize,
    /// The file for the results of cases that failed.
    dump: Option<BufWriter<File>>,
    dumped: usize,
}

impl Report {
    /// Creates the report of a list, which is compared with the corpus or recorded.
    fn new(list: List, names: Vec<String>, record: Option<&Path>) -> anyhow::Result<Self> {
        let (recorded, dump) = match record {
            None => (Some(list.recorded(&names)?), None),
            Some(folder) => {
                let path = folder.join(format!("{}.failed", list.name()));
                let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
                (None, Some(BufWriter::new(file)))
            }
        };
        Ok(Self { hashes: vec![0; names.len()], names, recorded, failed: 0, dump, dumped: 0 })
    }

    fn take(&mut self, outcome: CaseOutcome) {
        let CaseOutcome { index, results, problem } = outcome;
        let recorded = || self.recorded.as_ref()?.problem(index, results.first()?);
        if let Some(problem) = problem.or_else(recorded) {
            println!("{}: {problem}", self.names[index]);
            self.failed += 1;
            if let (Some(result), Some(file)) = (results.first(), &mut self.dump) {
                self.dumped += 4 * result.bits.len() + 8;
                let fits = self.dumped <= MOST_DUMPED;
                if !(fits && write_result(file, index, &result.bits).is_ok()) {
                    println!("  not dumped");
                }
            }
        }
        self.hashes[index] = results.first().map_or(0, hash);
    }
}

/// Writes the case's number, the number of elements and the elements, in 4 bytes each.
fn write_result(file: &mut impl Write, index: usize, bits: &[u32]) -> std::io::Result<()> {
    let head = [index as u32, bits.len() as u32];
    head.iter().chain(bits).try_for_each(|word| file.write_all(&word.to_le_bytes()))
}

/// Writes the kernels of both lists of `wgmma`, and those of `mma.sync`.
fn write_kernels(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, cases) in [("arithmetic", list::arithmetic()), ("table", list::table())] {
        for (family, indices) in list::by_family(&cases) {
            let cases: Vec<Case> = indices.iter().map(|&index| cases[index]).collect();
            fs::write(folder.join(format!("{name}.{}.ptx", family.0)), batch::text(family, &cases))?;
        }
    }
    for warp in warp::all() {
        fs::write(folder.join(format!("{warp}.ptx")), warp.text())?;
    }
    for form in DoubleForm::ALL {
        fs::write(folder.join(format!("{form}.f64.ptx")), double::text(form))?;
    }
    Ok(())
}

/// Records the meaning of metadata on the GPU.
fn ask_for_metadata(device: &Device, folder: &Path) -> anyhow::Result<()> {
    let mut text = String::new();
    for a in metadata::TYPES {
        for bits in 0..16 {
            let probe = metadata::MetadataProbe { a, bits };
            text += &metadata::line(probe, &metadata::positions(device, probe)?);
            text.push('\n');
        }
    }
    write(&folder.join("metadata.txt"), &text)
}
