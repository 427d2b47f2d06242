"""Tensors of PyTorch's go to a kernel of ours and come back by DLPack: python torch_dlpack.py libtma_beside.so"""

import ctypes, sys, torch
from torch.utils.dlpack import from_dlpack, to_dlpack

library = ctypes.CDLL(sys.argv[1])
library.tma_dlpack_scale.restype = ctypes.c_char_p
pointer, capsule = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def scale(x, factor):
    src, product = to_dlpack(x), ctypes.c_void_p()
    stream = ctypes.c_void_p(torch.cuda.current_stream(x.device).cuda_stream)
    address = ctypes.c_void_p(pointer(src, b"dltensor"))
    error = library.tma_dlpack_scale(stream, address, ctypes.c_float(factor), ctypes.byref(product))
    if error:
        raise RuntimeError(error.decode())
    return from_dlpack(capsule(product, b"dltensor", None))


if __name__ == "__main__":
    x = torch.randn(300, 132, device="cuda:0")
    for _ in range(100):
        y = scale(x, 2.5)
        assert torch.equal(y, x * 2.5)
    try:
        scale(x.half(), 2.5)
    except RuntimeError as error:
        print("refused:", str(error)[:60])
    print(f"{torch.cuda.get_device_name()}: tensors of PyTorch's in and out by DLPack, equal to its own product")
