//! `let STAGES = 196608 / ((BM + BN) * 128)`: constants that follow from those of an instance.
//!
//! The generics in the expression are replaced by their arguments. The result is a constant
//! expression like any other argument, which the parser and rustc each evaluate; rustc reports an
//! overflow.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, GenericArgument, Ident, ItemFn, Path, Token, Type, parse_quote};

use super::{Factor, product};
use crate::diag::Sink;
use crate::diag::mistake::Instances;
use crate::ir::Span;

/// `let NAME = expression`.
#[derive(Clone, Debug)]
pub(crate) struct Computed {
    pub(in crate::parse) generic: Ident,
    value: Expr,
}

impl ToTokens for Computed {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { generic, value } = self;
        tokens.extend(quote!(let #generic = #value));
    }
}

/// A generic, and its argument.
pub(super) type Bound = (Ident, GenericArgument);

impl Parse for Computed {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.parse::<Token![let]>()?;
        let generic = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(Self { generic, value: input.parse()? })
    }
}

/// Reports constants that no product can compute.
pub(super) fn judge(function: &ItemFn, computed: &[&Computed], products: &[&[Factor]], sink: &mut Sink) {
    let generics = product::generics(function);
    let factors = || products.iter().flat_map(|factors| factors.iter());
    let is_listed = |generic: &Ident| factors().any(|factor| factor.generics.contains(generic));
    for (at, Computed { generic, value }) in computed.iter().enumerate() {
        if !generics.contains(&generic) {
            sink.error(product::unknown(function, generic), Span::of(generic));
        } else if product::is_type(function, generic) {
            sink.error(Instances::ComputedType { generic: generic.to_string() }, Span::of(generic));
        } else if computed[..at].iter().any(|earlier| earlier.generic == *generic) || is_listed(generic) {
            sink.error(Instances::ComputedTwice { generic: generic.to_string() }, Span::of(generic));
        }
        let later = computed[at..].iter().map(|later| &later.generic).filter(|later| !is_listed(later));
        let mut later = Later { generics: later.collect(), found: None };
        later.visit_expr_mut(&mut value.clone());
        if let Some(uses) = later.found {
            let (generic, span) = (generic.to_string(), Span::of(&uses));
            sink.error(Instances::ComputedLater { generic, uses: uses.to_string() }, span);
        }
    }
}

/// Finds a constant that is computed later.
struct Later<'a> {
    generics: Vec<&'a Ident>,
    found: Option<Ident>,
}

impl VisitMut for Later<'_> {
    fn visit_path_mut(&mut self, path: &mut Path) {
        if let Some(name) = path.get_ident()
            && self.generics.contains(&name)
        {
            self.found.get_or_insert(name.clone());
        }
        visit_mut::visit_path_mut(self, path);
    }
}

/// Adds the computed constants, each of which may use those before it, to the arguments of lists.
pub(super) fn extend(arguments: &mut Vec<Bound>, computed: &[&Computed]) {
    for Computed { generic, value } in computed {
        let mut value = value.clone();
        Substitution(arguments).visit_expr_mut(&mut value);
        let argument = match value {
            Expr::Lit(_) | Expr::Path(_) | Expr::Block(_) => GenericArgument::Const(value),
            _ => GenericArgument::Const(parse_quote!({ #value })),
        };
        arguments.push((generic.clone(), argument));
    }
}

/// Replaces generics by their arguments.
struct Substitution<'a>(&'a [Bound]);

impl Substitution<'_> {
    fn argument(&self, path: &Path) -> Option<&GenericArgument> {
        let name = path.get_ident()?;
        self.0.iter().find(|(generic, _)| generic == name).map(|(_, argument)| argument)
    }
}

impl VisitMut for Substitution<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let Expr::Path(path) = expr else { return visit_mut::visit_expr_mut(self, expr) };
        match self.argument(&path.path) {
            Some(GenericArgument::Const(value @ Expr::Lit(_))) => *expr = value.clone(),
            Some(GenericArgument::Const(value)) => *expr = parse_quote!((#value)),
            // syn takes the name of a constant for that of a type.
            Some(GenericArgument::Type(value)) => {
                *expr = syn::parse2(value.to_token_stream()).unwrap_or_else(|_: syn::Error| expr.clone());
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }

    fn visit_type_mut(&mut self, ty: &mut Type) {
        let Type::Path(path) = ty else { return visit_mut::visit_type_mut(self, ty) };
        match self.argument(&path.path) {
            Some(GenericArgument::Type(value)) => *ty = value.clone(),
            _ => visit_mut::visit_type_mut(self, ty),
        }
    }
}
