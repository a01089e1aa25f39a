"""Print a digest of what each operation of training returns, in the arithmetic of `reproducible=avx2`."""

import hashlib

import torch
from torch import Tensor, nn

import egin_dgl.data  # noqa: F401  (sets the arithmetic)


def digest(*tensors: Tensor) -> str:
    return hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()[:16]


def main() -> None:
    torch.manual_seed(0)
    x, labels = torch.randn(700, 64), torch.randint(0, 64, (700,))
    for n, k, m in ((7, 18, 64), (600, 64, 64), (64, 3000, 18), (1, 64, 64), (64, 1500, 1)):
        a, b = torch.randn(n, k), torch.randn(k, m)
        print(
            "product", n, k, m, digest(a @ b, a.t().contiguous().t() @ b, torch.addmm(torch.randn(m), a, b))
        )
    print("batched product", digest(torch.bmm(torch.randn(4, 300, 64), torch.randn(4, 64, 64))))
    rows, starts = torch.randint(0, 700, (2100,)), torch.arange(0, 2100, 3)
    print("sum", digest(torch.embedding_bag(x, rows, starts, False, 0, False, torch.rand(2100))[0]))
    for module in (nn.BatchNorm1d(64), nn.LayerNorm(64), nn.Softplus(), nn.ELU(), nn.GELU(), nn.LSTM(64, 8)):
        y = module(x.requires_grad_())
        y = y[0] if isinstance(y, tuple) else y
        (grad,) = torch.autograd.grad(y.square().sum(), x)
        print(type(module).__name__, digest(y, grad))
    for function in ("exp", "tanh", "sigmoid", "rsqrt", "log1p", "sum", "std", "norm", "logsumexp"):
        call = getattr(torch, function)
        print(function, digest(call(x.abs(), 1) if function == "logsumexp" else call(x.abs())))
    print("cross entropy", digest(nn.functional.cross_entropy(x, labels)))
    print("convolution", digest(nn.Conv1d(1, 16, 97, 97)(torch.randn(32, 1, 970))))
    parameter = nn.Parameter(torch.randn(5000))
    for optimizer in (torch.optim.Adam([parameter], fused=True), torch.optim.SGD([parameter], 0.1, 0.9)):
        parameter.grad = torch.randn(5000)
        optimizer.step()
        print(type(optimizer).__name__, digest(parameter))


if __name__ == "__main__":
    main()
