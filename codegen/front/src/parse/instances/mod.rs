//! `instances(..)`: the instances of a generic kernel, listed one by one or as products of lists.
//!
//!  ```text
//!  instances(small = <f32, 8>, T in [f16, bf16], R in [1, 2, 3]; T in [f32], R in [4])
//!  ```
//!
//! The lists up to a `;` form one product: an instance for each combination of their values, with
//! the last list varying fastest. The instance is named after its values, in the order of the
//! lists: `f16_1`, `f16_2`, .. `let COLS = 64 / R` computes a constant of each of these instances.

pub(in crate::parse) mod computed;
mod name;
mod product;

pub use name::snake;

use proc_macro2::{Ident, Span};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{GenericArgument, ItemFn, Token, token};

use crate::diag::Sink;
use computed::Computed;

/// `name = <f16, 64, 128>`.
#[derive(Clone, Debug)]
pub struct InstanceAttr {
    /// The instance's name.
    pub name: Ident,
    /// Its generic arguments, in the order of the kernel's parameters.
    pub arguments: Vec<GenericArgument>,
}

/// An entry of `instances(..)`.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Named(InstanceAttr),
    /// Every combination of the values of the factors.
    Product(Vec<Factor>),
    /// A constant of all products, computed from the values of their lists.
    Computed(Box<Computed>),
}

/// `T in [f16, bf16]`, or `(T, N) in [(f16, 64), (f32, 32)]` for generics that vary together.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    generics: Vec<Ident>,
    values: Vec<Value>,
}

/// `f16`, `half = f16`, or a tuple with one argument for each generic of the factor.
#[derive(Clone, Debug)]
struct Value {
    name: Option<Ident>,
    arguments: Vec<GenericArgument>,
    /// The span of its first token.
    span: Span,
}

/// Expands `entries` into instances, in order. Returns `None` if a product is invalid.
pub(super) fn expand(function: &ItemFn, entries: &[Entry], sink: &mut Sink) -> Option<Vec<InstanceAttr>> {
    let before = sink.len();
    let (mut products, mut computed) = (vec![], vec![]);
    for entry in entries {
        match entry {
            Entry::Named(_) => {}
            Entry::Product(factors) => products.push(&factors[..]),
            Entry::Computed(constant) => computed.push(&**constant),
        }
    }
    computed::judge(function, &computed, &products, sink);
    product::judge(function, &products, &computed, sink);
    if sink.len() > before {
        return None;
    }
    let instances = entries.iter().map(|entry| match entry {
        Entry::Named(instance) => vec![instance.clone()],
        Entry::Product(factors) => product::instances(function, factors, &computed),
        Entry::Computed(_) => vec![],
    });
    Some(instances.flatten().collect())
}

/// Returns the constants that are computed from others.
pub(super) fn computed(entries: &[Entry]) -> impl Iterator<Item = &Computed> {
    entries.iter().filter_map(|entry| match entry {
        Entry::Computed(computed) => Some(&**computed),
        Entry::Named(_) | Entry::Product(_) => None,
    })
}

/// Parses the contents of `instances(..)`.
pub(super) fn entries(input: ParseStream<'_>) -> syn::Result<Vec<Entry>> {
    let mut entries = vec![];
    loop {
        section(input, &mut entries)?;
        if input.is_empty() {
            return Ok(entries);
        }
        input.parse::<Token![;]>()?;
    }
}

/// Parses the entries up to a `;`. Their product takes the position of its first list.
fn section(input: ParseStream<'_>, entries: &mut Vec<Entry>) -> syn::Result<()> {
    let mut product = None;
    while !input.is_empty() && !input.peek(Token![;]) {
        if input.peek(Token![let]) {
            entries.push(Entry::Computed(Box::new(input.parse()?)));
        } else if input.peek2(Token![in]) {
            let index = *product.get_or_insert(entries.len());
            let factor = input.parse()?;
            match entries.get_mut(index) {
                Some(Entry::Product(factors)) => factors.push(factor),
                Some(Entry::Named(_) | Entry::Computed(_)) | None => {
                    entries.push(Entry::Product(vec![factor]));
                }
            }
        } else {
            entries.push(Entry::Named(input.parse()?));
        }
        if !input.is_empty() && !input.peek(Token![;]) {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

impl Parse for InstanceAttr {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        let list: syn::AngleBracketedGenericArguments = input.parse()?;
        Ok(Self { name, arguments: list.args.into_iter().collect() })
    }
}

impl Parse for Factor {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let generics = one_or_tuple(input)?;
        input.parse::<Token![in]>()?;
        let list;
        syn::bracketed!(list in input);
        let values = Punctuated::<_, Token![,]>::parse_terminated(&list)?;
        Ok(Self { generics, values: values.into_iter().collect() })
    }
}

impl Parse for Value {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let span = input.span();
        let mut name = None;
        if input.peek2(Token![=]) {
            name = Some(input.parse()?);
            input.parse::<Token![=]>()?;
        }
        Ok(Self { name, arguments: one_or_tuple(input)?, span })
    }
}

/// Parses `a` or `(a, b)`.
fn one_or_tuple<T: Parse>(input: ParseStream<'_>) -> syn::Result<Vec<T>> {
    if !input.peek(token::Paren) {
        return Ok(vec![input.parse()?]);
    }
    let elements;
    syn::parenthesized!(elements in input);
    Ok(Punctuated::<T, Token![,]>::parse_terminated(&elements)?.into_iter().collect())
}
