"""Self-loops, for layers whose sums must include the node itself."""

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor


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
