"""Colours as node features: a vocabulary from the training graphs, and three ways of writing a colour."""

import hashlib

import numpy as np

from egin_dgl.data.dataset import Indices
from egin_dgl.errors import ConfigError
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.ewl.labels import distinct_labels, rank_labels
from egin_dgl.ewl.rounds import check_method, check_whole
from egin_dgl.ewl.signatures import TABLE_METHODS, UNSEEN, ColorTable, InEdges

ENCODINGS = ("onehot", "hash", "index")


class ColorVocabulary:
    """The K colours that the training graphs have at one depth; K itself stands for every colour they do not have.

    index gives (N,) numbers 0..K, for an embedding of K + 1 rows; onehot gives (N, K + 1); hash gives (N, width),
    a one in the bucket that a fixed hash of the colour's signature falls into: it has no unknown colour, may put two
    colours into one bucket, and is the same in every process and for every training set.
    """

    def __init__(self, table: ColorTable):
        self.table = table

    @classmethod
    def fit(
        cls, graphs: object, depth: int, method: str = "e-wl", indices: Indices | None = None, **reading
    ) -> "ColorVocabulary":
        """Learn the colours of the given graphs, or of those among them that `indices` names.

        reading: node_labels, edge_labels, decimals and attributes of `as_graph_set`.
        """
        check_whole("depth", depth, 0)
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

    @property
    def unknown(self) -> int:
        """The number of every unseen colour: K."""
        return self.size

    def index(self, graphs: object, **reading) -> np.ndarray:
        """Colour numbers (N,) int64 in 0..K."""
        colors = self.table.lookup(as_graph_set(graphs, **reading))[-1]
        return np.where(colors == UNSEEN, self.unknown, colors)

    def buckets(self, graphs: object, width: int, **reading) -> np.ndarray:
        """Which of `width` buckets the hash of each node's signature falls into: (N,) int64."""
        hashes = signature_hashes(as_graph_set(graphs, **reading), self.depth, self.table.method)
        return (hashes % np.uint64(width)).astype(np.int64)

    def encode(self, graphs: object, encoding: str = "onehot", width: int = 64, **reading) -> np.ndarray:
        """Colours as onehot (N, K + 1) or hash (N, width) float32 rows, or as index (N,) int64."""
        if encoding == "index":
            return self.index(graphs, **reading)
        if encoding == "onehot":
            return _one_hot(self.index(graphs, **reading), self.size + 1)
        if encoding == "hash":
            check_whole("width", width, 1)
            return _one_hot(self.buckets(graphs, width, **reading), width)
        raise ConfigError(f"encoding must be {' or '.join(ENCODINGS)}, got {encoding!r}")

    def to_dict(self) -> dict:
        """Plain lists, numbers and strings, for JSON."""
        return {"colors": self.table.to_dict()}

    @classmethod
    def from_dict(cls, state: dict) -> "ColorVocabulary":
        """The vocabulary that `to_dict` described."""
        return cls(ColorTable.from_dict(state["colors"]))


def signature_hashes(graphs: GraphSet, depth: int, method: str = "e-wl") -> np.ndarray:
    """A 64-bit hash (N,) of each node's signature at a depth, made of label values only, so the same everywhere.

    Equal signatures have equal hashes; different ones rarely share one. With mix a fixed bijection of 64-bit words,
    ``h(l)_i = mix(mix(h(l-1)_i) + 3 sum over j of mix(h(l-1)_j + mix(h(x(i,j)) + 1)))`` modulo 2^64.
    """
    check_method(method, TABLE_METHODS)
    hashes = _label_hashes(graphs.node_labels)
    edges = np.ones(len(graphs.src), dtype=np.uint64)
    if method == "e-wl":
        edges = _mix(_label_hashes(graphs.edge_labels) + edges)
    seen = InEdges.build(graphs, edges)
    for _ in range(depth):
        messages = _mix(hashes[seen.src] + seen.edge)
        total = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(messages, dtype=np.uint64)))
        hashes = _mix(_mix(hashes) + np.uint64(3) * np.diff(total[seen.offsets]))
    return hashes


def _one_hot(numbers: np.ndarray, width: int) -> np.ndarray:
    rows = np.zeros((len(numbers), width), dtype=np.float32)
    rows[np.arange(len(numbers)), numbers] = 1
    return rows


def _label_hashes(labels: np.ndarray) -> np.ndarray:
    """A 64-bit hash (n,) of each label's value: numbers as text, so that 1 and 1.0, being equal, agree."""
    ranks, count = rank_labels(labels)
    texts = (repr(_plain(value)) for value in distinct_labels(labels, ranks, count).tolist())
    words = [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest(), "little") for t in texts]
    return np.array(words, dtype=np.uint64)[ranks] if words else np.zeros(len(labels), dtype=np.uint64)


def _plain(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _mix(words: np.ndarray) -> np.ndarray:
    """A bijection of 64-bit words that spreads every bit over all others (multiply and shift, modulo 2^64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
