"""PyTorch calls a kernel of ours: python torch_scale.py libtma_beside.so"""

import ctypes, sys, torch


class Matrix(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("address", "rows", "cols", "stride")]


library = ctypes.CDLL(sys.argv[1])
library.tma_scale.restype = ctypes.c_char_p


def scale(x, factor):
    y = torch.empty(x.shape, device=x.device)
    src, dst = (Matrix(t.data_ptr(), *t.shape, t.stride(0)) for t in (x, y))
    stream = ctypes.c_void_p(torch.cuda.current_stream(x.device).cuda_stream)
    error = library.tma_scale(
        x.device.index, stream, ctypes.byref(src), ctypes.byref(dst), ctypes.c_float(factor)
    )
    if error:
        raise RuntimeError(error.decode())
    return y


if __name__ == "__main__":
    for gpu in range(torch.cuda.device_count()):
        x = torch.randn(300, 132, device=f"cuda:{gpu}")
        assert torch.equal(scale(x, 2.5), x * 2.5)
        # Every second row, and a stream of PyTorch's own, between its operations.
        with torch.cuda.stream(torch.cuda.Stream(gpu)):
            for _ in range(100):
                z = scale(scale((x + 1)[::2], 0.5) * 2, 3.0)
            assert torch.equal(z, (x + 1)[::2] * 3.0)
    assert torch.cuda.current_device() == 0
    for wrong in (x[:, 1:], x.new_empty(0, 132)):
        try:
            scale(wrong, 2.5)
        except RuntimeError as error:
            print("refused:", str(error)[:60])
    print(f"{torch.cuda.get_device_name()}: PyTorch called the kernel on {gpu + 1} GPUs, equal to its own product")
