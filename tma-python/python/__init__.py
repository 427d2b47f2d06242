"""Operators of a package of TMA kernels.

Each operator is an attribute of this module and of `torch.ops.NAME`, where NAME is the module's
name. `arrays` calls the same operators on arrays of other libraries. Without PyTorch only `arrays`
exists.
"""

import importlib.util

from ._library import Error, operators

__all__ = ["Error", "arrays", "operators"]

if importlib.util.find_spec("torch"):
    from . import _torch

    for _name, _operator in _torch.register(__name__).items():
        globals()[_name] = _operator
        __all__.append(_name)

from . import arrays
