//! A launch that takes the decisions of an execution: numbers for its symbols. It shows that a
//! violation in that execution can occur.

use std::collections::{BTreeMap, BTreeSet};

use tma_front::ir::{Axis, Scalar, Special, TeamNumber};
use tma_front::quick::QuickMap;

use super::facts::Facts;
use super::term::{Known, Node, Symbol, Term, Terms, Values};
use super::value::along;

/// The most trials of conditions in a search.
const MAX_TRIALS: u64 = 4_000;
/// The number of small values that are tried for every symbol.
const FIRST: i128 = 13;
/// The bound of the factors by which constants are multiplied for further values.
const MULTIPLES: i128 = 9;
/// The length of a slice unless something determines it. All that a kernel reads is within it.
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

/// A symbol that needs a number.
struct Open {
    symbol: Term,
    /// Numbers to try.
    candidates: Vec<i128>,
    /// The conditions that depend on the symbol, by index. Each has the terms that depend on it,
    /// without those of the conditions before.
    conditions: Vec<(usize, Vec<Term>)>,
}

/// The search for a launch.
struct Search<'t> {
    terms: &'t Terms,
    conditions: Vec<Condition>,
    all: Vec<Open>,
    numbers: Numbers,
    values: Values<'t>,
    trials: u64,
}

/// Finds numbers for all symbols that the decisions depend on, and returns how often conditions
/// were tried. The index of a cluster is within its grid.
///
/// The search begins with an ordinary launch. Then it gives one symbol after the other the number
/// with which most of its conditions hold, as in the min-conflicts heuristic of S. Minton and
/// others (Artificial Intelligence 58, 1992). Trying all combinations would not get past the first
/// of many symbols that share a condition, as in `place < rows * columns * batches`.
pub(super) fn find(terms: &mut Terms, facts: &Facts, cluster: [u32; 3]) -> (Option<Numbers>, u64) {
    let grid_conditions = grid_conditions(terms, facts, cluster);
    let decided = facts.decided().filter(|(term, _)| !matches!(terms.node(*term), Node::Not(_)));
    let mut conditions = vec![];
    for (term, holds) in decided.chain(grid_conditions.into_iter().map(|term| (term, true))) {
        let mut symbols = BTreeSet::new();
        symbols_of(terms, term, &mut symbols);
        conditions.push(Condition { term, holds, symbols });
    }
    // Conditions on few symbols leave the fewest choices.
    conditions.sort_by_key(|condition| (condition.symbols.len(), condition.term));
    let symbols: BTreeSet<Term> =
        conditions.iter().flat_map(|condition| condition.symbols.iter().copied()).collect();
    let numbers = symbols.iter().map(|&symbol| (symbol, ordinary(terms, symbol))).collect();
    let parts: Vec<_> = conditions.iter().map(|condition| terms.parts(condition.term)).collect();
    let open = |symbol| {
        let mut depend = BTreeSet::from([symbol]);
        let of = conditions.iter().zip(&parts).enumerate();
        let of = of.filter(|(_, (condition, _))| condition.symbols.contains(&symbol));
        let of = of.map(|(index, (_, parts))| (index, dependent(terms, parts, &mut depend))).collect();
        Open { symbol, candidates: candidates(terms, &conditions, symbol), conditions: of }
    };
    let all = symbols.iter().copied().map(open).collect();
    let values = Values::of(terms, &parts.concat(), &numbers);
    let mut search = Search { terms, conditions, all, numbers, values, trials: 0 };
    let is_found = search.run().is_some();
    (is_found.then_some(search.numbers), search.trials)
}

/// Returns the number of a symbol in an ordinary launch: one of everything, and memory that is
/// zero.
fn ordinary(terms: &Terms, symbol: Term) -> i128 {
    let Node::Symbol(node) = terms.node(symbol) else { return 0 };
    match node {
        Symbol::Param(_) => i128::from(terms.scalar(symbol) != Scalar::Bool),
        Symbol::GridIndex(special) => i128::from(matches!(special, Special::GridDim(_))),
        Symbol::Team(number) => i128::from(*number == TeamNumber::Ranks),
        Symbol::Len(_) => LENGTH,
        Symbol::Elected(_) | Symbol::Read(..) | Symbol::Fresh(_) | Symbol::Iterations(_) => 0,
    }
}

