"""Tests the wheel on the CPU, where the simulator runs the kernel, and on a GPU if there is one.

    cargo tma wheel
    pip install --force-reinstall target/wheels/*.whl
    python tests/test_scale.py
"""

import torch

import new_package

for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
    # The copy engine needs rows that begin at multiples of 16 bytes.
    x = torch.randn(50, 100, device=device, requires_grad=True)
    y = new_package.scale(x, 2.5)
    assert torch.equal(y, x * 2.5)
    (y * y).sum().backward()
    torch.testing.assert_close(x.grad, 2 * 2.5 * 2.5 * x)

    compiled = torch.compile(lambda x: new_package.scale(x, 2.0) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), 2 * x + 1)
    torch.library.opcheck(torch.ops.new_package.scale.default, (x.detach(), 2.5))
    torch.library.opcheck(torch.ops.new_package.scale.default, (x, 2.5))

    try:
        new_package.scale(x.double(), 2.5)
    except RuntimeError as error:
        assert "TMA0566: `x` has elements of float64; pass float32" in str(error), error
    else:
        raise AssertionError("other elements must be refused")
    print(f"{device}: scale is equal to torch's product, with its gradient, also compiled")
