//! A launch that takes the decisions of a world: numbers for its symbols, so that what is found
//! there is no fiction.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::Facts;
use super::term::{Known, Node, Symbol, Term, Terms};
use super::value::along;
use crate::ir::{Axis, Scalar, Special};
use crate::quick::QuickMap;

/// How many assignments are tried.
const MOST_TRIALS: u32 = 2_000;
/// Numbers that are tried of every symbol.
const FIRST: i128 = 13;
/// Multiples of constants that are tried.
const MULTIPLES: i128 = 9;
/// The length that a slice has if nothing says otherwise: all that a kernel reads is there.
const LENGTH: i128 = 1 << 30;
const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

/// Numbers for symbols.
pub(super) type Numbers = QuickMap<Term, i128>;

/// A condition on a launch: whether a term holds.
struct Condition {
    term: Term,
    holds: bool,
    symbols: BTreeSet<Term>,
}

/// A symbol that is to get a number, in the order of the search.
struct Open {
    symbol: Term,
    /// Numbers to try.
    candidates: Vec<i128>,
    /// The conditions all of whose symbols have numbers once this one has.
    due: Vec<(Term, bool)>,
}

/// The search for a launch.
struct Search<'t> {
    terms: &'t Terms,
    all: Vec<Open>,
    trials: u32,
}

/// Finds numbers for all symbols that the decisions depend on. A cluster's place is in its grid.
pub(super) fn find(terms: &mut Terms, facts: &Facts, cluster: [u32; 3]) -> Option<Numbers> {
    let places = grid_conditions(terms, facts, cluster);
    let decided = facts.decided().filter(|(term, _)| !matches!(terms.node(*term), Node::Not(_)));
    let mut conditions = vec![];
    for (term, holds) in decided.chain(places.into_iter().map(|term| (term, true))) {
        let mut symbols = BTreeSet::new();
        symbols_of(terms, term, &mut symbols);
        conditions.push(Condition { term, holds, symbols });
    }
    conditions.sort_by_key(|condition| condition.term);
    let symbols: BTreeSet<Term> =
        conditions.iter().flat_map(|condition| condition.symbols.iter().copied()).collect();
    let open = |symbol| {
        let due = conditions.iter().filter(|condition| condition.symbols.last() == Some(&symbol));
        Open {
            symbol,
            candidates: candidates(terms, &conditions, symbol),
            due: due.map(|condition| (condition.term, condition.holds)).collect(),
        }
    };
    let mut search = Search { terms, all: symbols.into_iter().map(open).collect(), trials: 0 };
    let mut numbers = Numbers::default();
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

/// Numbers to try: small ones, and those near multiples of the constants around the symbol.
fn candidates(terms: &Terms, conditions: &[Condition], symbol: Term) -> Vec<i128> {
    let mut constants = BTreeSet::new();
    for condition in conditions.iter().filter(|condition| condition.symbols.contains(&symbol)) {
        constants_of(terms, condition.term, &mut constants);
    }
    let scalar = terms.scalar(symbol);
    let (least, greatest) = scalar.integer_range().map_or((0, 1), |(least, greatest)| match scalar.bytes() {
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
    if let Node::Symbol(Symbol::Len(_)) = terms.node(symbol) {
        all.push(LENGTH);
    }
    for number in small.chain(near) {
        if (least..=greatest).contains(&number) && !all.contains(&number) {
            all.push(number);
        }
    }
    all
}

impl Search<'_> {
    fn assign(&mut self, index: usize, numbers: &mut Numbers) -> bool {
        let Some(&Open { symbol, .. }) = self.all.get(index) else { return self.reads_agree(numbers) };
        for number in 0..self.all[index].candidates.len() {
            self.trials += 1;
            if self.trials > MOST_TRIALS {
                return false;
            }
            numbers.insert(symbol, self.all[index].candidates[number]);
            if self.holds(index, numbers) && self.assign(index + 1, numbers) {
                return true;
            }
        }
        numbers.remove(&symbol);
        false
    }

    /// Whether all conditions hold whose last symbol to get a number is this one.
    fn holds(&self, index: usize, numbers: &Numbers) -> bool {
        let holds =
            |&(term, value): &(Term, bool)| self.terms.evaluate(term, numbers) == Some(Known::Bool(value));
        self.all[index].due.iter().all(holds)
    }

    /// Whether reads of one place give one number.
    fn reads_agree(&self, numbers: &Numbers) -> bool {
        let mut read: BTreeMap<(u32, i128), i128> = BTreeMap::new();
        self.all.iter().all(|open| {
            let Node::Symbol(Symbol::Read(param, index)) = self.terms.node(open.symbol) else { return true };
            let Some(index) = self.terms.evaluate(*index, numbers) else { return false };
            let Some(&number) = numbers.get(&open.symbol) else { return false };
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
