//! Mutants in which one synchronisation step of a kernel is removed or weakened: the simulator must
//! find each within 32 seeds, and nothing in the unchanged kernels within 256. The results are in
//! `lab/mutations.md`, which explains how to run all of them. By default it is every third mutant
//! of one instance of each kernel. The results of `tma-kernels` are in `lab/mutations-library.md`.
#![cfg(feature = "llvm")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;
use std::{env, fs};

use tma_codegen::{Target, compile};
use tma_runtime::testing::under_seeds;
use tma_tests::gpu::{collectives, teams};
use tma_tests::mutation::steps::mutants;
use tma_tests::mutation::subjects::{Subject, first_instances, library_subjects, subjects};
use tma_tests::mutation::table::{surprises, tables, unused_entries};
use tma_tests::mutation::trial::trials;
use tma_tests::mutation::unreported::{LIBRARY, TREE};
use tma_tests::page;
use tma_tests::parallel::on_all_cores;
use tma_tests::sources;

/// The number of seeds under which nothing may be found in an unchanged kernel.
const SEEDS: u64 = 256;

/// The largest number of instances of a kernel on the page: those of a table of types have the same
/// steps.
const INSTANCES: usize = 8;

/// The kernels, for all tests: each check is run to find them.
static SUBJECTS: LazyLock<Vec<Subject>> =
    LazyLock::new(|| subjects().unwrap_or_else(|error| panic!("{error:#}")));

/// The kernels of `tma-kernels`, an instance or two of each.
static LIBRARY_SUBJECTS: LazyLock<Vec<Subject>> =
    LazyLock::new(|| library_subjects().unwrap_or_else(|error| panic!("{error:#}")));

/// By default one in this many mutants of the library runs, since they take long.
const LIBRARY_STEP: usize = 40;

/// The page with the results, and the page with those of `tma-kernels`.
const PAGE: &str = "lab/mutations.md";
const PAGE_OF_LIBRARY: &str = "lab/mutations-library.md";

/// The variable that selects the mutants. `all` is for some instances of each kernel, and all
/// seeds; `library` for the mutants of the kernels of `tma-kernels`, and `library/` with the
/// beginning of a name for those of some of them; `none` for the unchanged kernels; and any other
/// value for the mutants of the kernels whose names begin with it.
const MUTATIONS: &str = "TMA_MUTATIONS";

#[test]
fn every_missing_step_is_found() -> anyhow::Result<()> {
    let wanted = env::var(MUTATIONS).ok();
    if wanted.as_ref().is_some_and(|wanted| wanted.starts_with("library")) {
        return Ok(());
    }
    let subjects = &*SUBJECTS;
    let trials = match wanted.as_deref() {
        Some("all") => {
            let trials = trials(&first_instances(subjects, INSTANCES), 1, &TREE)?;
            expect_none(surprises(&trials, &TREE).into_iter().chain(unused_entries(&trials, &TREE)));
            return page::ends_with(PAGE, &tables(&trials, &TREE));
        }
        Some("none") => {
            expect_quiet(subjects.clone());
            return Ok(());
        }
        Some(name) => trials(&named(subjects, name), 1, &TREE)?,
        None => trials(&first_instances(subjects, 1), 3, &TREE)?,
    };
    expect_none(surprises(&trials, &TREE));
    Ok(())
}

#[test]
fn every_missing_step_of_the_library_is_found() -> anyhow::Result<()> {
    let subjects = &*LIBRARY_SUBJECTS;
    let wanted = env::var(MUTATIONS).ok();
    let trials = match wanted.as_deref().map(|wanted| wanted.split_once('/').unwrap_or((wanted, ""))) {
        None => trials(subjects, LIBRARY_STEP, &LIBRARY)?,
        Some(("library", "")) => {
            let trials = trials(subjects, 1, &LIBRARY)?;
            expect_none(surprises(&trials, &LIBRARY).into_iter().chain(unused_entries(&trials, &LIBRARY)));
            return page::ends_with(PAGE_OF_LIBRARY, &tables(&trials, &LIBRARY));
        }
        Some(("library", name)) => trials(&named(subjects, name), 1, &LIBRARY)?,
        Some(_) => return Ok(()),
    };
    expect_none(surprises(&trials, &LIBRARY));
    Ok(())
}

