"""1-WL, E-WL and E-WL-EA: colour refinement of all graphs of a set together, in one shared colour space."""

from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy import sparse

from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.ewl.ranking import dense_rank
from egin_dgl.ewl.rounds import check_method, check_whole, color_rounds
from egin_dgl.ewl.rows import multiset_slots


@dataclass(frozen=True, eq=False, repr=False)
class Refinement:
    """Colours of every node at every depth, and what follows from them for whole graphs.

    colors[l] is (N,) int64 with the values 0..num_colors(l)-1, in the node order of the input. stable_depth is the
    first depth whose partition of all nodes of the set never splits again, None where `depth` came before it.
    """

    method: str
    graphs: GraphSet
    colors: list[np.ndarray]
    stable_depth: int | None

    def __repr__(self) -> str:
        counts = [self.num_colors(depth) for depth in range(self.depth + 1)]
        shown = ", ".join(map(str, counts[:6])) + (f", …, {counts[-1]}" if len(counts) > 6 else "")
        stable = "not yet stable" if self.stable_depth is None else f"stable at depth {self.stable_depth}"
        return f"Refinement({self.method} of {len(self.graphs)} graphs, colours by depth: {shown}; {stable})"

    @property
    def depth(self) -> int:
        return len(self.colors) - 1

    @property
    def node_offsets(self) -> np.ndarray:
        return self.graphs.node_offsets

    def num_colors(self, depth: int = -1) -> int:
        """How many different colours the whole set has at a depth."""
        return int(self.colors[depth].max(initial=-1)) + 1

    def graph_histograms(self, depth: int = -1) -> sparse.csr_array:
        """How often each colour occurs in each graph at a depth: (G, num_colors(depth)) counts."""
        return color_counts(self.graphs, self.colors[depth], self.num_colors(depth))

    def graph_classes(self, depth: int = -1) -> np.ndarray:
        """A number for each graph's multiset of colours, (G,): equal if and only if the multisets are.

        Numbers are ranks by number of nodes, then by the sorted colours.
        """
        offsets, colors, count = self.node_offsets, self.colors[depth], self.num_colors(depth)
        slots = multiset_slots(np.zeros(len(self.graphs), dtype=np.int64), 1, offsets, colors, count)
        return dense_rank(slots, len(slots))[0]

    def graph_stable_depths(self) -> np.ndarray:
        """The first depth at which each graph's own partition stops splitting, (G,); -1 where `depth` came first.

        A stable partition does not yet compare: a triangle and a square have one class each from depth 0 on. Compare
        graphs at one depth, best at the stable depth of the set.
        """
        parts = np.stack([np.diff(self.graph_histograms(depth).indptr) for depth in range(self.depth + 1)])
        if self.stable_depth is not None:
            parts = np.concatenate([parts, parts[-1:]])
        still = parts[1:] == parts[:-1]
        return (
            np.where(still.any(axis=0), still.argmax(axis=0), -1)
            if len(still)
            else np.full(len(self.graphs), -1)
        )


def refine(
    graphs: object,
    method: str = "e-wl",
    depth: int | None = None,
    decimals: int | None = None,
    node_labels: object = None,
    edge_labels: object = None,
    attributes: bool = True,
) -> Refinement:
    """Refine the colours of all nodes of all graphs together.

    E-WL (Algorithm 1), with c(0) = the node's label and x(i,j) the label of the edge from j to i::

        c(l)_i = HASH(c(l-1)_i, {{ (c(l-1)_j, x(i,j)) | j in N(i) }})

    1-WL leaves x out. E-WL-EA (the appendix) puts d(l-1)(i,j) in its place, with d(0) = x and
    ``d(l)(i,j) = HASH(d(l-1)(i,j), c(l)_i, c(l)_j)``.

    HASH is exact. Colours of depth l are the ranks of all signatures that occur in the set, in the sorted order of
    (own colour, in-degree, sorted tuples); those of depth 0 are the ranks of the labels. So two nodes of the set, of
    one graph or of two, share a colour if and only if their signatures are equal, and a colour depends on nothing
    but the set of graphs: the same graphs in another order, with their nodes or edges in another order, in another
    process, get the same colours node for node. Another set has another numbering; `ColorVocabulary` and `WLKernel`
    carry the colours of one set over to another.

    depth=None repeats "until c(l) = c(l-1)", read as: until no class of the partition of all nodes of the set splits
    any more, which is all that an injective renaming allows (these ranks then stay equal too). The set, not each
    graph by itself, must be stable, since two graphs can be stable each and be told apart only later. A given depth
    beyond that repeats the last colours.

    Meaning of the special cases: a node sees the edges that end in it, so an undirected edge is given both ways and a
    directed graph is refined by in-neighbours; parallel edges count as often as they are there; a self-loop shows the
    node to itself; an isolated node has an empty multiset; a graph without nodes has an empty histogram.

    graphs, node_labels, edge_labels, attributes: see `as_graph_set`. decimals rounds real labels first.
    """
    check_method(method)
    if depth is not None:
        check_whole("depth", depth, 0, ", or None")
    graphs = as_graph_set(graphs, node_labels, edge_labels, decimals, attributes)
    colors = list(islice(color_rounds(graphs, method), None if depth is None else depth + 1))
    stable = None if depth is not None and len(colors) == depth + 1 else len(colors) - 1
    colors += [colors[-1]] * (0 if depth is None else depth + 1 - len(colors))
    return Refinement(method, graphs, colors, stable)


def color_counts(graphs: GraphSet, colors: np.ndarray, count: int) -> sparse.csr_array:
    """Counts (G, count) of the colours 0..count-1 in each graph; negative colours are not counted."""
    seen = colors >= 0
    index = (
        np.int32 if max(len(graphs), count) < 2**31 else np.int64
    )  # scikit-learn's machines take 32 bits only
    cells = (graphs.graph_of_node[seen].astype(index), colors[seen].astype(index))
    ones = np.ones(len(cells[0]), dtype=np.int64)
    return sparse.coo_array((ones, cells), shape=(len(graphs), count)).tocsr()
