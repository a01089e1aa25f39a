"""From a stack of layers to logits."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.edge_list import Graph
from egin_dgl.layers.aggregate import at_least_float32
from egin_dgl.layers.mlp import Norm, linear, make_norm
from egin_dgl.layers.readout import Readout, make_readout
from egin_dgl.models.model import GraphModel
from egin_dgl.options import Fraction, NumLayers, Width

# Of logits, by task. Dropped parts of a logit leave the class that has the larger rest; those of a number make it another one.
AUTO_DROPOUT = {"multiclass": 0.5, "multilabel": 0.5, "regression": 0.0}


class GraphClassifier(GraphModel):
    r"""A stack of layers with a readout and a linear head at every depth, as in GIN.

    .. math::
        h^{(0)} = x, \quad h^{(k)} = ReLU(norm(conv^{(k)}(h^{(k-1)}, e))), \quad
        logits = \sum_{k=0}^{K} dropout(W_k \, s \cdot readout_i(h^{(k)}_i) + b_k)

    Args:
        info: sizes of the data (node_dim, edge_dim, classes).
        convs: layers called as ``conv(graph, h, e)``; the first takes node_dim features, all return hidden_dim.
        hidden_dim: features of a node after each layer.
        dropout: probability of dropping a logit of a depth; "auto": 0.5, 0 for regression. Default: "auto".
        norm: batch, layer or none, between layers. Default: batch.
        readout: sum, mean or max over the nodes of a graph. Default: sum.
        scale_by_size: s = 1 / (median size of a training graph) for sums, instead of 1. A constant factor keeps what a sum can
            distinguish, but limits how far one optimizer step moves the logits of large graphs: unscaled, one step of
            Adam at 0.01 moves a logit on MUTAG by tens. Default: False.

    Example:
        >>> import dgl
        >>> from egin_dgl.layers import EGINConv
        >>> info = DatasetInfo(node_dim=7, edge_dim=4, classes=2)
        >>> model = GraphClassifier(info, [EGINConv(nn.Linear(7 + 4, 16))], hidden_dim=16)
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    def __init__(
        self,
        info: DatasetInfo,
        convs: Sequence[nn.Module],
        hidden_dim: int,
        dropout: Fraction | Literal["auto"] = "auto",
        norm: Norm = "batch",
        readout: Readout = "sum",
        scale_by_size: bool = False,
    ):
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.norms = nn.ModuleList(make_norm(norm, hidden_dim) for _ in convs)
        self.readout = make_readout(readout)
        self.heads = nn.ModuleList(
            linear(dim, info.outputs) for dim in [info.node_dim] + [hidden_dim] * len(convs)
        )
        self.dropout = nn.Dropout(AUTO_DROPOUT[info.task] if dropout == "auto" else dropout)
        sizes = info.size_percentiles
        self.scale = 1 / max(1, sizes[50]) if scale_by_size and readout == "sum" and sizes else 1.0

    def transform_graph(self, graph: Graph, edge_feats: Tensor) -> tuple[Graph, Tensor]:
        """The graph and edge features that the layers receive; a model may add self-loops, for example."""
        return graph, edge_feats

    def readouts(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> list[Tensor]:
        """One (B, D_k) tensor per depth k, the input included."""
        h = node_feats
        pooled = [self.readout(graph, h)]
        layer_graph, e = self.transform_graph(graph, edge_feats)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = at_least_float32(torch.relu(norm(conv(layer_graph, h, e))))
            pooled.append(self.readout(graph, h))
        return pooled

    def classify(self, pooled: list[Tensor]) -> Tensor:
        """From the readouts of all depths to logits."""
        return sum(self.dropout(head(self.scale * g)) for head, g in zip(self.heads, pooled, strict=True))

    def forward(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        """Logits: (N, node_dim), (E, edge_dim) -> (B, classes)."""
        return self.classify(self.readouts(graph, node_feats, edge_feats))

    def embed(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        """Graph embeddings: the readouts of all depths concatenated, (B, Σ D_k)."""
        return torch.cat(self.readouts(graph, node_feats, edge_feats), dim=-1)


class LayerStack(GraphClassifier):
    """Layers that are all made alike; a model defines only how one is made.

    Args:
        info: sizes of the data.
        hidden_dim: features of a node after each layer. Default: 64.
        num_layers: message-passing layers. Default: 4.
    """

    def __init__(self, info: DatasetInfo, hidden_dim: Width = 64, num_layers: NumLayers = 4, **classifier):
        inputs = layer_inputs(info.node_dim, hidden_dim, num_layers)
        super().__init__(
            info, [self.make_layer(info, dim, hidden_dim) for dim in inputs], hidden_dim, **classifier
        )

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        """A layer from `dim` to `hidden_dim` features. Called before the module is initialised."""
        raise NotImplementedError


def layer_inputs(node_dim: int, hidden_dim: int, num_layers: int) -> list[int]:
    """The input size of each of `num_layers` layers."""
    if not isinstance(num_layers, int) or num_layers < 1:
        raise ValueError(f"num_layers must be a positive integer, got {num_layers!r}")
    return [node_dim] + [hidden_dim] * (num_layers - 1)
