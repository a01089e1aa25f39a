"""Self-loops, for layers that need every node among its own neighbours."""

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor


def add_self_loops(graph: DGLGraph, e: Tensor) -> tuple[DGLGraph, Tensor]:
    """One self-loop for each node that has none, with the void edge feature δ = 0: (E, Q) -> (E + loops, Q).

    New edges come after the old ones. The result does not know which graphs of a batch its nodes belong to.
    """
    src, dst = graph.edges()
    missing = torch.ones(graph.num_nodes(), dtype=torch.bool, device=e.device)
    missing[src[src == dst]] = False
    loops = missing.nonzero().squeeze(1).to(src.dtype)
    looped = dgl.graph((torch.cat([src, loops]), torch.cat([dst, loops])), num_nodes=graph.num_nodes())
    return looped, torch.cat([e, e.new_zeros(len(loops), e.shape[1])])
