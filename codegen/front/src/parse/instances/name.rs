//! The names of a product's instances: those of its values, joined by `_`.
//!
//! A value is named after the last segment of its path in snake case (`f16`, `swizzle128`), or
//! after its digits (`64`, `minus_5`). A value with neither, such as `{ N + 1 }`, must be named
//! explicitly: `one_more = { N + 1 }`.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Expr, ExprLit, ExprUnary, GenericArgument, Lit, Path, PathArguments, Type, UnOp};

use super::{Factor, Value};

/// Returns the name of the instance with these values. If the values alone do not form an
/// identifier, as with `4` or `true`, the name of the first generic is prepended: `stages_4`.
pub(super) fn of_instance(factors: &[Factor], values: &[&Value]) -> Option<Ident> {
    let first = values.first()?;
    let joined = join(values.iter().map(|value| of_value(value)))?;
    // rustc lexes a token that begins with a digit as a number, and rejects an invalid one:
    // `4_elected`.
    let is_number = joined.starts_with(|first: char| first.is_ascii_digit());
    let own = if is_number { None } else { syn::parse_str::<Ident>(&joined).ok() };
    let with_generic = || {
        let generic = snake(factors.first()?.generics.first()?);
        syn::parse_str(&format!("{generic}_{joined}")).ok()
    };
    let mut name = own.or_else(with_generic)?;
    name.set_span(first.span);
    Some(name)
}

/// Returns a value's part of an instance's name, whose characters must be valid in an identifier.
pub(super) fn of_value(value: &Value) -> Option<String> {
    let name = match &value.name {
        Some(name) => Some(name.unraw().to_string()),
        None => join(value.arguments.iter().map(of_argument)),
    };
    name.filter(|name| syn::parse_str::<Ident>(&format!("_{name}")).is_ok())
}

fn of_argument(argument: &GenericArgument) -> Option<String> {
    match argument {
        GenericArgument::Type(Type::Path(ty)) if ty.qself.is_none() => of_path(&ty.path),
        GenericArgument::Const(constant) => of_constant(constant),
        _ => None,
    }
}

/// Returns `f16` for `half::f16` and `shape2_8_16` for `Shape2<8, 16>`.
fn of_path(path: &Path) -> Option<String> {
    let last = path.segments.last()?;
    let own = Some(snake(&last.ident));
    match &last.arguments {
        PathArguments::None => own,
        PathArguments::AngleBracketed(list) => {
            join([own].into_iter().chain(list.args.iter().map(of_argument)))
        }
        PathArguments::Parenthesized(_) => None,
    }
}

fn of_constant(constant: &Expr) -> Option<String> {
    match constant {
        // Some literals include their sign: syn makes one of `-` and digits, rustc does not.
        Expr::Lit(ExprLit { lit: Lit::Int(digits), .. }) => {
            Some(digits.base10_digits().replace('-', "minus_"))
        }
        Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) => Some(value.value.to_string()),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => {
            Some(format!("minus_{}", of_constant(expr)?))
        }
        Expr::Path(path) if path.qself.is_none() => of_path(&path.path),
        _ => None,
    }
}

fn join(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    Some(parts.into_iter().collect::<Option<Vec<_>>>()?.join("_"))
}

/// Returns a name in snake case: `no_swizzle` for `NoSwizzle` and `stages` for `STAGES`.
pub fn snake(name: &Ident) -> String {
    let mut snake = String::new();
    let mut after_lowercase = false;
    for c in name.unraw().to_string().chars() {
        if c.is_uppercase() && after_lowercase {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
        after_lowercase = c.is_lowercase();
    }
    snake
}
