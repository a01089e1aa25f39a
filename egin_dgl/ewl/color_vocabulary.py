"""ColorVocabulary: a table from signatures to the colours of one set of graphs, which colours any other graphs."""

import hashlib
from dataclasses import dataclass

import numpy as np

from egin_dgl.data.dataset import Indices
from egin_dgl.data.ragged import gather_rows, offsets_of
from egin_dgl.errors import DataError
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.ewl.labels import as_labels, concat_labels, label_values, rank_labels
from egin_dgl.ewl.ranking import combine, multiset_slots, sorting_order
from egin_dgl.ewl.refinement import Refinement, check_integer, check_method, refine

UNSEEN = -1
# E-WL-EA has the partitions of E-WL (Theorem 2), so its table would only be larger.
TABLE_METHODS = ("1-wl", "e-wl")


@dataclass(frozen=True, eq=False)
class InEdges:
    """Source and label of each edge, in the order of the target nodes."""

    offsets: np.ndarray  # (N + 1,)
    src: np.ndarray
    edge: np.ndarray

    @classmethod
    def build(cls, graphs: GraphSet, edge: np.ndarray) -> "InEdges":
        order = sorting_order(graphs.dst, graphs.num_nodes)
        degree = np.bincount(graphs.dst, minlength=graphs.num_nodes)
        return cls(offsets_of(degree), graphs.src[order], edge[order])


@dataclass(frozen=True, eq=False)
class Signatures:
    """K signatures of one depth: own colour and (neighbour, edge) tuples, in the colours of the previous depth."""

    own: np.ndarray  # (K,)
    offsets: np.ndarray  # (K + 1,) first tuple of each signature
    neighbor: np.ndarray  # (M,) colours
    edge: np.ndarray  # (M,) ranks of edge labels

    @classmethod
    def gather(cls, nodes: np.ndarray, in_edges: InEdges, colors: np.ndarray) -> "Signatures":
        """The signatures of the given nodes, from the colours (N,) of the previous depth."""
        index, offsets = gather_rows(in_edges.offsets, nodes)
        return cls(colors[nodes], offsets, colors[in_edges.src[index]], in_edges.edge[index])

    def find(self, new: "Signatures", colors: int, edges: int) -> np.ndarray:
        """Index of each new signature in these, UNSEEN where it is not there: both are ranked together."""
        own, neighbor, edge = (
            np.concatenate([getattr(self, name), getattr(new, name)]) for name in ("own", "neighbor", "edge")
        )
        offsets = np.concatenate([self.offsets, self.offsets[-1] + new.offsets[1:]])
        slots = multiset_slots(own, colors, offsets, *combine(neighbor, edge, colors, edges))
        return _match(slots, len(self.own), len(slots))


