"""Graphs for layers and models: DGL graphs where DGL is installed, else edge lists."""

import pytest
import torch

from egin_dgl.backend import has_dgl
from egin_dgl.data.edge_list import EdgeList


class LazyDGL:
    """DGL; a test that uses it where it is not installed is skipped."""

    def __getattr__(self, name):
        return getattr(pytest.importorskip("dgl", reason="DGL is not installed"), name)


dgl = LazyDGL()


def make_graph(ends, num_nodes=None):
    """One graph, as `dgl.graph` makes it."""
    if has_dgl():
        return dgl.graph(ends, num_nodes=num_nodes)
    src, dst = (torch.as_tensor(side, dtype=torch.int64) for side in ends)
    return EdgeList(src, dst, int(torch.cat([src, dst]).max()) + 1 if num_nodes is None else num_nodes)


def batch_graphs(graphs):
    """Graphs as one, as `dgl.batch` makes it."""
    if has_dgl():
        return dgl.batch(graphs)
    first = torch.tensor([0, *(graph.num_nodes() for graph in graphs)]).cumsum(0)
    src, dst = (
        torch.cat([graph.edges()[side] + start for graph, start in zip(graphs, first[:-1], strict=True)])
        for side in (0, 1)
    )
    sizes = [
        torch.cat([getattr(graph, name)() for graph in graphs])
        for name in ("batch_num_nodes", "batch_num_edges")
    ]
    return EdgeList(src, dst, int(first[-1]), *sizes)
