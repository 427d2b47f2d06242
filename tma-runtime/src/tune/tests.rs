//! Tests of selection and cache on simulated devices.

use super::*;
use crate::device::Device;
use crate::launch::{Grid, launch};
use crate::spec::{Cluster, KernelParts};
use std::fs;
use std::path::Path;

/// Returns a kernel of one warp with this PTX.
const fn kernel(name: &'static str, ptx: &'static str) -> KernelParts {
    KernelParts { name, entry: "k", ptx, ..KernelParts::NOTHING }
}

const SHORT: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }";
const LONG: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {
    .reg .b32 %r<2>; mov.u32 %r1, 1; add.u32 %r1, %r1, 1; add.u32 %r1, %r1, 1; ret; }";
const TRAPS: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { trap; }";

const fn spec(parts: KernelParts) -> KernelSpec {
    // SAFETY: no entry here touches memory.
    unsafe { KernelSpec::from_parts(parts) }
}

static KERNELS: [KernelSpec; 2] = [spec(kernel("k::long", LONG)), spec(kernel("k::short", SHORT))];
static GREEDY: KernelSpec = spec(KernelParts { shared_bytes: 300_000, ..kernel("k::greedy", SHORT) });
static CLUSTERED: KernelSpec =
    spec(KernelParts { cluster: Cluster::AtLaunch { most: 8 }, ..kernel("k::clustered", SHORT) });
static TRAPPING: KernelSpec = spec(kernel("k::trapping", TRAPS));

/// Returns the folder of a test's cache, which is empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tune-tests").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    folder
}

/// Tunes, and returns the number of launches with the result.
fn tune_in(folder: &Path, candidates: &[Candidate<()>]) -> (Result<Tuned, Error>, usize) {
    let stream = Device::simulator().stream().unwrap();
    let mut launches = 0;
    let tuner = Tuner::new(&stream).cache(folder).quiet();
    let tuned = tuner.tune("k", &[4], candidates, |candidate, stream| {
        launches += 1;
        launch(stream, candidate.kernel, Grid::x(4), &[])
    });
    (tuned, launches)
}

fn file_in(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.next().unwrap();
    assert_eq!(files.next(), None, "one file, and none that was written aside");
    file
}

#[test]
fn the_simulator_chooses_by_instructions() {
    let (tuned, launches) = tune_in(&folder("instructions"), &candidates(&KERNELS, &[()]));
    let tuned = tuned.unwrap();
    assert_eq!((tuned.best, tuned.unit, launches), (1, Unit::Instructions, 2));
    let costs = [4.0 * 4.0, 4.0].map(|cost| Outcome::Measured { cost, spread: 0.0 });
    assert_eq!(tuned.trials.iter().map(|trial| trial.outcome.clone()).collect::<Vec<_>>(), costs);
}

#[test]
fn measurements_are_cached() {
    let folder = folder("remembered");
    let candidates = candidates(&KERNELS, &[()]);
    let (first, launches) = tune_in(&folder, &candidates);
    let first = first.unwrap();
    assert_eq!((first.cache.clone(), launches), (Cache::Miss, 2));
    let (second, launches) = tune_in(&folder, &candidates);
    assert_eq!((second.unwrap(), launches), (Tuned { cache: Cache::Hit, ..first }, 0));
    // The same names, but a different kernel under one of them.
    static OTHER: KernelSpec = spec(kernel("k::long", SHORT));
    let others = [Candidate { kernel: &OTHER, options: () }, candidates[1]];
    let (third, launches) = tune_in(&folder, &others);
    assert_eq!((third.unwrap().cache, launches), (Cache::Miss, 2));
    file_in(&folder);
}

