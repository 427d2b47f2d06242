//! The lists of cases.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::hash::Hash;

use tma_model::Swizzle;
use tma_model::mma::{Accumulator, Form, Major, Operand};

use crate::case::{Case, Family};
use crate::draw::{Addend, Kind, Rng};
use crate::instruction::{Instruction, Source};

/// All swizzles.
pub const SWIZZLES: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

/// The kinds of numbers that the table draws from. The others are only for [`arithmetic`].
const KINDS: [Kind; 6] =
    [Kind::Near, Kind::Small, Kind::Spread, Kind::Cancelling, Kind::Numbered, Kind::Special];

/// Returns all combinations of types, dense and sparse, with the smallest width.
pub fn types() -> Vec<Form> {
    let mut all = Vec::new();
    for a in Operand::ALL {
        for b in Operand::ALL.into_iter().filter(|b| a.multiplies(*b)) {
            for d in a.accumulates() {
                let forms = [false, true].map(|sparse| Form { d: *d, a, b, n: 8, sparse });
                all.extend(forms.into_iter().filter(|form| form.faults().is_empty()));
            }
        }
    }
    all
}

fn majors(form: Form, source: Source) -> Vec<[Major; 2]> {
    let mut all: Vec<[Major; 2]> = Vec::new();
    for instruction in Instruction::all(form).into_iter().filter(|one| one.source == source) {
        if !all.contains(&instruction.majors) {
            all.push(instruction.majors);
        }
    }
    all
}

/// Returns the conformance table.
pub fn table() -> Vec<Case> {
    let mut cases = widths();
    cases.extend(layouts());
    cases.extend(modifiers());
    cases
}

/// Returns all widths of all types, with A in memory and in registers. The rest is drawn at random.
fn widths() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in types() {
        for n in Form::widths(form.a) {
            for source in Source::ALL {
                let seed = cases.len() as u64;
                let mut rng = Rng::new(seed ^ 0x5eed);
                let all = Instruction::all(Form { n, ..form });
                let all: Vec<_> = all.into_iter().filter(|one| one.source == source).collect();
                cases.push(Case {
                    instruction: rng.choose(&all),
                    swizzles: [rng.choose(&SWIZZLES), rng.choose(&SWIZZLES)],
                    kind: rng.choose(&KINDS),
                    addend: rng.choose(&Addend::ALL),
                    steps: rng.choose(&[1, 1, 2, 4]),
                    seed,
                });
            }
        }
    }
    cases
}

/// Returns all layouts of A and B, for all types.
fn layouts() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in types() {
        for source in Source::ALL {
            let lefts = if source == Source::Shared { &SWIZZLES[..] } else { &SWIZZLES[..1] };
            for majors in majors(form, source) {
                for (left, right) in lefts.iter().flat_map(|left| SWIZZLES.map(|right| (*left, right))) {
                    let seed = cases.len() as u64;
                    let mut rng = Rng::new(seed ^ 0x1a70);
                    let n = rng.choose(&[64, 128]);
                    let instruction =
                        Instruction { majors, ..Instruction::plain(Form { n, ..form }, source) };
                    cases.push(Case {
                        instruction,
                        swizzles: [left, right],
                        kind: rng.choose(&[Kind::Numbered, Kind::Near]),
                        addend: rng.choose(&[Addend::Absent, Addend::Near]),
                        steps: rng.choose(&[1, 3]),
                        seed,
                    });
                }
            }
        }
    }
    cases
}

/// Returns all negations, selectors and saturations of all types, with and without C.
fn modifiers() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in types() {
        let form = Form { n: 16, ..form };
        let k_major = |one: &Instruction| one.majors == [Major::K; 2];
        for instruction in Instruction::all(form).into_iter().filter(k_major) {
            for addend in [Addend::Bits, Addend::Absent] {
                let seed = cases.len() as u64;
                let kind = if form.d == Accumulator::S32 { Kind::Huge } else { Kind::Near };
                let swizzles = [Swizzle::B32, Swizzle::B64];
                cases.push(Case { instruction, swizzles, kind, addend, steps: 1, seed });
            }
        }
    }
    cases
}

