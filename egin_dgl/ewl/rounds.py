"""The loop of colour refinement on integer arrays: one array of colours a depth, for all graphs at once."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from egin_dgl.errors import ConfigError
from egin_dgl.ewl import ranking
from egin_dgl.ewl.inputs import GraphSet
from egin_dgl.ewl.labels import rank_labels
from egin_dgl.ewl.ranking import combine, dense_rank, sorting_order
from egin_dgl.ewl.rows import Rows, signature_slots

METHODS = ("1-wl", "e-wl", "e-wl-ea")
# With so large a share of nodes alone in their class, copying the others costs less than carrying all along.
WORTH_LEAVING = 0.25


def check_method(method: str, valid: tuple[str, ...] = METHODS) -> str:
    """The method itself, or an error that lists the valid ones."""
    if method not in valid:
        raise ConfigError(f"method must be {' or '.join(valid)}, got {method!r}")
    return method


def check_whole(name: str, value: object, least: int, other: str = "") -> None:
    """An error unless the value is a whole number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}{other}, got {value!r}")


@dataclass
class _Open:
    """The nodes whose colour may still split, in ascending order of in-degree, and the edges that they see."""

    nodes: np.ndarray  # (n,)
    rows: Rows  # of the edge arrays, one row a node
    src: np.ndarray  # (e,) the neighbour
    edge: np.ndarray  # (e,) the rank of the edge label
    edge_bound: int

    def keep(self, mask: np.ndarray) -> "_Open":
        edges = np.repeat(mask, self.rows.lengths)
        rows = Rows.of_lengths(self.rows.lengths[mask])
        return _Open(self.nodes[mask], rows, self.src[edges], self.edge[edges], self.edge_bound)


def color_rounds(graphs: GraphSet, method: str) -> Iterator[np.ndarray]:
    """Yield the colours (N,) of depth 0, 1, 2, ... and stop after the first depth whose partition is stable.

    Colours are ranks: depth l numbers the signatures (own colour, in-degree, sorted Node-Edge tuples) in their sorted
    order. The own colour comes first, so a class that does not split keeps its place: once the partition is stable,
    c(l) = c(l-1) holds literally, and a node alone in its class is never looked at again.
    """
    colors, count = rank_labels(graphs.node_labels)
    yield colors
    if len(colors) == 0:
        return
    work = _index(graphs, method)
    degree = np.zeros(len(colors), dtype=np.int64)
    degree[work.nodes] = work.rows.lengths
    # The members of a class must agree in degree before their tuples are compared; from depth 1 on they do.
    own, bound = combine(colors, degree, count, work.rows.longest + 1)
    own, own_count = dense_rank(own, bound)
    while len(work.nodes):
        tuples, base = combine(colors[work.src], work.edge, count, work.edge_bound)
        work.rows.sort(tuples)
        new, new_count, lonely = _split(own, own_count, work, tuples, base)
        if new_count == count:
            return
        yield new
        colors, count = own, own_count = new, new_count
        if method == "e-wl-ea":
            work.edge, work.edge_bound = _edge_colors(work, colors, count)
        if np.count_nonzero(lonely) > WORTH_LEAVING * len(lonely):
            work = work.keep(~lonely)


def stable_colors(graphs: GraphSet, method: str = "e-wl") -> np.ndarray:
    """The colours (N,) of the stable depth, without keeping those on the way."""
    return deque(color_rounds(graphs, method), maxlen=1)[0]


def _index(graphs: GraphSet, method: str) -> _Open:
    """All nodes with their in-edges, by in-degree."""
    degree = np.bincount(graphs.dst, minlength=graphs.num_nodes)
    nodes = sorting_order(degree, int(degree.max(initial=0)) + 1)
    place = np.empty(len(nodes), dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    if method == "1-wl":
        edge, bound = np.zeros(len(graphs.src), dtype=np.int64), 1
    else:
        edge, bound = rank_labels(graphs.edge_labels)
    src, edge = group_edges(place[graphs.dst], graphs.src, edge, len(nodes), bound)
    return _Open(nodes, Rows.of_lengths(degree[nodes]), src, edge, max(bound, 1))


def group_edges(
    place: np.ndarray, src: np.ndarray, edge: np.ndarray, nodes: int, edges: int
) -> tuple[np.ndarray, np.ndarray]:
    """src and edge in the order of place: all three are sorted as one number, which leaves nothing to gather."""
    src_bits, edge_bits = nodes.bit_length(), edges.bit_length()
    if nodes << (src_bits + edge_bits) > ranking.KEY_LIMIT:
        order = np.argsort(place)
        return src[order], edge[order]
    packed = place  # used up: with a million edges, new arrays cost a tenth of the whole refinement
    packed <<= src_bits
    packed |= src
    packed <<= edge_bits
    packed |= edge
    packed.sort()
    edge = packed & ((1 << edge_bits) - 1)
    packed >>= edge_bits
    packed &= (1 << src_bits) - 1
    return packed, edge


def _split(
    own: np.ndarray, count: int, work: _Open, tuples: np.ndarray, base: int
) -> tuple[np.ndarray, int, np.ndarray]:
    """New colours (N,), how many they are, and which of the open nodes are now alone in their class."""
    classes = own[work.nodes]
    size = np.bincount(classes, minlength=count)
    start = np.cumsum(size) - size  # how many open nodes are in smaller classes
    slots = signature_slots(classes, count, work.rows, tuples, base)
    crowd = np.bincount(slots, minlength=len(slots))
    number = np.cumsum(crowd > 0)  # of the signatures up to each slot
    before = np.concatenate(([0], number))[start]  # signatures of smaller classes
    parts = np.concatenate((before[1:], number[-1:])) - before
    parts = np.maximum(parts, 1)  # classes without an open node stay as they are
    first = np.cumsum(parts) - parts
    new = first[own]
    new[work.nodes] = (first - before - 1)[classes] + number[slots]
    return new, int(first[-1] + parts[-1]), crowd[slots] == 1


def _edge_colors(work: _Open, colors: np.ndarray, count: int) -> tuple[np.ndarray, int]:
    """d(l) of the edges (i receives, j sends) = rank of (d(l-1), c(l) of i, c(l) of j)."""
    receiver = np.repeat(colors[work.nodes], work.rows.lengths)
    codes, bound = combine(work.edge, receiver, work.edge_bound, count)
    codes, bound = dense_rank(codes, bound)
    codes, bound = combine(codes, colors[work.src], bound, count)
    return dense_rank(codes, bound)
