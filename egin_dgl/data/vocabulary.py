"""Labels and attributes → feature vectors, and the vocabulary that encodes new graphs in the same way."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from egin_dgl.data.arrays import CodedColumn, Column, GraphArrays, RawColumns, unique_labels
from egin_dgl.data.readers.raw_files import GIB
from egin_dgl.errors import DataError

MAX_LABELS = 10_000  # distinct values of a label column; more of them are identifiers, not categories
MAX_BYTES = 4 * GIB  # of one feature matrix


@dataclass(frozen=True)
class FeatureColumns:
    """Encoding of one feature matrix: attributes ‖ one-hot of each label column over its sorted distinct values.

    The source is "data" (labels and attributes of the input), "degree" (the in-degree as one label column) or
    "constant" (a single 1). If the columns have names, new data are matched by name.
    """

    source: str = "constant"
    attributes: int = 0  # number of attribute columns
    labels: tuple[tuple[int | str, ...], ...] = ()  # known values of each label column
    attribute_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()

    @classmethod
    def fit(cls, source: str, columns: RawColumns, kind: str = "node") -> "FeatureColumns":
        known = []
        for number, column in enumerate(columns.columns()[1]):
            values, _ = unique_labels(column)
            if len(values) > MAX_LABELS:
                name = repr(columns.label_names[number]) if columns.label_names else str(number)
                raise DataError(
                    f"{kind} label column {name} has {len(values):,} distinct values, more than {MAX_LABELS:,}; "
                    "pass it as an attribute or leave it out"
                )
            known.append(tuple(values))
        fitted = cls(source, columns.widths[0], tuple(known), columns.attribute_names, columns.label_names)
        return fitted if fitted.names else cls()  # a model needs at least one feature

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each feature."""
        if self.source == "constant":
            return ("constant",)
        names = list(self.attribute_names or (f"attribute{i}" for i in range(self.attributes)))
        return (*names, *(f"{name}={value}" for name, known in self._known() for value in known))

    def _known(self) -> list[tuple[str, tuple[int | str, ...]]]:
        """Name and known values of each label column."""
        names: Sequence[str] = self.label_names or [f"label{i}" for i in range(len(self.labels))]
        names = ("degree",) if self.source == "degree" else names
        return list(zip(names, self.labels, strict=True))

    def encode(self, columns: RawColumns, kind: str = "node") -> tuple[np.ndarray, dict[str, int], list[str]]:
        """Features (rows, dim) float32, the count of each unknown label (its one-hot block is zero), and notes."""
        dim = len(self.names)
        if (size := columns.rows * dim * 4) > MAX_BYTES:
            raise DataError(
                f"the features of {columns.rows:,} {kind}s in {dim:,} columns would take {size / GIB:.0f} GiB; "
                "pass labels with many values as attributes, or leave them out"
            )
        if self.source == "constant" or not columns.rows:  # without rows there may be no columns either
            return np.ones((columns.rows, dim), dtype=np.float32), {}, []
        attributes, labels, notes = self._match(columns, kind)
        matrix = np.zeros((columns.rows, dim), dtype=np.float32)
        for number, attribute in enumerate(attributes):
            matrix[:, number] = attribute
        start, unseen = self.attributes, dict[str, int]()
        for (name, known), column in zip(self._known(), labels, strict=True):
            values, index = unique_labels(column)
            # A column of integers is one of strings if another graph has a string in it, and vice versa.
            position: dict[int | str, int] = {str(value): i for i, value in enumerate(known)}
            position |= {value: i for i, value in enumerate(known)}
            found = [position.get(value, position.get(str(value), -1)) for value in values]
            hot = np.array(found, dtype=np.int64)[index]
            rows = np.flatnonzero(hot >= 0)
            matrix[rows, start + hot[rows]] = 1
            counts = np.bincount(index, minlength=len(values))
            unseen |= {f"{name}={values[i]}": int(counts[i]) for i, place in enumerate(found) if place < 0}
            start += len(known)
        if unseen:
            shown = ", ".join(f"{name} ({count})" for name, count in list(unseen.items())[:10])
            more = f" and {len(unseen) - 10} others" if len(unseen) > 10 else ""
            notes.append(f"{sum(unseen.values())} {kind} label(s) not in the vocabulary: {shown}{more}")
        return matrix, unseen, notes

    def _match(self, columns: RawColumns, kind: str) -> tuple[list[np.ndarray], list[Column], list[str]]:
        """Attribute and label columns in the vocabulary's order: by name if both have names, else by position."""
        given = columns.by_name()
        wanted = (*self.attribute_names, *self.label_names)
        if given and wanted:
            if missing := [name for name in wanted if name not in given]:
                raise DataError(
                    f"the {kind}s have no column {', '.join(map(repr, missing))}, which the vocabulary has; "
                    f"columns found: {', '.join(map(repr, given))}"
                )
            extra = [name for name in given if name not in wanted]
            notes = [f"{kind} column(s) {', '.join(extra)} not in the vocabulary, ignored"] if extra else []
            attributes = [_as_numbers(given[name], name, kind) for name in self.attribute_names]
            return attributes, [_as_labels(given[name]) for name in self.label_names], notes
        if columns.widths != (self.attributes, len(self.labels)):
            raise DataError(
                f"the vocabulary has {self.attributes} attribute and {len(self.labels)} label column(s), "
                f"the data has {columns.widths[0]} and {columns.widths[1]}; use data of the same kind as the training data"
            )
        return *columns.columns(), []


