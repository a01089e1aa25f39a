"""Matrix products of torch by numpy's OpenBLAS, whose kernels of one instruction set add in the same order on every processor.

MKL, which torch calls, guarantees equal digits across makers only for its SSE2 branch, which takes more than twice as long.
"""

import warnings

import torch
from torch import Tensor
from torch.library import Library

LIBRARY = Library("aten", "IMPL")  # what it registers lasts as long as the object
REGISTERED: list[str] = []


def multiply_with_openblas() -> None:
    """Replace the products of dense matrices on the CPU in this process. Other products (convolutions) stay with MKL."""
    if REGISTERED:
        return
    REGISTERED.extend(KERNELS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning only once for all operators")  # that a kernel is replaced
        for name, kernel in KERNELS.items():
            LIBRARY.impl(name, kernel, "CPU")


def product(a: Tensor, b: Tensor) -> Tensor:
    """a b, of matrices or of batches of matrices."""
    if a.dtype == torch.bfloat16:  # unknown to numpy
        return product(a.float(), b.float()).to(a.dtype)
    return torch.from_numpy(a.detach().numpy() @ b.detach().numpy())


def product_out(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
    return out.copy_(product(a, b))


def add_product(c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta c + alpha a b."""
    added = product(a, b)
    added = added if alpha == 1 else added.mul_(alpha)
    return added if beta == 0 else added.add_(c, alpha=beta)


def add_product_(c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return c.copy_(add_product(c, a, b, beta=beta, alpha=alpha))


KERNELS = {
    "mm": product,
    "mm.out": product_out,
    "bmm": product,
    "addmm": add_product,
    "addmm_": add_product_,
    "baddbmm": add_product,
}
