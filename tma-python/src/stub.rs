//! Type stubs of the Python module (PEP 561, PEP 484): what editors and type checkers know of it.

use std::fmt::Write as _;

use crate::argument::Base;
use crate::operator::{Field, Operator, Parts};

/// The beginning of the module's stub.
const MODULE: &str = "\
from typing import Any

import torch
from torch import Tensor

from . import arrays as arrays

class Error(RuntimeError):
    \"\"\"An error of the library. Its text begins with a code, such as `TMA0566`.\"\"\"

    @property
    def code(self) -> str:
        \"\"\"The code, which has a page in the documentation.\"\"\"

#: The operators: name, schema, documentation, arguments, results and gradients of each.
operators: list[dict[str, Any]]
";

/// The beginning of the stub of `arrays`.
const ARRAYS: &str = "\
\"\"\"Calls the operators on arrays of any library with DLPack: JAX, CuPy, NumPy, PyTorch.\"\"\"

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, overload

class SupportsDLPack(Protocol):
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...

_Out = TypeVar(\"_Out\", bound=SupportsDLPack)

class Array:
    \"\"\"A result: an array in row-major order, for `from_dlpack` of any library.\"\"\"

    shape: tuple[int, ...]
    dtype: str
    def __dlpack__(self, *, stream: Any = None, **_options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
";

/// Returns the stub of the module.
pub(crate) fn module(operators: &[&Operator]) -> String {
    let mut text = MODULE.to_owned();
    for Parts { name, arguments, results, documentation, .. } in operators.iter().map(|one| one.parts) {
        let returned = match results.len() {
            0 => "None".to_owned(),
            1 => "Tensor".to_owned(),
            count => format!("tuple[{}]", vec!["Tensor"; count].join(", ")),
        };
        text += "\n";
        function(&mut text, name, parameters(arguments, &TORCH), &returned, documentation);
    }
    text
}

/// Returns the stub of `arrays`: of each operator the form that makes arrays for results, and the
/// one that writes to those of `out`.
pub(crate) fn arrays(operators: &[&Operator]) -> String {
    let mut text = ARRAYS.to_owned();
    for Parts { name, arguments, results, documentation, .. } in operators.iter().map(|one| one.parts) {
        let (made, out, returned) = match results.len() {
            0 => {
                let parameters = with_stream(parameters(arguments, &DLPACK), "None = None");
                text += "\n";
                function(&mut text, name, parameters, "None", documentation);
                continue;
            }
            1 => ("Array".to_owned(), "_Out", "_Out".to_owned()),
            count => (
                format!("tuple[{}]", vec!["Array"; count].join(", ")),
                "Sequence[_Out]",
                "tuple[_Out, ...]".to_owned(),
            ),
        };
        for (out, returned) in [("None = None", made), (out, returned)] {
            text += "\n@overload\n";
            let parameters = with_stream(parameters(arguments, &DLPACK), out);
            function(&mut text, name, parameters, &returned, documentation);
        }
    }
    text
}

/// Names of types in Python.
struct Types {
    tensor: &'static str,
    element: &'static str,
}

const TORCH: Types = Types { tensor: "Tensor", element: "torch.dtype" };
/// An element type is anything whose text is its name: a `str`, a `dtype` of NumPy or of PyTorch.
const DLPACK: Types = Types { tensor: "SupportsDLPack", element: "object" };

/// Returns the parameters of an operator's function. As in its schema, those that have a default
/// are passed by name.
fn parameters(arguments: &[Field], types: &Types) -> Vec<String> {
    let first_named = arguments.iter().position(|field| field.text.is_some());
    let mut parameters = vec![];
    for (index, field) in arguments.iter().enumerate() {
        if Some(index) == first_named {
            parameters.push("*".to_owned());
        }
        let base = match field.kind.base {
            Base::Tensor | Base::TensorMut => types.tensor,
            Base::Float => "float",
            Base::Int => "int",
            Base::Bool => "bool",
            Base::Text => "str",
            Base::Element => types.element,
        };
        let optional = if field.kind.is_optional { " | None" } else { "" };
        let default = field.text.map(|default| format!(" = {default}")).unwrap_or_default();
        parameters.push(format!("{}: {base}{optional}{default}", field.name));
    }
    parameters
}

/// Appends the options of a call with arrays.
fn with_stream(mut parameters: Vec<String>, out: &str) -> Vec<String> {
    if !parameters.iter().any(|parameter| parameter == "*") {
        parameters.push("*".to_owned());
    }
    parameters.extend([format!("out: {out}"), "stream: int | None = None".to_owned()]);
    parameters
}

/// Appends a function: a parameter a line, and its documentation.
fn function(text: &mut String, name: &str, parameters: Vec<String>, returned: &str, documentation: &[&str]) {
    let parameters: String = parameters.iter().map(|parameter| format!("    {parameter},\n")).collect();
    // Writing to a `String` never fails.
    let _infallible = writeln!(text, "def {name}(\n{parameters}) -> {returned}:");
    let lines: Vec<_> = documentation.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    match lines.as_slice() {
        [] => *text += "    ...\n",
        lines => *text += &docstring(lines),
    }
}

/// Returns lines as a string at the beginning of a function.
fn docstring(lines: &[&str]) -> String {
    let escaped = lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\""));
    let indented = escaped.map(|line| if line.is_empty() { line } else { format!("    {line}") });
    let text = indented.collect::<Vec<_>>().join("\n");
    let end = if lines.len() > 1 { "\n    " } else { "" };
    format!("    \"\"\"{}{end}\"\"\"\n", text.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_ends_where_it_should() {
        assert_eq!(docstring(&["One line."]), "    \"\"\"One line.\"\"\"\n");
        let wanted = "    \"\"\"A \\\"word\\\", a \\\\.\n\n    Below.\n    \"\"\"\n";
        assert_eq!(docstring(&["A \"word\", a \\.", "", "Below."]), wanted);
    }

    #[test]
    fn options_of_arrays_follow_those_of_the_operator() {
        let with = |parameters: &[&str]| {
            with_stream(parameters.iter().map(ToString::to_string).collect(), "_Out").join(", ")
        };
        assert_eq!(with(&["x: A"]), "x: A, *, out: _Out, stream: int | None = None");
        assert_eq!(
            with(&["x: A", "*", "n: int = 1"]),
            "x: A, *, n: int = 1, out: _Out, stream: int | None = None"
        );
    }
}
