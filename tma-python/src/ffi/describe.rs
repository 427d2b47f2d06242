//! The description of a library as JSON, for the Python module and `cargo tma wheel`.

use serde_json::{Value, json};

use super::INTERFACE;
use crate::argument::Base;
use crate::operator::{Field, Gradients, Operator, Parts};
use crate::stub;

/// The Python files that are the same in every wheel. `py.typed` says that there are stubs
/// (PEP 561).
const MODULE: [(&str, &str); 6] = [
    ("__init__.py", include_str!("../../python/__init__.py")),
    ("_library.py", include_str!("../../python/_library.py")),
    ("_results.py", include_str!("../../python/_results.py")),
    ("_torch.py", include_str!("../../python/_torch.py")),
    ("arrays.py", include_str!("../../python/arrays.py")),
    ("py.typed", ""),
];

pub(super) fn json(package: [&str; 2], operators: &[&Operator]) -> String {
    let mistakes = operators.iter().filter_map(|operator| operator.mistake());
    let mut names: Vec<_> = operators.iter().map(|operator| operator.parts.name).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    let twice = twice.map(|pair| format!("two operators are named `{}`", pair[0]));
    let stubs = [("__init__.pyi", stub::module(operators)), ("arrays.pyi", stub::arrays(operators))];
    let module = MODULE.iter().map(|(name, text)| json!([name, text]));
    let description = json!({
        "interface": INTERFACE,
        "package": package[0],
        "version": package[1],
        "cuda": cfg!(feature = "cuda"),
        "unwinds": cfg!(panic = "unwind"),
        "operators": operators.iter().map(|operator| of_operator(operator)).collect::<Vec<_>>(),
        "mistakes": mistakes.chain(twice).collect::<Vec<_>>(),
        "module": module.chain(stubs.iter().map(|(name, text)| json!([name, text]))).collect::<Vec<_>>(),
    });
    description.to_string()
}

fn of_operator(operator: &Operator) -> Value {
    let Parts { name, documentation, arguments, results, gradients, .. } = operator.parts;
    let documentation: Vec<_> =
        documentation.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    json!({
        "name": name,
        "schema": operator.schema(),
        "documentation": documentation.join("\n"),
        "arguments": arguments.iter().map(of_argument).collect::<Vec<_>>(),
        "results": results.iter().map(|field| json!([field.name, field.text])).collect::<Vec<_>>(),
        "gradients": gradients.iter().map(|Gradients { of, expression }| (of, expression)).collect::<Vec<_>>(),
    })
}

fn of_argument(field: &Field) -> Value {
    let kind = match field.kind.base {
        Base::Tensor | Base::TensorMut => "tensor",
        Base::Float => "float",
        Base::Int => "int",
        Base::Bool => "bool",
        Base::Text => "str",
        Base::Element => "dtype",
    };
    json!({
        "name": field.name,
        "kind": kind,
        "is_optional": field.kind.is_optional,
        "is_written": field.kind.base == Base::TensorMut,
        "default": field.text,
    })
}
