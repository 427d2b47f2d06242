//! Every synchronisation step of every kernel, removed or weakened: the simulator must find each within 32 seeds, and
//! nothing in the kernels as they are within 256: of these, the first 16 unless `TMA_SEEDS` says how many. The results are
//! kept in `docs/mutations.md`.
#![cfg(feature = "llvm")]

use std::collections::BTreeSet;
use std::env;

use tma_codegen::{Target, compile};
use tma_runtime::testing::under_seeds;
use tma_tests::mutation::steps::mutants;
use tma_tests::mutation::subjects::subjects;
use tma_tests::mutation::table::{surprises, tables};
use tma_tests::mutation::trial::trials;
use tma_tests::page;
use tma_tests::parallel::on_all_cores;
use tma_tests::sources;

/// Seeds under which nothing may be found in a kernel as it is, and the variable that asks for more.
const QUIET_SEEDS: u64 = 16;
const SEEDS: &str = "TMA_SEEDS";

#[test]
fn every_missing_step_is_found() -> anyhow::Result<()> {
    let trials = trials(&subjects()?)?;
    let surprises = surprises(&trials);
    assert!(surprises.is_empty(), "{} surprises:\n{}", surprises.len(), surprises.join("\n"));

    let results = tables(&trials);
    println!("{results}");
    page::ends_with("mutations.md", &results)
}

#[test]
fn nothing_is_found_in_the_kernels_as_they_are() -> anyhow::Result<()> {
    let seeds = env::var(SEEDS).map_or(Ok(QUIET_SEEDS), |seeds| seeds.parse())?;
    let mut tests = subjects()?;
    // A check that launches several kernels comes with each of them.
    tests.dedup_by_key(|subject| subject.test.name.clone());
    let quiet = on_all_cores(tests, |subject| {
        under_seeds(seeds, |device| (subject.test.run)(device))
            .map_err(|failure| format!("{}: {failure}", subject.test.name))
    });
    let loud: Vec<_> = quiet.into_iter().filter_map(Result::err).collect();
    assert!(loud.is_empty(), "{}", loud.join("\n\n"));
    Ok(())
}

#[test]
fn no_kernel_that_synchronises_is_left_out() -> anyhow::Result<()> {
    let launched: BTreeSet<_> = subjects()?.iter().map(|subject| subject.kernel.name.to_owned()).collect();
    let files = sources::examples().iter().chain(sources::corpus()).filter(|source| source.name != "faults");
    let compiled = on_all_cores(files.collect(), |source| {
        compile(source.path, source.text, Target::default()).map_err(|failure| anyhow::anyhow!("{failure}"))
    });
    let mut synchronising = BTreeSet::new();
    for kernels in compiled {
        let named = kernels?.into_iter().filter(|kernel| !mutants(&kernel.text).is_empty());
        synchronising.extend(named.map(|kernel| kernel.name));
    }
    assert_eq!(launched, synchronising);
    Ok(())
}
