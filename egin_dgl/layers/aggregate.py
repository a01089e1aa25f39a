"""Sums over the neighborhood of a node, and self-loops.

N nodes, E directed edges j → i, D and Q feature sizes. Each sum is a fused kernel of DGL, which stores no message per edge. The
sums run in full precision also under autocast: sums over many neighbors are where half precision loses most, and DGL's CPU
kernels do not support it.
"""

import dgl
import dgl.function as fn
import torch
from dgl import DGLGraph
from torch import Tensor


def sum_neighbors(graph: DGLGraph, h: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} h_j: (N, D) -> (N, D)."""
    with graph.local_scope(), torch.autocast(h.device.type, enabled=False):
        graph.ndata["h"] = at_least_float32(h)
        graph.update_all(fn.copy_u("h", "m"), fn.sum("m", "sum"))
        return graph.ndata["sum"]


def sum_edges(graph: DGLGraph, e: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} e_ij: (E, Q) -> (N, Q)."""
    with graph.local_scope(), torch.autocast(e.device.type, enabled=False):
        graph.edata["e"] = at_least_float32(e)
        graph.update_all(fn.copy_e("e", "m"), fn.sum("m", "sum"))
        return graph.ndata["sum"]


def sum_cross(graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} h_j ⊗ e_ij, flattened by rows: (N, D), (E, Q) -> (N, D·Q)."""
    with graph.local_scope(), torch.autocast(h.device.type, enabled=False):
        graph.ndata["h"] = at_least_float32(h).unsqueeze(-1)
        graph.edata["e"] = at_least_float32(e).unsqueeze(-2)
        graph.update_all(fn.u_mul_e("h", "e", "m"), fn.sum("m", "sum"))
        return graph.ndata["sum"].flatten(1)


def sum_weighted(graph: DGLGraph, h: Tensor, w: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} h_j ⊙ w_ij, with broadcasting: (N, …), (E, …) -> (N, …)."""
    with graph.local_scope(), torch.autocast(h.device.type, enabled=False):
        graph.ndata["h"], graph.edata["w"] = at_least_float32(h), at_least_float32(w)
        graph.update_all(fn.u_mul_e("h", "w", "m"), fn.sum("m", "sum"))
        return graph.ndata["sum"]


def at_least_float32(x: Tensor) -> Tensor:
    """Half-precision tensors become float32; float32 and float64 stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


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
