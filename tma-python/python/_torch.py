"""Registers the operators with PyTorch, which then calls the library without Python in between."""

import ast
import importlib
import importlib.util
import pathlib

import torch

from ._library import checked, library, operators
from ._results import DTYPES, Arguments, Described, Results

_libraries = []  # PyTorch forgets the definitions of a library that is freed.


def register(namespace):
    """Defines the operators in `torch.ops.NAMESPACE`, and returns functions that call them, by name."""
    definitions = torch.library.Library(namespace, "FRAGMENT")
    _libraries.append(definitions)
    for operator in operators:
        for schema in _schemas(operator):
            definitions.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    folder = pathlib.Path(torch.__file__).parent / "lib"
    cpu, cuda = folder / "libtorch_cpu.so", folder / "libtorch_cuda.so"
    has_cuda = torch.version.cuda is not None and cuda.exists()
    checked(
        library.tma_python_register(
            namespace.encode(), str(cpu).encode(), str(cuda).encode() if has_cuda else None
        )
    )
    names = [operator["name"] for operator in operators]
    packets = {name: getattr(getattr(torch.ops, namespace), name) for name in names}
    functions = {}
    for operator in operators:
        name = operator["name"]
        functions[name], fake = packets[name].default, _fake(operator)
        torch.library.register_fake(f"{namespace}::{name}", fake, lib=definitions)
        if operator["gradients"]:
            torch.library.register_fake(f"{namespace}::{name}.no_grad", fake, lib=definitions)
            kernel = _differentiable(operator, packets, namespace)
            definitions.impl(name, kernel, "Autograd")
            functions[name] = _function(name, packets[name])
        functions[name].__doc__ = f"{operator['schema']}\n\n{operator['documentation']}"
    return functions


def _schemas(operator):
    """Returns the schemas of an operator. If it has gradients, it has an overload `no_grad` that has none."""
    name, schema = operator["name"], operator["schema"]
    return [schema] + [f"{name}.no_grad{schema.removeprefix(name)}"] * bool(operator["gradients"])


def _function(name, packet):
    """Returns a function that calls an operator: without PyTorch's detour through Python if no gradient is wanted."""
    differentiable, native = packet.default, packet.no_grad

    def call(*positional, **by_name):
        if torch.is_grad_enabled():
            for value in (*positional, *by_name.values()):
                if isinstance(value, torch.Tensor) and value.requires_grad:
                    return differentiable(*positional, **by_name)
        return native(*positional, **by_name)

    call.__name__ = call.__qualname__ = name
    return call


def _fake(operator):
    """Returns a function that makes results without values, from the description of results."""
    results = Results(operator, {name: getattr(torch, name) for name in DTYPES if hasattr(torch, name)})
    arguments = Arguments(operator)
    tensors = [argument["name"] for argument in operator["arguments"] if argument["kind"] == "tensor"]

    def fake(*positional, **by_name):
        bound = arguments.bind(positional, by_name)
        device = next(bound[name].device for name in tensors if bound[name] is not None)
        for name in tensors:
            if bound[name] is not None:
                bound[name] = Described(bound[name].shape, bound[name].dtype)
        made = tuple(torch.empty(shape, dtype=dtype, device=device) for shape, dtype in results.evaluate(bound))
        return made[0] if len(made) == 1 else made if made else None

    return fake


def _differentiable(operator, packets, namespace):
    """Returns the kernel of an operator for the dispatch key `Autograd`.

    `torch.library.register_autograd` would not differentiate arguments that are passed by name.
    """
    arguments = Arguments(operator)
    order = [argument["name"] for argument in operator["arguments"]]
    results = [name for name, _ in operator["results"]]
    gradients = [(of, compile(text, f"gradient of {', '.join(of)}", "eval")) for of, text in operator["gradients"]]
    used = {name for _, text in operator["gradients"] for name in _names(text)}
    native = packets[operator["name"]].no_grad
    known = {"torch": torch, **{name: packet.default for name, packet in packets.items()}}
    for name in used.difference(order, results, known, {"needed"}, (f"grad_{name}" for name in results)):
        if importlib.util.find_spec(f"{namespace}.{name}"):
            known[name] = importlib.import_module(f"{namespace}.{name}")
    constant = [index for index, name in enumerate(results) if f"grad_{name}" not in used]

    def forward(ctx, count, *values):
        result = native(*values[:count], **dict(zip(order[count:], values[count:])))
        outputs = result if isinstance(result, tuple) else (result,)
        if constant:
            ctx.mark_non_differentiable(*(outputs[index] for index in constant))
        kept = {name: value for name, value in zip(order + results, values + outputs) if name in used}
        tensors = {name: value for name, value in kept.items() if isinstance(value, torch.Tensor)}
        ctx.save_for_backward(*tensors.values())
        ctx.tma_tensors = list(tensors)
        ctx.tma_values = {name: value for name, value in kept.items() if name not in tensors}
        return result

    def backward(ctx, *grads):
        values = {**known, **ctx.tma_values, **dict(zip(ctx.tma_tensors, ctx.saved_tensors))}
        values.update((f"grad_{name}", grad) for name, grad in zip(results, grads))
        needed = {name for name, is_needed in zip(order, ctx.needs_input_grad[1:]) if is_needed}
        values["needed"] = needed
        found = {}
        for of, code in gradients:
            if needed.intersection(of):
                together = eval(code, values)
                found.update(zip(of, together if len(of) > 1 else (together,)))
        return None, *(found.get(name) if name in needed else None for name in order)

    functions = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    gradient = type(operator["name"], (torch.autograd.Function,), functions)

    def kernel(*positional, **by_name):
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*positional, *by_name.values()):
            bound = arguments.bind(positional, by_name)
            return gradient.apply(len(arguments.positional), *(bound[name] for name in order))
        return native(*positional, **by_name)

    return kernel


def _names(expression):
    """Returns the variables of an expression."""
    return {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}
