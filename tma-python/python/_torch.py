"""Registers the operators with PyTorch, which then calls the library without Python in between."""

import pathlib
import types

import torch

from ._library import checked, library, operators
from ._results import DTYPES, Arguments, Described, Results

_libraries = []  # PyTorch forgets the definitions of a library that is freed.


def register(namespace):
    """Defines the operators in `torch.ops.NAMESPACE`, and returns them by name."""
    definitions = torch.library.Library(namespace, "FRAGMENT")
    _libraries.append(definitions)
    for operator in operators:
        definitions.define(operator["schema"], tags=(torch.Tag.pt2_compliant_tag,))
    folder = pathlib.Path(torch.__file__).parent / "lib"
    cpu, cuda = folder / "libtorch_cpu.so", folder / "libtorch_cuda.so"
    has_cuda = torch.version.cuda is not None and cuda.exists()
    checked(
        library.tma_python_register(
            namespace.encode(), str(cpu).encode(), str(cuda).encode() if has_cuda else None
        )
    )
    made = {operator["name"]: getattr(getattr(torch.ops, namespace), operator["name"]).default for operator in operators}
    for operator in operators:
        name = f"{namespace}::{operator['name']}"
        torch.library.register_fake(name, _fake(operator), lib=definitions)
        if operator["gradients"]:
            backward, setup = _gradients(operator, made)
            torch.library.register_autograd(name, backward, setup_context=setup, lib=definitions)
        made[operator["name"]].__doc__ = f"{operator['schema']}\n\n{operator['documentation']}"
    return made


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


def _gradients(operator, made):
    """Returns the backward function of an operator, and the function that keeps what it needs."""
    gradients = [(of, compile(text, f"gradient of {', '.join(of)}", "eval")) for of, text in operator["gradients"]]
    arguments = Arguments(operator)
    results = [name for name, _ in operator["results"]]
    used = {name for _, code in gradients for name in code.co_names}
    names = {"torch": torch, **made}

    def setup(ctx, inputs, output, keyword_only_inputs=types.MappingProxyType({})):
        values = arguments.bind(inputs, keyword_only_inputs)
        outputs = dict(zip(results, output if isinstance(output, tuple) else (output,)))
        values.update(outputs)
        constant = [value for name, value in outputs.items() if f"grad_{name}" not in used]
        if constant:
            ctx.mark_non_differentiable(*constant)
        kept = {name: value for name, value in values.items() if name in used}
        tensors = {name: value for name, value in kept.items() if isinstance(value, torch.Tensor)}
        ctx.save_for_backward(*tensors.values())
        ctx.tma_tensors = list(tensors)
        ctx.tma_values = {name: value for name, value in kept.items() if name not in tensors}

    def backward(ctx, *grads):
        values = {**names, **ctx.tma_values, **dict(zip(ctx.tma_tensors, ctx.saved_tensors))}
        values.update((f"grad_{name}", grad) for name, grad in zip(results, grads))
        needed = {name for name, is_needed in zip(arguments.positional, ctx.needs_input_grad) if is_needed}
        found = {}
        for of, code in gradients:
            if needed.intersection(of):
                together = eval(code, values)
                found.update(zip(of, together if len(of) > 1 else (together,)))
        return tuple(found.get(name) if name in needed else None for name in arguments.positional)

    return backward, setup