/// Returns the arithmetic cases of all types: all kinds of numbers with all kinds of C, in single
/// instructions and in chains, with and without negation.
pub fn arithmetic() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in types() {
        for kind in Kind::ALL {
            for addend in Addend::ALL {
                let seed = cases.len() as u64;
                let mut rng = Rng::new(seed ^ 0xa217);
                let negates = [false, form.a.is_negatable() && rng.once_in(3)];
                let saturates = form.a.is_saturable() && rng.once_in(2);
                let source = if rng.once_in(3) { Source::Registers } else { Source::Shared };
                let selector = if form.sparse { rng.below(form.a.selectors()) } else { 0 };
                let plain = Instruction::plain(form, source);
                let instruction = Instruction { negates, saturates, selector, ..plain };
                let steps = if rng.once_in(4) { 3 } else { 1 };
                let swizzles = [Swizzle::B32, Swizzle::B64];
                cases.push(Case { instruction, swizzles, kind, addend, steps, seed });
            }
        }
    }
    cases
}

/// Returns the number of distinct elements.
fn count<T: Hash + Eq>(all: impl Iterator<Item = T>) -> usize {
    all.collect::<HashSet<T>>().len()
}

/// Returns the book's table of the cases for each combination of types.
pub fn summary() -> String {
    let (table, arithmetic) = (table(), arithmetic());
    types().iter().fold(String::new(), |mut text, form| {
        let kind = Form { n: 0, ..*form };
        let is_of = |case: &&Case| Form { n: 0, ..case.form() } == kind;
        let cases: Vec<&Case> = table.iter().filter(is_of).collect();
        let widths = count(cases.iter().map(|case| case.form().n));
        let sources =
            if count(cases.iter().map(|case| case.instruction.source)) == 2 { "both" } else { "one" };
        let layouts = count(cases.iter().map(|case| {
            let majors = case.instruction.majors;
            (majors, case.left().map(|tile| tile.swizzle), case.swizzles[1])
        }));
        let modifiers = count(cases.iter().map(|case| {
            let Instruction { negates, saturates, selector, .. } = case.instruction;
            (negates, saturates, selector)
        }));
        let Form { d, a, b, sparse, .. } = form;
        let name = format!("{}`{d}.{a}.{b}`", if *sparse { "sparse " } else { "" });
        let (all, numbers) = (cases.len(), arithmetic.iter().filter(is_of).count());
        // Writing to a string does not fail.
        let _ =
            writeln!(text, "| {name} | {widths} | {sources} | {layouts} | {modifiers} | {all} | {numbers} |");
        text
    })
}

/// Groups cases by the family of their kernel, in order. Cases are given by their index in the
/// list.
pub fn by_family(cases: &[Case]) -> Vec<(Family, Vec<usize>)> {
    let mut positions: HashMap<Family, usize> = HashMap::new();
    let mut families: Vec<(Family, Vec<usize>)> = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let family = case.family();
        let position = *positions.entry(family).or_insert_with(|| {
            families.push((family, Vec::new()));
            families.len() - 1
        });
        families[position].1.push(index);
    }
    families
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_table() {
        let page = include_str!("../../lab/conformance.md");
        let (summary, all) = (summary(), table().len() + arithmetic().len());
        assert!(page.contains(&summary), "lab/conformance.md lacks this table:\n{summary}");
        let counts = [table().len(), arithmetic().len(), crate::warp::cases().len()];
        for (name, count) in ["*table*", "*arithmetic*", "*warps*"].iter().zip(counts) {
            assert!(page.contains(&format!("* {name}, {count} cases of")), "{name}: {count}");
        }
        assert_eq!(all + counts[2], 9783, "the page of the simulator says how many");
    }

    #[test]
    fn there_are_many_and_each_has_a_name_of_its_own() {
        for (cases, least) in [(table(), 1500), (arithmetic(), 2000)] {
            assert!(cases.len() >= least, "{}", cases.len());
            let names: HashSet<String> = cases.iter().map(ToString::to_string).collect();
            assert_eq!(names.len(), cases.len());
        }
    }

    #[test]
    fn every_case_is_one_that_the_hardware_takes() {
        for case in table().iter().chain(&arithmetic()) {
            assert_eq!(case.form().faults(), [], "{case}");
            assert_eq!(case.right().faults(), [], "{case}");
            assert!(case.left().is_none_or(|tile| tile.faults().is_empty()), "{case}");
        }
    }

    #[test]
    fn every_instruction_of_a_small_width_is_in_the_table() {
        let table = table();
        let found: HashSet<Instruction> = table.iter().map(|case| case.instruction).collect();
        for form in types() {
            for n in Form::widths(form.a) {
                let has =
                    |source| found.iter().any(|one| one.form == Form { n, ..form } && one.source == source);
                assert!(Source::ALL.into_iter().all(has), "{form} n{n}");
            }
        }
    }
}
