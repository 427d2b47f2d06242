//! `printf!`, `assert!` and `trace_span!`.

use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{LitStr, Token};

use super::cx::{Cx, OpenSpan};
use super::names::{self, Meaning};
use super::order::held;
use super::stmt::unit;
use super::types::name_expr;
use crate::diag::Sink;
use crate::diag::mistake::{Format, Syntax, Unprintable};
use crate::diag::suggest::{Kind, elsewhere};
use crate::infer::Typing;
use crate::ir::{Expr, ExprKind, Label, PrintfPiece, Scalar, Span, SpanEdge, StmtKind, Type};
use crate::words::MacroWord;
use tma_model::span::is_name as is_span_name;

impl Cx<'_> {
    pub(super) fn macro_call(&mut self, mac: &syn::Macro, span: Span) -> Expr {
        let name = mac.path.segments.last().map(|last| names::text(&last.ident)).unwrap_or_default();
        match MacroWord::named(&name) {
            Some(word) if !self.takes_word(&mac.path, Meaning::Macro(word)) => Expr::error(span),
            Some(MacroWord::Printf) => self.printf(mac, span),
            Some(MacroWord::Assert) => self.assert(mac, span),
            Some(MacroWord::Ptx) => self.ptx(mac, span),
            Some(MacroWord::TraceSpan) => {
                self.error(Format::SpanPlace, span);
                Expr::error(span)
            }
            None => {
                let suggestion = elsewhere(&name, Kind::Macro);
                let known = MacroWord::ALL.iter().map(|word| format!("{}!", word.name())).collect();
                self.error(Syntax::Macro { name, suggestion, known }, span);
                Expr::error(span)
            }
        }
    }

    fn printf(&mut self, mac: &syn::Macro, span: Span) -> Expr {
        let parser = |input: ParseStream<'_>| {
            let format: LitStr = input.parse()?;
            let _: Option<Token![,]> = input.parse()?;
            Ok((format, Punctuated::<syn::Expr, Token![,]>::parse_terminated(input)?))
        };
        let (format, args) = match parser.parse2(mac.tokens.clone()) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.error(Format::Printf(error.to_string()), error.span().into());
                return unit(span);
            }
        };
        if let Some(syn::Expr::Assign(named)) = args.iter().find(|arg| matches!(arg, syn::Expr::Assign(_))) {
            self.error(Format::Named, Span::of(named));
            return unit(span);
        }
        let mut values = self.in_order(&args);
        let positional = values.len();
        let pieces = match pieces(&format.value()) {
            Ok(pieces) => pieces,
            Err(why) => {
                self.error(Format::Unprintable(why), Span::of(&format));
                return unit(span);
            }
        };
        let mut shown = vec![];
        let mut next = 0;
        for piece in pieces {
            shown.push(match piece {
                Piece::Text(text) => PrintfPiece::Text(text),
                Piece::Arg { which, hex, precision, width } => {
                    let index = match which {
                        PrintfArgument::Next => {
                            next += 1;
                            next - 1
                        }
                        PrintfArgument::Position(position) => position,
                        PrintfArgument::Name(name) => {
                            values.push(self.expr(&name_expr(syn::Ident::new(&name, format.span()))));
                            values.len() - 1
                        }
                    };
                    PrintfPiece::Arg { index, hex, precision, width }
                }
            });
        }
        let missing = shown
            .iter()
            .any(|piece| matches!(piece, PrintfPiece::Arg { index, .. } if *index >= values.len()))
            || next > positional;
        if missing {
            self.error(Format::Missing { given: positional }, Span::of(&format));
            return unit(span);
        }
        if all_printable(&mut self.typing(), &values) {
            self.builder.emit(StmtKind::Printf { pieces: shown, args: values }, span);
        }
        unit(span)
    }

    fn assert(&mut self, mac: &syn::Macro, span: Span) -> Expr {
        let parser = |input: ParseStream<'_>| {
            let condition: syn::Expr = input.parse()?;
            let _: Option<Token![,]> = input.parse()?;
            let message: Option<LitStr> = if input.is_empty() { None } else { Some(input.parse()?) };
            let _: Option<Token![,]> = input.parse()?;
            Ok((condition, message))
        };
        match parser.parse2(mac.tokens.clone()) {
            Ok((condition, message)) => {
                let message = match message {
                    None => text_of(&condition),
                    Some(message) => plain_text(self.sink, &message),
                };
                let condition = self.expr(&condition);
                if self.expect(&condition, &Scalar::Bool.into()) && !condition.is_error() {
                    self.builder.emit(StmtKind::Assert { condition, message, assumed: false }, span);
                }
            }
            Err(error) => {
                self.error(Format::Assert(error.to_string()), error.span().into());
            }
        }
        unit(span)
    }

    /// Parses a macro that is a statement.
    pub(super) fn macro_statement(&mut self, mac: &syn::Macro, span: Span) -> Expr {
        let word = names::last_name(&mac.path).and_then(|name| MacroWord::named(&name));
        match word {
            Some(word @ MacroWord::TraceSpan) if self.takes_word(&mac.path, Meaning::Macro(word)) => {
                self.begin_span(mac, span);
                unit(span)
            }
            Some(MacroWord::TraceSpan) => Expr::error(span),
            Some(MacroWord::Printf | MacroWord::Assert | MacroWord::Ptx) | None => self.macro_call(mac, span),
        }
    }

    fn begin_span(&mut self, mac: &syn::Macro, span: Span) {
        let parser = |input: ParseStream<'_>| {
            let name: LitStr = input.parse()?;
            let _: Option<Token![,]> = input.parse()?;
            Ok(name)
        };
        let name = match parser.parse2(mac.tokens.clone()) {
            Ok(name) => name,
            Err(error) => return self.error(Format::Span(error.to_string()), error.span().into()),
        };
        if !is_span_name(&name.value()) {
            return self.error(Format::SpanName, Span::of(&name));
        }
        let edge = SpanEdge::Begin;
        self.builder.emit(StmtKind::TraceSpan { name: name.value(), edge }, span);
        self.frames.open_span(name.value(), span);
    }

    /// Ends the spans of the innermost scope, whose value is computed before.
    pub(super) fn end_spans_of_scope(&mut self, value: Expr) -> Expr {
        let ended = self.frames.close_spans();
        if ended.is_empty() || value.ty == Type::Never {
            return value;
        }
        let is_computed =
            !matches!(value.kind, ExprKind::Local(_)) && self.infer.resolve(&value.ty).as_scalar().is_some();
        let value = if is_computed { held(self, value) } else { value };
        self.mark_ends(ended);
        value
    }

    /// Marks the ends of the spans that a jump leaves: out of a loop or a block, or without a label
    /// out of the function.
    pub(super) fn end_spans_inside(&mut self, label: Option<Label>) {
        let left = self.frames.left_spans(label);
        self.mark_ends(left);
    }

    fn mark_ends(&mut self, spans: Vec<OpenSpan>) {
        for OpenSpan { name, span, .. } in spans {
            self.builder.emit(StmtKind::TraceSpan { name, edge: SpanEdge::End }, span);
        }
    }
}

