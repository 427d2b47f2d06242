"""Calls the operators on arrays of any library with DLPack: JAX, CuPy, NumPy, PyTorch.

`arrays.NAME(..)` takes the arguments of the operator, and returns an `Array`, or several, for
`from_dlpack` of any library. `out=` takes arrays for the results instead.
"""

import ctypes
import math
import struct

from ._library import Value, checked, library, operators
from ._results import DTYPES, Arguments, Described, Results

_CPU, _CUDA = 1, 2
#: DLPack's code and bits of each element type.
_TYPES = {
    "bool": (6, 8), "uint8": (1, 8), "int8": (0, 8), "int16": (0, 16), "uint16": (1, 16), "int32": (0, 32),
    "uint32": (1, 32), "int64": (0, 64), "uint64": (1, 64), "float16": (2, 16), "bfloat16": (4, 16),
    "float32": (2, 32), "float64": (2, 64), "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8),
}  # fmt: skip
_NAMES = {of_type: name for name, of_type in _TYPES.items()}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_python = ctypes.pythonapi
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))

_exported = {}  # What capsules refer to, by the address of their tensor.


# Arrays of other libraries may live until the interpreter ends, when the names of this module are
# gone. So both functions keep what they use as defaults, and are never freed.
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address, exported=_exported):
    exported.pop(address, None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _drop_capsule(capsule, exported=_exported, is_valid=_is_valid, pointer=_pointer):
    # A capsule that nobody consumed still has its first name. It is passed as an address, because
    # its count of references is 0 by now.
    if is_valid(capsule, b"dltensor"):
        exported.pop(pointer(capsule, b"dltensor"), None)


for _function_of_c in (_delete, _drop_capsule):
    _python.Py_IncRef(ctypes.py_object(_function_of_c))


class _Memory:
    """Memory on a GPU, which is freed with this object."""

    def __init__(self, gpu, size):
        self.owner, address = ctypes.c_void_p(), ctypes.c_uint64()
        checked(library.tma_python_allocate(gpu, max(size, 1), ctypes.byref(self.owner), ctypes.byref(address)))
        self.address = address.value

    def __del__(self):
        if self.owner:
            library.tma_python_free(self.owner)


class Array:
    """A result: an array in row-major order, for `from_dlpack` of any library."""

    def __init__(self, shape, dtype, device, stream):
        self.shape, self.dtype, self._device, self._stream = tuple(shape), dtype, device, stream
        code, bits = _TYPES[dtype]
        size = math.prod(shape) * bits // 8
        if device[0] == _CUDA:
            self._memory = _Memory(device[1], size)
            address = self._memory.address
        else:
            self._memory = ctypes.create_string_buffer(size + 64)
            address = -(-ctypes.addressof(self._memory) // 64) * 64
        self._shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        self._strides = (ctypes.c_int64 * max(len(shape), 1))(*strides)
        self._tensor = _Tensor(address, *device, len(shape), code, bits, 1, self._shape, self._strides, 0)

    def __repr__(self):
        return f"<Array of {self.dtype}, shape {self.shape}>"

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, *, stream=None, **_options):
        # Whatever stream the consumer uses, the result is complete for it.
        if self._device[0] == _CUDA:
            checked(library.tma_python_synchronize(self._device[1], self._stream))
        managed = _Managed(self._tensor, None, ctypes.cast(_delete, ctypes.c_void_p))
        address = ctypes.addressof(managed)
        _exported[address] = (managed, self)
        return _python.PyCapsule_New(address, b"dltensor", ctypes.cast(_drop_capsule, ctypes.c_void_p))


class _Borrowed:
    """An array of another library, for the time of a call."""

    def __init__(self, array, stream):
        if isinstance(array, Array):
            self.tensor = array._tensor
            return
        # DLPack's name of the default stream is 1; a stream in use of another library waits for it.
        is_on_gpu = array.__dlpack_device__()[0] == _CUDA
        self.capsule = array.__dlpack__(stream=stream or 1) if is_on_gpu else array.__dlpack__()
        managed = _Managed.from_address(_python.PyCapsule_GetPointer(self.capsule, b"dltensor"))
        self.tensor = managed.tensor

    def described(self):
        tensor = self.tensor
        dtype = _NAMES.get((tensor.code, tensor.bits), "?")
        return Described(tensor.shape[: tensor.rank], dtype)


def _value(argument, value, borrowed, texts):
    """Returns the value of an argument for the library."""
    kind, name = argument["kind"], argument["name"]
    if value is None:
        return Value(0, 0)
    if kind == "tensor":
        return Value(6, ctypes.addressof(borrowed[name].tensor))
    if kind == "float":
        return Value(2, struct.unpack("<Q", struct.pack("<d", value))[0])
    if kind == "str":
        return Value(4, ctypes.cast(texts[name], ctypes.c_void_p).value)
    if kind == "dtype":
        code, bits = _TYPES[str(value).removeprefix("torch.")]
        return Value(5, code | bits << 8)
    return Value({"int": 1, "bool": 3}[kind], int(value) & (1 << 64) - 1)


def _function(index, operator):
    arguments = Arguments(operator)
    results = Results(operator, {name: name for name in DTYPES})

    def call(*positional, out=None, stream=None, **by_name):
        bound = arguments.bind(positional, by_name)
        borrowed, described = {}, dict(bound)
        for argument in arguments.all:
            name, value = argument["name"], bound[argument["name"]]
            if argument["kind"] == "tensor" and value is not None:
                if not hasattr(value, "__dlpack__"):
                    raise TypeError(f"`{name}` is a {type(value).__name__}; pass an array with `__dlpack__`")
                borrowed[name] = _Borrowed(value, stream)
                described[name] = borrowed[name].described()
        first = next(iter(borrowed.values())).tensor
        made = results.evaluate(described)
        if out is None:
            device = (first.device_type, first.device_id) if first.device_type == _CUDA else (_CPU, 0)
            stored = [Array(shape, dtype, device, stream) for shape, dtype in made]
        else:
            stored = list(out) if isinstance(out, (tuple, list)) else [out]
            if len(stored) != len(made):
                raise TypeError(f"`out` has {len(stored)} arrays, but {call.__name__} has {len(made)} results")
        into = [_Borrowed(array, stream) for array in stored]
        for name, array, wanted in zip(results.names, into, made):
            found = array.described()
            if (found.shape, found.dtype) != (list(wanted[0]), wanted[1]):
                raise TypeError(f"`out` for `{name}` is {found.dtype} {found.shape}; pass {wanted[1]} {list(wanted[0])}")
        texts = {name: value.encode() for name, value in bound.items() if isinstance(value, str)}
        values = [_value(argument, bound[argument["name"]], borrowed, texts) for argument in arguments.all]
        values += [Value(6, ctypes.addressof(array.tensor)) for array in into]
        checked(library.tma_python_call(index, (Value * len(values))(*values), len(values), stream))
        return stored[0] if len(stored) == 1 else tuple(stored) if stored else None

    call.__name__ = call.__qualname__ = operator["name"]
    call.__doc__ = f"{operator['schema']}\n\n{operator['documentation']}"
    return call


for _index, _operator in enumerate(operators):
    globals()[_operator["name"]] = _function(_index, _operator)
