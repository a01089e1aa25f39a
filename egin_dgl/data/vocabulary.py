"""Labels and attributes → node and edge vectors, and the vocabulary that prediction on new graphs reuses.

A vector is attributes ‖ one-hot of each label column over its sorted distinct values, as in the paper.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from egin_dgl.data.arrays import GraphArrays, RawColumns, distinct
from egin_dgl.data.readers.raw_files import GIB
from egin_dgl.errors import DataError

# A label column wider than this is a number or a name of its own for nearly every node, and nothing to learn from.
MOST_LABELS = 10_000
LARGEST = 4 * GIB  # of one feature matrix


@dataclass(frozen=True)
class Columns:
    """What the columns of one feature matrix mean.

    source says what is encoded: "data" (attributes and labels of the files), "degree" (the degree, as one label
    column) or "constant" (a single 1). labels holds the known values of each label column. Where the columns of the
    data have names, they are kept, and new data is read by name.
    """

    source: str = "constant"
    attributes: int = 0
    labels: tuple[tuple[int | str, ...], ...] = ()
    attribute_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()

    @classmethod
    def fit(cls, source: str, columns: RawColumns, what: str = "node") -> "Columns":
        known = []
        for number, column in enumerate(() if columns.labels is None else columns.labels.T):
            values, _ = distinct(column)
            if len(values) > MOST_LABELS:
                name = repr(columns.label_names[number]) if columns.label_names else str(number)
                raise DataError(
                    f"{what} label column {name} has {len(values):,} distinct values, more than {MOST_LABELS:,} "
                    "that labels may have; give it as an attribute or leave it out"
                )
            known.append(tuple(values))
        fitted = cls(source, columns.widths[0], tuple(known), columns.attribute_names, columns.label_names)
        return fitted if fitted.names else cls()  # no column would leave a model nothing to multiply

    @property
    def names(self) -> tuple[str, ...]:
        if self.source == "constant":
            return ("constant",)
        names = list(self.attribute_names or (f"attribute{i}" for i in range(self.attributes)))
        for column, values in zip(self._words, self.labels, strict=True):
            names += [f"{column}={value}" for value in values]
        return tuple(names)

    @property
    def _words(self) -> tuple[str, ...]:
        """What each label column is called in the names of features."""
        if self.source == "degree":
            return ("degree",)
        return self.label_names or tuple(f"label{i}" for i in range(len(self.labels)))

    def encode(self, columns: RawColumns, what: str = "node") -> tuple[np.ndarray, dict[str, int], list[str]]:
        """(rows, dim) float32; how often each label occurs that is not in the vocabulary; and notes.

        The one-hot block of an unknown label is all zero.
        """
        dim = len(self.names)
        if columns.rows * dim * 4 > LARGEST:
            raise DataError(
                f"the features of {columns.rows:,} {what}s in {dim:,} columns would take "
                f"{columns.rows * dim * 4 / GIB:.0f} GiB; give labels with many values as attributes, or leave them out"
            )
        if self.source == "constant" or not columns.rows:  # without a row there may be no columns either
            return np.ones((columns.rows, dim), dtype=np.float32), {}, []
        attributes, labels, notes = self._chosen(columns, what)
        matrix = np.zeros((columns.rows, dim), dtype=np.float32)
        for number, column in enumerate(attributes):
            matrix[:, number] = column
        start = self.attributes
        unseen: dict[str, int] = {}
        for word, known, column in zip(self._words, self.labels, labels, strict=True):
            values, which = distinct(column)
            # A column of numbers may have been one of strings, because of another graph's label, and the reverse.
            place = {str(value): i for i, value in enumerate(known)} | {
                value: i for i, value in enumerate(known)
            }
            places = np.array(
                [place.get(value, place.get(str(value), -1)) for value in values], dtype=np.int64
            )
            position = places[which] if len(values) else np.zeros(0, dtype=np.int64)
            hit = position >= 0
            matrix[np.flatnonzero(hit), start + position[hit]] = 1
            counts = np.bincount(which, minlength=len(values))
            unseen |= {f"{word}={values[i]}": int(counts[i]) for i in np.flatnonzero(places < 0)}
            start += len(known)
        return matrix, unseen, notes

    def _chosen(self, columns: RawColumns, what: str) -> tuple[list[np.ndarray], list[np.ndarray], list[str]]:
        """The columns of attributes and of labels in the vocabulary's order: by name where there are names."""
        given = columns.by_name()
        wanted = (*self.attribute_names, *self.label_names)
        if given and wanted:
            if missing := [name for name in wanted if name not in given]:
                raise DataError(
                    f"the {what}s have no column {', '.join(map(repr, missing))}, which the vocabulary has; "
                    f"there are {', '.join(map(repr, given))}"
                )
            extra = [name for name in given if name not in wanted]
            notes = [f"{what} column(s) {', '.join(extra)} not in the vocabulary, ignored"] if extra else []
            attributes = [_numbers(given[name], name, what) for name in self.attribute_names]
            return attributes, [_labels(given[name]) for name in self.label_names], notes
        if columns.widths != (self.attributes, len(self.labels)):
            raise DataError(
                f"the vocabulary has {self.attributes} attribute and {len(self.labels)} label column(s), "
                f"the data has {columns.widths[0]} and {columns.widths[1]}; use data of the same kind as the training data"
            )
        attributes, labels = ([] if x is None else list(x.T) for x in (columns.attributes, columns.labels))
        return attributes, labels, []


