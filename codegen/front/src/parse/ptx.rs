//! `ptx!`: instructions of the kernel's own.

use syn::parse::{Lookahead1, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{Ident, LitStr, Token};

use super::cx::Cx;
use super::format::{Piece, PrintfArgument, pieces};
use super::names;
use super::order::spill_if_changed;
use super::stmt::unit;
use super::types::name_expr;
use crate::diag::mistake;
use crate::diag::mistake::Unprintable;
use crate::ir::{Expr, Ptx, PtxAccess, PtxOutput, PtxPiece, Span, StmtKind};
use crate::words::MacroWord;

/// The words between operands.
mod word {
    syn::custom_keyword!(inout);
    syn::custom_keyword!(out);
    syn::custom_keyword!(reads);
    syn::custom_keyword!(volatile);
    syn::custom_keyword!(writes);
}

/// The arguments of a `ptx!`.
#[derive(Default)]
struct Arguments {
    template: Vec<LitStr>,
    operands: Vec<Operand>,
    accessed: Vec<Accessed>,
    volatile: bool,
}

/// An operand of a template.
struct Operand {
    name: Ident,
    direction: Direction,
    value: syn::Expr,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
    InOut,
}

/// An object of `reads(..)` or `writes(..)`.
struct Accessed {
    object: syn::Expr,
    writes: bool,
}

/// Whether a `ptx!` is in this block.
pub(super) fn is_in(block: &syn::Block) -> bool {
    struct Finder(bool);
    impl Visit<'_> for Finder {
        fn visit_macro(&mut self, called: &syn::Macro) {
            let name = names::last_name(&called.path);
            self.0 |= name.and_then(|name| MacroWord::named(&name)) == Some(MacroWord::Ptx);
        }
    }
    let mut finder = Finder(false);
    finder.visit_block(block);
    finder.0
}

/// Returns the expressions among the arguments, if the macro is a `ptx!`.
pub(super) fn values(called: &syn::Macro) -> Vec<syn::Expr> {
    let is_ptx = names::last_name(&called.path).is_some_and(|name| name == MacroWord::Ptx.name());
    let parsed = is_ptx.then(|| arguments.parse2(called.tokens.clone()).ok()).flatten().unwrap_or_default();
    let operands = parsed.operands.into_iter().map(|operand| operand.value);
    operands.chain(parsed.accessed.into_iter().map(|accessed| accessed.object)).collect()
}

fn arguments(input: ParseStream<'_>) -> syn::Result<Arguments> {
    let mut found = Arguments { template: vec![input.parse()?], ..Arguments::default() };
    while !input.is_empty() {
        input.parse::<Token![,]>()?;
        if input.peek(LitStr) && found.operands.is_empty() && found.accessed.is_empty() {
            found.template.push(input.parse()?);
        } else if !input.is_empty() {
            argument(input, &mut found)?;
        }
    }
    Ok(found)
}

fn argument(input: ParseStream<'_>, found: &mut Arguments) -> syn::Result<()> {
    if input.peek2(Token![=]) {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        let direction = direction(input, input.lookahead1())?;
        found.operands.push(Operand { name, direction, value: input.parse()? });
        return Ok(());
    }
    let next = input.lookahead1();
    if next.peek(word::volatile) {
        input.parse::<word::volatile>()?;
        found.volatile = true;
    } else if next.peek(word::reads) {
        input.parse::<word::reads>()?;
        accessed(input, false, found)?;
    } else if next.peek(word::writes) {
        input.parse::<word::writes>()?;
        accessed(input, true, found)?;
    } else {
        let direction = direction(input, next)?;
        let name: Ident = input.parse()?;
        let value = name_expr(name.clone());
        found.operands.push(Operand { name, direction, value });
    }
    Ok(())
}

fn accessed(input: ParseStream<'_>, writes: bool, found: &mut Arguments) -> syn::Result<()> {
    let inside;
    syn::parenthesized!(inside in input);
    let objects = Punctuated::<syn::Expr, Token![,]>::parse_terminated(&inside)?;
    found.accessed.extend(objects.into_iter().map(|object| Accessed { object, writes }));
    Ok(())
}

fn direction(input: ParseStream<'_>, next: Lookahead1<'_>) -> syn::Result<Direction> {
    if next.peek(Token![in]) {
        input.parse::<Token![in]>()?;
        Ok(Direction::In)
    } else if next.peek(word::out) {
        input.parse::<word::out>()?;
        Ok(Direction::Out)
    } else if next.peek(word::inout) {
        input.parse::<word::inout>()?;
        Ok(Direction::InOut)
    } else {
        Err(next.error())
    }
}