class ColorVocabulary:
    """The colours of training graphs at the depths 0..depth.

    The colour of a node of another graph is the fitted colour with the same signature. It is UNSEEN if there is none, and
    then at all later depths also for the nodes that see it.

    >>> from egin_dgl.data import bonds
    >>> data = as_graph_set(bonds(graphs=8))
    >>> vocabulary = ColorVocabulary.fit(data, depth=1, indices=[0, 1])
    >>> vocabulary.size, vocabulary.index(data[0]).tolist()
    (6, [2, 4, 4, 2, 4, 2, 0, 0, 0])
    """

    def __init__(
        self, method: str, node_labels: np.ndarray, edge_labels: np.ndarray, levels: list[Signatures]
    ):
        self.method = check_method(method, TABLE_METHODS)
        self.node_labels, self.edge_labels, self.levels = node_labels, edge_labels, levels

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
        return cls.from_refinement(refine(graphs, method, depth))

    @classmethod
    def from_refinement(cls, refinement: Refinement) -> "ColorVocabulary":
        """The colours of a refinement."""
        graphs, colors = refinement.graphs, refinement.colors
        edge_labels = _edge_labels(graphs, refinement.method)
        edge_ranks, edge_count = rank_labels(edge_labels)
        in_edges = InEdges.build(graphs, edge_ranks)
        levels = []
        for before, after in zip(colors[:-1], colors[1:], strict=True):
            holders = label_values(np.arange(len(after)), after, int(after.max(initial=-1)) + 1)
            levels.append(Signatures.gather(holders, in_edges, before))
        node_labels = label_values(graphs.node_labels, colors[0], refinement.num_colors(0))
        edge_labels = label_values(edge_labels, edge_ranks, edge_count)
        return cls(refinement.method, node_labels, edge_labels, levels)

    @property
    def depth(self) -> int:
        return len(self.levels)

    @property
    def sizes(self) -> list[int]:
        """Number of known colours at each depth, from depth 0."""
        return [len(self.node_labels), *(len(level.own) for level in self.levels)]

    @property
    def size(self) -> int:
        """K, the number of known colours at the last depth."""
        return self.sizes[-1]

    def lookup(self, graphs: GraphSet) -> list[np.ndarray]:
        """Colours (N,) of other graphs at each depth; -1 for unseen signatures."""
        colors = [_find(self.node_labels, graphs.node_labels, "node")]
        edge_ranks = _find(self.edge_labels, _edge_labels(graphs, self.method), "edge")
        in_edges = InEdges.build(graphs, edge_ranks)
        for level, size in zip(self.levels, self.sizes, strict=False):
            before = colors[-1]
            known = before != UNSEEN
            known[graphs.dst[(before[graphs.src] == UNSEEN) | (edge_ranks == UNSEEN)]] = False
            nodes = np.flatnonzero(known)
            after = np.full(graphs.num_nodes, UNSEEN)
            if len(nodes):
                new = Signatures.gather(nodes, in_edges, before)
                after[nodes] = level.find(new, size, max(len(self.edge_labels), 1))
            colors.append(after)
        return colors

    def index(self, graphs: object, **reading) -> np.ndarray:
        """Colour numbers (N,) int64 at the last depth, K for an unseen colour: for an embedding of K + 1 rows."""
        colors = self.lookup(as_graph_set(graphs, **reading))[-1]
        return np.where(colors == UNSEEN, self.size, colors)

    def buckets(self, graphs: object, width: int, **reading) -> np.ndarray:
        """Hash bucket of each node's signature, (N,) int64 in 0..width-1.

        Buckets do not depend on the training graphs; two colours may share one.
        """
        check_integer("width", width, 1)
        hashes = signature_hashes(as_graph_set(graphs, **reading), self.depth, self.method)
        return (hashes % np.uint64(width)).astype(np.int64)

    def to_dict(self) -> dict:
        """The vocabulary as a JSON object."""
        table: dict[str, object] = {"method": self.method}
        table["levels"] = [{key: array.tolist() for key, array in vars(one).items()} for one in self.levels]
        for name in ("node_labels", "edge_labels"):
            labels = getattr(self, name)
            width = labels.shape[1] if labels.ndim == 2 else None
            table[name] = {"width": width, "values": labels.tolist()}
        return {"colors": table}

    @classmethod
    def from_dict(cls, state: dict) -> "ColorVocabulary":
        """Restore the result of `to_dict`."""
        try:
            table = state["colors"]
            levels = [
                Signatures(**{key: np.asarray(value, dtype=np.int64) for key, value in level.items()})
                for level in table["levels"]
            ]
            nodes, edges = _restore(table["node_labels"], "node"), _restore(table["edge_labels"], "edge")
            return cls(table["method"], nodes, edges, levels)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"not a table of colours: {error!r}") from None


def _edge_labels(graphs: GraphSet, method: str) -> np.ndarray:
    """The edge labels that a method sees."""
    return graphs.edge_labels if method == "e-wl" else as_labels(None, len(graphs.src), "edge")


def _restore(state: dict, owner: str) -> np.ndarray:
    values, width = state["values"], state["width"]
    if width is None:
        return as_labels(values, len(values), owner)
    return np.asarray(values, dtype=None if width else np.int64).reshape(len(values), width)


def _find(table: np.ndarray, labels: np.ndarray, owner: str) -> np.ndarray:
    """Index of each label in the table, UNSEEN where it is not there."""
    if len(table) == 0 or len(labels) == 0:
        return np.full(len(labels), UNSEEN)
    ranks, count = rank_labels(concat_labels([table, labels], owner))
    return _match(ranks, len(table), count)


def _match(numbers: np.ndarray, known: int, bound: int) -> np.ndarray:
    """For each item from `known` on, the item before `known` with the same number, or UNSEEN."""
    holder = np.full(bound, UNSEEN)
    holder[numbers[:known]] = np.arange(known)
    return holder[numbers[known:]]


def signature_hashes(graphs: GraphSet, depth: int, method: str = "e-wl") -> np.ndarray:
    """A 64-bit hash (N,) of each node's signature, computed from label values only, so equal in all processes.

    With mix a fixed bijection of 64-bit integers, modulo 2^64::

        h(l)_i = mix(mix(h(l-1)_i) + 3 * sum over j of mix(h(l-1)_j + mix(h(x(i,j)) + 1)))
    """
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
    return np.array(hashes, dtype=np.uint64)[ranks]


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
