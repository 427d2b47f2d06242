//! Expands macros by example, to the extent that `tma_runtime::lang` needs: macros with one rule,
//! whose fragments are names, literals, types, tokens and attributes.

use std::collections::BTreeMap;

use proc_macro2::{Group, TokenStream, TokenTree};

/// A rule of a macro.
pub(super) struct Rule {
    matcher: Vec<TokenTree>,
    transcriber: TokenStream,
}

/// The values bound to the matcher's names.
type Bindings = BTreeMap<String, Bound>;

#[derive(Clone)]
enum Bound {
    Once(TokenStream),
    /// One value for each iteration of a repetition.
    Repeated(Vec<Bound>),
}

impl Rule {
    /// Returns the first rule of a macro.
    pub(super) fn first(rules: &TokenStream) -> Option<Self> {
        let groups: Vec<_> = rules.clone().into_iter().filter_map(group).collect();
        let [matcher, transcriber, ..] = &groups[..] else { return None };
        Some(Self { matcher: tokens(&matcher.stream()), transcriber: transcriber.stream() })
    }

    /// Whether the macro, or one of `macros` that it calls, generates public items. Others are not
    /// expanded.
    pub(super) fn makes_public_items(&self, macros: &BTreeMap<String, Rule>) -> bool {
        let is_public = |rule: &Self| rule.transcriber.to_string().contains("pub ");
        let made = self.transcriber.to_string();
        let calls = |name: &str| made.contains(&format!("{name} !"));
        is_public(self) || macros.iter().any(|(name, rule)| calls(name) && is_public(rule))
    }

    /// Expands the macro with these arguments. Returns `None` if they do not match.
    pub(super) fn expand(&self, arguments: &TokenStream) -> Option<TokenStream> {
        let (mut bindings, arguments) = (Bindings::new(), tokens(arguments));
        let rest = bind(&self.matcher, &arguments, &mut bindings)?;
        rest.is_empty().then(|| transcribe(&self.transcriber, &bindings))
    }
}

fn tokens(stream: &TokenStream) -> Vec<TokenTree> {
    stream.clone().into_iter().collect()
}

fn group(token: TokenTree) -> Option<Group> {
    let TokenTree::Group(group) = token else { return None };
    Some(group)
}

fn is(token: Option<&TokenTree>, text: &str) -> bool {
    token.is_some_and(|token| token.to_string() == text)
}

/// Returns the `$(..)` at the start of `pattern`, its separator, and its length in tokens.
fn repetition(pattern: &[TokenTree]) -> Option<(&Group, Option<&TokenTree>, usize)> {
    let [dollar, TokenTree::Group(each), after, ..] = pattern else { return None };
    if dollar.to_string() != "$" {
        return None;
    }
    match after.to_string().as_str() {
        "*" | "+" | "?" => Some((each, None, 3)),
        _ => Some((each, Some(after), 4)),
    }
}

/// Binds the names of `pattern` to the tokens they match at the start of `input`, and returns the
/// rest of `input`.
fn bind<'a>(
    pattern: &[TokenTree],
    mut input: &'a [TokenTree],
    bindings: &mut Bindings,
) -> Option<&'a [TokenTree]> {
    let mut at = 0;
    while let Some(token) = pattern.get(at) {
        if let Some((each, separator, length)) = repetition(&pattern[at..]) {
            input = bind_each(&tokens(&each.stream()), separator, input, bindings);
            at += length;
        } else if token.to_string() == "$" {
            let [_, name, _, fragment, ..] = &pattern[at..] else { return None };
            let (found, rest) = input.split_at_checked(length(&fragment.to_string(), input))?;
            bindings.insert(name.to_string(), Bound::Once(found.iter().cloned().collect()));
            (at, input) = (at + 4, rest);
        } else {
            let (found, rest) = input.split_first()?;
            match (token, found) {
                (TokenTree::Group(inner), TokenTree::Group(found))
                    if inner.delimiter() == found.delimiter() =>
                {
                    let found = tokens(&found.stream());
                    bind(&tokens(&inner.stream()), &found, bindings)?.is_empty().then_some(())?;
                }
                _ if token.to_string() == found.to_string() => {}
                _ => return None,
            }
            (at, input) = (at + 1, rest);
        }
    }
    Some(input)
}

