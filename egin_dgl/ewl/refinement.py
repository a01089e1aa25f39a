"""1-WL, E-WL and E-WL-EA: colour refinement of all graphs of a set together, in one shared colour space."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy import sparse

from egin_dgl.errors import ConfigError
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.ewl.labels import rank_labels
from egin_dgl.ewl.ranking import Rows, combine, dense_rank, multiset_slots, signature_slots, sorting_order

METHODS = ("1-wl", "e-wl", "e-wl-ea")
MAX_REPEATED = 100  # depths up to which tables and pictures repeat stable colours


def refine(
    graphs: object,
    method: str = "e-wl",
    depth: int | None = None,
    decimals: int | None = None,
    node_labels: object = None,
    edge_labels: object = None,
    attributes: bool = True,
) -> "Refinement":
    """Refine the colours of all nodes of all graphs together.

    With c(0)_i the label of node i and x(i,j) the label of the edge from j to i::

        1-WL     c(l)_i = HASH(c(l-1)_i, {{ c(l-1)_j | j in N(i) }})
        E-WL     c(l)_i = HASH(c(l-1)_i, {{ (c(l-1)_j, x(i,j)) | j in N(i) }})
        E-WL-EA  c(l)_i = HASH(c(l-1)_i, {{ (c(l-1)_j, d(l-1)(i,j)) | j in N(i) }})
                 d(0) = x,  d(l)(i,j) = HASH(d(l-1)(i,j), c(l)_i, c(l)_j)

    HASH is injective: a colour of depth l is the rank of the signature (own colour, in-degree, sorted tuples) among
    those that occur in the set. Colours do not depend on the order of graphs, nodes or edges. Colours of two sets
    cannot be compared; `ColorVocabulary` and `WLKernel` transfer those of one set to another.

    A node sees the edges that end in it, so an undirected edge is given in both directions and a directed graph is
    refined by in-neighbours. Parallel edges count as often as they occur, and a self-loop makes a node its own
    neighbour. An isolated node has an empty multiset.

    Args:
        graphs: Anything that `as_graph_set` reads.
        method: "1-wl", "e-wl" or "e-wl-ea".
        depth: Number of rounds; default: until the partition of all nodes of the set is stable. Two graphs may each
            be stable before they are distinguished. A larger depth repeats the stable colours.
        decimals: Round real labels first.
        node_labels, edge_labels, attributes: See `as_graph_set`.

    >>> ring = ([0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3], 4)  # each edge in both directions
    >>> refine(ring, edge_labels=["-", "-", "=", "-"] * 2)
    Refinement(e-wl of 1 graphs, colours by depth: 1, 2; stable at depth 1)
    """
    check_method(method)
    if depth is not None:
        check_integer("depth", depth, 0, " or None")
    graphs = as_graph_set(graphs, node_labels, edge_labels, decimals, attributes)
    colors = list(islice(color_rounds(graphs, method), None if depth is None else depth + 1))
    stable = None if depth is not None and len(colors) == depth + 1 else len(colors) - 1
    colors += [colors[-1]] * (0 if depth is None else depth + 1 - len(colors))
    return Refinement(method, graphs, colors, stable)


def refine_at_most(graphs: GraphSet, method: str, depth: int) -> "Refinement":
    """`refine` to a depth, where one beyond MAX_REPEATED ends as soon as the colours are stable."""
    check_integer("depth", depth, 0)
    if depth <= MAX_REPEATED:
        return refine(graphs, method, depth)
    colors = refine(graphs, method).colors
    return Refinement(
        method, graphs, colors[: depth + 1], len(colors) - 1 if len(colors) <= depth + 1 else None
    )


def color_rounds(graphs: GraphSet, method: str) -> Iterator[np.ndarray]:
    """Yield the colours (N,) of depth 0, 1, 2, …, up to the first depth with a stable partition.

    A signature starts with the own colour, so a class that does not split keeps its place in the order: once no class
    splits, c(l) = c(l-1).
    """
    colors, count = rank_labels(graphs.node_labels)
    yield colors
    degree = np.bincount(graphs.dst, minlength=len(colors))
    if method == "1-wl":
        edge, edge_count = np.zeros(len(graphs.src), dtype=np.int64), 1
    else:
        edge, edge_count = rank_labels(graphs.edge_labels)
    # Nodes in ascending order of in-degree, and edges in the order of their target: one row of edges for each node.
    nodes = sorting_order(degree, int(degree.max(initial=0)) + 1)
    rows = Rows.from_lengths(degree[nodes])
    position = np.empty_like(nodes)
    position[nodes] = np.arange(len(nodes))
    order = sorting_order(position[graphs.dst], len(nodes))
    src, edge = graphs.src[order], edge[order]
    # Signatures are compared within a class of equal colour and in-degree; from depth 1 on, equal colours imply it.
    own, own_count = dense_rank(*combine(colors, degree, count, rows.max_length + 1))
    while count < len(colors):
        codes, base = combine(colors[src], edge, count, max(edge_count, 1))
        rows.sort(codes)
        slots = signature_slots(own[nodes], own_count, rows, codes, base)
        refined = np.empty_like(colors)
        refined[nodes], refined_count = dense_rank(slots, len(slots))
        if refined_count == count:
            return
        yield refined
        colors, count = own, own_count = refined, refined_count
        if method == "e-wl-ea":
            target = np.repeat(colors[nodes], rows.lengths)
            edge, edge_count = dense_rank(*combine(edge, target, max(edge_count, 1), count))
            edge, edge_count = dense_rank(*combine(edge, colors[src], edge_count, count))


def stable_colors(graphs: GraphSet, method: str = "e-wl") -> np.ndarray:
    """The colours (N,) of the stable depth."""
    return deque(color_rounds(graphs, method), maxlen=1)[0]


@dataclass(frozen=True, eq=False, repr=False)
class Refinement:
    """Colours of every node at every depth."""

    method: str
    graphs: GraphSet
    colors: list[np.ndarray]  # at depth l (N,) int64 in 0..num_colors(l)-1
    stable_depth: int | None  # first depth whose partition of all nodes is stable; None if it was not reached

    def __repr__(self) -> str:
        counts = [self.num_colors(depth) for depth in range(self.depth + 1)]
        shown = ", ".join(map(str, counts[:6])) + (f", …, {counts[-1]}" if len(counts) > 6 else "")
        stable = "not yet stable" if self.stable_depth is None else f"stable at depth {self.stable_depth}"
        return f"Refinement({self.method} of {len(self.graphs)} graphs, colours by depth: {shown}; {stable})"

    @property
    def depth(self) -> int:
        return len(self.colors) - 1

    def num_colors(self, depth: int = -1) -> int:
        """Number of different colours of the whole set at a depth."""
        return int(self.colors[depth].max(initial=-1)) + 1

    def graph_histograms(self, depth: int = -1) -> sparse.csr_array:
        """Count of each colour in each graph at a depth: (G, num_colors(depth))."""
        return color_counts(self.graphs, self.colors[depth], self.num_colors(depth))

    def graph_classes(self, depth: int = -1) -> np.ndarray:
        """A number for each graph, (G,), equal if and only if the multisets of colours are equal.

        Numbers are ranks by number of nodes, then by the sorted colours.
        """
        first = np.zeros(len(self.graphs), dtype=np.int64)
        offsets, count = self.graphs.node_offsets, self.num_colors(depth)
        slots = multiset_slots(first, 1, offsets, self.colors[depth], count)
        return dense_rank(slots, len(slots))[0]

    def graph_stable_depths(self) -> np.ndarray:
        """First depth at which the partition of each graph stops splitting, (G,); -1 if it was not reached.

        Compare graphs at the stable depth of the set: a triangle and a square have one class each at every depth.
        """
        classes = np.stack([np.diff(self.graph_histograms(depth).indptr) for depth in range(self.depth + 1)])
        if self.stable_depth is not None:
            classes = np.concatenate([classes, classes[-1:]])
        unchanged = classes[1:] == classes[:-1]
        if not len(unchanged):
            return np.full(len(self.graphs), -1)
        return np.where(unchanged.any(axis=0), unchanged.argmax(axis=0), -1)


def color_counts(graphs: GraphSet, colors: np.ndarray, count: int) -> sparse.csr_array:
    """Count of each colour 0..count-1 in each graph, (G, count); negative colours are ignored."""
    known = colors >= 0
    # scikit-learn's SVMs accept 32-bit indices only.
    dtype = np.int32 if max(len(graphs), count) < 2**31 else np.int64
    index = (graphs.graph_of_node[known].astype(dtype), colors[known].astype(dtype))
    ones = np.ones(len(index[0]), dtype=np.int64)
    return sparse.coo_array((ones, index), shape=(len(graphs), count)).tocsr()


def check_method(method: str, valid: tuple[str, ...] = METHODS) -> str:
    if method not in valid:
        raise ConfigError(f"method must be {' or '.join(valid)}, got {method!r}")
    return method


def check_integer(name: str, value: object, minimum: int, alternative: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise ConfigError(f"{name} must be an integer of at least {minimum}{alternative}, got {value!r}")
