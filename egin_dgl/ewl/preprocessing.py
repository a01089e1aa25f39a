"""E-WL as preprocessing: the colour of each node is appended to its features, for any model."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo, GraphDataset, Indices
from egin_dgl.data.transform import Transform
from egin_dgl.ewl.color_vocabulary import ColorVocabulary
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.options import Decimals, Depth, Width, validate_options


@dataclass(frozen=True)
class ColorFeatures:
    """Settings of the transform; a call fits it on the training graphs of a fold.

    Args:
        depth: Depth of the colours.
        encoding: "onehot", "embedding" (learnt) or "hash" (one-hot of a hash bucket).
        width: Size of the embedding, or number of hash buckets.
        method: "e-wl" or "1-wl".
        attributes: Use continuous attributes as labels too.
        decimals: Round them first.

    >>> from egin_dgl.data import bonds
    >>> data = bonds(graphs=8)
    >>> ColorFeatures(depth=1)(data, [0, 1, 2, 3]).apply(data).info.node_dim
    10
    """

    depth: Depth = 2
    encoding: Literal["onehot", "embedding", "hash"] = "onehot"
    width: Width = 16
    method: Literal["1-wl", "e-wl"] = "e-wl"
    attributes: bool = False
    decimals: Decimals | None = None

    def __post_init__(self) -> None:
        validate_options(ColorFeatures, asdict(self), "ewl")

    def __call__(self, dataset: GraphDataset, train_indices: Indices) -> "FittedColors":
        graphs = self.read(dataset)
        return FittedColors(self, ColorVocabulary.fit(graphs, self.depth, self.method, train_indices))

    def read(self, dataset: GraphDataset) -> GraphSet:
        return as_graph_set(dataset, attributes=self.attributes, decimals=self.decimals)


@dataclass(frozen=True, eq=False)
class FittedColors(Transform):
    """The transform of one fold. Colours that its training graphs do not have share the code "unknown"."""

    settings: ColorFeatures
    vocabulary: ColorVocabulary

    @property
    def size(self) -> int:
        """Number of codes, including "unknown"."""
        return self.settings.width if self.settings.encoding == "hash" else self.vocabulary.size + 1

    def codes(self, dataset: GraphDataset) -> np.ndarray:
        """Code of each node, (N,) in 0..size-1."""
        graphs = self.settings.read(dataset)
        if self.settings.encoding == "hash":
            return self.vocabulary.buckets(graphs, self.settings.width)
        return self.vocabulary.index(graphs)

    def apply(self, dataset: GraphDataset) -> GraphDataset:
        """Append one column for each code, or for an embedding one column with the code."""
        codes = torch.from_numpy(self.codes(dataset)).to(dataset.node_feats.device)
        if self.settings.encoding == "embedding":
            columns, names = codes[:, None], ["color"]
        else:
            columns = nn.functional.one_hot(codes, self.size)
            names = [f"color={code}" for code in range(self.size)]
        feats = torch.cat([dataset.node_feats, columns.to(dataset.node_feats.dtype)], dim=1)
        return dataset.with_features(node_feats=feats, node_names=[*dataset.info.node_names, *names])

    def wrap(self, make_model: Callable[..., Any]) -> Callable[..., Any]:
        if self.settings.encoding != "embedding":
            return make_model
        return partial(ColorEmbedding, make_model=make_model, colors=self.size, width=self.settings.width)

    def to_dict(self) -> dict:
        return {"settings": asdict(self.settings), "vocabulary": self.vocabulary.to_dict()}

    @classmethod
    def from_dict(cls, state: dict) -> "FittedColors":
        return cls(ColorFeatures(**state["settings"]), ColorVocabulary.from_dict(state["vocabulary"]))


class ColorEmbedding(nn.Module):
    """A model with an embedding of the last node feature, a colour's code: (N, D + 1) -> (N, D + width)."""

    def __init__(self, info: DatasetInfo, make_model: Callable[..., Any], colors: int, width: int):
        super().__init__()
        names = (*info.node_names[:-1], *(f"color{i}" for i in range(width)))
        self.model = make_model(replace(info, node_dim=len(names), node_names=names))
        self.embedding = nn.Embedding(colors, width)
        self.name = self.model.name

    def features(self, node_feats: Tensor) -> Tensor:
        return torch.cat([node_feats[:, :-1], self.embedding(node_feats[:, -1].long())], dim=1)

    def forward(self, graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        return self.model(graph, self.features(node_feats), edge_feats)

    def embed(self, graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        return self.model.embed(graph, self.features(node_feats), edge_feats)
