"""Labels and attributes → node and edge vectors, and the vocabulary that prediction on new graphs reuses.

A vector is attributes ‖ one-hot of each label column over its sorted distinct values, as in the paper.
"""

import json
import logging
from dataclasses import asdict, dataclass

import numpy as np

from egin_dgl.data.tu import TUArrays
from egin_dgl.errors import DataError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Columns:
    """What the columns of one feature matrix mean.

    source says what is encoded: "data" (attributes and labels of the files), "degree" (the degree, as one label
    column) or "constant" (a single 1). labels holds the known values of each label column.
    """

    source: str = "constant"
    attributes: int = 0
    labels: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def fit(cls, source: str, labels: np.ndarray | None, attributes: np.ndarray | None = None) -> "Columns":
        values = () if labels is None else tuple(tuple(np.unique(column).tolist()) for column in labels.T)
        columns = cls(source, 0 if attributes is None else attributes.shape[1], values)
        return columns if columns.names else cls()  # no column would leave a model nothing to multiply

    @property
    def names(self) -> tuple[str, ...]:
        if self.source == "constant":
            return ("constant",)
        word = "degree" if self.source == "degree" else "label"
        names = [f"attribute{i}" for i in range(self.attributes)]
        for column, values in enumerate(self.labels):
            names += [f"{word}{'' if word == 'degree' else column}={value}" for value in values]
        return tuple(names)

    def encode(
        self, rows: int, labels: np.ndarray | None, attributes: np.ndarray | None = None
    ) -> tuple[np.ndarray, int]:
        """(rows, dim) float32, and how many labels are not in the vocabulary; their one-hot blocks are all zero."""
        if self.source == "constant":
            return np.ones((rows, 1), dtype=np.float32), 0
        found = tuple(0 if table is None else table.shape[1] for table in (attributes, labels))
        if found != (self.attributes, len(self.labels)):
            raise DataError(
                f"the vocabulary has {self.attributes} attribute and {len(self.labels)} label column(s), "
                f"the data has {found[0]} and {found[1]}; use data of the same kind as the training data"
            )
        matrix = np.zeros((rows, len(self.names)), dtype=np.float32)
        if attributes is not None:
            matrix[:, : self.attributes] = attributes
        start, unseen = self.attributes, 0
        for known, column in zip(self.labels, () if labels is None else labels.T, strict=True):
            values = np.asarray(known, dtype=np.int64)
            position = np.minimum(np.searchsorted(values, column), len(values) - 1)
            hit = values[position] == column
            matrix[np.flatnonzero(hit), start + position[hit]] = 1
            start, unseen = start + len(values), unseen + int((~hit).sum())
        return matrix, unseen


@dataclass(frozen=True)
class Encoded:
    """node_feats (N, D) and edge_feats (E, Q), float32, and how many labels were not in the vocabulary."""

    node_feats: np.ndarray
    edge_feats: np.ndarray
    unseen_node_labels: int
    unseen_edge_labels: int


@dataclass(frozen=True)
class Vocabulary:
    """How node and edge vectors are made; plain JSON, so that it can lie beside a model's weights."""

    node: Columns
    edge: Columns

    @classmethod
    def fit(
        cls, arrays: TUArrays, node_features: str = "degree", use_edge_features: bool = True
    ) -> "Vocabulary":
        """Collect the values that occur; `node_features` is for data without node labels and attributes."""
        edge = (
            Columns.fit("data", arrays.edge_labels, arrays.edge_attributes)
            if use_edge_features
            else Columns()
        )
        if arrays.node_labels is not None or arrays.node_attributes is not None:
            return cls(Columns.fit("data", arrays.node_labels, arrays.node_attributes), edge)
        return cls(Columns.fit("degree", _degrees(arrays)) if node_features == "degree" else Columns(), edge)

    def encode(self, arrays: TUArrays) -> Encoded:
        """Encode the same or new data; labels never seen in `fit` are counted and logged, not refused."""
        nodes = (
            (_degrees(arrays), None)
            if self.node.source == "degree"
            else (arrays.node_labels, arrays.node_attributes)
        )
        node_feats, unseen_nodes = self.node.encode(len(arrays.node_graph), *nodes)
        edge_feats, unseen_edges = self.edge.encode(
            len(arrays.src), arrays.edge_labels, arrays.edge_attributes
        )
        if unseen_nodes or unseen_edges:
            log.warning(
                "%d node and %d edge label(s) are not in the vocabulary and count as zeros",
                unseen_nodes,
                unseen_edges,
            )
        return Encoded(node_feats, edge_feats, unseen_nodes, unseen_edges)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        try:
            sides = {
                side: Columns(
                    str(value["source"]), int(value["attributes"]), tuple(map(tuple, value["labels"]))
                )
                for side, value in json.loads(text).items()
            }
            return cls(**sides)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"not a feature vocabulary: {error}") from error


def _degrees(arrays: TUArrays) -> np.ndarray:
    """(N, 1) number of incoming edges, the neighbours that a layer sums over."""
    return np.bincount(arrays.dst, minlength=len(arrays.node_graph))[:, None]