impl Cx<'_> {
    /// Parses a `ptx!`. Its outputs are assigned after it, so any assignee can be one.
    pub(super) fn ptx(&mut self, mac: &syn::Macro, span: Span) -> Expr {
        let parsed = match arguments.parse2(mac.tokens.clone()) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.error(mistake::Ptx::Malformed(error.to_string()), error.span().into());
                return unit(span);
            }
        };
        let Some(pieces) = self.ptx_template(&parsed) else { return unit(span) };
        let read = parsed.operands.iter().filter(|operand| operand.direction != Direction::Out);
        let mut inputs = self.in_order(read.map(|operand| &operand.value));
        let mut is_wrong = inputs.iter().any(Expr::is_error);

        let mut accesses = vec![];
        for Accessed { object, writes } in &parsed.accessed {
            let access = PtxAccess { object: self.expr(object), writes: *writes };
            is_wrong |= access.object.is_error();
            if let (Some(param), true) = (access.global(), *writes) {
                self.declared.param_mut(param).written = true;
            }
            accesses.push(access);
        }

        let (mut outputs, mut assignments, mut initial) = (vec![], vec![], 0..);
        for operand in &parsed.operands {
            let initial = if operand.direction == Direction::Out { None } else { initial.next() };
            if operand.direction == Direction::In {
                continue;
            }
            let (effects, assignee) = self.block(|cx| cx.assignee(&operand.value));
            spill_if_changed(&mut self.builder, &mut inputs, &effects);
            self.builder.append(effects);
            let Some(assignee) = assignee else {
                is_wrong = true;
                continue;
            };
            let at = Span::of(&operand.value);
            let (dest, value) = self.builder.temporary(&names::text(&operand.name), assignee.ty.clone(), at);
            outputs.push(PtxOutput { dest, initial });
            assignments.push(assignee.assign(value));
        }
        if !is_wrong {
            let volatile = parsed.volatile;
            let ptx = Ptx { pieces, outputs, inputs, accesses, volatile };
            self.builder.emit(StmtKind::Ptx(Box::new(ptx)), span);
            assignments.into_iter().for_each(|assignment| self.builder.emit(assignment, span));
        }
        unit(span)
    }

    /// Splits the template, whose names must be those of the operands.
    fn ptx_template(&mut self, parsed: &Arguments) -> Option<Vec<PtxPiece>> {
        let mut all = vec![];
        let mut used = vec![false; parsed.operands.len()];
        for line in &parsed.template {
            let pieces = match pieces(&line.value()) {
                Ok(pieces) => pieces,
                Err(why) => {
                    self.error(mistake::Ptx::Template(why), Span::of(line));
                    return None;
                }
            };
            for piece in pieces {
                all.push(match piece {
                    Piece::Text(text) => PtxPiece::Text(text),
                    Piece::Arg {
                        which: PrintfArgument::Name(name),
                        hex: false,
                        precision: None,
                        width: None,
                    } => {
                        let Some(at) = parsed.position(&name) else {
                            self.error(mistake::Ptx::Unknown { name }, Span::of(line));
                            return None;
                        };
                        used[at] = true;
                        parsed.piece(at)
                    }
                    Piece::Arg { which, .. } => {
                        let inside = match which {
                            PrintfArgument::Name(name) => format!("{name}:"),
                            PrintfArgument::Position(position) => position.to_string(),
                            PrintfArgument::Next => String::new(),
                        };
                        let why = Unprintable::NoArgument { inside };
                        self.error(mistake::Ptx::Template(why), Span::of(line));
                        return None;
                    }
                });
            }
            all.push(PtxPiece::Text("\n".to_owned()));
        }
        all.pop();
        let mut is_whole = true;
        for (at, (operand, is_used)) in parsed.operands.iter().zip(used).enumerate() {
            let name = names::text(&operand.name);
            let first = parsed.position(&name);
            let mistake = if first != Some(at) {
                mistake::Ptx::Twice { name }
            } else if !is_used {
                mistake::Ptx::Unused { name }
            } else {
                continue;
            };
            self.error(mistake, operand.name.span().into());
            is_whole = false;
        }
        is_whole.then_some(all)
    }
}

impl Arguments {
    /// Returns the position of the operand with this name.
    fn position(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|operand| names::text(&operand.name) == name)
    }

    /// Returns the piece of a template that refers to an operand.
    fn piece(&self, at: usize) -> PtxPiece {
        let before = |is_of: fn(Direction) -> bool| {
            self.operands[..at].iter().filter(|operand| is_of(operand.direction)).count()
        };
        match self.operands[at].direction {
            Direction::In => PtxPiece::Input(before(|direction| direction != Direction::Out)),
            Direction::Out | Direction::InOut => {
                PtxPiece::Output(before(|direction| direction != Direction::In))
            }
        }
    }
}