/// Binds a repetition's names for as long as its pattern matches.
fn bind_each<'a>(
    pattern: &[TokenTree],
    separator: Option<&TokenTree>,
    mut input: &'a [TokenTree],
    bindings: &mut Bindings,
) -> &'a [TokenTree] {
    let mut all: BTreeMap<String, Vec<Bound>> = BTreeMap::new();
    loop {
        let mut once = Bindings::new();
        let Some(rest) = bind(pattern, input, &mut once).filter(|rest| rest.len() < input.len()) else {
            break;
        };
        once.into_iter().for_each(|(name, bound)| all.entry(name).or_default().push(bound));
        input = rest;
        match separator {
            Some(separator) if is(input.first(), &separator.to_string()) => input = &input[1..],
            Some(_) => break,
            None => {}
        }
    }
    bindings.extend(all.into_iter().map(|(name, bound)| (name, Bound::Repeated(bound))));
    input
}

/// Returns the number of tokens at the start of `input` that a fragment matches.
fn length(fragment: &str, input: &[TokenTree]) -> usize {
    match fragment {
        "ty" => {
            let mut depth = 0;
            let ends = |token: &TokenTree| {
                match token.to_string().as_str() {
                    "<" => depth += 1,
                    ">" => depth -= 1,
                    _ => {}
                }
                depth == 0 && matches!(token.to_string().as_str(), "," | ";")
            };
            input.iter().position(ends).unwrap_or(input.len())
        }
        // An attribute extends to the end of its brackets.
        "meta" => input.len(),
        _ => 1,
    }
}

fn transcribe(template: &TokenStream, bindings: &Bindings) -> TokenStream {
    let template = tokens(template);
    let (mut made, mut at) = (TokenStream::new(), 0);
    while let Some(token) = template.get(at) {
        let named = template.get(at + 1).and_then(|name| bindings.get(&name.to_string()));
        if let Some((each, separator, length)) = repetition(&template[at..]) {
            for (i, once) in turns(&each.stream(), bindings).iter().enumerate() {
                made.extend(separator.filter(|_| i > 0).cloned());
                made.extend(transcribe(&each.stream(), once));
            }
            at += length;
        } else if let (true, Some(Bound::Once(bound))) = (is(Some(token), "$"), named) {
            made.extend(bound.clone());
            at += 2;
        } else if let TokenTree::Group(inner) = token {
            let inner = Group::new(inner.delimiter(), transcribe(&inner.stream(), bindings));
            made.extend([TokenTree::Group(inner)]);
            at += 1;
        } else {
            made.extend([token.clone()]);
            at += 1;
        }
    }
    made
}

/// Returns the bindings of each iteration of a repetition. The number of iterations is that of the
/// repeated names in it.
fn turns(each: &TokenStream, bindings: &Bindings) -> Vec<Bindings> {
    let names = names(each);
    let repeated = |name: &String| match bindings.get(name) {
        Some(Bound::Repeated(all)) => Some(all.len()),
        Some(Bound::Once(_)) | None => None,
    };
    let count = names.iter().filter_map(repeated).max().unwrap_or(0);
    let turn = |i: usize| {
        let of_turn = |(name, bound): (&String, &Bound)| match bound {
            Bound::Repeated(all) => Some((name.clone(), all.get(i)?.clone())),
            Bound::Once(_) => Some((name.clone(), bound.clone())),
        };
        bindings.iter().filter_map(of_turn).collect()
    };
    (0..count).map(turn).collect()
}

/// Returns the names after a `$`, including those in groups.
fn names(stream: &TokenStream) -> Vec<String> {
    let tokens = tokens(stream);
    let mut found = vec![];
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(inner) = token {
            found.extend(names(&inner.stream()));
        } else if at > 0 && is(tokens.get(at - 1), "$") {
            found.push(token.to_string());
        }
    }
    found
}
