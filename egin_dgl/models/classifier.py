"""From any stack of layers to graph classes."""

from collections.abc import Sequence

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.loader import Batch
from egin_dgl.layers.aggregate import at_least_float32
from egin_dgl.layers.mlp import Norm, linear, make_norm
from egin_dgl.layers.readout import Readout, make_readout, pool
from egin_dgl.layers.shortcut import stands
from egin_dgl.layers.sum_layer import SumLayer
from egin_dgl.models.fused import Step, fused_scores, fused_stepper, measured_scores
from egin_dgl.models.model import GraphModel
from egin_dgl.options import Fraction


class GraphClassifier(GraphModel):
    r"""Reads every depth of a stack of layers, as GIN does.

    .. math::
        h^{(0)} = x, \quad h^{(k)} = ReLU(norm(conv^{(k)}(h^{(k-1)}, e))), \quad
        logits = \sum_{k=0}^{K} dropout(W_k \, s \cdot readout_i(h^{(k)}_i) + b_k)

    Args:
        info: sizes of the data (node_dim, edge_dim, classes).
        convs: layers called as ``conv(graph, h, e)``; the first takes node_dim features, all return hidden_dim.
        hidden_dim: features of a node after each layer.
        dropout: chance to drop a score of a depth, in training.
        norm: batch, layer or none, between layers.
        readout: sum, mean or max over the nodes of a graph.
        scale_by_size: s = 1 / (median size of a training graph) for sums, instead of 1. A constant takes nothing from what
            a sum can tell apart, but lets an optimizer's step move the scores of large graphs no more than a mean's:
            unscaled, one step of Adam at 0.01 moves a score of MUTAG by tens.
    """

    def __init__(
        self,
        info: DatasetInfo,
        convs: Sequence[nn.Module],
        hidden_dim: int,
        dropout: Fraction = 0.5,
        norm: Norm = "batch",
        readout: Readout = "sum",
        scale_by_size: bool = False,
    ):
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.norms = nn.ModuleList(make_norm(norm, hidden_dim) for _ in convs)
        self.readout = make_readout(readout)
        self.scores = nn.ModuleList(
            linear(dim, info.classes) for dim in [info.node_dim] + [hidden_dim] * len(convs)
        )
        self.dropout = nn.Dropout(dropout)
        known = info.size_percentiles
        self.scale = 1 / max(1, known[50]) if scale_by_size and readout == "sum" and known else 1.0

    def wire(self, graph: DGLGraph, edge_feats: Tensor) -> tuple[DGLGraph, Tensor]:
        """The graph and edge features that all layers see: those of the batch, where a model needs no others."""
        return graph, edge_feats

    def readouts(self, graph: DGLGraph, node_feats: Tensor, edge_feats: Tensor) -> list[Tensor]:
        """One (B, D_k) tensor per depth k, the input included."""
        h = node_feats
        pooled = [self.readout(graph, h)]
        wired, e = self.wire(graph, edge_feats)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = at_least_float32(torch.relu(norm(conv(wired, h, e))))
            pooled.append(self.readout(graph, h))
        return pooled

    def forward(self, graph: DGLGraph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        """Class scores: (N, node_dim), (E, edge_dim) -> (B, classes)."""
        return self.score(self.readouts(graph, node_feats, edge_feats))

    def score(self, pooled: list[Tensor]) -> Tensor:
        """From the readouts of all depths to class scores."""
        return sum(self.dropout(score(self.scale * g)) for score, g in zip(self.scores, pooled, strict=True))

    def embed(self, graph: DGLGraph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        """Graph embeddings: the readouts of all depths side by side, (B, Σ D_k)."""
        return torch.cat(self.readouts(graph, node_feats, edge_feats), dim=-1)

    def on_batch(self, batch: Batch) -> Tensor:
        """The same class scores for a batch of the loader, faster where the layers know what its dataset keeps."""
        layers = self.sum_layers() if self.training else None
        scores = fused_scores(self, layers, batch) if layers else None
        return self.score(self.readouts_on(batch)) if scores is None else scores

    def stepper(self) -> Step | None:
        """What gives loss and class scores of a batch in training, and adds the loss's gradients to those of the weights; None
        where only autograd can do that."""
        layers = self.sum_layers()
        return fused_stepper(self, layers, self.parameters()) if layers else None

    def measure_on(self, batch: Batch, rows: int) -> Tensor | None:
        """The same in evaluation, after setting every batch normalisation to mean and variance of the first `rows` nodes;
        None, and nothing set, where that takes more than this one pass."""
        layers = self.sum_layers()
        return measured_scores(self, layers, batch, rows) if layers else None

    def embed_batch(self, batch: Batch) -> Tensor:
        """The same embeddings."""
        return torch.cat(self.readouts_on(batch), dim=-1)

    def sum_layers(self) -> list[SumLayer] | None:
        """The layers, if all know what the dataset of a batch keeps, and nothing changed in how they are called."""
        if not stands("readouts_on", self, "readouts", "wire", "score"):
            return None
        layers = [conv for conv in self.convs if isinstance(conv, SumLayer) and stands("messages", conv)]
        return layers if len(layers) == len(self.convs) else None

    def readouts_on(self, batch: Batch) -> list[Tensor]:
        """The same readouts."""
        layers = self.sum_layers()
        if layers is None:
            return self.readouts(batch.graph, batch.node_feats, batch.edge_feats)
        depths = [batch.node_feats]
        for layer, norm in zip(layers, self.norms, strict=True):
            depths.append(torch.relu(norm(layer.on_batch(batch, depths[-1]))))
        return [pool(batch, h, self.readout) for h in depths]


def layer_inputs(node_dim: int, hidden_dim: int, num_layers: int) -> list[int]:
    """The input size of each of `num_layers` layers."""
    if not isinstance(num_layers, int) or num_layers < 1:
        raise ValueError(f"num_layers must be a positive integer, got {num_layers!r}")
    return [node_dim] + [hidden_dim] * (num_layers - 1)
