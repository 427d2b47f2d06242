//! Cases of both lists on the simulator, against plain Rust; and what is asked of the hardware,
//! where the answers are known.

use tma_conformance::layout::{self, Probe};
use tma_conformance::run::each;
use tma_conformance::{Case, list, metadata};
use tma_model::mma::{Operand, ROWS};
use tma_runtime::Device;

/// Runs every so manyth case of a list.
fn run(cases: &[Case], step: usize) {
    let cases: Vec<Case> = cases.iter().copied().step_by(step).collect();
    let mut problems = Vec::new();
    each(&[Device::simulator()], &cases, |outcome| {
        problems.extend(outcome.problem.map(|problem| format!("{}: {problem}", cases[outcome.index])));
    });
    let first: Vec<_> = problems.iter().take(5).map(String::as_str).collect();
    assert!(problems.is_empty(), "{} of {} fail:\n{}", problems.len(), cases.len(), first.join("\n"));
}

#[test]
fn cases_of_the_table_give_what_plain_rust_gives() {
    run(&list::table(), 31);
}

#[test]
fn every_kind_of_numbers_gives_what_plain_rust_gives() {
    run(&list::arithmetic(), 11);
}

/// Where the start is that of a pattern, or moved along K, and nothing else is asked.
#[test]
fn descriptors_lead_where_the_model_says() {
    let is_plain = |probe: &Probe| {
        let span = probe.descriptor.swizzle.span().unwrap_or(16);
        probe.descriptor.base_offset == 0 && probe.descriptor.start % (8 * span) < span
    };
    let probes: Vec<Probe> = layout::probes().into_iter().filter(is_plain).collect();
    assert!(probes.len() > 30, "{}", probes.len());
    let answers = layout::answers(&Device::simulator(), &probes).expect("the simulator runs them");
    for (probe, answer) in probes.iter().zip(answers) {
        let rows = if probe.right { 32 } else { ROWS };
        for (row, column) in (0..rows).flat_map(|row| (0..16).map(move |column| (row, column))) {
            let place = if probe.right { [column, row] } else { [row, column] };
            let at = probe.descriptor.address(probe.major, Operand::F16, place);
            let found = answer[(row * 16 + column) as usize];
            assert_eq!(u32::from(found), at / 2 + 1, "{probe:?}: row {row}, column {column}");
        }
    }
}

#[test]
fn metadata_place_elements_where_the_model_says() {
    let device = Device::simulator();
    for a in metadata::TYPES {
        for bits in (0..16).filter(|bits| a.position(*bits, 0).is_some()) {
            let answer = metadata::answer(&device, metadata::Question { a, bits });
            let found = answer.expect("the simulator runs it").expect("all groups are alike");
            let mut wanted = vec![0.0; a.group() as usize];
            let slots = if a == Operand::Tf32 { 1 } else { 2 };
            for slot in 0..slots {
                let at = a.position(bits, slot).expect("it is valid");
                wanted[at as usize] = f64::from(slot + 1);
            }
            assert_eq!(found, wanted, "{a} {bits:04b}");
        }
    }
}