@dataclass(frozen=True)
class Encoded:
    """node_feats (N, D) and edge_feats (E, Q), float32; the count of each unknown label ("node atom=Se"); notes."""

    node_feats: np.ndarray
    edge_feats: np.ndarray
    unseen: Mapping[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Vocabulary:
    """Encoding of node and edge features, saved as JSON with a model's weights.

    >>> import numpy as np
    >>> from egin_dgl.data.arrays import GraphArrays, RawColumns
    >>> atoms = RawColumns(labels=np.array([["C"], ["O"]], dtype=object), label_names=("atom",))
    >>> arrays = GraphArrays(np.array([0, 0]), np.array([0, 1]), np.array([1, 0]), graphs=1, nodes=atoms)
    >>> vocabulary = Vocabulary.fit(arrays)
    >>> vocabulary.node.names, vocabulary.encode(arrays).node_feats.tolist()
    (('atom=C', 'atom=O'), [[1.0, 0.0], [0.0, 1.0]])
    """

    node: FeatureColumns
    edge: FeatureColumns

    @classmethod
    def fit(
        cls, arrays: GraphArrays, node_features: str = "degree", edges: RawColumns | None = None
    ) -> "Vocabulary":
        """Collect the values that occur; `node_features` applies to nodes without labels and attributes.

        `edges` are columns to use in place of those of the graphs.
        """
        edge = FeatureColumns.fit("data", arrays.edges if edges is None else edges, "edge")
        if any(arrays.nodes.widths):
            return cls(FeatureColumns.fit("data", arrays.nodes), edge)
        if node_features == "degree":
            return cls(FeatureColumns.fit("degree", _degrees(arrays)), edge)
        return cls(FeatureColumns(), edge)

    def encode(self, arrays: GraphArrays) -> Encoded:
        """Encode the same or new graphs; unknown labels are counted."""
        nodes = _degrees(arrays) if self.node.source == "degree" else arrays.nodes
        node_feats, unseen_nodes, node_notes = self.node.encode(nodes)
        edge_feats, unseen_edges, edge_notes = self.edge.encode(arrays.edges, "edge")
        unseen = {f"node {name}": count for name, count in unseen_nodes.items()}
        unseen |= {f"edge {name}": count for name, count in unseen_edges.items()}
        return Encoded(node_feats, edge_feats, unseen, (*node_notes, *edge_notes))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        keys = [field.name for field in fields(FeatureColumns)]
        try:
            sides = json.loads(text).items()
            return cls(
                **{side: FeatureColumns(**{key: _tuples(own[key]) for key in keys}) for side, own in sides}
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"not a feature vocabulary: {error}") from error


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _degrees(arrays: GraphArrays) -> RawColumns:
    """The in-degree as one label column."""
    degrees = np.bincount(arrays.dst, minlength=len(arrays.node_graph))
    return RawColumns(len(degrees), labels=degrees[:, None])


def _as_numbers(column: Column, name: str, kind: str) -> np.ndarray:
    """A column as attributes; where all values are integers it was read as labels."""
    try:
        return np.asarray(column).astype(np.float64)
    except ValueError as error:
        raise DataError(
            f"{kind} column {name!r} holds strings where the vocabulary has numbers ({error})"
        ) from None


def _as_labels(column: Column) -> Column:
    """A column as labels; where some value is not an integer it was read as attributes."""
    if isinstance(column, CodedColumn) or column.dtype.kind != "f":
        return column
    values = [int(value) if value.is_integer() else str(value) for value in column.tolist()]
    return np.array(values, dtype=object)
