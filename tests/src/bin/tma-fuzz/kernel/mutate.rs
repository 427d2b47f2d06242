//! Mutation of programs, token by token.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::corpus::{Program, hostile};
use crate::rng::Rng;

/// Derives programs from others.
pub(crate) struct Mutator {
    programs: Vec<Program>,
    /// Every token of every program. A group counts as one token.
    tokens: Vec<TokenTree>,
    hostile: Vec<TokenStream>,
    rng: Rng,
}

/// The maximum number of changes to one program. Few are likelier than many, since a single change
/// may leave the program correct.
const CHANGES: usize = 6;

/// The maximum number of brackets put around one token at once.
const NESTING: usize = 96;

/// A change at one position.
#[derive(Clone, Copy)]
enum Change {
    Delete,
    Duplicate,
    Swap,
    /// Replaces a token by one of any program.
    Replace,
    /// Replaces a token by one of any program that has the same kind.
    ReplaceSimilar,
    /// Replaces a token by a hostile one.
    Break,
    Nest,
}

/// All changes. Those that are likelier to leave a correct program are listed more often.
const ALL: [Change; 10] = [
    Change::Delete,
    Change::Duplicate,
    Change::Swap,
    Change::Replace,
    Change::ReplaceSimilar,
    Change::ReplaceSimilar,
    Change::ReplaceSimilar,
    Change::ReplaceSimilar,
    Change::Break,
    Change::Nest,
];

impl Mutator {
    pub(crate) fn new(programs: Vec<Program>, seed: u64) -> Self {
        let mut tokens = vec![];
        for program in &programs {
            collect(program.arguments.clone(), &mut tokens);
            collect(program.item.clone(), &mut tokens);
        }
        Self { programs, tokens, hostile: hostile(), rng: Rng::new(seed) }
    }

    /// Returns the next program.
    pub(crate) fn program(&self) -> Program {
        let mut program = self.rng.one_of(&self.programs).clone();
        let changes = 1 + self.below(CHANGES).min(self.below(CHANGES)).min(self.below(CHANGES));
        for _ in 0..changes {
            // The attribute is short: a tenth of the changes is more than its proportion.
            let part = if self.below(10) == 0 { &mut program.arguments } else { &mut program.item };
            let places = count(part);
            if places > 0 {
                let at = self.below(places);
                let change = ALL[self.below(ALL.len())];
                *part = self.changed(std::mem::take(part), &mut { at }, change);
            }
        }
        program
    }

    fn below(&self, limit: usize) -> usize {
        self.rng.below(limit)
    }

    /// Returns `stream` with a change at its `at`-th token, counted depth first.
    fn changed(&self, stream: TokenStream, at: &mut usize, change: Change) -> TokenStream {
        let mut out = vec![];
        let mut trees = stream.into_iter().peekable();
        while let Some(tree) = trees.next() {
            if *at == 0 {
                *at = usize::MAX;
                match change {
                    Change::Swap => {
                        out.extend(trees.next());
                        out.push(tree);
                    }
                    _ => out.extend(self.instead(tree, change)),
                }
                continue;
            }
            *at -= 1;
            out.push(match tree {
                TokenTree::Group(group) => {
                    let inside = self.changed(group.stream(), at, change);
                    TokenTree::Group(Group::new(group.delimiter(), inside))
                }
                other => other,
            });
        }
        out.into_iter().collect()
    }

    fn instead(&self, tree: TokenTree, change: Change) -> Vec<TokenTree> {
        match change {
            Change::Delete => vec![],
            Change::Duplicate => vec![tree.clone(), tree],
            Change::Replace | Change::Swap => vec![self.tokens[self.below(self.tokens.len())].clone()],
            Change::ReplaceSimilar => {
                let similar = |other: &&TokenTree| kind(other) == kind(&tree);
                let start = self.below(self.tokens.len());
                let found = self.tokens[start..].iter().find(similar);
                vec![found.cloned().unwrap_or(tree)]
            }
            Change::Break => self.hostile[self.below(self.hostile.len())].clone().into_iter().collect(),
            Change::Nest => {
                let delimiters = [Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket];
                let delimiter = delimiters[self.below(delimiters.len())];
                let nest = |inside: TokenTree, _| TokenTree::Group(Group::new(delimiter, inside.into()));
                vec![(0..=self.below(NESTING)).fold(tree, nest)]
            }
        }
    }
}

/// Returns the kind of a token in the grammar. Punctuation and brackets are of the same kind only
/// if they are equal.
fn kind(tree: &TokenTree) -> (u8, char) {
    match tree {
        TokenTree::Ident(_) => (0, ' '),
        TokenTree::Literal(_) => (1, ' '),
        TokenTree::Punct(punct) => (2, punct.as_char()),
        TokenTree::Group(group) => match group.delimiter() {
            Delimiter::Parenthesis => (3, '('),
            Delimiter::Brace => (3, '{'),
            Delimiter::Bracket => (3, '['),
            Delimiter::None => (3, ' '),
        },
    }
}

fn collect(stream: TokenStream, tokens: &mut Vec<TokenTree>) {
    for tree in stream {
        if let TokenTree::Group(group) = &tree {
            collect(group.stream(), tokens);
        }
        tokens.push(tree);
    }
}

fn count(stream: &TokenStream) -> usize {
    let inside = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => count(&group.stream()),
        _ => 0,
    };
    stream.clone().into_iter().map(|tree| 1 + inside(&tree)).sum()
}
