"""Shapes and element types of results, described by the same text for every library of arrays."""

import ast

DTYPES = (
    "bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 "
    "float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2"
).split()


class Described:
    """A tensor in an expression: only its shape, as a list, and its element type."""

    __slots__ = ("shape", "dtype")

    def __init__(self, shape, dtype):
        self.shape, self.dtype = list(shape), dtype


class Results:
    """The results of an operator."""

    def __init__(self, operator, dtypes):
        self.names = [name for name, _ in operator["results"]]
        self.codes = [compile(text, operator["name"], "eval") for _, text in operator["results"]]
        self.globals = dict(
            dtypes,
            __builtins__={"len": len},
            empty=lambda shape, dtype: (shape, dtype),
            empty_like=lambda tensor: (tensor.shape, tensor.dtype),
        )

    def evaluate(self, arguments):
        """Returns shape and element type of each result for these arguments, by name."""
        return [eval(code, self.globals, arguments) for code in self.codes]


class Arguments:
    """The arguments of an operator: positional, and by name with their defaults."""

    def __init__(self, operator):
        self.operator = operator["name"]
        self.all = operator["arguments"]
        self.positional = [argument["name"] for argument in self.all if argument["default"] is None]
        self.names = {argument["name"] for argument in self.all}
        self.defaults = {
            argument["name"]: ast.literal_eval(argument["default"])
            for argument in self.all
            if argument["default"] is not None
        }

    def bind(self, positional, by_name):
        """Returns the arguments by name."""
        bound = {**self.defaults, **dict(zip(self.positional, positional)), **by_name}
        if len(positional) > len(self.positional):
            most = len(self.positional)
            raise TypeError(f"{self.operator}() takes {most} positional arguments, but {len(positional)} were given")
        for name in by_name:
            if name not in self.names:
                raise TypeError(f"{self.operator}() has no argument `{name}`")
            if name in self.positional[: len(positional)]:
                raise TypeError(f"{self.operator}() got `{name}` twice")
        for name in self.positional:
            if name not in bound:
                raise TypeError(f"{self.operator}() misses its argument `{name}`")
        return bound
