"""What features travel along: sums over the neighborhood of a node, values of edges from their ends, and self-loops.

N nodes, E directed edges j → i, D and Q feature sizes. On a `DGLGraph` each sum is a fused kernel of DGL, which stores no
message per edge; on an `EdgeList` it is an operation of torch, on any device. Both compute in full precision also under
autocast: sums over many neighbors are where half precision loses most, and DGL's CPU kernels do not support it.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from egin_dgl.data.edge_list import EdgeList, Graph

# Messages by DGL's names: of the features h_j at the source of each edge and e_ij of the edge.
MESSAGES: dict[str, Callable] = {"copy_u": lambda h, e: h, "copy_e": lambda h, e: e, "u_mul_e": torch.mul}


def sum_neighbors(graph: Graph, h: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} h_j: (N, D) -> (N, D)."""
    return sum_messages(graph, "copy_u", h=h)


def sum_edges(graph: Graph, e: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} e_ij: (E, Q) -> (N, Q)."""
    return sum_messages(graph, "copy_e", e=e)


def sum_weighted(graph: Graph, h: Tensor, w: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} h_j ⊙ w_ij, with broadcasting: (N, …), (E, …) -> (N, …)."""
    return sum_messages(graph, "u_mul_e", h=h, e=w)


def sum_cross(graph: Graph, h: Tensor, e: Tensor) -> Tensor:
    """Σ_{j ∈ N(i)} h_j ⊗ e_ij, flattened by rows: (N, D), (E, Q) -> (N, D·Q)."""
    return sum_weighted(graph, h.unsqueeze(-1), e.unsqueeze(-2)).flatten(1)


def source_feats(graph: Graph, h: Tensor) -> Tensor:
    """h_j of each edge j → i: (N, D) -> (E, D)."""
    h = at_least_float32(h)
    if isinstance(graph, EdgeList):
        return h.index_select(0, graph.src)
    import dgl.function as fn

    with graph.local_scope(), torch.autocast(graph.device.type, enabled=False):
        graph.ndata["h"] = h
        graph.apply_edges(fn.copy_u("h", "h_src"))
        return graph.edata["h_src"]


def sum_messages(graph: Graph, message: str, h: Tensor | None = None, e: Tensor | None = None) -> Tensor:
    """Σ_{j ∈ N(i)} m(h_j, e_ij) for one of MESSAGES."""
    h, e = (None if x is None else at_least_float32(x) for x in (h, e))
    with torch.autocast(graph.device.type, enabled=False):
        if isinstance(graph, EdgeList):
            m = MESSAGES[message](None if h is None else h.index_select(0, graph.src), e)
            return m.new_zeros(graph.nodes, *m.shape[1:]).index_add(0, graph.dst, m)
        import dgl.function as fn

        with graph.local_scope():
            if h is not None:
                graph.ndata["h"] = h
            if e is not None:
                graph.edata["e"] = e
            operands = {"copy_u": ["h"], "copy_e": ["e"], "u_mul_e": ["h", "e"]}[message]
            graph.update_all(getattr(fn, message)(*operands, "m"), fn.sum("m", "sum"))
            return graph.ndata["sum"]


def add_ends(graph: Graph, source: Tensor, target: Tensor) -> Tensor:
    """source_j + target_i for each edge j → i: (N, …), (N, …) -> (E, …)."""
    source, target = at_least_float32(source), at_least_float32(target)
    if isinstance(graph, EdgeList):
        return source.index_select(0, graph.src) + target.index_select(0, graph.dst)
    import dgl.function as fn

    with graph.local_scope(), torch.autocast(graph.device.type, enabled=False):
        graph.ndata["j"], graph.ndata["i"] = source, target
        graph.apply_edges(fn.u_add_v("j", "i", "ij"))
        return graph.edata["ij"]


def edge_softmax(graph: Graph, scores: Tensor) -> Tensor:
    """Softmax over the edges into each node: (E, …) -> (E, …)."""
    scores = at_least_float32(scores)
    if isinstance(graph, EdgeList):
        rows = graph.dst.view(-1, *[1] * (scores.ndim - 1)).expand_as(scores)
        lowest = scores.new_full((graph.nodes, *scores.shape[1:]), -torch.inf)
        highest = lowest.scatter_reduce(
            0, rows, scores.detach(), "amax"
        )  # a shift, so that no exponential overflows
        weights = (scores - highest.index_select(0, graph.dst)).exp()
        return weights / sum_edges(graph, weights).index_select(0, graph.dst)
    from dgl.nn import functional

    return functional.edge_softmax(graph, scores)


def at_least_float32(x: Tensor) -> Tensor:
    """Half-precision tensors become float32; float32 and float64 stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def add_self_loops(graph: Graph, e: Tensor) -> tuple[Graph, Tensor]:
    """Add a self-loop with the void edge feature δ = 0 to each node that has none: (E, Q) -> (E + loops, Q).

    New edges follow the old ones. The result has no batch information.
    """
    src, dst = graph.edges()
    nodes = graph.num_nodes()
    missing = torch.ones(nodes + 1, dtype=torch.bool, device=e.device)
    missing[torch.where(src == dst, src, nodes)] = False  # the last entry stands for edges that are no loops
    missing = missing[:-1]
    if isinstance(graph, EdgeList) and graph.looped_nodes is not None:
        # The n-th missing node without `nonzero`, which waits for a GPU to count them.
        numbers = torch.arange(1, nodes - graph.looped_nodes + 1, device=src.device)
        loops = torch.searchsorted(missing.cumsum(0), numbers)
    else:
        loops = missing.nonzero().squeeze(1).to(src.dtype)
    ends = torch.cat([src, loops]), torch.cat([dst, loops])
    e = torch.cat([e, e.new_zeros(len(loops), e.shape[1])])
    if isinstance(graph, EdgeList):
        return EdgeList(*ends, nodes), e
    import dgl

    return dgl.graph(ends, num_nodes=nodes), e