fn all_printable(typing: &mut Typing<'_>, values: &[Expr]) -> bool {
    let mut all = true;
    for value in values {
        all &= !value.is_error();
        if !matches!(typing.infer.resolve(&value.ty), Type::Scalar(_) | Type::Infer(_) | Type::Error) {
            typing.error(Format::Value(typing.infer.partial(&value.ty)), value.span);
            all = false;
        }
    }
    all
}

/// Returns the text of a format string that must not have arguments.
fn plain_text(sink: &mut Sink, message: &LitStr) -> String {
    let mut text = String::new();
    let mut is_plain = false;
    if let Ok(all) = pieces(&message.value()) {
        is_plain = all.iter().all(|piece| matches!(piece, Piece::Text(_)));
        text.extend(all.into_iter().filter_map(|piece| match piece {
            Piece::Text(piece) => Some(piece),
            Piece::Arg { .. } => None,
        }));
    }
    if !is_plain {
        sink.error(Format::Message, Span::of(message));
    }
    text
}

fn text_of(condition: &syn::Expr) -> String {
    quote::ToTokens::to_token_stream(condition).to_string()
}

pub(super) enum Piece {
    Text(String),
    Arg { which: PrintfArgument, hex: bool, precision: Option<u32>, width: Option<u32> },
}

pub(super) enum PrintfArgument {
    Next,
    Position(usize),
    Name(String),
}

/// Splits a format string into text and arguments.
pub(super) fn pieces(format: &str) -> Result<Vec<Piece>, Unprintable> {
    let mut pieces = vec![];
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
        } else if brace == "{" {
            let Some(end) = after.find('}') else { return Err(Unprintable::NotClosed) };
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            pieces.push(argument(&after[..end])?);
            rest = &after[end + 1..];
        } else {
            return Err(Unprintable::NotOpened);
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// Parses the text between braces: an argument name, then `:`, width, `.precision` and `x`.
fn argument(inside: &str) -> Result<Piece, Unprintable> {
    let (which, spec) = inside.split_once(':').unwrap_or((inside, ""));
    let which = which.trim();
    let which = match which.parse() {
        Ok(position) => PrintfArgument::Position(position),
        Err(_) if which.is_empty() => PrintfArgument::Next,
        Err(_) if is_name(which) => PrintfArgument::Name(which.to_owned()),
        Err(_) => return Err(Unprintable::NoArgument { inside: inside.to_owned() }),
    };
    let unknown = || Unprintable::Spec(spec.to_owned());
    let (spec_rest, hex) = match spec.strip_suffix('x') {
        Some(rest) => (rest, true),
        None => (spec, false),
    };
    let (width, precision) = match spec_rest.split_once('.') {
        Some((width, precision)) => (width, Some(digits(precision).ok_or_else(unknown)?)),
        None => (spec_rest, None),
    };
    let width = match width {
        "" => None,
        width => Some(digits(width).filter(|_| !width.starts_with('0')).ok_or_else(unknown)?),
    };
    if width.max(precision) > Some(WIDEST) {
        return Err(Unprintable::TooWide { spec: spec.to_owned(), most: WIDEST });
    }
    Ok(Piece::Arg { which, hex, precision, width })
}

/// Whether it names a variable. A keyword refers to its raw form, as in Rust: `{type}` is `r#type`.
fn is_name(text: &str) -> bool {
    let parses = |text: &str| syn::parse_str::<syn::Ident>(text).is_ok();
    parses(text) || (!text.starts_with("r#") && parses(&format!("r#{text}")))
}

/// The maximum width and precision, which every C library supports; the formats are passed on to
/// one. Source: C11, 7.21.6.1, "The fprintf function", environmental limits.
const WIDEST: u32 = 4095;

/// Parses an unsigned number.
fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
