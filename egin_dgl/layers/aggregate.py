"""Sums over the neighborhood of a node, readouts, and self-loops.

N nodes, E directed edges j → i, D and Q feature sizes. Each sum is a fused kernel of DGL, which stores no message per edge. The
sums run in full precision also under autocast: sums over many neighbors are where half precision loses most, and DGL's CPU
kernels do not support it.
"""

from collections.abc import Callable
from typing import Literal

import dgl
import dgl.function as fn
import torch
from dgl import DGLGraph
from dgl.nn import AvgPooling, MaxPooling, SumPooling
from torch import Tensor, nn

READOUTS = {"sum": SumPooling, "mean": AvgPooling, "max": MaxPooling}
Readout = Literal["sum", "mean", "max"]


def sum_neighbors(graph: DGLGraph, h: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} h_j: (N, D) -> (N, D)."""
    return sum_messages(graph, fn.copy_u("h", "m"), h=h)


def sum_edges(graph: DGLGraph, e: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} e_ij: (E, Q) -> (N, Q)."""
    return sum_messages(graph, fn.copy_e("e", "m"), e=e)


def sum_weighted(graph: DGLGraph, h: Tensor, w: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} h_j ⊙ w_ij, with broadcasting: (N, …), (E, …) -> (N, …)."""
    return sum_messages(graph, fn.u_mul_e("h", "e", "m"), h=h, e=w)


def sum_cross(graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} h_j ⊗ e_ij, flattened by rows: (N, D), (E, Q) -> (N, D·Q)."""
    return sum_weighted(graph, h.unsqueeze(-1), e.unsqueeze(-2)).flatten(1)


def source_feats(graph: DGLGraph, h: Tensor) -> Tensor:
    """h_j of each edge j → i: (N, D) -> (E, D)."""
    with graph.local_scope(), torch.autocast(graph.device.type, enabled=False):
        graph.ndata["h"] = at_least_float32(h)
        graph.apply_edges(fn.copy_u("h", "h_src"))
        return graph.edata["h_src"]


def sum_messages(
    graph: DGLGraph, message: Callable, h: Tensor | None = None, e: Tensor | None = None
) -> Tensor:
    with graph.local_scope(), torch.autocast(graph.device.type, enabled=False):
        if h is not None:
            graph.ndata["h"] = at_least_float32(h)
        if e is not None:
            graph.edata["e"] = at_least_float32(e)
        graph.update_all(message, fn.sum("m", "sum"))
        return graph.ndata["sum"]


def at_least_float32(x: Tensor) -> Tensor:
    """Half-precision tensors become float32; float32 and float64 stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def make_readout(readout: str) -> nn.Module:
    """The pooling of that name: graph, (N, D) -> (B, D) for a batch of B graphs."""
    if readout not in READOUTS:
        raise ValueError(f"readout must be one of {', '.join(READOUTS)}, got {readout!r}")
    return READOUTS[readout]()


def add_self_loops(graph: DGLGraph, e: Tensor) -> tuple[DGLGraph, Tensor]:
    """Add a self-loop with the void edge feature δ = 0 to each node that has none: (E, Q) -> (E + loops, Q).

    New edges follow the old ones. The result has no batch information.
    """
    src, dst = graph.edges()
    missing = torch.ones(graph.num_nodes(), dtype=torch.bool, device=e.device)
    missing[src[src == dst]] = False
    loops = missing.nonzero().squeeze(1).to(src.dtype)
    looped = dgl.graph((torch.cat([src, loops]), torch.cat([dst, loops])), num_nodes=graph.num_nodes())
    return looped, torch.cat([e, e.new_zeros(len(loops), e.shape[1])])