#[test]
fn a_damaged_cache_is_reported_and_replaced() {
    let folder = folder("damaged");
    let candidates = candidates(&KERNELS, &[()]);
    tune_in(&folder, &candidates).0.unwrap();
    let path = file_in(&folder);
    let whole = fs::read(&path).unwrap();
    let with_byte = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] = 0xff;
        bytes
    };
    for damaged in [vec![], b"results".to_vec(), whole[..whole.len() / 2].to_vec(), with_byte(40)] {
        fs::write(&path, damaged).unwrap();
        let (tuned, launches) = tune_in(&folder, &candidates);
        let tuned = tuned.unwrap();
        assert!(matches!(&tuned.cache, Cache::Damaged { path: found, .. } if *found == path), "{tuned:?}");
        assert!(tuned.to_string().contains("is damaged, measuring again"), "{tuned}");
        assert_eq!(launches, 2);
        assert_eq!(fs::read(&path).unwrap(), whole, "it is replaced");
    }
    assert_eq!(tune_in(&folder, &candidates).0.unwrap().cache, Cache::Hit);
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    let folder = folder("unwritable");
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    let _was_a_file = fs::remove_file(&folder);
    fs::write(&folder, "a file").unwrap();
    let (tuned, _) = tune_in(&folder, &candidates(&KERNELS, &[()]));
    fs::remove_file(&folder).unwrap();
    let tuned = tuned.unwrap();
    assert!(matches!(tuned.cache, Cache::Unwritable { .. }), "{tuned:?}");
    assert!(tuned.to_string().contains("cannot write the result"), "{tuned}");
}

#[test]
fn options_are_tried_with_each_kernel_and_refusals_are_left_out() {
    let stream = Device::simulator().stream().unwrap();
    let all = candidates([&CLUSTERED, &GREEDY], &[[2, 1, 1], [3, 1, 1]]);
    let tuner = Tuner::new(&stream).no_cache();
    let tuned = tuner.tune("k", &[4], &all, |candidate, stream| {
        launch(&stream.with().cluster(candidate.options), candidate.kernel, Grid::x(4), &[])
    });
    let tuned = tuned.unwrap();
    assert_eq!((tuned.best, tuned.cache.clone()), (0, Cache::Off));
    let text = tuned.to_string();
    let rows: Vec<&str> = text.lines().skip(2).collect();
    assert!(rows[0].starts_with("> k::clustered [2, 1, 1]") && rows[0].ends_with("1.000"), "{text}");
    assert!(rows[1].contains("[3, 1, 1]") && rows[1].contains("rejected: TMA0621"), "{text}");
    assert!(rows[2].contains("rejected: TMA0624") && rows[3].contains("rejected: TMA0624"), "{text}");
}

#[test]
fn a_mistake_in_a_kernel_is_not_left_out() {
    let all = candidates([&KERNELS[0], &TRAPPING], &[()]);
    let folder = folder("mistake");
    let (tuned, _) = tune_in(&folder, &all);
    assert_eq!(tuned.unwrap_err().code(), "TMA0616");
    assert!(!folder.exists(), "nothing is remembered");
}

#[test]
fn tma0554_there_is_a_candidate() {
    let error = tune_in(&folder("none"), &[]).0.unwrap_err();
    assert_eq!(error.code(), "TMA0554");
    let one = candidates(&KERNELS[..1], &[()]);
    assert!(tune_in(&folder("one"), &one).0.is_ok());
}

#[test]
fn tma0555_candidates_have_names_of_their_own() {
    let twice = candidates([&KERNELS[0], &KERNELS[0]], &[()]);
    let error = tune_in(&folder("twice"), &twice).0.unwrap_err();
    assert_eq!(error.code(), "TMA0555");
    assert!(error.to_string().contains("`k::long`"), "{error}");
    assert!(tune_in(&folder("once"), &twice[..1]).0.is_ok());
}

#[test]
fn tma0556_one_candidate_can_be_launched() {
    let greedy = candidates([&GREEDY], &[()]);
    let (error, _) = tune_in(&folder("greedy"), &greedy);
    let error = error.unwrap_err();
    assert_eq!(error.code(), "TMA0556");
    assert!(error.to_string().contains("TMA0612"), "{error}");
    let both = candidates([&GREEDY, &KERNELS[0]], &[()]);
    assert_eq!(tune_in(&folder("both"), &both).0.unwrap().best, 1);
}
