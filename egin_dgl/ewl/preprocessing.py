"""E-WL as preprocessing: each node's colour joins its features, whatever the model.

The colours are those of a fold's training graphs; a colour that they do not have is the explicit "unknown".
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo, GraphDataset, Indices
from egin_dgl.data.tensor_cache import TensorCache
from egin_dgl.data.transform import Transform
from egin_dgl.errors import ConfigError
from egin_dgl.ewl.features import ColorVocabulary
from egin_dgl.ewl.inputs import as_graph_set
from egin_dgl.ewl.rounds import check_whole
from egin_dgl.ewl.signatures import TABLE_METHODS
from egin_dgl.ranges import Decimals, Depth, OneOf, Range

ENCODINGS = ("onehot", "embedding", "hash")


@dataclass(frozen=True)
class ColorFeatures:
    """What to append: the colour at `depth`, as a one-hot, a learnt embedding, or one of `width` hash buckets.

    width: size of the embedding, or number of buckets. attributes: let continuous attributes count as labels too
    (equal vectors, equal label), rounded to `decimals`.
    """

    depth: Depth = 2
    encoding: Annotated[str, OneOf(ENCODINGS)] = "onehot"
    width: Annotated[int, Range(1, 4096, why="every node gets so many features")] = 16
    method: Annotated[str, OneOf(TABLE_METHODS)] = "e-wl"
    attributes: bool = False
    decimals: Decimals | None = None

    def __post_init__(self) -> None:
        if self.encoding not in ENCODINGS:
            raise ConfigError(f"ewl.encoding must be one of {', '.join(ENCODINGS)}, got {self.encoding!r}")
        check_whole("ewl.depth", self.depth, 0)
        check_whole("ewl.width", self.width, 1)

    def __call__(self, dataset: GraphDataset, train_indices: Indices) -> "FittedColors":
        """Learn the colours of the training graphs; what was learnt before from the same graphs is read again."""
        content = json.dumps([2, dataset.digest, asdict(self)]) + str(np.asarray(train_indices).tolist())
        kept = TensorCache.for_key("ewl", hashlib.sha256(content.encode()).hexdigest())
        if not dataset.digest:  # graphs without a digest cannot be recognised
            return self._learn(dataset, train_indices)
        fitted = kept.read(partial(self._restore, digest=dataset.digest))
        if fitted is None:
            fitted = self._learn(dataset, train_indices)
            codes = torch.from_numpy(fitted.codes(dataset))
            kept.write({"codes": codes}, {"vocabulary": fitted.vocabulary.to_dict()})
        return fitted

    def _learn(self, dataset: GraphDataset, train_indices: Indices) -> "FittedColors":
        graphs = as_graph_set(dataset, attributes=self.attributes, decimals=self.decimals)
        fitted = FittedColors(self, ColorVocabulary.fit(graphs, self.depth, self.method, train_indices))
        return replace(fitted, known=(dataset.digest, fitted.codes(dataset)))

    def _restore(self, tensors: dict[str, Tensor], record: dict, digest: str) -> "FittedColors":
        vocabulary = ColorVocabulary.from_dict(record["vocabulary"])
        return FittedColors(self, vocabulary, (digest, tensors["codes"].numpy()))


@dataclass(frozen=True, eq=False)
class FittedColors(Transform):
    """The colours of one fold. `known` remembers the codes of a dataset by its digest."""

    settings: ColorFeatures
    vocabulary: ColorVocabulary
    known: tuple[str, np.ndarray] | None = None

    @property
    def size(self) -> int:
        """How many different codes there are, "unknown" included."""
        return self.settings.width if self.settings.encoding == "hash" else self.vocabulary.size + 1

    def codes(self, dataset: GraphDataset) -> np.ndarray:
        """The code of each node, (N,) in 0..size-1."""
        if self.known and self.known[0] == dataset.digest != "":
            return self.known[1]
        graphs = as_graph_set(dataset, attributes=self.settings.attributes, decimals=self.settings.decimals)
        if self.settings.encoding == "hash":
            return self.vocabulary.buckets(graphs, self.settings.width)
        return self.vocabulary.index(graphs)

    def apply(self, dataset: GraphDataset) -> GraphDataset:
        """Append one column per colour, or for an embedding one column with the colour's number."""
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
    """Any model behind an embedding of the last node feature, a colour's number: (N, D + 1) -> (N, D + width)."""

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