/// Returns the subjects whose kernels' names begin with `name`.
fn named(subjects: &[Subject], name: &str) -> Vec<Subject> {
    let meant: Vec<_> = subjects.iter().filter(|it| it.kernel.name.starts_with(name)).cloned().collect();
    assert!(!meant.is_empty(), "no kernel's name begins with `{name}`");
    meant
}

#[test]
fn the_pages_are_of_these_kernels() -> anyhow::Result<()> {
    for (page, subjects) in
        [(PAGE, first_instances(&SUBJECTS, INSTANCES)), (PAGE_OF_LIBRARY, LIBRARY_SUBJECTS.clone())]
    {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page))?;
        let rows = subjects.into_iter().map(|Subject { kernel, .. }| {
            let count = mutants(kernel.ptx).len();
            format!("| `{}` | {count} |", kernel.name)
        });
        let missing = rows.filter(|row| !text.contains(row));
        expect_none(
            missing.map(|row| format!("{page} lacks {row}: its first lines say how to write it again")),
        );
    }
    Ok(())
}

/// Runs the unchanged kernels, under more seeds than `tests/simulator.rs`.
fn expect_quiet(mut tests: Vec<Subject>) {
    // A check that launches several kernels occurs once for each of them.
    tests.dedup_by_key(|subject| subject.test.name.clone());
    let quiet = on_all_cores(tests, |subject| {
        under_seeds(SEEDS, |device| (subject.test.run)(device))
            .map_err(|failure| format!("{}: {failure}", subject.test.name))
    });
    expect_none(quiet.into_iter().filter_map(Result::err));
}

fn expect_none(problems: impl IntoIterator<Item = String>) {
    let problems: Vec<_> = problems.into_iter().collect();
    assert!(problems.is_empty(), "{}:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn no_kernel_that_synchronises_is_left_out() -> anyhow::Result<()> {
    let launched: BTreeSet<_> = SUBJECTS.iter().map(|subject| subject.kernel.name.to_owned()).collect();
    // Of these kernels, what they print is checked, and not a result.
    let is_printing = |source: &&sources::Source| ["faults", "mma_prints"].contains(&source.name);
    let files = sources::examples().iter().chain(sources::corpus()).filter(|source| !is_printing(source));
    let compiled = on_all_cores(files.collect(), |source| {
        let compiled = compile(source.path, source.text, Target::default());
        compiled.map(|compiled| compiled.kernels).map_err(|failure| anyhow::anyhow!("{failure}"))
    });
    let mut synchronising = BTreeSet::new();
    for kernels in compiled {
        let named = kernels?.into_iter().filter(|kernel| !mutants(&kernel.text).is_empty());
        synchronising.extend(named.map(|kernel| kernel.name));
    }
    synchronising.extend(teams::KERNELS.map(str::to_owned));
    assert_eq!(launched, synchronising);
    Ok(())
}

#[test]
fn no_kernel_of_the_library_is_left_out() -> anyhow::Result<()> {
    let generic = |name: &str| name.split("::").next().unwrap_or_default().to_owned();
    let launched: BTreeSet<_> = LIBRARY_SUBJECTS.iter().map(|subject| generic(subject.kernel.name)).collect();
    let mut all = BTreeSet::new();
    for source in sources::library().iter().chain(sources::team_library()) {
        let accepted = source.checked().map_err(|failure| anyhow::anyhow!("{failure}"))?;
        all.extend(accepted.kernels.iter().map(|kernel| generic(&kernel.kernel.kernel().name)));
    }
    all.extend(collectives::KERNELS_OF_ROUNDS.map(str::to_owned));
    assert_eq!(launched, all);
    Ok(())
}
