"""Datasets of odd graphs: isolated nodes, parallel and one-way edges, self-loops, single nodes, no edges."""

import torch

from egin_dgl.data.dataset import DatasetInfo, GraphDataset

# (nodes, edges) of each graph
GRAPHS = [
    (1, []),
    (5, [(0, 1), (1, 0), (1, 2), (2, 1)]),  # two isolated nodes
    (3, [(0, 1), (0, 1), (0, 1), (1, 0), (2, 1)]),  # parallel, and not the same both ways
    (4, [(0, 1), (1, 2), (2, 3)]),  # one way only
    (2, [(0, 0), (1, 0), (1, 1), (0, 1)]),  # loops
    (1, [(0, 0)]),
    (4, []),
    (6, [(i, j) for i in range(6) for j in range(6) if i != j]),  # complete
]
BOTH_WAYS = [(n, edges + [(j, i) for i, j in edges]) for n, edges in GRAPHS]
NO_EDGES = [(3, []), (1, []), (2, [])]
NEAR_COMPLETE = [
    (n, [(i, j) for i in range(n) for j in range(n) if i != j and (i, j) not in {(0, 1), (2, 0)}])
    for n in (5, 8, 1, 2)
] + [(5, [(i, j) for i in range(5) for j in range(5)] + [(0, 1)])]
SHAPES = {"odd": GRAPHS, "both ways": BOTH_WAYS, "no edges": NO_EDGES, "near complete": NEAR_COMPLETE}


def edge_vectors(kind: str, src, dst, dim: int, random) -> torch.Tensor:
    """One of some types, real values of each edge, or zeros; "symmetric" gives both directions the same real values."""
    if kind == "types":
        return torch.eye(dim)[torch.randint(dim, (len(src),), generator=random)]
    if kind == "zero":
        return torch.zeros(len(src), dim)
    if kind == "symmetric":
        pairs = torch.randn(1000, dim, generator=random)
        return pairs[(src.minimum(dst) * 31 + src.maximum(dst)) % 1000]
    return torch.randn(len(src), dim, generator=random)


def odd_dataset(
    shape: str = "odd", edges: str = "types", copies: int = 1, dtype=torch.float64
) -> GraphDataset:
    graphs = SHAPES[shape] * copies
    random = torch.Generator().manual_seed(0)
    sizes = torch.tensor([nodes for nodes, _ in graphs])
    degrees = torch.tensor([len(joined) for _, joined in graphs])
    offsets = [torch.cat([torch.zeros(1, dtype=torch.int64), part.cumsum(0)]) for part in (sizes, degrees)]
    first = offsets[0][:-1].repeat_interleave(degrees)
    pairs = torch.tensor([pair for _, joined in graphs for pair in joined], dtype=torch.int64).view(-1, 2).T
    src, dst = pairs + first
    names = (("a", "b", "c"), ("x", "y", "z", "w"), ("no", "yes"))
    info = DatasetInfo(3, 4, 2, "odd", len(graphs), *names)
    return GraphDataset(
        info=info,
        labels=torch.arange(len(graphs)) % 2,
        node_offsets=offsets[0],
        edge_offsets=offsets[1],
        src=src,
        dst=dst,
        node_feats=torch.randn(int(sizes.sum()), 3, generator=random).to(dtype),
        edge_feats=edge_vectors(edges, src, dst, 4, random).to(dtype),
    )
