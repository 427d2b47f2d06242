"""The C library of this package: its description, its functions, and their errors."""

import ctypes
import json
import pathlib


class Error(RuntimeError):
    """An error of the library. Its text begins with a code, such as `TMA0566`."""

    @property
    def code(self):
        """The code, which has a page in the documentation."""
        return str(self).partition(":")[0]


class Value(ctypes.Structure):
    """A value of an argument: a tag, and a number or an address."""

    _fields_ = [("tag", ctypes.c_uint64), ("payload", ctypes.c_uint64)]


def _load():
    path = pathlib.Path(__file__).with_name("library.so")
    library = ctypes.CDLL(str(path))
    text, address, size = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
    library.tma_python_describe.restype = text
    for name, arguments in {
        "call": [size, ctypes.POINTER(Value), size, address],
        "register": [text, text, text],
        "allocate": [ctypes.c_uint32, size, ctypes.POINTER(address), ctypes.POINTER(ctypes.c_uint64)],
        "synchronize": [ctypes.c_uint32, address],
    }.items():
        function = getattr(library, "tma_python_" + name)
        function.argtypes, function.restype = arguments, text
    library.tma_python_free.argtypes, library.tma_python_free.restype = [address], None
    return library


library = _load()
description = json.loads(library.tma_python_describe())
#: The operators: name, schema, documentation, arguments, results and gradients of each.
operators = description["operators"]

if description["interface"] != 1:
    raise ImportError(f"the library has interface {description['interface']}, but this module knows 1; reinstall the wheel")


def checked(message):
    """Raises an error if a function of the library returned a message."""
    if message is not None:
        raise Error(message.decode())