@dataclass(frozen=True)
class Encoded:
    """node_feats (N, D) and edge_feats (E, Q), float32; labels not in the vocabulary, and how often each occurs."""

    node_feats: np.ndarray
    edge_feats: np.ndarray
    unseen_node_labels: Mapping[str, int] = field(default_factory=dict)
    unseen_edge_labels: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def unseen(self) -> dict[str, int]:
        """Both together: "node atom=Se" and how often."""
        sides = (("node", self.unseen_node_labels), ("edge", self.unseen_edge_labels))
        return {f"{side} {name}": count for side, labels in sides for name, count in labels.items()}


@dataclass(frozen=True)
class Vocabulary:
    """How node and edge vectors are made; plain JSON, so that it can lie beside a model's weights."""

    node: Columns
    edge: Columns

    @classmethod
    def fit(
        cls, arrays: GraphArrays, node_features: str = "degree", use_edge_features: bool = True
    ) -> "Vocabulary":
        """Collect the values that occur; `node_features` is for data without node labels and attributes."""
        edge = Columns.fit("data", arrays.of_edges, "edge") if use_edge_features else Columns()
        if any(arrays.of_nodes.widths):
            return cls(Columns.fit("data", arrays.of_nodes), edge)
        return cls(Columns.fit("degree", _degrees(arrays)) if node_features == "degree" else Columns(), edge)

    def encode(self, arrays: GraphArrays) -> Encoded:
        """Encode the same or new data; labels never seen in `fit` are counted, not refused."""
        nodes = _degrees(arrays) if self.node.source == "degree" else arrays.of_nodes
        node_feats, unseen_nodes, node_notes = self.node.encode(nodes)
        edge_feats, unseen_edges, edge_notes = self.edge.encode(arrays.of_edges, "edge")
        return Encoded(node_feats, edge_feats, unseen_nodes, unseen_edges, (*node_notes, *edge_notes))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        try:
            sides = {
                side: Columns(
                    str(value["source"]),
                    int(value["attributes"]),
                    tuple(map(tuple, value["labels"])),
                    tuple(value.get("attribute_names", ())),
                    tuple(value.get("label_names", ())),
                )
                for side, value in json.loads(text).items()
            }
            return cls(**sides)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"not a feature vocabulary: {error}") from error


def _degrees(arrays: GraphArrays) -> RawColumns:
    """The number of incoming edges, the neighbours that a layer sums over, as one label column."""
    degrees = np.bincount(arrays.dst, minlength=len(arrays.node_graph))
    return RawColumns(len(degrees), labels=degrees[:, None])


def _numbers(column: np.ndarray, name: str, what: str) -> np.ndarray:
    """A column as attributes; whole numbers alone are read as labels, so it may have come as those."""
    try:
        return column.astype(np.float64)
    except ValueError as error:
        raise DataError(
            f"{what} column {name!r} holds words, where the vocabulary has numbers ({error})"
        ) from None


def _labels(column: np.ndarray) -> np.ndarray:
    """A column as labels; with a fraction in it, it came as attributes."""
    if column.dtype.kind != "f":
        return column
    values = [int(value) if value.is_integer() else str(value) for value in column.tolist()]
    return np.array(values, dtype=object)
