"""Parts of encoded graphs: undirected edges, subgraphs and single graphs."""

from dataclasses import replace

import torch
from torch import Tensor

from egin_dgl.data.arrays import RawColumns
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.vocabulary import Vocabulary


def undirected_edges(graph: GraphDataset) -> tuple[Tensor, Tensor]:
    """Pairs of adjacent nodes (P, 2), and the pair of each directed edge (E,)."""
    ends = torch.stack([graph.src, graph.dst], dim=1).cpu().sort(dim=1).values
    return torch.unique(ends, dim=0, return_inverse=True)


def make_subgraphs(
    graph: GraphDataset, masks: list[tuple[Tensor, Tensor]], vocabulary: Vocabulary | None = None
) -> GraphDataset:
    """Subgraphs, each given by a mask of nodes and one of edges; with a vocabulary of degrees these are recomputed."""
    src, dst, nodes, edges, first = [], [], [], [], 0
    for node_mask, edge_mask in masks:
        number = node_mask.cumsum(0) - 1 + first
        src.append(number[graph.src[edge_mask]])
        dst.append(number[graph.dst[edge_mask]])
        nodes.append(node_mask.nonzero()[:, 0])
        edges.append(edge_mask.nonzero()[:, 0])
        first += len(nodes[-1])
    node_feats, targets = graph.node_feats[torch.cat(nodes)], torch.cat(dst)
    if vocabulary is not None and vocabulary.node.source == "degree":
        degrees = targets.bincount(minlength=first).numpy()
        node_feats = torch.from_numpy(vocabulary.node.encode(RawColumns(first, labels=degrees[:, None]))[0])
    node_offsets, edge_offsets = (torch.tensor([0, *map(len, one)]).cumsum(0) for one in (nodes, edges))
    return replace(
        graph,
        info=replace(graph.info, graphs=len(masks)),
        labels=torch.full((len(masks),), -1),
        node_offsets=node_offsets,
        edge_offsets=edge_offsets,
        src=torch.cat(src),
        dst=targets,
        node_feats=node_feats,
        edge_feats=graph.edge_feats[torch.cat(edges)],
        digest="",
        ids=(),
        splits=(),
        smiles=(),
        training=None,
        weights=None,
    )


def one_graph(dataset: GraphDataset, number: int) -> GraphDataset:
    """A dataset of one graph of `dataset`."""
    nodes = torch.arange(len(dataset)).repeat_interleave(dataset.node_offsets.diff()) == number
    return replace(
        make_subgraphs(dataset, [(nodes, nodes[dataset.src])]),
        labels=dataset.labels[number : number + 1],
        ids=(dataset.names[number],),
        splits=dataset.splits[number : number + 1],
        smiles=dataset.smiles[number : number + 1],
    )
