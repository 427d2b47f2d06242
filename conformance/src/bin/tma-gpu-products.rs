//! Runs the conformance table of tensor cores, and records what a GPU answers. The last line is
//! 'N passed, N failed'.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Parser;
use tma_conformance::run::{Outcome, each, hash};
use tma_conformance::{Case, batch, layout, list, metadata, warp};
use tma_runtime::Device;

/// Bytes of results that are written for cases of a list which failed.
const MOST_DUMPED: usize = 8 << 20;

/// Compares the products of tensor cores with plain Rust: on the first GPU and the simulator,
/// between which every bit is to be the same, or without a GPU on the simulator alone.
#[derive(Parser)]
struct Args {
    /// A folder for what was seen: a hash of each result, and the results of cases that failed.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// Writes the PTX of all kernels into this folder, and runs nothing.
    #[arg(long)]
    ptx: Option<PathBuf>,
    /// Only the simulator, though there may be a GPU.
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
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let (mut passed, mut failed) = (0, 0);
    for (name, cases) in [("arithmetic", list::arithmetic()), ("table", list::table())] {
        let cases: Vec<Case> =
            cases.into_iter().filter(|case| case.to_string().contains(&args.filter)).collect();
        let tally = run(name, &devices, &cases, args.record.as_deref())?;
        passed += tally[0];
        failed += tally[1];
    }
    if is_gpu && let Some(folder) = &args.record {
        record_warps(&devices[0], folder)?;
        ask_for_metadata(&devices[0], folder)?;
        ask_for_layouts(&devices[0], folder)?;
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a list; how many passed and failed.
fn run(name: &str, devices: &[Device], cases: &[Case], record: Option<&Path>) -> anyhow::Result<[usize; 2]> {
    let start = Instant::now();
    let mut outcomes: Vec<Option<(u64, Option<String>)>> = vec![None; cases.len()];
    let mut dump = match record {
        Some(folder) => Some(BufWriter::new(File::create(folder.join(format!("{name}.bin")))?)),
        None => None,
    };
    let mut dumped = 0;
    each(devices, cases, |outcome| {
        let Outcome { index, results, problem } = outcome;
        if let (Some(problem), Some(result), Some(file)) = (&problem, results.first(), &mut dump) {
            println!("{}: {problem}", cases[index]);
            dumped += 4 * result.bits.len() + 8;
            let is_written = dumped <= MOST_DUMPED && write_result(file, index, &result.bits).is_ok();
            if !is_written {
                println!("  not dumped");
            }
        } else if let Some(problem) = &problem {
            println!("{}: {problem}", cases[index]);
        }
        outcomes[index] = Some((results.first().map_or(0, hash), problem));
    });
    let failed = outcomes.iter().flatten().filter(|(_, problem)| problem.is_some()).count();
    if let Some(folder) = record {
        let mut file = BufWriter::new(File::create(folder.join(format!("{name}.txt")))?);
        for (case, outcome) in cases.iter().zip(&outcomes) {
            let hash = outcome.as_ref().map_or(0, |(hash, _)| *hash);
            writeln!(file, "{case} = {hash:016x}")?;
        }
    }
    println!("{name}: {} cases, {failed} failed, {:.1} s", cases.len(), start.elapsed().as_secs_f64());
    Ok([cases.len() - failed, failed])
}

/// The case's number, the number of elements and the elements, each in 4 bytes.
fn write_result(file: &mut impl Write, index: usize, bits: &[u32]) -> std::io::Result<()> {
    let head = [index as u32, bits.len() as u32];
    head.iter().chain(bits).try_for_each(|word| file.write_all(&word.to_le_bytes()))
}

/// The kernels of both lists, and those of `mma.sync`.
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
    Ok(())
}

/// What `mma.sync` gives on the GPU, in full. An instruction that the driver refuses is left out.
fn record_warps(device: &Device, folder: &Path) -> anyhow::Result<()> {
    let cases = warp::cases();
    let mut text = BufWriter::new(File::create(folder.join("warps.txt"))?);
    let mut bytes = BufWriter::new(File::create(folder.join("warps.bin"))?);
    for warp in warp::all() {
        let of_warp = || cases.iter().enumerate().filter(|(_, case)| case.warp == warp);
        let matrices: Vec<_> = of_warp().map(|(_, case)| warp::WarpMatrices::new(case)).collect();
        match warp::results(device, warp, &matrices) {
            Ok(results) => {
                for ((index, case), result) in of_warp().zip(&results) {
                    writeln!(text, "{case} = {:016x}", hash(result))?;
                    write_result(&mut bytes, index, &result.bits)?;
                }
            }
            Err(error) => println!("{warp}: {error:#}"),
        }
    }
    println!("warps: {} cases", cases.len());
    Ok(())
}

/// What metadata mean on the GPU.
fn ask_for_metadata(device: &Device, folder: &Path) -> anyhow::Result<()> {
    let mut text = BufWriter::new(File::create(folder.join("metadata.txt"))?);
    for a in metadata::TYPES {
        for bits in 0..16 {
            match metadata::answer(device, metadata::Question { a, bits })? {
                Some(numbers) => writeln!(text, "{a} {bits:04b} = {numbers:?}")?,
                None => writeln!(text, "{a} {bits:04b} = not the same everywhere")?,
            }
        }
    }
    Ok(())
}

/// Where descriptors lead on the GPU.
fn ask_for_layouts(device: &Device, folder: &Path) -> anyhow::Result<()> {
    let probes = layout::probes();
    let answers = layout::answers(device, &probes)?;
    let mut text = BufWriter::new(File::create(folder.join("layout.txt"))?);
    let mut bytes = BufWriter::new(File::create(folder.join("layout.bin"))?);
    for (probe, answer) in probes.iter().zip(answers) {
        let side = if probe.right { "B" } else { "A" };
        writeln!(
            text,
            "{side} {:?} {:#018x} {:?}",
            probe.major,
            probe.descriptor.encode(),
            probe.descriptor
        )?;
        answer.iter().try_for_each(|number| bytes.write_all(&number.to_le_bytes()))?;
    }
    println!("layout: {} descriptors", probes.len());
    Ok(())
}