/// Returns the conditions that a block index is within its grid, that the grid has whole clusters,
/// and that a rank is within its team.
fn grid_conditions(terms: &mut Terms, facts: &Facts, cluster: [u32; 3]) -> Vec<Term> {
    use tma_front::ir::BinaryOp::{Add, Eq, Le, Lt, Mul, Rem};
    let mut used = BTreeSet::new();
    facts.decided().for_each(|(term, _)| symbols_of(terms, term, &mut used));
    let mut conditions = vec![];
    for axis in AXES {
        let [grid, cluster_idx] = [Special::GridDim(axis), Special::ClusterIdx(axis)]
            .map(|special| terms.symbol(Symbol::GridIndex(special), Scalar::U32));
        if !used.contains(&grid) && !used.contains(&cluster_idx) {
            continue;
        }
        let [one, zero] = [1, 0].map(|number: i128| terms.number(number, Scalar::U32));
        let extent = terms.number(along(cluster, axis), Scalar::U32);
        let next = terms.binary(Add, cluster_idx, one);
        let blocks = terms.binary(Mul, next, extent);
        let inside = terms.binary(Le, blocks, grid);
        let rest = terms.binary(Rem, grid, extent);
        conditions.extend([inside, terms.binary(Eq, rest, zero)]);
    }
    let [rank, ranks] =
        [TeamNumber::Rank, TeamNumber::Ranks].map(|number| terms.symbol(Symbol::Team(number), Scalar::U32));
    if used.contains(&rank) {
        conditions.push(terms.binary(Lt, rank, ranks));
    }
    conditions
}

/// Returns the terms that depend on `others`, and adds them to `others`. `ordered` has operands
/// first.
fn dependent(terms: &Terms, ordered: &[Term], others: &mut BTreeSet<Term>) -> Vec<Term> {
    let mut found = vec![];
    for &term in ordered {
        let mut depends = false;
        terms.each_part(term, |operand| depends |= others.contains(&operand));
        if depends && others.insert(term) {
            found.push(term);
        }
    }
    found
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

/// Returns the numbers to try: small ones, and those near multiples of the constants that occur
/// with the symbol.
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
    /// Repairs conditions until all hold.
    fn run(&mut self) -> Option<()> {
        let mut last = None;
        while self.trials < MAX_TRIALS {
            self.trials += self.conditions.len() as u64;
            if let Some(failing) = self.conditions.iter().find(|condition| !self.holds(condition)) {
                let symbols = failing.symbols.clone();
                last = Some(self.repair(&symbols, last)?);
            } else if let Some((index, number)) = self.disagreement()? {
                self.assign(index, number);
            } else {
                return Some(());
            }
        }
        None
    }

    fn holds(&self, condition: &Condition) -> bool {
        self.values.get(condition.term) == Some(Known::Bool(condition.holds))
    }

    /// Gives a symbol a number.
    fn assign(&mut self, index: usize, number: i128) {
        let open = &self.all[index];
        self.numbers.insert(open.symbol, number);
        self.values.set(open.symbol, number);
        open.conditions.iter().for_each(|(_, dependent)| self.values.renew(dependent));
    }

    /// Gives one of these symbols another number, so that as few conditions as possible fail, and
    /// returns the symbol. `last` is not chosen twice in a row if there are others, since the
    /// search would alternate.
    fn repair(&mut self, symbols: &BTreeSet<Term>, last: Option<Term>) -> Option<Term> {
        let mut best: Option<(i64, usize, i128)> = None;
        for index in 0..self.all.len() {
            let symbol = self.all[index].symbol;
            if !symbols.contains(&symbol) || last == Some(symbol) && symbols.len() > 1 {
                continue;
            }
            let before = self.numbers[&symbol];
            let failed = self.failing(index, before, i64::MAX);
            // The symbol may be compared with the number of another one.
            let others = symbols.iter().filter(|&&other| other != symbol);
            let near = others.flat_map(|other| [0, 1, -1].map(|more| self.numbers[other] + more));
            let greatest = self.terms.scalar(symbol).integer_range().map_or(1, |(_, greatest)| greatest);
            let near: Vec<_> = near.filter(|number| (0..=greatest.min(LENGTH)).contains(number)).collect();
            let own = self.all[index].candidates.len();
            for candidate in 0..own + near.len() {
                let candidates = &self.all[index].candidates;
                let number = candidates.get(candidate).copied().unwrap_or_else(|| near[candidate - own]);
                let most = best.map_or(i64::MAX, |(least, ..)| least.saturating_add(failed));
                let fails = self.failing(index, number, most);
                self.trials += self.all[index].conditions.len() as u64;
                if fails == 0 {
                    self.assign(index, number);
                    return Some(symbol);
                }
                if number != before && best.is_none_or(|(least, ..)| fails - failed < least) {
                    best = Some((fails - failed, index, number));
                }
            }
            self.assign(index, before);
        }
        let (_, index, number) = best?;
        self.assign(index, number);
        Some(self.all[index].symbol)
    }

    /// Counts the failing conditions that depend on a symbol with this number, up to one more than
    /// `most`. The caller must then give the symbol a number, to update the terms that depend on
    /// it.
    fn failing(&mut self, index: usize, number: i128, most: i64) -> i64 {
        let open = &self.all[index];
        self.values.set(open.symbol, number);
        let mut failing = 0;
        for (condition, dependent) in &open.conditions {
            self.values.renew(dependent);
            failing += i64::from(!self.holds(&self.conditions[*condition]));
            if failing > most {
                break;
            }
        }
        failing
    }

    /// Returns a read that has another number than an earlier read of the same element, and the
    /// number of the earlier one.
    fn disagreement(&self) -> Option<Option<(usize, i128)>> {
        let mut read: BTreeMap<(u32, i128), i128> = BTreeMap::new();
        for (index, open) in self.all.iter().enumerate() {
            let Node::Symbol(Symbol::Read(param, element)) = self.terms.node(open.symbol) else { continue };
            let element = self.terms.evaluate(*element, &self.numbers)?;
            let number = self.numbers[&open.symbol];
            let first = *read.entry((*param, element.as_int())).or_insert(number);
            if first != number {
                return Some(Some((index, first)));
            }
        }
        Some(None)
    }
}

