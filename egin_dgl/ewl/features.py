"""ColorVocabulary: the colours of training graphs, to encode the colours of any graphs."""

import hashlib

import numpy as np

from egin_dgl.data.dataset import Indices
from egin_dgl.ewl.color_table import TABLE_METHODS, UNSEEN, ColorTable, InEdges
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.ewl.labels import label_values, rank_labels
from egin_dgl.ewl.refinement import check_integer, check_method


class ColorVocabulary:
    """The K colours of the training graphs at one depth; the number K represents all other colours.

    >>> from egin_dgl.data import bonds
    >>> data = as_graph_set(bonds(graphs=8))
    >>> vocabulary = ColorVocabulary.fit(data, depth=1, indices=[0, 1])
    >>> vocabulary.size, vocabulary.index(data[0]).tolist()
    (6, [2, 4, 4, 2, 4, 2, 0, 0, 0])
    """

    def __init__(self, table: ColorTable):
        self.table = table

    @classmethod
    def fit(
        cls, graphs: object, depth: int, method: str = "e-wl", indices: Indices | None = None, **reading
    ) -> "ColorVocabulary":
        """Learn the colours of training graphs.

        Args:
            graphs: Graphs that `as_graph_set` reads.
            depth: Depth of the colours.
            method: "1-wl" or "e-wl".
            indices: The training graphs; default: all.
            reading: node_labels, edge_labels, decimals and attributes of `as_graph_set`.
        """
        check_integer("depth", depth, 0)
        graphs = as_graph_set(graphs, **reading)
        graphs = graphs if indices is None else graphs.subset(indices)
        return cls(ColorTable.fit(graphs, method, depth)[0])

    @property
    def depth(self) -> int:
        return self.table.depth

    @property
    def size(self) -> int:
        """K, the number of known colours."""
        return self.table.sizes[-1]

    def index(self, graphs: object, **reading) -> np.ndarray:
        """Colour numbers (N,) int64 in 0..K, for an embedding of K + 1 rows."""
        colors = self.table.lookup(as_graph_set(graphs, **reading))[-1]
        return np.where(colors == UNSEEN, self.size, colors)

    def buckets(self, graphs: object, width: int, **reading) -> np.ndarray:
        """Hash bucket of each node's signature, (N,) int64 in 0..width-1.

        Buckets do not depend on the training graphs; two colours may share one.
        """
        check_integer("width", width, 1)
        hashes = signature_hashes(as_graph_set(graphs, **reading), self.depth, self.table.method)
        return (hashes % np.uint64(width)).astype(np.int64)

    def to_dict(self) -> dict:
        """The vocabulary as a JSON object."""
        return {"colors": self.table.to_dict()}

    @classmethod
    def from_dict(cls, state: dict) -> "ColorVocabulary":
        """Restore the result of `to_dict`."""
        return cls(ColorTable.from_dict(state["colors"]))


def signature_hashes(graphs: GraphSet, depth: int, method: str = "e-wl") -> np.ndarray:
    """A 64-bit hash (N,) of each node's signature, computed from label values only, so equal in all processes.

    With mix a fixed bijection of 64-bit integers, modulo 2^64::

        h(l)_i = mix(mix(h(l-1)_i) + 3 * sum over j of mix(h(l-1)_j + mix(h(x(i,j)) + 1)))
    """
    check_method(method, TABLE_METHODS)
    hashes = _label_hashes(graphs.node_labels)
    edges = np.ones(len(graphs.src), dtype=np.uint64)
    if method == "e-wl":
        edges = _mix(_label_hashes(graphs.edge_labels) + edges)
    in_edges = InEdges.build(graphs, edges)
    for _ in range(depth):
        messages = _mix(hashes[in_edges.src] + in_edges.edge)
        total = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(messages, dtype=np.uint64)))
        hashes = _mix(_mix(hashes) + np.uint64(3) * np.diff(total[in_edges.offsets]))
    return hashes


def _label_hashes(labels: np.ndarray) -> np.ndarray:
    """A 64-bit hash (n,) of each label's text; 1 and 1.0 have the same hash."""
    ranks, count = rank_labels(labels)
    texts = (repr(_canonical(value)) for value in label_values(labels, ranks, count).tolist())
    hashes = [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest(), "little") for t in texts]
    return np.array(hashes, dtype=np.uint64)[ranks] if hashes else np.zeros(len(labels), dtype=np.uint64)


def _canonical(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(map(_canonical, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _mix(numbers: np.ndarray) -> np.ndarray:
    """The finalizer of SplitMix64."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
