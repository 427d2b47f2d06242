//! A launch that takes the decisions of a world: numbers for its symbols, so that what is found
//! there is no fiction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::facts::Facts;
use super::term::{Known, Node, Symbol, Term, Terms};
use super::value::along;
use crate::ir::{Axis, Scalar, Special};

/// How many assignments are tried.
const MOST_TRIALS: u32 = 20_000;
/// Numbers that are tried of every symbol.
const FIRST: i128 = 13;
/// Multiples of constants that are tried.
const MULTIPLES: i128 = 9;
/// The length that a slice has if nothing says otherwise: all that a kernel reads is there.
const LENGTH: i128 = 1 << 30;
const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

/// Numbers for symbols.
pub(super) type Numbers = HashMap<Term, i128>;

/// Conditions on a launch.
struct Search<'t> {
    terms: &'t Terms,
    conditions: Vec<(Term, bool, BTreeSet<Term>)>,
    symbols: Vec<Term>,
    trials: u32,
}

/// Finds numbers for all symbols that the decisions depend on. A cluster's place is in its grid.
pub(super) fn find(terms: &mut Terms, facts: &Facts, cluster: [u32; 3]) -> Option<Numbers> {
    let places = grid_conditions(terms, facts, cluster);
    let decided = facts.decided().filter(|(term, _)| !matches!(terms.node(*term), Node::Not(_)));
    let mut conditions = vec![];
    for (term, value) in decided.chain(places.into_iter().map(|term| (term, true))) {
        let mut symbols = BTreeSet::new();
        symbols_of(terms, term, &mut symbols);
        conditions.push((term, value, symbols));
    }
    conditions.sort_by_key(|(term, ..)| *term);
    let all: BTreeSet<Term> = conditions.iter().flat_map(|(_, _, symbols)| symbols.iter().copied()).collect();
    let mut search = Search { terms, conditions, symbols: all.into_iter().collect(), trials: 0 };
    let mut numbers = Numbers::new();
    search.assign(0, &mut numbers).then_some(numbers)
}

/// That a block's place is within its grid, which has whole clusters.
fn grid_conditions(terms: &mut Terms, facts: &Facts, cluster: [u32; 3]) -> Vec<Term> {
    use crate::ir::BinaryOp::{Add, Eq, Le, Mul, Rem};
    let mut used = BTreeSet::new();
    facts.decided().for_each(|(term, _)| symbols_of(terms, term, &mut used));
    let mut conditions = vec![];
    for axis in AXES {
        let [grid, place] = [Special::GridDim(axis), Special::ClusterIdx(axis)]
            .map(|special| terms.symbol(Symbol::Place(special), Scalar::U32));
        if !used.contains(&grid) && !used.contains(&place) {
            continue;
        }
        let [one, zero] = [1, 0].map(|number: i128| terms.number(number, Scalar::U32));
        let extent = terms.number(along(cluster, axis), Scalar::U32);
        let next = terms.binary(Add, place, one);
        let blocks = terms.binary(Mul, next, extent);
        let inside = terms.binary(Le, blocks, grid);
        let rest = terms.binary(Rem, grid, extent);
        conditions.extend([inside, terms.binary(Eq, rest, zero)]);
    }
    conditions
}

fn symbols_of(terms: &Terms, term: Term, into: &mut BTreeSet<Term>) {
    if let Node::Symbol(_) = terms.node(term) {
        into.insert(term);
    }
    terms.operands(term).into_iter().for_each(|operand| symbols_of(terms, operand, into));
}

fn constants_of(terms: &Terms, term: Term, into: &mut BTreeSet<i128>) {
    into.extend(terms.int(term));
    terms.operands(term).into_iter().for_each(|operand| constants_of(terms, operand, into));
}

