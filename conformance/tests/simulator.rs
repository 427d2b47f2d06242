//! Runs cases of all lists on the simulator, and compares them with the results of an H200 and of
//! plain Rust. Also tests the facts about the hardware that the simulator has to know.

use tma_conformance::corpus::{List, METADATA};
use tma_conformance::layout;
use tma_conformance::run::{self, CaseOutcome};
use tma_conformance::{double, list, metadata, warp};
use tma_runtime::Device;

type Take<'t> = &'t mut dyn FnMut(CaseOutcome);

/// Runs every `step`th case of a list.
#[track_caller]
fn replay<C: ToString + Copy>(
    list: List,
    cases: &[C],
    step: usize,
    each: impl FnOnce(&[Device], &[C], Take<'_>),
) {
    let names: Vec<String> = cases.iter().map(ToString::to_string).collect();
    let recorded = list.recorded(&names).expect("the list is that which was recorded");
    let some: Vec<C> = cases.iter().copied().step_by(step).collect();
    let (mut count, mut problems) = (0, Vec::new());
    each(&[Device::simulator()], &some, &mut |CaseOutcome { index, results, problem }| {
        let index = index * step;
        let differs = || recorded.problem(index, results.first()?);
        problems.extend(problem.or_else(differs).map(|problem| format!("{}: {problem}", names[index])));
        count += 1;
    });
    let first: Vec<_> = problems.iter().take(5).map(String::as_str).collect();
    assert!(problems.is_empty(), "{} of {count} fail:\n{}", problems.len(), first.join("\n"));
    assert_eq!(count, some.len());
}

#[test]
fn cases_of_the_table_match_an_h200() {
    replay(List::Table, &list::table(), 31, run::each);
}

#[test]
fn every_kind_of_numbers_matches_an_h200() {
    replay(List::Arithmetic, &list::arithmetic(), 11, run::each);
}

#[test]
fn products_of_warps_are_those_of_an_h200() {
    replay(List::Warps, &warp::cases(), 1, warp::each);
}

#[test]
fn products_of_doubles_are_those_of_an_h200() {
    replay(List::Doubles, &double::cases(), 1, double::each);
}

/// The model covers all probes, and the simulator those that no rule forbids.
#[test]
fn descriptors_lead_where_an_h200_was_led() {
    let probes = layout::probes();
    let allowed = probes.iter().filter(|probe| probe.is_allowed()).count();
    assert!((60..probes.len()).contains(&allowed), "{allowed}");
    assert!(probes.iter().any(|probe| probe.is_allowed() && probe.descriptor.base_offset != 0));
    replay(List::Layout, &probes, 1, layout::each);
}

#[test]
fn metadata_place_elements_where_an_h200_put_them() {
    let device = Device::simulator();
    let mut known = METADATA.lines();
    for a in metadata::TYPES {
        for bits in 0..16 {
            let line = known.next().expect("a line for each");
            let probe = metadata::MetadataProbe { a, bits };
            match a.position(bits, 0) {
                Some(_) => {
                    let positions = metadata::positions(&device, probe).expect("the simulator runs it");
                    assert_eq!(metadata::line(probe, &positions), line);
                }
                None => {
                    let error = metadata::positions(&device, probe).expect_err("it is found").to_string();
                    assert!(error.contains("the metadata of lane 0 has"), "{a} {bits:04b}: {error}");
                }
            }
        }
    }
    assert_eq!(known.next(), None);
}