/// Counts the symbols that are data, i.e. that only memory holds.
pub(super) fn data(terms: &Terms, numbers: &Numbers) -> usize {
    numbers.keys().filter(|symbol| is_data(terms, **symbol)).count()
}

/// Whether a condition depends on data.
pub(super) fn has_data(terms: &Terms, condition: Term) -> bool {
    let mut symbols = BTreeSet::new();
    symbols_of(terms, condition, &mut symbols);
    symbols.iter().any(|symbol| is_data(terms, *symbol))
}

fn is_data(terms: &Terms, symbol: Term) -> bool {
    matches!(terms.node(symbol), Node::Symbol(Symbol::Read(..) | Symbol::Fresh(_)))
}

/// Whether a condition depends on an index in the grid, and otherwise only on the extents of the
/// grid.
pub(super) fn is_of_grid_index(terms: &Terms, condition: Term) -> bool {
    let mut symbols = BTreeSet::new();
    symbols_of(terms, condition, &mut symbols);
    let is = |symbol: &Term, of: fn(&Special) -> bool| matches!(terms.node(*symbol), Node::Symbol(Symbol::GridIndex(special)) if of(special));
    symbols.iter().any(|symbol| is(symbol, |special| matches!(special, Special::ClusterIdx(_))))
        && symbols.iter().all(|symbol| {
            is(symbol, |special| matches!(special, Special::ClusterIdx(_) | Special::GridDim(_)))
        })
}

/// Returns the numbers of an ordinary launch for all symbols that these conditions depend on.
pub(super) fn ordinary_numbers<'t>(terms: &Terms, conditions: impl Iterator<Item = &'t Term>) -> Numbers {
    let mut symbols = BTreeSet::new();
    conditions.for_each(|term| symbols_of(terms, *term, &mut symbols));
    symbols.into_iter().map(|symbol| (symbol, ordinary(terms, symbol))).collect()
}

/// Whether a condition depends on data, or on numbers that the caller of the kernel chooses. A
/// kernel may be made for some of these numbers only. Flags and indices in the grid are not among
/// them.
pub(super) fn is_chosen(terms: &Terms, condition: Term) -> bool {
    let mut symbols = BTreeSet::new();
    symbols_of(terms, condition, &mut symbols);
    symbols.iter().any(|symbol| match terms.node(*symbol) {
        Node::Symbol(Symbol::Param(_)) => terms.scalar(*symbol) != Scalar::Bool,
        Node::Symbol(Symbol::Len(_) | Symbol::Read(..) | Symbol::Fresh(_) | Symbol::Iterations(_)) => true,
        Node::Symbol(Symbol::GridIndex(special)) => matches!(special, Special::GridDim(_)),
        Node::Symbol(Symbol::Team(number)) => *number == TeamNumber::Ranks,
        Node::Known(_)
        | Node::Symbol(Symbol::Elected(_))
        | Node::Not(_)
        | Node::Unary(..)
        | Node::Binary(..)
        | Node::Cast(_)
        | Node::Math(..)
        | Node::Integer(..) => false,
    })
}