impl Search<'_> {
    fn assign(&mut self, index: usize, numbers: &mut Numbers) -> bool {
        let Some(&symbol) = self.symbols.get(index) else { return self.reads_agree(numbers) };
        for number in self.candidates(symbol) {
            self.trials += 1;
            if self.trials > MOST_TRIALS {
                return false;
            }
            numbers.insert(symbol, number);
            if self.holds(symbol, numbers) && self.assign(index + 1, numbers) {
                return true;
            }
        }
        numbers.remove(&symbol);
        false
    }

    /// Numbers to try: small ones, and those near multiples of the constants around the symbol.
    fn candidates(&self, symbol: Term) -> Vec<i128> {
        let mut constants = BTreeSet::new();
        for (term, _, symbols) in &self.conditions {
            if symbols.contains(&symbol) {
                constants_of(self.terms, *term, &mut constants);
            }
        }
        let scalar = self.terms.scalar(symbol);
        let (least, greatest) =
            scalar.integer_range().map_or((0, 1), |(least, greatest)| match scalar.bytes() {
                4.. => (least / 2, greatest / 2),
                _ => (least, greatest),
            });
        let small = 0..FIRST;
        let near = constants.iter().flat_map(|constant| {
            (1..MULTIPLES).flat_map(move |factor| {
                let multiple = constant.saturating_mul(factor);
                [multiple, multiple - 1, multiple + 1]
            })
        });
        let mut all: Vec<i128> = vec![];
        if let Node::Symbol(Symbol::Len(_)) = self.terms.node(symbol) {
            all.push(LENGTH);
        }
        for number in small.chain(near) {
            if (least..=greatest).contains(&number) && !all.contains(&number) {
                all.push(number);
            }
        }
        all
    }

    /// Whether all conditions hold whose last symbol to get a number is this one.
    fn holds(&self, last: Term, numbers: &Numbers) -> bool {
        let due = self.conditions.iter().filter(|(_, _, symbols)| {
            symbols.contains(&last) && symbols.iter().all(|symbol| numbers.contains_key(symbol))
        });
        due.into_iter()
            .all(|(term, value, _)| self.terms.evaluate(*term, numbers) == Some(Known::Bool(*value)))
    }

    /// Whether reads of one place give one number.
    fn reads_agree(&self, numbers: &Numbers) -> bool {
        let mut read: BTreeMap<(u32, i128), i128> = BTreeMap::new();
        self.symbols.iter().all(|symbol| {
            let Node::Symbol(Symbol::Read(param, index)) = self.terms.node(*symbol) else { return true };
            let Some(index) = self.terms.evaluate(*index, numbers) else { return false };
            let Some(&number) = numbers.get(symbol) else { return false };
            *read.entry((*param, index.as_int())).or_insert(number) == number
        })
    }
}

/// How many of the symbols are data, which nothing but memory holds.
pub(super) fn data(terms: &Terms, numbers: &Numbers) -> usize {
    let is_data =
        |term: &&Term| matches!(terms.node(**term), Node::Symbol(Symbol::Read(..) | Symbol::Fresh(_)));
    numbers.keys().filter(is_data).count()
}

/// Whether a condition depends on numbers that whoever launches the kernel chooses, or on data: a
/// kernel may be made for some of them alone. Flags, and places in the grid, are not of these.
pub(super) fn is_chosen(terms: &Terms, condition: Term) -> bool {
    let mut symbols = BTreeSet::new();
    symbols_of(terms, condition, &mut symbols);
    symbols.iter().any(|symbol| match terms.node(*symbol) {
        Node::Symbol(Symbol::Param(_)) => terms.scalar(*symbol) != Scalar::Bool,
        Node::Symbol(Symbol::Len(_) | Symbol::Read(..) | Symbol::Fresh(_) | Symbol::Turns(_)) => true,
        Node::Symbol(Symbol::Place(special)) => matches!(special, Special::GridDim(_)),
        Node::Known(_)
        | Node::Not(_)
        | Node::Unary(..)
        | Node::Binary(..)
        | Node::Cast(_)
        | Node::Math(..)
        | Node::Integer(..) => false,
    })
}
